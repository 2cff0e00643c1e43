#include "apiserver/access/node_rules.h"

#include <string.h>

#include "api/address_name.h"
#include "api/json.h"
#include "api/machine_type.h"
#include "api/nad.h"
#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

enum {
    LABELS_MAX = 2000,
    NOTE_MAX = 1024,
    RESOURCES_MAX = 64,
    CONDITIONS_MAX = 64,
    ADDRESSES_MAX = 32,
    CLAIMS_MAX = 2 * API_NAD_POOLS, /* of a network, and of the one before it */
};

static const char *text_at(const yyjson_val *object, const char *pointer)
{
    const char *s = api_json_str(object, pointer);

    return s ? s : "";
}

static yyjson_val *at(const yyjson_val *object, const char *pointer)
{
    return object ? yyjson_ptr_get((yyjson_val *)(uintptr_t)object, pointer) : NULL;
}

static bool is_same(const yyjson_val *a, const yyjson_val *b)
{
    return a && b ? yyjson_equals((yyjson_val *)(uintptr_t)a, (yyjson_val *)(uintptr_t)b)
                  : !a && !b;
}

/* ---- labels and annotations of its Node --------------------------------------------------------
 */

enum value {
    VALUE_ANY,
    VALUE_TRUE,
    VALUE_BOOL,
    VALUE_NODE,    /* its own name */
    VALUE_ADDRESS, /* numeric, or nothing */
};

struct key_rule {
    const char *key; /* all of it, or what it begins with when it ends in '/' */
    enum value value;
};

static const struct key_rule labels[] = {
    {LABEL_HOSTNAME, VALUE_NODE},
    {LABEL_OS, VALUE_ANY},
    {LABEL_ARCH, VALUE_ANY},
    {"beta.kubernetes.io/os", VALUE_ANY},
    {"beta.kubernetes.io/arch", VALUE_ANY},
    {"node.kubernetes.io/instance-type", VALUE_ANY},
    {"kubelet.kubernetes.io/", VALUE_ANY},
    {LABEL_SCHEDULABLE, VALUE_BOOL},
    {LABEL_CPU_MANAGER, VALUE_BOOL},
    {LABEL_REALTIME, VALUE_ANY},
    {LABEL_SEV, VALUE_ANY},
    {LABEL_CPU_MODEL, VALUE_TRUE},
    {LABEL_CPU_MIGRATION, VALUE_TRUE},
    {LABEL_CPU_FEATURE, VALUE_TRUE},
    {LABEL_CPU_VENDOR, VALUE_TRUE},
    {LABEL_HOST_MODEL, VALUE_TRUE},
    {LABEL_HOST_FEATURES, VALUE_TRUE},
    {LABEL_MACHINE_TYPE, VALUE_TRUE},
};

static const struct key_rule annotations[] = {
    {ANNOTATION_HEARTBEAT, VALUE_ANY},
    {ANNOTATION_MIGRATION_ADDRESS, VALUE_ADDRESS},
    {ANNOTATION_MIGRATION_NETWORK, VALUE_ANY},
    {ANNOTATION_MIGRATION_TROUBLE, VALUE_ANY},
};

struct key_table {
    const char *field, *pointer, *what;
    const struct key_rule *rules;
    size_t n;
};

static const struct key_table tables[] = {
    {"metadata.labels", "/metadata/labels", "label", labels, FERRY_COUNT(labels)},
    {"metadata.annotations", "/metadata/annotations", "annotation", annotations,
     FERRY_COUNT(annotations)},
};

static const struct key_rule *rule_of(const struct key_table *t, const char *key)
{
    for (size_t i = 0; i < t->n; i++) {
        bool prefix = ferry_str_ends(t->rules[i].key, "/");

        if (prefix ? ferry_str_starts(key, t->rules[i].key) : ferry_streq(key, t->rules[i].key)) {
            return &t->rules[i];
        }
    }
    return NULL;
}

static bool value_fits(const struct key_rule *rule, const char *key, const char *value,
                       const char *node)
{
    struct api_ip ip;

    if (!value || strlen(value) > NOTE_MAX) {
        return false;
    }
    if (ferry_streq(rule->key, LABEL_MACHINE_TYPE) &&
        !api_machine_is_pinned(key + strlen(LABEL_MACHINE_TYPE))) {
        return false;
    }
    switch (rule->value) {
    case VALUE_ANY:
        return true;
    case VALUE_TRUE:
        return ferry_streq(value, "true");
    case VALUE_BOOL:
        return ferry_streq(value, "true") || ferry_streq(value, "false");
    case VALUE_NODE:
        return ferry_streq(value, node);
    case VALUE_ADDRESS:
        return !*value || api_ip_parse(value, &ip);
    }
    return false;
}

static int refuse_key(const struct api_resource *r, const struct key_table *t, const char *node,
                      const char *key, const char *how, struct status *st)
{
    return status_forbidden(st, r, node, "node \"%s\" may not %s the %s \"%.100s\"", node, how,
                            t->what, key);
}

