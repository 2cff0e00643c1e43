/* Theory of operation. The collector watches the hub for what can leave garbage: an object that
 * went, an object that came with owners, a namespace marked for deletion. Then, after a short pause
 * that gathers what belongs together, it looks at everything once ("sweep"): it keeps no state that
 * a restart could lose, and the first sweep after a start catches what happened while it was down.
 * What a sweep could not write, because the disk is full, is tried again by another one soon. */
#include "apiserver/collector.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "apiserver/binder.h"
#include "apiserver/dependents.h"
#include "apiserver/prepare.h"
#include "apiserver/quota.h"
#include "apiserver/remove.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

enum { WAIT_MS = 500, GATHER_MS = 20, EVENTS_EVERY_S = 60, EVENT_LIFE_S = 3600, AGAIN_S = 2 };

struct collector {
    struct store *store;
    pthread_t thread;
    atomic_bool stop;
};

/* ---- owners ------------------------------------------------------------------------------------
 */

struct uids {
    char **items;
    size_t n, cap;
};

static void uids_done(struct uids *u)
{
    for (size_t i = 0; i < u->n; i++) {
        free(u->items[i]);
    }
    free(u->items);
}
#define cleanup_uids ferry_cleanup(uids_done)

static int compare_uid(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_uid(const struct uids *u, const char *uid)
{
    return u->n && bsearch(&uid, u->items, u->n, sizeof(*u->items), compare_uid) != NULL;
}

static void add_uids(struct uids *u, const struct entry_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        api_cleanup_doc yyjson_doc *doc =
            yyjson_read(list->items[i]->json, list->items[i]->json_len, 0);
        const char *uid = api_json_str(yyjson_doc_get_root(doc), "/metadata/uid");

        if (u->n == u->cap) {
            u->cap = u->cap ? u->cap * 2 : 64;
            u->items = ferry_xrealloc(u->items, u->cap, sizeof(*u->items));
        }
        u->items[u->n++] = ferry_strdup(uid ? uid : "");
    }
}

/* It names owners, and none of them is there. */
static bool is_orphan(const struct uids *alive, const struct entry *e)
{
    if (!strstr(e->json, "\"ownerReferences\"")) {
        return false; /* most objects: not parsed */
    }
    api_cleanup_object struct api_object *o = NULL;
    if (api_object_parse(API_KIND_NONE, e->json, e->json_len, &o, NULL) < 0 ||
        o->meta->n_owners == 0) {
        return false;
    }
    for (size_t i = 0; i < o->meta->n_owners; i++) {
        if (o->meta->owners[i].uid && has_uid(alive, o->meta->owners[i].uid)) {
            return false;
        }
    }
    return true;
}

/* False: not done, look again. */
static bool collect(struct collector *c, const struct entry *e, bool unchanged, const char *why)
{
    struct ferry_error err;
    int rc = remove_entry(c->store, e, unchanged, &err);

    if (rc < 0) {
        ferry_warn("cannot collect an object", F_STR("resource", e->resource->plural),
                   F_STR("namespace", e->ns), F_STR("name", e->name), F_ERR(&err));
    } else if (rc == 0) {
        ferry_debug("collected", F_STR("resource", e->resource->plural), F_STR("namespace", e->ns),
                    F_STR("name", e->name), F_STR("why", why));
    }
    return rc == 0;
}

static bool sweep_orphans(struct collector *c)
{
    cleanup_uids struct uids alive = {0};
    bool done = true;

    /* Dependents are listed first: an owner that comes in between only makes one more alive. */
    struct entry_list lists[64] = {0};
    size_t n = 0;
    for (const struct api_resource *r = api_resources(); r->plural && n < 64; r++, n++) {
        store_list(c->store, r, NULL, &lists[n]);
    }
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        cleanup_entry_list struct entry_list now = {0};

        store_list(c->store, r, NULL, &now);
        add_uids(&alive, &now);
    }
    if (alive.n) {
        qsort(alive.items, alive.n, sizeof(*alive.items), compare_uid);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < lists[i].n; j++) {
            /* It may have been given other owners, or none, since it was listed. */
            if (is_orphan(&alive, lists[i].items[j])) {
                done &= collect(c, lists[i].items[j], true, "its owners are gone");
            }
        }
        entry_list_done(&lists[i]);
    }
    return done;
}

