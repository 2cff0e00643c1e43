/* Theory of operation. What is used is never kept: admission counts it, inside the transaction that
 * makes the new object, from the objects that are there; so nothing can drift, and two that come
 * together cannot both get the last place. The status of a quota is for people, and follows. */
#include "apiserver/request/quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_error.h"
#include "api/wire/wire_phase.h"
#include "apiserver/object/edit.h"
#include "base/count.h"
#include "base/log.h"
#include "base/str.h"

enum { MILLI = 1000 };

/* ---- what an object takes ----------------------------------------------------------------------
 */

static bool is_bytes(const char *what)
{
    return !ferry_str_starts(what, "count/") && (strstr(what, "memory") || strstr(what, "storage"));
}

/* Bytes are counted whole, everything else in thousandths; what does not fit in that is as much as
 * there can be, never nothing. */
static int64_t amount_of(const yyjson_val *q, const char *what)
{
    int64_t n = 0;

    if (!q || api_quantity_val(q, is_bytes(what) ? 1 : MILLI, &n, NULL) == 0) {
        return n;
    }
    return api_quantity_val(q, 1, &n, NULL) == 0 ? INT64_MAX : 0;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t quantity_at(const yyjson_val *v, const char *list, const char *name)
{
    return amount_of(yyjson_obj_get(yyjson_ptr_get((yyjson_val *)v, list), name), name);
}

/* A pod's containers together; a request that is not given is the limit, as Kubernetes has it. */
static int64_t pod_takes(const yyjson_val *pod, bool limits, const char *name)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)pod, "/spec/containers"), *c;
    int64_t sum = 0;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, c)
    {
        int64_t n = quantity_at(c, limits ? "/resources/limits" : "/resources/requests", name);

        sum = plus(sum, n || limits ? n : quantity_at(c, "/resources/limits", name));
    }
    return sum;
}

static bool is_over(const yyjson_val *pod)
{
    return wire_phase_is_over(api_json_str(pod, "/status/phase"));
}

static const struct {
    const char *name, *resource;
    bool limits;
} computed[] = {
    {"cpu", "cpu", false},          {"memory", "memory", false},
    {"requests.cpu", "cpu", false}, {"requests.memory", "memory", false},
    {"limits.cpu", "cpu", true},    {"limits.memory", "memory", true},
};

int64_t quota_usage(const char *what, const struct api_resource *r, const yyjson_val *object)
{
    if (r->kind == API_KIND_POD && is_over(object)) {
        return 0;
    }
    for (size_t i = 0; r->kind == API_KIND_POD && i < FERRY_COUNT(computed); i++) {
        if (ferry_streq(what, computed[i].name)) {
            return pod_takes(object, computed[i].limits, computed[i].resource);
        }
    }
    if (ferry_streq(r->plural, "persistentvolumeclaims") && ferry_streq(what, "requests.storage")) {
        return quantity_at(object, "/spec/resources/requests", "storage");
    }
    if (ferry_str_starts(what, "count/")) {
        char counted[256];

        snprintf(counted, sizeof(counted), "%s%s%s", r->plural, *r->group ? "." : "", r->group);
        return ferry_streq(what + strlen("count/"), counted) ? MILLI : 0;
    }
    return !*r->group && ferry_streq(what, r->plural) ? MILLI : 0;
}

/* How much of one thing: by the quota, by the object that is looked at, and by what is there. */
struct usage {
    const char *what;
    int64_t hard, takes, used;
};

/* It is said in the object itself how much it takes: the others count as one. */
static bool is_measured(const char *what, const struct api_resource *r)
{
    for (size_t i = 0; r->kind == API_KIND_POD && i < FERRY_COUNT(computed); i++) {
        if (ferry_streq(what, computed[i].name)) {
            return true;
        }
    }
    return ferry_streq(r->plural, "persistentvolumeclaims") &&
           ferry_streq(what, "requests.storage");
}

