/* Network definitions, addresses and names of claims from anybody. */
#include "fuzz.h"

#include "api/address_name.h"
#include "api/nad.h"

/* An address that a pool gives is of the pool, and is given once. */
static void pick_two(const struct api_nad *nad, const struct api_nad_pool *pool)
{
    struct api_nad_claim claims[1] = {{.holder = "a"}};
    struct api_ip_net first, second;
    bool held;

    if (!api_nad_pick(pool, NULL, 0, "a", &first, &held)) {
        return;
    }
    must(!held && api_nad_has(nad, &first.ip));
    claims[0].ip = first.ip;
    must(api_nad_pick(pool, claims, 1, "a", &second, &held) && held);
    must(api_ip_compare(&first.ip, &second.ip) == 0);
    if (api_nad_pick(pool, claims, 1, "b", &second, &held)) {
        must(!held && api_ip_compare(&first.ip, &second.ip) != 0);
    }
}

static void addresses(const char *text)
{
    char shown[API_IP_TEXT], name[API_ADDRESS_NAME];
    struct api_ip ip, again;
    struct api_ip_net net;

    if (api_ip_parse(text, &ip)) {
        must(api_ip_parse(api_ip_text(&ip, shown), &again) && api_ip_compare(&ip, &again) == 0);
        must(api_address_of_name(api_address_name(&ip, name), &again));
        must(api_ip_compare(&ip, &again) == 0);
    }
    if (api_ip_parse_net(text, &net)) {
        struct api_ip first = api_ip_first(&net), last = api_ip_last(&net);

        must(api_ip_compare(&first, &last) <= 0 && api_ip_in(&net, &net.ip));
    }
    (void)api_address_of_name(text, &ip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ferry_cleanup_free char *text = fuzz_text(data, size);
    struct api_nad nad;

    addresses(text);
    if (api_nad_parse(text, &nad, NULL) < 0) {
        return 0;
    }
    for (size_t i = 0; i < nad.n_pools; i++) {
        pick_two(&nad, &nad.pools[i]);
    }
    return 0;
}
