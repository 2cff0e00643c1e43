#include "api/nad.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "base/count.h"
#include "base/str.h"

enum { MTU_MIN = 576, MTU_MAX = 65535, VLAN_MAX = 4094 };

static yyjson_val *field(yyjson_val *v, const char *name)
{
    return yyjson_obj_get(v, name);
}

static const char *text(yyjson_val *v, const char *name)
{
    return yyjson_get_str(field(v, name));
}

static int wrong(struct ferry_error *err, const char *what, const char *value, const char *must)
{
    return ferry_fail(err, FERRY_INVALID, "spec.config: %s '%.100s': %s", what, value ? value : "",
                      must);
}

/* ---- links ------------------------------------------------------------------------------------
 */

static int read_link(yyjson_val *v, const char *name, const char *fallback, char *ret,
                     struct ferry_error *err)
{
    const char *link = text(v, name) ? text(v, name) : fallback;
    bool plain = !ferry_str_empty(link) && strlen(link) < API_NAD_LINK_NAME &&
                 !ferry_streq(link, ".") && !ferry_streq(link, "..");

    for (const char *c = plain ? link : ""; *c; c++) {
        plain = plain && (isalnum((unsigned char)*c) || strchr("._-@", *c)) && link[0] != '-';
    }
    if (!plain) {
        return wrong(err, name, link, "must be the name of a network interface");
    }
    snprintf(ret, API_NAD_LINK_NAME, "%s", link);
    return 0;
}

static int read_number(yyjson_val *v, const char *name, int64_t min, int64_t max, int *ret,
                       struct ferry_error *err)
{
    yyjson_val *number = field(v, name);
    int64_t value = 0;

    if (!number) {
        return 0;
    }
    if (!api_json_get_int(number, &value) || (value && (value < min || value > max))) {
        return ferry_fail(err, FERRY_INVALID, "spec.config: %s: must be 0 or in %lld to %lld", name,
                          (long long)min, (long long)max);
    }
    *ret = (int)value;
    return 0;
}

static int read_mode(yyjson_val *v, const char **ret, struct ferry_error *err)
{
    static const char *const modes[] = {"bridge", "private", "vepa", "passthru"};
    const char *mode = text(v, "mode");

    *ret = modes[0];
    for (size_t i = 0; mode && i < FERRY_COUNT(modes); i++) {
        if (ferry_streq(mode, modes[i])) {
            *ret = modes[i];
            return 0;
        }
    }
    return mode ? wrong(err, "mode", mode, "must be bridge, private, vepa or passthru") : 0;
}

/* Fields that would have to be obeyed. */
static int check_unsupported(yyjson_val *v, struct ferry_error *err)
{
    static const char *const must[][2] = {
        {"isGateway", "the bridge gets no address from Ferry; give it one on the host"},
        {"isDefaultGateway", "the bridge gets no address from Ferry; give it one on the host"},
        {"ipMasq", "Ferry sets no packet filter; masquerade on the host"},
        {"vlanTrunk", "put interfaces of the VLANs into bridges of their own"},
        {"vlan", "a bridge's ports have no VLAN of their own here; put an interface of the VLAN "
                 "(eth1.100) into the bridge, or use type vlan"},
    };

    for (size_t i = 0; i < FERRY_COUNT(must); i++) {
        yyjson_val *f = field(v, must[i][0]);

        if (f && !yyjson_is_null(f) && !yyjson_is_false(f) &&
            !(yyjson_is_num(f) && yyjson_get_num(f) == 0) &&
            !(yyjson_is_arr(f) && yyjson_arr_size(f) == 0)) {
            return ferry_fail(err, FERRY_INVALID, "spec.config: %s: not supported: %s", must[i][0],
                              must[i][1]);
        }
    }
    return 0;
}