/* Keys that are others' stay as they are. */
static int check_keys(const struct api_resource *r, const struct key_table *t, const char *node,
                      const yyjson_val *old, const yyjson_val *object, struct status *st)
{
    yyjson_val *was = at(old, t->pointer), *now = at(object, t->pointer), *key, *v;
    size_t i, max;

    yyjson_obj_foreach(now, i, max, key, v)
    {
        const char *name = yyjson_get_str(key);
        const struct key_rule *rule = rule_of(t, name);

        if (is_same(yyjson_obj_get(was, name), v)) {
            continue;
        }
        if (!rule) {
            return refuse_key(r, t, node, name, "set", st);
        }
        if (!value_fits(rule, name, yyjson_get_str(v), node)) {
            return status_invalid(st, r, node, t->field, STATUS_VALUE_INVALID,
                                  "\"%.100s\": not a value that a node may give to \"%.100s\"",
                                  yyjson_is_str(v) ? yyjson_get_str(v) : "", name);
        }
    }
    yyjson_obj_foreach(was, i, max, key, v)
    {
        const char *name = yyjson_get_str(key);

        if (!yyjson_obj_get(now, name) && !rule_of(t, name)) {
            return refuse_key(r, t, node, name, "remove", st);
        }
    }
    if (yyjson_obj_size(now) > LABELS_MAX && yyjson_obj_size(now) > yyjson_obj_size(was)) {
        return status_invalid(st, r, node, t->field, STATUS_VALUE_TOO_MANY, "at most %d",
                              LABELS_MAX);
    }
    return 0;
}

/* ---- its status --------------------------------------------------------------------------------
 */

static bool amount_fits(const char *name, const yyjson_val *v)
{
    static const struct {
        const char *name; /* or what it begins with */
        int64_t scale, max;
    } rows[] = {
        {"cpu", 1000, (int64_t)8192 * 1000},
        {"memory", 1, (int64_t)64 << 40},
        {"pods", 1, 10000},
        {"ephemeral-storage", 1, (int64_t)1 << 60},
        {"hugepages-", 1, (int64_t)64 << 40},
        {"", 1, 1000000}, /* devices */
    };
    int64_t amount = 0;
    size_t i = 0;

    while (*rows[i].name &&
           (ferry_str_ends(rows[i].name, "-") ? !ferry_str_starts(name, rows[i].name)
                                              : !ferry_streq(name, rows[i].name))) {
        i++;
    }
    return api_quantity_val(v, rows[i].scale, &amount, NULL) == 0 && amount >= 0 &&
           amount <= rows[i].max;
}

static int check_amounts(const struct api_resource *r, const char *node, const yyjson_val *old,
                         const yyjson_val *object, const char *which, struct status *st)
{
    ferry_cleanup_free char *pointer = ferry_asprintf("/status/%s", which);
    ferry_cleanup_free char *field = ferry_asprintf("status.%s", which);
    yyjson_val *now = at(object, pointer), *key, *v;
    size_t i, max;

    if (is_same(at(old, pointer), now)) {
        return 0;
    }
    if (yyjson_obj_size(now) > RESOURCES_MAX) {
        return status_invalid(st, r, node, field, STATUS_VALUE_TOO_MANY, "at most %d",
                              RESOURCES_MAX);
    }
    yyjson_obj_foreach(now, i, max, key, v)
    {
        if (!amount_fits(yyjson_get_str(key), v)) {
            return status_invalid(st, r, node, field, STATUS_VALUE_INVALID,
                                  "%.100s: not an amount that a host can have",
                                  yyjson_get_str(key));
        }
    }
    return 0;
}

/* A name is for people; by an address the node is called. */
static int check_addresses(const struct api_resource *r, const char *node, const yyjson_val *old,
                           const yyjson_val *object, struct status *st)
{
    static const char pointer[] = "/status/addresses";
    yyjson_val *now = at(object, pointer), *v;
    size_t i, max;

    if (is_same(at(old, pointer), now)) {
        return 0;
    }
    if (yyjson_arr_size(now) > ADDRESSES_MAX) {
        return status_invalid(st, r, node, "status.addresses", STATUS_VALUE_TOO_MANY, "at most %d",
                              ADDRESSES_MAX);
    }
    yyjson_arr_foreach(now, i, max, v)
    {
        struct api_ip ip;

        if (ferry_str_ends(text_at(v, "/type"), "IP") &&
            !api_ip_parse(text_at(v, "/address"), &ip)) {
            return status_invalid(st, r, node, "status.addresses", STATUS_VALUE_INVALID,
                                  "\"%.100s\": must be a numeric address", text_at(v, "/address"));
        }
    }
    return 0;
}

