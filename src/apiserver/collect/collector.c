/* Theory of operation. The collector watches the hub for what can leave garbage: an owner that
 * went, an object that came with owners of whom none is there, a namespace marked for deletion.
 * Then, after a short pause that gathers what belongs together, it looks at everything once
 * ("sweep"): it keeps no state that a restart could lose, and the first sweep after a start catches
 * what happened while it was down. What a sweep could not write, because the disk is full, is tried
 * again by another one soon.
 *
 * A sweep costs as much as there are objects, so what cannot leave garbage causes none: `owners`
 * has everybody whom an object has ever named as its owner since the last sweep, and all named at
 * that time; `waits` is set while something waits for others to go. */
#include "apiserver/collect/collector.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "apiserver/collect/binder.h"
#include "apiserver/collect/dependents.h"
#include "apiserver/collect/uid_set.h"
#include "apiserver/object/prepare.h"
#include "apiserver/request/quota.h"
#include "apiserver/request/remove.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "json/doc.h"

enum { WAIT_MS = 500, GATHER_MS = 20, EVENTS_EVERY_S = 60, EVENT_LIFE_S = 3600, AGAIN_S = 2 };

struct collector {
    struct store *store;
    pthread_t thread;
    atomic_bool stop;
    struct uid_set owners; /* the thread's alone, as the next */
    bool waits;
};

/* ---- owners ------------------------------------------------------------------------------------
 */

static void add_uids(struct uid_set *u, const struct entry_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        uid_set_add(u, entry_uid(list->items[i]));
    }
}

/* It names owners, and none of them is there. */
static bool is_orphan(const struct uid_set *alive, const struct entry *e)
{
    for (size_t i = 0; i < e->n_owners; i++) {
        if (uid_set_has(alive, entry_owner(e, i).uid)) {
            return false;
        }
    }
    return e->n_owners > 0;
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

/* Somebody is named as an owner, whether there or not. */
static void note_owners(struct collector *c, const struct entry *e)
{
    for (size_t i = 0; i < e->n_owners; i++) {
        uid_set_add(&c->owners, entry_owner(e, i).uid);
    }
}

static bool is_ending_namespace(const struct entry *e)
{
    return ferry_streq(e->resource->plural, "namespaces") && e->ending;
}

static bool waits_for_others(const struct entry *e)
{
    return dependents_hold(e) || is_ending_namespace(e);
}

static bool sweep_orphans(struct collector *c)
{
    cleanup_uid_set struct uid_set alive = {0};
    bool done = true;

    uid_set_done(&c->owners);
    c->waits = false;

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
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < lists[i].n; j++) {
            note_owners(c, lists[i].items[j]);
            c->waits |= waits_for_others(lists[i].items[j]);
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
    api_cleanup_doc yyjson_doc *old = entry_doc(now);
    api_cleanup_mut_doc yyjson_mut_doc *doc = old ? json_doc_copy(old) : NULL;
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);

    yyjson_mut_obj_remove_key(yyjson_mut_obj_get(root, "spec"), "finalizers");
    if (!doc || !prepare_is_gone(e->resource, root)) {
        store_abort(c->store, NULL);
        return true;
    }
    int rc = store_remove(c->store, now, doc, &err);
    if (rc < 0) {
        store_abort(c->store, NULL);
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

        if (is_ending_namespace(e) && empty_namespace(c, e->name, &done) == 0) {
            done &= finish_namespace(c, e);
        }
    }
    return done;
}

/* ---- events ------------------------------------------------------------------------------------
 */

/* INT64_MAX when it does not say. */
static int64_t time_in(const struct entry *e, const char *field)
{
    ferry_cleanup_free char *text = ferry_span_dup(entry_field(e, field));
    int64_t ms;

    return text && api_time_parse(text, &ms, NULL) == 0 ? ms : INT64_MAX;
}

/* When it was last seen, by who wrote it, or made. What lies in the future says nothing: an event
 * must not choose for how long it stays. */
static int64_t time_of(const struct entry *e, int64_t now_ms)
{
    int64_t last = time_in(e, "lastTimestamp");

    return last <= now_ms ? last : time_in(e, "metadata.creationTimestamp");
}