static int read_vlan(yyjson_val *v, struct api_nad *ret, struct ferry_error *err)
{
    int rc = read_link(v, "master", NULL, ret->link, err);

    rc = rc < 0 ? rc : read_number(v, "vlanId", 1, VLAN_MAX, &ret->vlan, err);
    return rc == 0 && ret->vlan == 0
               ? ferry_fail(err, FERRY_INVALID, "spec.config: vlanId: must be in 1 to %d", VLAN_MAX)
               : rc;
}

static int read_plugin(yyjson_val *v, struct api_nad *ret, struct ferry_error *err)
{
    const char *type = text(v, "type");
    int rc = check_unsupported(v, err);

    if (rc < 0) {
        return rc;
    }
    if (ferry_streq(type, "macvlan")) {
        ret->type = API_NAD_MACVLAN;
        rc = read_link(v, "master", NULL, ret->link, err);
        rc = rc < 0 ? rc : read_mode(v, &ret->mode, err);
    } else if (ferry_streq(type, "bridge")) {
        ret->type = API_NAD_BRIDGE;
        rc = read_link(v, "bridge", "cni0", ret->link, err);
    } else if (ferry_streq(type, "vlan")) {
        ret->type = API_NAD_VLAN;
        rc = read_vlan(v, ret, err);
    } else {
        return wrong(err, "type", type, "must be macvlan, vlan or bridge");
    }
    return rc < 0 ? rc : read_number(v, "mtu", MTU_MIN, MTU_MAX, &ret->mtu, err);
}

/* ---- addresses --------------------------------------------------------------------------------
 */

/* The names that an address manager has for the same things. */
struct names {
    const char *net, *first, *last, *gateway;
};
static const struct names whereabouts = {"range", "range_start", "range_end", "gateway"};
static const struct names host_local = {"subnet", "rangeStart", "rangeEnd", "gateway"};

static int read_bound(yyjson_val *v, const char *name, const struct api_ip_net *net,
                      struct api_ip *ret, struct ferry_error *err)
{
    const char *value = text(v, name);

    if (!value) {
        return 0;
    }
    if (!api_ip_parse(value, ret) || !api_ip_in(net, ret)) {
        return wrong(err, name, value, "must be an address of the network");
    }
    return 0;
}

/* "10.1.1.20-10.1.1.30/24" is whereabouts' short form of range_start and range_end. */
static bool read_net(const char *value, struct api_nad_range *r, bool *ret_bounded)
{
    const char *dash = value ? strchr(value, '-') : NULL;

    *ret_bounded = dash != NULL;
    if (!dash) {
        return api_ip_parse_net(value, &r->net);
    }
    ferry_cleanup_free char *first = ferry_strndup(value, (size_t)(dash - value));
    if (!api_ip_parse(first, &r->first) || !api_ip_parse_net(dash + 1, &r->net)) {
        return false;
    }
    r->last = r->net.ip;
    return api_ip_in(&r->net, &r->first);
}

/* Neither the network's own address nor, with IPv4, that for all is a host's. */
static void default_bounds(struct api_nad_range *r)
{
    r->first = api_ip_first(&r->net);
    r->last = api_ip_last(&r->net);
    if (r->net.prefix < API_IP_BYTES * 8 - 1) {
        api_ip_next(&r->first);
        if (api_ip_is_v4(&r->last)) {
            api_ip_previous(&r->last);
        }
    }
}

static int read_excludes(yyjson_val *list, struct api_nad_range *r, struct ferry_error *err)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(list);

    for (yyjson_val *e; (e = yyjson_arr_iter_next(&it));) {
        const char *value = yyjson_get_str(e);
        struct api_ip_net *x = &r->excludes[r->n_excludes];

        if (r->n_excludes == API_NAD_EXCLUDES) {
            return ferry_fail(err, FERRY_INVALID, "spec.config: exclude: more than %d",
                              API_NAD_EXCLUDES);
        }
        if (api_ip_parse(value, &x->ip)) {
            x->prefix = API_IP_BYTES * 8;
        } else if (!api_ip_parse_net(value, x)) {
            return wrong(err, "exclude", value, "must be an address or a network");
        }
        r->n_excludes++;
    }
    return 0;
}

