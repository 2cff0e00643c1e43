#include "handler/node/migration_link.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"

#define ALIAS "ferry:"

enum { V4_PREFIX = 96 };

static void read_addresses(yyjson_val *list, struct migration_link_seen *ret)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(list);

    for (yyjson_val *a; (a = yyjson_arr_iter_next(&it)) && ret->n < MIGRATION_LINK_ADDRESSES;) {
        const char *local = api_json_str(a, "/local"), *scope = api_json_str(a, "/scope");
        ferry_cleanup_free char *text = ferry_asprintf(
            "%s/%lld", local ? local : "", (long long)api_json_int(a, "/prefixlen", -1));

        if (ferry_streq(scope, "global") && api_ip_parse_net(text, &ret->addresses[ret->n])) {
            ret->n++;
        }
    }
}

int migration_link_parse(const char *json, size_t len, struct migration_link_seen *ret,
                         struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;

    *ret = (struct migration_link_seen){0};
    if (api_json_parse_depth(json, len, API_JSON_DEPTH, &doc, err) < 0) {
        return ferry_wrap(err, "reading what ip says");
    }
    yyjson_val *link = yyjson_arr_get_first(yyjson_doc_get_root(doc)), *flag;
    const char *alias = link ? api_json_str(link, "/ifalias") : NULL;
    size_t i, max;

    ret->exists = link != NULL;
    ret->ours = alias && ferry_str_starts(alias, ALIAS);
    snprintf(ret->alias, sizeof(ret->alias), "%s", alias ? alias : "");
    yyjson_arr_foreach(yyjson_obj_get(link, "flags"), i, max, flag)
    {
        ret->up = ret->up || ferry_streq(yyjson_get_str(flag), "UP");
    }
    read_addresses(yyjson_obj_get(link, "addr_info"), ret);
    return 0;
}

int migration_link_check(const struct api_nad *nad, struct ferry_error *err)
{
    if (nad->n_pools == 0) {
        return ferry_fail(err, FERRY_INVALID, "spec.config: ipam is missing");
    }
    for (size_t i = 0; i < nad->n_routes; i++) {
        const struct api_ip_net *to = &nad->routes[i].to;

        if (to->prefix == (api_ip_is_v4(&to->ip) ? V4_PREFIX : 0)) {
            return ferry_fail(
                err, FERRY_INVALID,
                "spec.config: ipam.routes[].dst: a default route would take all other "
                "traffic of the node; name the networks of the other nodes");
        }
    }
    return 0;
}

static void route(const struct api_nad_route *r, const char *dev, struct ferry_buf *ret)
{
    char to[API_IP_TEXT], via[API_IP_TEXT];

    ferry_buf_printf(ret, "route replace %s %s%s%sdev %s\n", api_ip_net_text(&r->to, to),
                     r->has_via ? "via " : "", r->has_via ? api_ip_text(&r->via, via) : "",
                     r->has_via ? " " : "", dev);
}

/* What the link is made from, in one word: with routes a number for them, so that others come with
 * another link. */
static void alias_of(const struct api_nad *nad, char ret[MIGRATION_LINK_ALIAS])
{
    static const char *const types[] = {
        [API_NAD_MACVLAN] = "macvlan", [API_NAD_VLAN] = "vlan", [API_NAD_BRIDGE] = "bridge"};
    int n = snprintf(ret, MIGRATION_LINK_ALIAS, ALIAS "%s:%s:%s:%d:%d", types[nad->type], nad->link,
                     nad->type == API_NAD_MACVLAN ? nad->mode : "", nad->mtu, nad->vlan);
    ferry_cleanup_buf struct ferry_buf routes = {0};
    uint32_t h = UINT32_C(2166136261);

    for (size_t i = 0; i < nad->n_routes; i++) {
        route(&nad->routes[i], "", &routes);
    }
    for (size_t i = 0; i < routes.len; i++) {
        h = (h ^ (unsigned char)routes.data[i]) * UINT32_C(16777619);
    }
    if (nad->n_routes && n > 0 && n < MIGRATION_LINK_ALIAS) {
        snprintf(ret + n, (size_t)(MIGRATION_LINK_ALIAS - n), ":%08x", h);
    }
}