static void sweep_events(struct collector *c)
{
    cleanup_entry_list struct entry_list list = {0};
    int64_t now_ms = ferry_now_unix_ms(), oldest = now_ms - (int64_t)EVENT_LIFE_S * 1000;

    store_list(c->store, api_resource_find("", "v1", "events"), NULL, &list);
    for (size_t i = 0; i < list.n; i++) {
        const struct entry *e = list.items[i];

        if (time_of(e, now_ms) < oldest) {
            (void)collect(c, e, true, "an old event"); /* the next round is near */
        }
    }
}

/* ---- the thread --------------------------------------------------------------------------------
 */

static bool has_same_owners(const struct entry *a, const struct entry *b)
{
    for (size_t i = 0; i < a->n_owners && i < b->n_owners; i++) {
        if (!ferry_span_eq(entry_owner(a, i).uid, entry_owner(b, i).uid)) {
            return false;
        }
    }
    return a->n_owners == b->n_owners;
}

/* It came with owners, or was given others, or lost one: those whom it has may be gone. */
static bool has_new_owners(const struct hub_event *e)
{
    return e->now->n_owners > 0 && !(e->before && has_same_owners(e->now, e->before));
}

static const struct api_resource *resource_of_owner(const struct api_owner *o)
{
    const char *slash = o->api_version ? strchr(o->api_version, '/') : NULL;
    size_t len = slash ? (size_t)(slash - o->api_version) : 0; /* of the group */

    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        if (ferry_streq(r->kind_name, o->kind) && strlen(r->group) == len &&
            (len == 0 || strncmp(r->group, o->api_version, len) == 0)) {
            return r;
        }
    }
    return NULL;
}

/* For sure; who is named in another way than usual has to be looked for. */
static bool is_there(struct store *store, const char *ns, const struct api_owner *o)
{
    const struct api_resource *r = resource_of_owner(o);

    if (!r || !o->name || !o->uid) {
        return false;
    }
    cleanup_entry struct entry *e = store_get(store, r, r->namespaced ? ns : "", o->name);

    return e && ferry_span_is(entry_uid(e), o->uid);
}

static bool has_living_owner(struct store *store, const struct entry *e)
{
    api_cleanup_object struct api_object *o = NULL;

    if (entry_object(e, API_KIND_NONE, &o, NULL) < 0) {
        return false;
    }
    for (size_t i = 0; i < o->meta->n_owners; i++) {
        if (is_there(store, e->ns, &o->meta->owners[i])) {
            return true;
        }
    }
    return false;
}

static bool may_leave_garbage(struct collector *c, const struct hub_event *e)
{
    if (e->type == HUB_DELETED) {
        return c->waits || uid_set_has(&c->owners, entry_uid(e->now));
    }
    if (waits_for_others(e->now)) {
        return true;
    }
    if (!has_new_owners(e)) {
        return false;
    }
    note_owners(c, e->now);
    return c->waits || !has_living_owner(c->store, e->now);
}

enum { GARBAGE = 1, USAGE = 2, VOLUMES = 4, EVERYTHING = GARBAGE | USAGE | VOLUMES };

/* What is to be looked at after this. */
static unsigned work_of(struct collector *c, const struct hub_event *e)
{
    const char *plural = e->now->resource->plural;
    unsigned work = may_leave_garbage(c, e) ? GARBAGE : 0;

    if (!ferry_streq(plural, "events") && !ferry_streq(plural, "leases")) {
        work |= USAGE;
    }
    return ferry_str_starts(plural, "persistentvolume") ? work | VOLUMES : work;
}

/* Reads on from `seen`. */
static unsigned read_events(struct collector *c, uint64_t *seen, int timeout_ms)
{
    cleanup_hub_batch struct hub_batch batch = {0};
    unsigned found = 0;

    if (hub_wait(store_hub(c->store), NULL, *seen, timeout_ms, &batch) < 0) {
        *seen = store_version(c->store); /* missed some: look at everything */
        return EVERYTHING;
    }
    *seen = batch.version;
    for (size_t i = 0; i < batch.n; i++) {
        found |= work_of(c, &batch.events[i]);
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
        work = read_events(c, &seen, WAIT_MS);
        if (work) {
            unsigned more;

            ferry_sleep_ms(GATHER_MS);
            while ((more = read_events(c, &seen, 0))) {
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
        uid_set_done(&c->owners);
        free(c);
    }
}