/* ---- namespaces --------------------------------------------------------------------------------
 */

/* How many objects are left in it. */
static size_t empty_namespace(struct collector *c, const char *ns, bool *done)
{
    size_t left = 0;

    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        cleanup_entry_list struct entry_list list = {0};

        if (!r->namespaced) {
            continue;
        }
        store_list(c->store, r, ns, &list);
        for (size_t i = 0; i < list.n; i++) {
            *done &= collect(c, list.items[i], false, "its namespace is being deleted");
        }
        entry_list_done(&list);
        store_list(c->store, r, ns, &list);
        left += list.n;
    }
    return left;
}

/* The last finalizer of an empty namespace goes, and the namespace with it. */
static bool finish_namespace(struct collector *c, const struct entry *e)
{
    struct ferry_error err;

    store_begin(c->store);
    cleanup_entry struct entry *now = store_get(c->store, e->resource, "", e->name);
    api_cleanup_doc yyjson_doc *old = now ? yyjson_read(now->json, now->json_len, 0) : NULL;
    api_cleanup_mut_doc yyjson_mut_doc *doc = old ? yyjson_doc_mut_copy(old, NULL) : NULL;
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);

    yyjson_mut_obj_remove_key(yyjson_mut_obj_get(root, "spec"), "finalizers");
    if (!doc || !prepare_is_gone(e->resource, root)) {
        store_abort(c->store);
        return true;
    }
    int rc = store_remove(c->store, now, doc, &err);
    if (rc < 0) {
        store_abort(c->store);
    } else {
        rc = store_commit(c->store, NULL, &err);
    }
    if (rc < 0) {
        ferry_warn("cannot remove a namespace", F_STR("name", e->name), F_ERR(&err));
    }
    return rc == 0;
}

static bool sweep_namespaces(struct collector *c)
{
    cleanup_entry_list struct entry_list list = {0};
    bool done = true;

    store_list(c->store, api_resource_find("", "v1", "namespaces"), NULL, &list);
    for (size_t i = 0; i < list.n; i++) {
        const struct entry *e = list.items[i];

        if (strstr(e->json, "\"deletionTimestamp\"") && empty_namespace(c, e->name, &done) == 0) {
            done &= finish_namespace(c, e);
        }
    }
    return done;
}

/* ---- events ------------------------------------------------------------------------------------
 */

static void sweep_events(struct collector *c)
{
    cleanup_entry_list struct entry_list list = {0};
    int64_t oldest = ferry_now_unix_ms() - (int64_t)EVENT_LIFE_S * 1000;

    store_list(c->store, api_resource_find("", "v1", "events"), NULL, &list);
    for (size_t i = 0; i < list.n; i++) {
        const struct entry *e = list.items[i];
        api_cleanup_doc yyjson_doc *doc = yyjson_read(e->json, e->json_len, 0);
        const char *at = api_json_str(yyjson_doc_get_root(doc), "/lastTimestamp");
        int64_t ms;

        at = at ? at : api_json_str(yyjson_doc_get_root(doc), "/metadata/creationTimestamp");
        if (at && api_time_parse(at, &ms, NULL) == 0 && ms < oldest) {
            (void)collect(c, e, true, "an old event"); /* the next round is near */
        }
    }
}

/* ---- the thread --------------------------------------------------------------------------------
 */