static void make(const struct migration_link_wanted *w, const char *alias, struct ferry_buf *ret)
{
    const struct api_nad *nad = w->nad;

    if (nad->type == API_NAD_MACVLAN) {
        ferry_buf_printf(ret, "link add link %s name %s type macvlan mode %s\n", nad->link, w->name,
                         nad->mode);
    } else if (nad->type == API_NAD_VLAN) {
        ferry_buf_printf(ret, "link add link %s name %s type vlan id %d\n", nad->link, w->name,
                         nad->vlan);
    } else {
        if (!w->bridge_exists) {
            ferry_buf_printf(ret, "link add name %s type bridge\nlink set dev %s up\n", nad->link,
                             nad->link);
        }
        ferry_buf_printf(ret, "link add name %s type veth peer name %.11s-up\n", w->name, w->name);
        ferry_buf_printf(ret, "link set dev %.11s-up master %s up\n", w->name, nad->link);
    }
    ferry_buf_printf(ret, "link set dev %s alias %s\n", w->name, alias);
    if (nad->mtu) {
        ferry_buf_printf(ret, "link set dev %s mtu %d\n", w->name, nad->mtu);
    }
}

static bool has(const struct api_ip_net *list, size_t n, const struct api_ip_net *one)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i].prefix == one->prefix && api_ip_compare(&list[i].ip, &one->ip) == 0) {
            return true;
        }
    }
    return false;
}

/* Of IPv4 networks the kernel keeps one address as the first; when that goes, so do the others. */
static bool goes_with(const struct api_ip_net *one, const struct api_ip_net *removed)
{
    return one->prefix == removed->prefix && api_ip_is_v4(&one->ip) && api_ip_is_v4(&removed->ip) &&
           api_ip_in(removed, &one->ip);
}

static void add_address(const char *verb, const struct api_ip_net *a, const char *dev,
                        struct ferry_buf *ret)
{
    char text[API_IP_TEXT];

    ferry_buf_printf(ret, "addr %s %s dev %s%s\n", verb, api_ip_net_text(a, text), dev,
                     api_ip_is_v4(&a->ip) ? "" : " nodad");
}

/* The new address is there before the old one goes, and still is afterwards. */
static void address(const struct migration_link_seen *seen, const struct migration_link_wanted *w,
                    struct ferry_buf *ret)
{
    bool lost[API_NAD_POOLS] = {false};
    char text[API_IP_TEXT];

    for (size_t i = 0; i < w->n; i++) {
        if (!has(seen->addresses, seen->n, &w->addresses[i])) {
            add_address("add", &w->addresses[i], w->name, ret);
        }
    }
    for (size_t i = 0; i < seen->n; i++) {
        if (has(w->addresses, w->n, &seen->addresses[i])) {
            continue;
        }
        ferry_buf_printf(ret, "addr del %s dev %s\n", api_ip_net_text(&seen->addresses[i], text),
                         w->name);
        for (size_t k = 0; k < w->n; k++) {
            lost[k] = lost[k] || goes_with(&w->addresses[k], &seen->addresses[i]);
        }
    }
    for (size_t k = 0; k < w->n; k++) {
        if (lost[k]) {
            add_address("replace", &w->addresses[k], w->name, ret);
        }
    }
}

void migration_link_plan(const struct migration_link_seen *seen,
                         const struct migration_link_wanted *wanted, struct ferry_buf *ret)
{
    static const struct migration_link_seen nothing = {0};
    char alias[MIGRATION_LINK_ALIAS];

    if (seen->exists && !seen->ours) {
        return;
    }
    if (wanted->nad) {
        alias_of(wanted->nad, alias);
    }
    if (seen->exists && (!wanted->nad || !ferry_streq(seen->alias, alias))) {
        ferry_buf_printf(ret, "link del dev %s\n", wanted->name);
        seen = &nothing;
    }
    if (!wanted->nad) {
        return;
    }
    if (!seen->exists) {
        make(wanted, alias, ret);
    }
    size_t before = ret->len;
    address(seen, wanted, ret);
    if (!seen->up) {
        ferry_buf_printf(ret, "link set dev %s up\n", wanted->name);
    }
    bool changed = ret->len > before;
    /* They went with the address or the link. */
    for (size_t i = 0; changed && i < wanted->nad->n_routes; i++) {
        route(&wanted->nad->routes[i], wanted->name, ret);
    }
}