static int read_range(yyjson_val *v, const struct names *names, struct api_nad_pool *pool,
                      struct ferry_error *err)
{
    struct api_nad_range r = {0};
    const char *value = text(v, names->net);
    bool bounded;

    if (!read_net(value, &r, &bounded)) {
        return wrong(err, names->net, value, "must be a network like 10.1.1.0/24");
    }
    if (!bounded) {
        default_bounds(&r);
    }
    int rc = read_bound(v, names->first, &r.net, &r.first, err);
    rc = rc < 0 ? rc : read_bound(v, names->last, &r.net, &r.last, err);
    rc = rc < 0 ? rc : read_bound(v, names->gateway, &r.net, &r.gateway, err);
    rc = rc < 0 ? rc : read_excludes(field(v, "exclude"), &r, err);
    if (rc < 0) {
        return rc;
    }
    if (api_ip_compare(&r.first, &r.last) > 0) {
        return wrong(err, names->net, value, "the range ends before it begins");
    }
    r.has_gateway = text(v, names->gateway) != NULL;
    if (pool->n == API_NAD_RANGES) {
        return ferry_fail(err, FERRY_INVALID, "spec.config: ipam: more than %d ranges",
                          API_NAD_RANGES);
    }
    pool->ranges[pool->n++] = r;
    return 0;
}

static struct api_nad_pool *new_pool(struct api_nad *nad, struct ferry_error *err)
{
    if (nad->n_pools == API_NAD_POOLS) {
        ferry_fail(err, FERRY_INVALID, "spec.config: ipam: more than %d pools of addresses",
                   API_NAD_POOLS);
        return NULL;
    }
    return &nad->pools[nad->n_pools++];
}

static int read_one_pool(yyjson_val *v, const struct names *names, struct api_nad *nad,
                         struct ferry_error *err)
{
    struct api_nad_pool *pool = new_pool(nad, err);

    return pool ? read_range(v, names, pool, err) : -FERRY_INVALID;
}

static int read_whereabouts(yyjson_val *ipam, struct api_nad *nad, struct ferry_error *err)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(field(ipam, "ipRanges"));
    int rc = field(ipam, "range") ? read_one_pool(ipam, &whereabouts, nad, err) : 0;

    for (yyjson_val *r; rc == 0 && (r = yyjson_arr_iter_next(&it));) {
        rc = read_one_pool(r, &whereabouts, nad, err);
    }
    return rc == 0 && nad->n_pools == 0
               ? ferry_fail(err, FERRY_INVALID, "spec.config: ipam.range is missing")
               : rc;
}

/* `ranges` is a list of pools, each a list of ranges. */
static int read_host_local(yyjson_val *ipam, struct api_nad *nad, struct ferry_error *err)
{
    yyjson_arr_iter sets = yyjson_arr_iter_with(field(ipam, "ranges"));
    int rc = field(ipam, "subnet") ? read_one_pool(ipam, &host_local, nad, err) : 0;

    for (yyjson_val *set; rc == 0 && (set = yyjson_arr_iter_next(&sets));) {
        yyjson_arr_iter it = yyjson_arr_iter_with(set);
        struct api_nad_pool *pool = new_pool(nad, err);

        rc = pool ? 0 : -FERRY_INVALID;
        for (yyjson_val *r; rc == 0 && (r = yyjson_arr_iter_next(&it));) {
            rc = read_range(r, &host_local, pool, err);
        }
        if (rc == 0 && pool->n == 0) {
            rc = ferry_fail(err, FERRY_INVALID, "spec.config: ipam.ranges: an empty list");
        }
    }
    return rc == 0 && nad->n_pools == 0
               ? ferry_fail(err, FERRY_INVALID, "spec.config: ipam.ranges is missing")
               : rc;
}