static bool may_take(const char *what, const struct api_resource *r)
{
    return r->namespaced && (is_measured(what, r) || ferry_str_starts(what, "count/") ||
                             ferry_streq(what, r->plural));
}

static bool entry_is_over(const struct entry *e)
{
    struct ferry_span phase = entry_field(e, "status.phase");

    return e->resource->kind == API_KIND_POD &&
           (ferry_span_is(phase, wire_phase_text(PHASE_SUCCEEDED)) ||
            ferry_span_is(phase, wire_phase_text(PHASE_FAILED)));
}

/* Parses it once, and only when that says more than that it is there. */
static void add_entry(const struct entry *e, bool measured, struct usage *list, size_t n)
{
    if (entry_is_over(e)) {
        return;
    }
    api_cleanup_doc yyjson_doc *doc = measured ? entry_doc(e) : NULL;
    for (size_t i = 0; i < n; i++) {
        list[i].used =
            plus(list[i].used, quota_usage(list[i].what, e->resource, yyjson_doc_get_root(doc)));
    }
}

/* Fills in what is used, of all of the list in one pass. */
static void count_used(struct store *store, const char *ns, struct usage *list, size_t n)
{
    for (const struct api_resource *r = api_resources(); n && r->plural; r++) {
        cleanup_entry_list struct entry_list entries = {0};
        bool takes = false, measured = false;

        for (size_t i = 0; i < n; i++) {
            takes |= may_take(list[i].what, r);
            measured |= is_measured(list[i].what, r);
        }
        if (!takes) {
            continue;
        }
        store_list(store, r, ns, &entries);
        for (size_t i = 0; i < entries.n; i++) {
            add_entry(entries.items[i], measured, list, n);
        }
    }
}

/* As people write them: "3", "500m", "2Gi". */
static const char *write_quantity(const char *what, int64_t amount, char buf[32])
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    bool bytes = is_bytes(what);
    int64_t n = bytes ? amount : amount / MILLI;
    size_t unit = 0;

    if (!bytes && amount % MILLI) {
        snprintf(buf, 32, "%lldm", (long long)amount);
        return buf;
    }
    while (bytes && n && n % 1024 == 0 && unit < 5) {
        n /= 1024;
        unit++;
    }
    snprintf(buf, 32, "%lld%s", (long long)n, units[unit]);
    return buf;
}

/* ---- admission ---------------------------------------------------------------------------------
 */

struct excess {
    struct ferry_buf requested, used, limited;
};

static void excess_done(struct excess *e)
{
    ferry_buf_done(&e->requested);
    ferry_buf_done(&e->used);
    ferry_buf_done(&e->limited);
}

static void put_amount(struct ferry_buf *b, const char *what, int64_t amount)
{
    char buf[32];

    ferry_buf_printf(b, "%s%s=%s", b->len ? "," : "", what, write_quantity(what, amount, buf));
}

/* Cpu and memory that a quota limits must be said. */
static bool is_unsaid(const char *what, const struct api_resource *r, int64_t takes)
{
    return r->kind == API_KIND_POD && is_measured(what, r) && takes == 0;
}

static int refuse_excess(struct request *r, const char *quota, const struct usage *list, size_t n)
{
    ferry_cleanup(excess_done) struct excess over = {0};

    for (size_t i = 0; i < n; i++) {
        const struct usage *u = &list[i];

        if (u->used > u->hard - u->takes) { /* neither is negative */
            put_amount(&over.requested, u->what, u->takes);
            put_amount(&over.used, u->what, u->used);
            put_amount(&over.limited, u->what, u->hard);
        }
    }
    if (!over.requested.len) {
        return 0;
    }
    status_forbidden(&r->st, r->route.resource, r->route.name,
                     "exceeded quota: %s, requested: %s, used: %s, limited: %s", quota,
                     over.requested.data, over.used.data, over.limited.data);
    r->st.cause = wire_error_text(WIRE_ERROR_QUOTA);
    return -1;
}