/* It came with owners, or was given others, who may be gone. */
static bool has_new_owners(const struct hub_event *e)
{
    static const char pointer[] = "/metadata/ownerReferences";

    if (!strstr(e->now->json, "\"ownerReferences\"")) {
        return false; /* most objects: not parsed */
    }
    if (!e->before) {
        return true;
    }
    api_cleanup_doc yyjson_doc *now = yyjson_read(e->now->json, e->now->json_len, 0);
    api_cleanup_doc yyjson_doc *before = yyjson_read(e->before->json, e->before->json_len, 0);
    yyjson_val *a = yyjson_ptr_get(yyjson_doc_get_root(now), pointer);
    yyjson_val *b = yyjson_ptr_get(yyjson_doc_get_root(before), pointer);
    return a && !(b && yyjson_equals(a, b));
}

static bool may_leave_garbage(const struct hub_event *e)
{
    return e->type == HUB_DELETED || dependents_hold(e->now) || has_new_owners(e) ||
           (ferry_streq(e->now->resource->plural, "namespaces") &&
            strstr(e->now->json, "\"deletionTimestamp\""));
}

enum { GARBAGE = 1, USAGE = 2, VOLUMES = 4, EVERYTHING = GARBAGE | USAGE | VOLUMES };

/* What is to be looked at after this. */
static unsigned work_of(const struct hub_event *e)
{
    const char *plural = e->now->resource->plural;
    unsigned work = may_leave_garbage(e) ? GARBAGE : 0;

    if (!ferry_streq(plural, "events") && !ferry_streq(plural, "leases")) {
        work |= USAGE;
    }
    return ferry_str_starts(plural, "persistentvolume") ? work | VOLUMES : work;
}

static unsigned look(struct collector *c, uint64_t *seen, int timeout_ms)
{
    cleanup_hub_batch struct hub_batch batch = {0};
    unsigned found = 0;

    if (hub_wait(store_hub(c->store), NULL, *seen, timeout_ms, &batch) < 0) {
        *seen = store_version(c->store); /* missed some: look at everything */
        return EVERYTHING;
    }
    *seen = batch.version;
    for (size_t i = 0; i < batch.n; i++) {
        found |= work_of(&batch.events[i]);
    }
    return found;
}

/* Returns what is to be done again. */
static unsigned sweep(struct collector *c, unsigned work)
{
    unsigned again = 0;

    if (work & GARBAGE) {
        bool settled = dependents_sweep(c->store);
        bool collected = sweep_orphans(c);

        again |= sweep_namespaces(c) && settled && collected ? 0 : GARBAGE;
    }
    if (work & VOLUMES) {
        again |= binder_sweep(c->store) ? 0 : VOLUMES;
    }
    if (work & USAGE) {
        again |= quota_sweep(c->store) ? 0 : USAGE;
    }
    return again;
}

static void *collector_run(void *arg)
{
    struct collector *c = arg;
    uint64_t seen = store_version(c->store);
    int64_t events_ns = 0, again_ns = 0;
    unsigned work = EVERYTHING, again = 0;

    while (!atomic_load(&c->stop)) {
        unsigned undone = sweep(c, work);

        if (undone) {
            again |= undone;
            again_ns = ferry_now_ns() + AGAIN_S * FERRY_NS_PER_S;
        }
        if (ferry_now_ns() >= events_ns) {
            sweep_events(c);
            events_ns = ferry_now_ns() + EVENTS_EVERY_S * FERRY_NS_PER_S;
        }
        work = look(c, &seen, WAIT_MS);
        if (work) {
            unsigned more;

            ferry_sleep_ms(GATHER_MS);
            while ((more = look(c, &seen, 0))) {
                work |= more;
            }
        }
        if (again && ferry_now_ns() >= again_ns) {
            work |= again;
            again = 0;
        }
    }
    return NULL;
}

struct collector *collector_start(struct store *store)
{
    struct collector *c = ferry_xcalloc(1, sizeof(*c));

    c->store = store;
    if (pthread_create(&c->thread, NULL, collector_run, c) != 0) {
        abort();
    }
    return c;
}

void collector_stop(struct collector *c)
{
    if (c) {
        atomic_store(&c->stop, true);
        pthread_join(c->thread, NULL);
        free(c);
    }
}
