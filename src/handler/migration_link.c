#include "handler/migration_link.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"

#define ALIAS "ferry:"

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

/* What the link is made from, in one word. */
static void alias_of(const struct api_nad *nad, char ret[MIGRATION_LINK_ALIAS])
{
    bool macvlan = nad->type == API_NAD_MACVLAN;

    snprintf(ret, MIGRATION_LINK_ALIAS, ALIAS "%s:%s:%s:%d:%d", macvlan ? "macvlan" : "bridge",
             nad->link, macvlan ? nad->mode : "", nad->mtu, nad->vlan);
}

static void make(const struct migration_link_wanted *w, const char *alias, struct ferry_buf *ret)
{
    const struct api_nad *nad = w->nad;

    if (nad->type == API_NAD_MACVLAN) {
        ferry_buf_printf(ret, "link add link %s name %s type macvlan mode %s\n", nad->link, w->name,
                         nad->mode);
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

/* The new address is there before the old one goes. */
static void address(const struct migration_link_seen *seen, const struct migration_link_wanted *w,
                    struct ferry_buf *ret)
{
    char text[API_IP_TEXT];

    for (size_t i = 0; i < w->n; i++) {
        if (!has(seen->addresses, seen->n, &w->addresses[i])) {
            ferry_buf_printf(ret, "addr add %s dev %s%s\n", api_ip_net_text(&w->addresses[i], text),
                             w->name, api_ip_is_v4(&w->addresses[i].ip) ? "" : " nodad");
        }
    }
    for (size_t i = 0; i < seen->n; i++) {
        if (!has(w->addresses, w->n, &seen->addresses[i])) {
            ferry_buf_printf(ret, "addr del %s dev %s\n",
                             api_ip_net_text(&seen->addresses[i], text), w->name);
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
    address(seen, wanted, ret);
    if (!seen->up) {
        ferry_buf_printf(ret, "link set dev %s up\n", wanted->name);
    }
}
