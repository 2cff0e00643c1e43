#include "pods/pod_net_plan.h"

#include <stdint.h>
#include <string.h>

#include "api/json.h"
#include "api/names.h"

static int wrong(struct ferry_error *err, const char *key)
{
    return ferry_fail(err, FERRY_INVALID,
                      "annotation ferry.io/networks: '%.40s': must be tapN with NAMESPACE/NAME",
                      key);
}

static int read_one(const char *key, const char *value, struct pod_nets *ret,
                    struct ferry_error *err)
{
    long long tap;

    if (!ferry_str_starts(key, "tap") ||
        ferry_parse_int(key + 3, 0, POD_NET_MAX - 1, &tap, NULL) < 0 || !value ||
        ret->n == POD_NET_MAX) {
        return wrong(err, key);
    }
    size_t len = strlen(value) + 1, had = 0;
    for (size_t i = 0; i < ret->n; i++) {
        had += strlen(ret->list[i].ns) + strlen(ret->list[i].name) + 2;
    }
    char *at = ret->text + had;
    memcpy(at, value, len);
    char *slash = strchr(at, '/');
    if (!slash) {
        return wrong(err, key);
    }
    *slash = '\0';
    if (!api_name_is_dns_label(at) || !api_name_is_dns_subdomain(slash + 1)) {
        return wrong(err, key);
    }
    ret->list[ret->n++] = (struct pod_net){.tap = (unsigned)tap, .ns = at, .name = slash + 1};
    return 0;
}

int pod_nets_read(const char *annotation, struct pod_nets *ret, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    yyjson_val *key, *value;
    size_t i, max;

    *ret = (struct pod_nets){0};
    if (ferry_str_empty(annotation)) {
        return 0;
    }
    if (api_json_parse_depth(annotation, strlen(annotation), API_JSON_DEPTH, &doc, err) < 0) {
        return ferry_wrap(err, "annotation ferry.io/networks");
    }
    ret->text = ferry_xcalloc(1, strlen(annotation) + 1);
    yyjson_obj_foreach(yyjson_doc_get_root(doc), i, max, key, value)
    {
        if (read_one(yyjson_get_str(key), yyjson_get_str(value), ret, err) < 0) {
            pod_nets_done(ret);
            return -FERRY_INVALID;
        }
    }
    return 0;
}

void pod_nets_done(struct pod_nets *n)
{
    free(n->text);
    *n = (struct pod_nets){0};
}

/* Unique on the host, fifteen characters at most. */
void pod_net_port(const char *pod_uid, unsigned tap, char ret[API_NAD_LINK_NAME])
{
    uint32_t h = UINT32_C(2166136261);

    for (const char *c = pod_uid; *c; c++) {
        h = (h ^ (unsigned char)*c) * UINT32_C(16777619);
    }
    snprintf(ret, API_NAD_LINK_NAME, "ferry%08x%u", h, tap);
}

int pod_net_plan(const struct pod_net *net, const struct api_nad *nad,
                 const struct pod_net_place *place, struct ferry_buf *ret_host,
                 struct ferry_buf *ret_pod, struct ferry_error *err)
{
    char port[API_NAD_LINK_NAME];
    unsigned i = net->tap;

    if (nad->type != API_NAD_BRIDGE) {
        return ferry_fail(err, FERRY_INVALID,
                          "NetworkAttachmentDefinition %s/%s: a guest can only be attached to a "
                          "bridge",
                          net->ns, net->name);
    }
    pod_net_port(place->pod_uid, i, port);
    if (!place->bridge_exists) {
        ferry_buf_printf(ret_host, "link add name %s type bridge\nlink set dev %s up\n", nad->link,
                         nad->link);
    }
    ferry_buf_printf(ret_host, "link add name %s type veth peer name net%u netns %d\n", port, i,
                     (int)place->pid);
    ferry_buf_printf(ret_host, "link set dev %s addrgenmode none master %s up\n", port, nad->link);
    ferry_buf_printf(ret_pod, "link add name br%u type bridge mcast_snooping 0\n", i);
    ferry_buf_printf(ret_pod, "tuntap add dev tap%u mode tap user %u group %u\n", i, place->uid,
                     place->gid);
    for (size_t k = 0; k < 3; k++) {
        static const char *const links[] = {"br", "net", "tap"};

        if (nad->mtu) {
            ferry_buf_printf(ret_pod, "link set dev %s%u mtu %d\n", links[k], i, nad->mtu);
        }
        ferry_buf_printf(ret_pod, "link set dev %s%u addrgenmode none", links[k], i);
        if (k > 0) {
            ferry_buf_printf(ret_pod, " master br%u", i);
        }
        ferry_buf_puts(ret_pod, " up\n");
    }
    return 0;
}