/* `old` is NULL when the object is new. */
static int check_quota(struct request *r, const yyjson_val *quota, const yyjson_val *old,
                       const yyjson_val *object)
{
    yyjson_val *hard = yyjson_ptr_get((yyjson_val *)quota, "/spec/hard"), *key, *v;
    ferry_cleanup_free struct usage *list = ferry_xcalloc(yyjson_obj_size(hard) + 1, sizeof(*list));
    const struct api_resource *resource = r->route.resource;
    const char *name = api_json_str(quota, "/metadata/name");
    size_t i, max, n = 0;

    yyjson_obj_foreach(hard, i, max, key, v)
    {
        const char *what = yyjson_get_str(key);
        int64_t takes = quota_usage(what, resource, object);

        if (old) {
            takes -= quota_usage(what, resource, old); /* what it had is in `used` */
        } else if (is_unsaid(what, resource, takes)) {
            return status_forbidden(&r->st, resource, r->route.name,
                                    "failed quota: %s: must specify %s", name, what);
        }
        if (takes > 0) {
            list[n++] = (struct usage){.what = what, .hard = amount_of(v, what), .takes = takes};
        }
    }
    count_used(r->store, r->route.ns, list, n);
    return refuse_excess(r, name, list, n);
}

static const struct api_resource *quotas(void)
{
    return api_resource_find("", "v1", "resourcequotas");
}

int quota_admit(struct request *r, const yyjson_val *old, const yyjson_val *object)
{
    cleanup_entry_list struct entry_list list = {0};
    int rc = 0;

    if (!r->route.resource->namespaced) {
        return 0;
    }
    store_list(r->store, quotas(), r->route.ns, &list);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        api_cleanup_doc yyjson_doc *quota = entry_doc(list.items[i]);

        rc = check_quota(r, yyjson_doc_get_root(quota), old, object);
    }
    return rc;
}

/* ---- status ------------------------------------------------------------------------------------
 */

struct shown {
    struct store *store;
    const char *ns;
};

static bool show(yyjson_mut_doc *doc, const void *ctx)
{
    const struct shown *s = ctx;
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *hard = yyjson_mut_ptr_get(root, "/spec/hard"), *key, *v;
    yyjson_mut_val *status = yyjson_mut_obj(doc), *used = yyjson_mut_obj(doc);
    size_t n = yyjson_mut_obj_size(hard), i, max;
    ferry_cleanup_free struct usage *list = ferry_xcalloc(n + 1, sizeof(*list));

    yyjson_mut_obj_foreach(hard, i, max, key, v)
    {
        list[i].what = yyjson_mut_get_str(key);
    }
    count_used(s->store, s->ns, list, n);
    for (i = 0; i < n; i++) {
        char buf[32];

        write_quantity(list[i].what, list[i].used, buf);
        yyjson_mut_obj_put(used, yyjson_mut_strcpy(doc, list[i].what), yyjson_mut_strcpy(doc, buf));
    }
    if (hard) {
        yyjson_mut_obj_put(status, yyjson_mut_str(doc, "hard"), yyjson_mut_val_mut_copy(doc, hard));
    }
    yyjson_mut_obj_put(status, yyjson_mut_str(doc, "used"), used);
    yyjson_mut_val *old = yyjson_mut_obj_get(root, "status");
    if (old && yyjson_mut_equals(old, status)) {
        return false;
    }
    yyjson_mut_obj_put(root, yyjson_mut_str(doc, "status"), status);
    return true;
}

bool quota_sweep(struct store *store)
{
    cleanup_entry_list struct entry_list list = {0};
    bool done = true;

    store_list(store, quotas(), NULL, &list);
    for (size_t i = 0; i < list.n; i++) {
        const struct shown s = {.store = store, .ns = list.items[i]->ns};
        struct ferry_error err;

        if (edit_entry(store, list.items[i], show, &s, &err) < 0) {
            ferry_warn("cannot update the status of a quota", F_STR("namespace", list.items[i]->ns),
                       F_STR("name", list.items[i]->name), F_ERR(&err));
            done = false;
        }
    }
    return done;
}