static int check_node(const struct api_resource *r, const char *node, const yyjson_val *old,
                      const yyjson_val *object, struct status *st)
{
    for (size_t i = 0; i < FERRY_COUNT(tables); i++) {
        if (check_keys(r, &tables[i], node, old, object, st) < 0) {
            return -1;
        }
    }
    if (check_amounts(r, node, old, object, "capacity", st) < 0 ||
        check_amounts(r, node, old, object, "allocatable", st) < 0 ||
        check_addresses(r, node, old, object, st) < 0) {
        return -1;
    }
    if (yyjson_arr_size(at(object, "/status/conditions")) > CONDITIONS_MAX) {
        return status_invalid(st, r, node, "status.conditions", STATUS_VALUE_TOO_MANY, "at most %d",
                              CONDITIONS_MAX);
    }
    return 0;
}

/* ---- events ------------------------------------------------------------------------------------
 */

static bool speaks_for(const yyjson_val *event, const char *node)
{
    const char *host = text_at(event, "/source/host");
    const char *instance = text_at(event, "/reportingInstance");

    return (!*host || ferry_streq(host, node)) && (!*instance || ferry_streq(instance, node)) &&
           (*host || *instance);
}

static int check_event(const struct api_resource *r, const char *node, const yyjson_val *old,
                       const yyjson_val *object, struct status *st)
{
    const char *name = text_at(object, "/metadata/name");

    if (old && !speaks_for(old, node)) {
        return status_forbidden(st, r, name, "the event is not node \"%s\"'s", node);
    }
    if (!speaks_for(object, node)) {
        return status_forbidden(st, r, name,
                                "an event of node \"%s\" must say so: source.host, "
                                "reportingInstance",
                                node);
    }
    return 0;
}

/* ---- claims to addresses -----------------------------------------------------------------------
 */

/* One of the pool that `ip` is from; what is held of a network of before does not count. */
static const struct api_ip *held_beside(const struct node_rules_claims *claims,
                                        const struct api_nad *nad, const struct api_ip *ip)
{
    const struct api_nad_pool *pool = api_nad_giver(nad, ip);

    for (size_t i = 0; pool && i < claims->n_held; i++) {
        if (api_nad_giver(nad, &claims->held[i]) == pool) {
            return &claims->held[i];
        }
    }
    return NULL;
}

int node_rules_claim(const struct api_resource *r, const char *name,
                     const struct node_rules_claims *claims, struct status *st)
{
    struct api_ip ip;
    char text[API_IP_TEXT];

    if (!api_address_of_name(name, &ip)) {
        return status_forbidden(st, r, name, "not a claim to an address");
    }
    if (claims->n_held >= CLAIMS_MAX) {
        return status_forbidden(st, r, name, "the node has %zu addresses, and gets no more",
                                claims->n_held);
    }
    for (size_t i = 0; i < claims->n_configs; i++) {
        struct api_nad nad;

        if (api_nad_parse(claims->configs[i], &nad, NULL) < 0 || !api_nad_giver(&nad, &ip)) {
            continue;
        }
        const struct api_ip *other = held_beside(claims, &nad, &ip);
        return other ? status_forbidden(st, r, name,
                                        "the node has %s of the same range, and gets no more",
                                        api_ip_text(other, text))
                     : 0;
    }
    return status_forbidden(st, r, name, "the address is none of the site's network for moves");
}

/* ---- size --------------------------------------------------------------------------------------
 */

static size_t size_of(const yyjson_val *v)
{
    size_t len = 0;
    ferry_cleanup_free char *text = v ? json_doc_val_text(v, 0, &len) : NULL;

    return text ? len : 0;
}

/* What was larger already may stay as large: it need not be the node's doing. */
static int check_size(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                      struct status *st)
{
    static const struct {
        enum api_kind kind;
        const char *pointer;
        size_t max;
    } rows[] = {
        {API_KIND_EVENT, "", 8 << 10},
        {API_KIND_NODE, "", 256 << 10},
        {API_KIND_LEASE, "", 4 << 10},
        {API_KIND_POD, "/status", 16 << 10},
        {API_KIND_VMI, "/status", 128 << 10},
        {API_KIND_VMI, "/metadata/annotations", 64 << 10},
        {API_KIND_VMI, "/metadata/labels", 32 << 10},
    };

    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        if (r->kind != rows[i].kind) {
            continue;
        }
        size_t size = size_of(at(object, rows[i].pointer));

        if (size > rows[i].max && size > size_of(at(old, rows[i].pointer))) {
            return status_fail(st, 413,
                               "%s of %s \"%.100s\" would have %zu bytes: a node may write at "
                               "most %zu there",
                               *rows[i].pointer ? rows[i].pointer + 1 : "all", r->plural,
                               text_at(object, "/metadata/name"), size, rows[i].max);
        }
    }
    return 0;
}

int node_rules_check(const struct api_resource *r, const char *node, const yyjson_val *old,
                     const yyjson_val *object, struct status *st)
{
    if (check_size(r, old, object, st) < 0) {
        return -1;
    }
    if (r->kind == API_KIND_NODE) {
        return check_node(r, node, old, object, st);
    }
    return r->kind == API_KIND_EVENT ? check_event(r, node, old, object, st) : 0;
}