/* Every holder gets one of the addresses of each family. */
static int read_static(yyjson_val *ipam, struct api_nad *nad, struct ferry_error *err)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(field(ipam, "addresses"));
    struct api_nad_pool *pools[2] = {NULL, NULL};

    for (yyjson_val *a; (a = yyjson_arr_iter_next(&it));) {
        const char *value = text(a, "address");
        struct api_nad_range r = {0};

        if (!api_ip_parse_net(value, &r.net)) {
            return wrong(err, "ipam.addresses[].address", value, "must be like 10.1.1.5/24");
        }
        r.first = r.last = r.net.ip;
        bool v4 = api_ip_is_v4(&r.first);
        pools[v4] = pools[v4] ? pools[v4] : new_pool(nad, err);
        if (!pools[v4] || pools[v4]->n == API_NAD_RANGES) {
            return ferry_fail(err, FERRY_INVALID, "spec.config: ipam.addresses: more than %d",
                              API_NAD_RANGES);
        }
        pools[v4]->ranges[pools[v4]->n++] = r;
    }
    return nad->n_pools ? 0
                        : ferry_fail(err, FERRY_INVALID, "spec.config: ipam.addresses is missing");
}

/* The gateway of the first range of that family, if it has one. */
static void default_via(const struct api_nad *nad, struct api_nad_route *r)
{
    for (size_t i = 0; i < nad->n_pools && !r->has_via; i++) {
        for (size_t k = 0; k < nad->pools[i].n && !r->has_via; k++) {
            const struct api_nad_range *range = &nad->pools[i].ranges[k];

            if (range->has_gateway && api_ip_is_v4(&range->gateway) == api_ip_is_v4(&r->to.ip)) {
                r->via = range->gateway;
                r->has_via = true;
            }
        }
    }
}

/* All managers have them alike: dst, and gw when it is not the range's gateway. */
static int read_routes(yyjson_val *ipam, struct api_nad *nad, struct ferry_error *err)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(field(ipam, "routes"));

    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        const char *dst = text(v, "dst"), *gw = text(v, "gw");
        struct api_nad_route r = {.has_via = gw != NULL};

        if (nad->n_routes == API_NAD_ROUTES) {
            return ferry_fail(err, FERRY_INVALID, "spec.config: ipam.routes: more than %d",
                              API_NAD_ROUTES);
        }
        if (!api_ip_parse_net(dst, &r.to)) {
            return wrong(err, "ipam.routes[].dst", dst, "must be a network like 10.2.0.0/16");
        }
        if (gw && (!api_ip_parse(gw, &r.via) || api_ip_is_v4(&r.via) != api_ip_is_v4(&r.to.ip))) {
            return wrong(err, "ipam.routes[].gw", gw, "must be an address of the same family");
        }
        r.to.ip = api_ip_first(&r.to);
        default_via(nad, &r);
        nad->routes[nad->n_routes++] = r;
    }
    return 0;
}

static int read_addresses(yyjson_val *ipam, struct api_nad *ret, struct ferry_error *err)
{
    const char *type = text(ipam, "type");

    if (!type) {
        return 0; /* no addresses from here */
    }
    if (ferry_streq(type, "dhcp")) {
        return wrong(err, "ipam.type", type,
                     "not supported: Ferry has no DHCP client; use static, host-local or "
                     "whereabouts, or leave ipam out where addresses are given otherwise");
    }
    return ferry_streq(type, "whereabouts")  ? read_whereabouts(ipam, ret, err)
           : ferry_streq(type, "host-local") ? read_host_local(ipam, ret, err)
           : ferry_streq(type, "static")
               ? read_static(ipam, ret, err)
               : wrong(err, "ipam.type", type, "must be static, host-local or whereabouts");
}

static int read_ipam(yyjson_val *ipam, struct api_nad *ret, struct ferry_error *err)
{
    int rc = read_addresses(ipam, ret, err);

    return rc < 0 ? rc : read_routes(ipam, ret, err);
}

