/* Tables: addresses, what a NetworkAttachmentDefinition asks for, and which address one gets. */
#include "lib/unit.h"

#include "api/address_name.h"
#include "api/nad.h"
#include "base/str.h"

static void networks(void **state)
{
    static const struct {
        const char *text, *first, *last; /* first NULL: not a network */
    } cases[] = {
        {"10.1.1.7/24", "10.1.1.0", "10.1.1.255"},
        {"10.1.1.7/32", "10.1.1.7", "10.1.1.7"},
        {"10.1.1.130/25", "10.1.1.128", "10.1.1.255"},
        {"0.0.0.0/0", "0.0.0.0", "255.255.255.255"},
        {"fd00:1::5/64", "fd00:1::", "fd00:1::ffff:ffff:ffff:ffff"},
        {"fd00::/127", "fd00::", "fd00::1"},
        {"10.1.1.7", NULL, NULL},
        {"10.1.1.7/33", NULL, NULL},
        {"10.1.1/24", NULL, NULL},
        {"fd00::/129", NULL, NULL},
        {"10.1.1.7/-1", NULL, NULL},
        {"/24", NULL, NULL},
        {"", NULL, NULL},
        {NULL, NULL, NULL},
    };
    char a[API_IP_TEXT], b[API_IP_TEXT], c[API_IP_TEXT];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct api_ip_net net;

        if (!api_ip_parse_net(cases[i].text, &net)) {
            assert_null(cases[i].first);
            continue;
        }
        struct api_ip first = api_ip_first(&net), last = api_ip_last(&net);
        assert_string_equal(api_ip_text(&first, a), cases[i].first);
        assert_string_equal(api_ip_text(&last, b), cases[i].last);
        assert_string_equal(api_ip_net_text(&net, c), cases[i].text);
        assert_true(api_ip_in(&net, &first) && api_ip_in(&net, &last));
        bool more = api_ip_next(&last), less = api_ip_previous(&first);
        assert_true(!more || !api_ip_in(&net, &last));
        assert_true(!less || !api_ip_in(&net, &first));
    }
}

/* The names of claims: one per address, and back. */
static void claim_names(void **state)
{
    static const char *const good[][2] = {
        {"10.1.1.5", "ferry-address-10.1.1.5"},
        {"fd00:1::5", "ferry-address-fd00-1--5-v6"},
        {"fd00::", "ferry-address-fd00---v6"},
    };
    static const char *const bad[] = {"ferry-address-",
                                      "ferry-address-10.1.1",
                                      "ferry-address-10.1.1.5-v6",
                                      "ferry-address-fd00-0--5-v6",
                                      "node1",
                                      "ferry-address-fd00--5"};
    char name[API_ADDRESS_NAME];
    struct api_ip ip, again;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(api_ip_parse(good[i][0], &ip));
        assert_string_equal(api_address_name(&ip, name), good[i][1]);
        assert_true(api_address_of_name(name, &again) && api_ip_compare(&ip, &again) == 0);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (api_address_of_name(bad[i], &ip)) {
            fail_msg("%s", bad[i]);
        }
    }
}

#define MACVLAN "{\"type\":\"macvlan\",\"master\":\"eth1\",\"ipam\":"
#define WHERE(more) MACVLAN "{\"type\":\"whereabouts\"," more "}}"
#define LOCAL(more) MACVLAN "{\"type\":\"host-local\"," more "}}"
#define STATIC(more) MACVLAN "{\"type\":\"static\"," more "}}"