int api_nad_parse(const char *config, struct api_nad *ret, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;

    *ret = (struct api_nad){0};
    if (ferry_str_empty(config)) {
        return ferry_fail(err, FERRY_INVALID, "spec.config is missing");
    }
    if (api_json_parse_depth(config, strlen(config), API_JSON_DEPTH, &doc, err) < 0) {
        return ferry_wrap(err, "spec.config");
    }
    yyjson_val *root = yyjson_doc_get_root(doc), *plugins = field(root, "plugins");
    yyjson_val *plugin = plugins ? yyjson_arr_get_first(plugins) : root;
    int rc = read_plugin(plugin, ret, err);
    return rc < 0 ? rc : read_ipam(field(plugin, "ipam"), ret, err);
}

/* ---- choosing ---------------------------------------------------------------------------------
 */

static const struct api_nad_claim *claim_of(const struct api_nad_claim *claims, size_t n,
                                            const struct api_ip *ip)
{
    for (size_t i = 0; i < n; i++) {
        if (api_ip_compare(&claims[i].ip, ip) == 0) {
            return &claims[i];
        }
    }
    return NULL;
}

static bool in_range(const struct api_nad_range *r, const struct api_ip *ip)
{
    return api_ip_compare(ip, &r->first) >= 0 && api_ip_compare(ip, &r->last) <= 0;
}

/* The exclusion that `ip` is in, or NULL. */
static const struct api_ip_net *excluded(const struct api_nad_range *r, const struct api_ip *ip)
{
    for (size_t i = 0; i < r->n_excludes; i++) {
        if (api_ip_in(&r->excludes[i], ip)) {
            return &r->excludes[i];
        }
    }
    return NULL;
}

/* An exclusion is left behind in one step, however large it is. */
static bool free_in_range(const struct api_nad_range *r, const struct api_nad_claim *claims,
                          size_t n, struct api_ip *ret)
{
    struct api_ip ip = r->first;

    for (bool more = true; more && api_ip_compare(&ip, &r->last) <= 0; more = api_ip_next(&ip)) {
        const struct api_ip_net *x = excluded(r, &ip);

        if (x) {
            ip = api_ip_last(x);
        } else if ((!r->has_gateway || api_ip_compare(&ip, &r->gateway) != 0) &&
                   !claim_of(claims, n, &ip)) {
            *ret = ip;
            return true;
        }
    }
    return false;
}

bool api_nad_pick(const struct api_nad_pool *pool, const struct api_nad_claim *claims, size_t n,
                  const char *holder, struct api_ip_net *ret, bool *ret_held)
{
    *ret_held = false;
    for (size_t i = 0; i < pool->n; i++) {
        const struct api_nad_range *r = &pool->ranges[i];

        for (size_t k = 0; k < n; k++) {
            if (ferry_streq(claims[k].holder, holder) && in_range(r, &claims[k].ip) &&
                !excluded(r, &claims[k].ip)) {
                *ret = (struct api_ip_net){.ip = claims[k].ip, .prefix = r->net.prefix};
                *ret_held = true;
                return true;
            }
        }
    }
    for (size_t i = 0; i < pool->n; i++) {
        const struct api_nad_range *r = &pool->ranges[i];

        if (free_in_range(r, claims, n, &ret->ip)) {
            ret->prefix = r->net.prefix;
            return true;
        }
    }
    return false;
}

bool api_nad_has(const struct api_nad *nad, const struct api_ip *ip)
{
    for (size_t i = 0; i < nad->n_pools; i++) {
        for (size_t k = 0; k < nad->pools[i].n; k++) {
            if (in_range(&nad->pools[i].ranges[k], ip)) {
                return true;
            }
        }
    }
    return false;
}

const struct api_nad_pool *api_nad_giver(const struct api_nad *nad, const struct api_ip *ip)
{
    for (size_t i = 0; i < nad->n_pools; i++) {
        for (size_t k = 0; k < nad->pools[i].n; k++) {
            const struct api_nad_range *r = &nad->pools[i].ranges[k];
            bool gateway = r->has_gateway && api_ip_compare(ip, &r->gateway) == 0;

            if (in_range(r, ip) && !excluded(r, ip) && !gateway) {
                return &nad->pools[i];
            }
        }
    }
    return NULL;
}