static void refused(void **state)
{
    static const char *const cases[][2] = {
        {"", "spec.config is missing"},
        {"{", "spec.config"},
        {"[]", "type ''"},
        {"{\"type\":\"ptp\"}", "type 'ptp': must be macvlan, vlan or bridge"},
        {"{\"type\":\"macvlan\"}", "master ''"},
        {"{\"type\":\"macvlan\",\"master\":\"eth1 up\"}", "master 'eth1 up'"},
        {"{\"type\":\"macvlan\",\"master\":\"-f\"}", "master '-f'"},
        {"{\"type\":\"macvlan\",\"master\":\"a-name-that-is-too-long\"}", "master"},
        {"{\"type\":\"macvlan\",\"master\":\"e\",\"mode\":\"source\"}", "mode 'source'"},
        {"{\"type\":\"macvlan\",\"master\":\"e\",\"mtu\":10}", "mtu"},
        {"{\"type\":\"bridge\",\"bridge\":\"b\",\"vlan\":100}",
         "vlan: not supported: a bridge's ports have no VLAN of their own here"},
        {"{\"type\":\"macvlan\",\"master\":\"e\",\"vlan\":100}", "vlan: not supported"},
        {"{\"type\":\"bridge\",\"vlanTrunk\":[{\"id\":1}]}", "vlanTrunk: not supported"},
        {"{\"type\":\"bridge\",\"isGateway\":true}", "isGateway: not supported"},
        {"{\"type\":\"bridge\",\"isDefaultGateway\":true}", "isDefaultGateway: not supported"},
        {"{\"type\":\"bridge\",\"ipMasq\":true}", "ipMasq: not supported"},
        {"{\"type\":\"vlan\",\"master\":\"e\"}", "vlanId: must be in 1 to 4094"},
        {"{\"type\":\"vlan\",\"master\":\"e\",\"vlanId\":4095}", "vlanId"},
        {"{\"type\":\"vlan\",\"vlanId\":5}", "master ''"},
        {"{\"type\":\"bridge\",\"ipam\":{\"type\":\"dhcp\"}}",
         "ipam.type 'dhcp': not supported: Ferry has no DHCP client"},
        {"{\"type\":\"bridge\",\"ipam\":{\"type\":\"calico-ipam\"}}",
         "ipam.type 'calico-ipam': must be static, host-local or whereabouts"},
        {WHERE("\"range\":\"10.1.1.0/24\",\"routes\":[{\"dst\":\"10.2.0.0\"}]"),
         "ipam.routes[].dst '10.2.0.0'"},
        {WHERE("\"range\":\"10.1.1.0/24\",\"routes\":[{}]"), "ipam.routes[].dst ''"},
        {WHERE(
             "\"range\":\"10.1.1.0/24\",\"routes\":[{\"dst\":\"10.2.0.0/16\",\"gw\":\"fd00::1\"}]"),
         "ipam.routes[].gw 'fd00::1': must be an address of the same family"},
        {WHERE("\"x\":1"), "ipam.range is missing"},
        {WHERE("\"range\":\"10.1.1.0\""), "range '10.1.1.0'"},
        {WHERE("\"range\":\"10.1.1.0/24\",\"range_start\":\"10.1.2.1\""), "range_start '10.1.2.1'"},
        {WHERE("\"range\":\"10.1.1.0/24\",\"range_start\":\"10.1.1.9\",\"range_end\":\"10.1.1.8\""),
         "ends before"},
        {WHERE("\"range\":\"10.1.1.0/24\",\"exclude\":[\"x\"]"), "exclude 'x'"},
        {WHERE("\"range\":\"10.1.1.0/24\",\"gateway\":\"10.9.9.9\""), "gateway '10.9.9.9'"},
        {LOCAL("\"ranges\":[]"), "ipam.ranges is missing"},
        {LOCAL("\"ranges\":[[]]"), "an empty list"},
        {LOCAL("\"ranges\":[[{\"subnet\":\"10.1.1.0\"}]]"), "subnet '10.1.1.0'"},
        {STATIC("\"addresses\":[]"), "ipam.addresses is missing"},
        {STATIC("\"addresses\":[{\"address\":\"10.1.1.5\"}]"), "address '10.1.1.5'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct api_nad nad;
        struct ferry_error err = {0};

        assert_int_equal(api_nad_parse(cases[i][0], &nad, &err), -FERRY_INVALID);
        if (!strstr(err.msg, cases[i][1])) {
            fail_msg("%s: %s", cases[i][0], err.msg);
        }
    }
}

/* Claims are "ADDRESS HOLDER", separated by commas; the answer is one address per pool, "+" behind
 * one that was held before, "-" where there is none. */
static void picks(void **state)
{
    static const struct {
        const char *config, *claims, *answer;
    } cases[] = {
        {WHERE("\"range\":\"10.1.1.0/24\""), "", "10.1.1.1/24"},
        {WHERE("\"range\":\"10.1.1.0/24\",\"gateway\":\"10.1.1.1\""), "", "10.1.1.2/24"},
        {WHERE("\"range\":\"10.1.1.0/24\""), "10.1.1.1 other", "10.1.1.2/24"},
        {WHERE("\"range\":\"10.1.1.0/24\""), "10.1.1.1 other,10.1.1.9 me", "10.1.1.9/24+"},
        {WHERE(
             "\"range\":\"10.1.1.0/24\",\"range_start\":\"10.1.1.20\",\"range_end\":\"10.1.1.21\""),
         "10.1.1.20 other,10.1.1.9 me", "10.1.1.21/24"},
        {WHERE(
             "\"range\":\"10.1.1.0/24\",\"range_start\":\"10.1.1.20\",\"range_end\":\"10.1.1.20\""),
         "10.1.1.20 other", "-"},
        {WHERE("\"range\":\"10.1.1.20-10.1.1.30/24\""), "10.1.1.20 other", "10.1.1.21/24"},
        {WHERE("\"range\":\"10.1.1.0/30\""), "10.1.1.1 a,10.1.1.2 b", "-"},
        {WHERE("\"range\":\"10.1.1.0/24\",\"exclude\":[\"10.1.1.0/28\",\"10.1.1.16\"]"), "",
         "10.1.1.17/24"},
        {WHERE("\"range\":\"10.1.1.0/24\",\"exclude\":[\"10.1.1.8/29\"]"), "10.1.1.9 me",
         "10.1.1.1/24"},
        {WHERE("\"range\":\"fd00:1::/64\",\"exclude\":[\"fd00:1::/96\"]"), "", "fd00:1::1:0:0/64"},
        {WHERE("\"range\":\"10.1.1.0/24\",\"ipRanges\":[{\"range\":\"fd00:1::/64\"}]"),
         "fd00:1::1 other", "10.1.1.1/24 fd00:1::2/64"},
        {LOCAL("\"subnet\":\"10.1.1.0/24\",\"rangeStart\":\"10.1.1.5\""), "", "10.1.1.5/24"},
        {LOCAL("\"ranges\":[[{\"subnet\":\"10.1.1.0/30\"},{\"subnet\":\"10.1.2.0/30\"}],"
               "[{\"subnet\":\"fd00::/64\"}]]"),
         "10.1.1.1 a,10.1.1.2 b", "10.1.2.1/30 fd00::1/64"},
        {STATIC("\"addresses\":[{\"address\":\"10.1.1.5/24\"},{\"address\":\"10.1.1.6/24\"},"
                "{\"address\":\"fd00::5/64\"}]"),
         "10.1.1.5 other", "10.1.1.6/24 fd00::5/64"},
        {"{\"plugins\":[{\"type\":\"bridge\",\"bridge\":\"br1\",\"ipam\":{\"type\":\"whereabouts\","
         "\"range\":\"10.1.1.0/31\"}},{\"type\":\"tuning\"}]}",
         "10.1.1.0 a", "10.1.1.1/31"},
        {"{\"type\":\"bridge\",\"bridge\":\"br1\",\"ipam\":{}}", "", ""},
        {"{\"type\":\"bridge\",\"vlan\":0,\"isGateway\":false,\"ipMasq\":null,\"vlanTrunk\":[]}",
         "", ""},
        {"{\"type\":\"vlan\",\"master\":\"eth1\",\"vlanId\":100,\"ipam\":{\"type\":\"static\","
         "\"addresses\":[{\"address\":\"10.1.1.5/24\"}],\"routes\":[{\"dst\":\"0.0.0.0/0\"}]}}",
         "", "10.1.1.5/24"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *text = ferry_strdup(cases[i].claims);
        ferry_cleanup_buf struct ferry_buf out = {0};
        struct api_nad_claim claims[4];
        struct ferry_error err = {0};
        struct api_nad nad;
        size_t n = 0;
        char *save = NULL;

        if (api_nad_parse(cases[i].config, &nad, &err) < 0) {
            fail_msg("%s: %s", cases[i].config, err.msg);
        }
        for (char *c = strtok_r(text, ",", &save); c; c = strtok_r(NULL, ",", &save)) {
            char *space = strchr(c, ' ');

            *space = '\0';
            assert_true(api_ip_parse(c, &claims[n].ip));
            claims[n++].holder = space + 1;
        }
        for (size_t k = 0; k < nad.n_pools; k++) {
            struct api_ip_net got;
            char at[API_IP_TEXT];
            bool held;
            bool some = api_nad_pick(&nad.pools[k], claims, n, "me", &got, &held);

            ferry_buf_printf(&out, "%s%s%s", k ? " " : "", some ? api_ip_net_text(&got, at) : "-",
                             held ? "+" : "");
            assert_true(!some || api_nad_has(&nad, &got.ip));
        }
        if (strcmp(out.data ? out.data : "", cases[i].answer) != 0) {
            fail_msg("%s with %s: %s", cases[i].config, cases[i].claims, out.data);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks),
        cmocka_unit_test(claim_names),
        cmocka_unit_test(refused),
        cmocka_unit_test(picks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
