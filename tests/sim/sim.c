/* Random histories of the controllers over virtual time: the real decide functions, the real ledger
 * and the real queue, against a world (world.c) that fails in every way that it can. What must
 * hold:
 *
 *   1  a pod in which a guest runs is deleted for no reason but the end of its VMI; a VM is handed
 *      to one move at a time
 *   4  whatever dies and whenever, every migration ends once the faults are over
 *   5  a cancelled one is gone then, and no pod but the VM's own is left; also where a node stays
 *      dead and nobody removes it
 *      and: never more moves than the limits allow
 *
 * sim [--seed N | --from N --count N] [--verbose]; a failure prints its seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_error.h"
#include "api/wire/wire_keys.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "control/migration/migration_decide.h"
#include "control/plan/facts.h"
#include "control/schedule/schedule_pick.h"
#include "control/vm/vmi_decide.h"
#include "kube/queue.h"
#include "sim/world.h"

enum { STEP_MS = 500, STORM_MS = 400000, CALM_MS = 14400000, MOVES_MAX = 24, LIST_MAX = 64 };

static struct migration_settings settings; /* with limits that are soon reached */
static struct kube_queue *queue;           /* keys "v:NAME" and "m:NAME" */
static struct limits_ledger *ledger;
static struct clock_steps seen_steps; /* the controller's clock, as it has seen it */
static int64_t started_ms;            /* it knows of no step before */
static int budget;                    /* writes until the controller dies; -1 = it lives */
static unsigned moves_made, restarts;

static int64_t queue_clock(void)
{
    return world.now_ms * FERRY_NS_PER_MS;
}

/* ---- views -----------------------------------------------------------------------------------
 */

struct family {
    const struct api_object *vmi;
    const struct api_object *pods[LIST_MAX], *moves[LIST_MAX];
    size_t n_pods, n_moves;
};

static const struct api_object *look(const struct world_item *item, bool live)
{
    return live ? item->now : item->seen;
}

static const struct api_object *get(enum api_kind kind, const char *name, bool live)
{
    const struct world_item *item = name ? world_find(kind, name) : NULL;

    return item ? look(item, live) : NULL;
}

static struct family family_of(const char *vmi_name, bool live)
{
    struct family f = {.vmi = get(API_KIND_VMI, vmi_name, live)};

    for (size_t i = 0; i < world.n_items; i++) {
        const struct api_object *o = look(world.items[i], live);

        if (!o || f.n_pods == LIST_MAX || f.n_moves == LIST_MAX) {
            continue;
        }
        if (o->kind == API_KIND_POD && f.vmi &&
            ferry_streq(api_map_get(&o->meta->labels, LABEL_CREATED_BY), f.vmi->meta->uid)) {
            f.pods[f.n_pods++] = o;
        } else if (o->kind == API_KIND_MIGRATION &&
                   ferry_streq(o->u.migration.vmi_name, vmi_name)) {
            f.moves[f.n_moves++] = o;
        }
    }
    return f;
}

static bool look_at_node(const char *name, int64_t *ret_silent_ms)
{
    const struct api_object *node = get(API_KIND_NODE, name, false);

    if (node) {
        *ret_silent_ms = node_silent_since(&node->u.node);
    }
    return !node;
}

static struct migration_view view_of(const struct api_object *m, const struct family *f)
{
    const struct api_migration_state *s = f->vmi ? &f->vmi->u.vmi.migration : NULL;
    bool ours = s && ferry_streq(s->uid, m->meta->uid) && !s->completed;
    struct migration_view v = {
        .migration = m,
        .vmi = f->vmi,
        .source_pod = f->vmi ? vmi_current_pod(&f->vmi->u.vmi, f->pods, f->n_pods) : NULL,
        .migrations = f->moves,
        .n_migrations = f->n_moves,
        .settings = &settings,
        .clock = seen_steps,
    };

    if (ours) {
        v.source_node_gone = look_at_node(s->source_node, &v.source_silent_ms);
        v.target_node_gone = look_at_node(s->target_node, &v.target_silent_ms);
    }
    for (size_t i = 0; i < f->n_pods; i++) {
        if (ferry_streq(api_map_get(&f->pods[i]->meta->labels, LABEL_MIGRATION_JOB_UID),
                        m->meta->uid)) {
            v.target_pod = f->pods[i];
        }
    }
    return v;
}

/* ---- what must hold --------------------------------------------------------------------------
 */

/* Half of a guest in post-copy is in the target's pod. */
static void check_post_copy(const struct api_object *pod)
{
    const struct api_object *vmi =
        pod->meta->n_owners ? get(API_KIND_VMI, pod->meta->owners[0].name, true) : NULL;
    const struct api_migration_state *s = vmi ? &vmi->u.vmi.migration : NULL;

    if (s && s->present && !s->completed && ferry_streq(s->mode, "PostCopy") &&
        ferry_streq(s->target_pod, pod->meta->name) && !vmi->meta->deleted_ms &&
        !wire_vmi_is_over(&vmi->u.vmi) && world.guests[vmi->meta->name[1] - '0'].pod_uid) {
        world_fail("the target pod %s of a post-copy was deleted", pod->meta->name);
    }
}

static void check_pod_delete(const char *name, const char *uid)
{
    const struct api_object *pod = get(API_KIND_POD, name, true);

    if (pod && ferry_streq(pod->meta->uid, uid)) {
        check_post_copy(pod);
    }
    int guest = pod && ferry_streq(pod->meta->uid, uid) ? world_guest_in(uid) : -1;
    char vm[16];

    if (guest < 0) {
        return;
    }
    snprintf(vm, sizeof(vm), "v%d", guest);
    const struct api_object *vmi = get(API_KIND_VMI, vm, true);
    if (vmi && !vmi->meta->deleted_ms && !wire_vmi_is_over(&vmi->u.vmi)) {
        world_fail("the pod %s of a running guest was deleted", name);
    }
}

/* Nobody gives a guest up that runs. */
static void check_guests(void)
{
    for (int i = 0; i < WORLD_VMS; i++) {
        char vm[16];

        snprintf(vm, sizeof(vm), "v%d", i);
        const struct api_object *vmi = get(API_KIND_VMI, vm, true);
        if (vmi && !vmi->meta->deleted_ms && wire_vmi_is_over(&vmi->u.vmi) &&
            world.guests[i].pod_uid) {
            world_fail("%s is %s, and its guest runs", vm, vmi->u.vmi.phase);
        }
    }
}

static void check_limits(void)
{
    const struct migration_limits *l = &settings.limits;
    unsigned all = 0, out[WORLD_NODES] = {0}, in[WORLD_NODES] = {0};

    for (size_t i = 0; i < world.n_items; i++) {
        const struct api_object *o = world.items[i]->now;

        if (!o || o->kind != API_KIND_MIGRATION || wire_migration_is_over(&o->u.migration)) {
            continue;
        }
        struct family f = family_of(o->u.migration.vmi_name, true);
        struct migration_view v = view_of(o, &f);
        if (!v.target_pod || wire_pod_is_over(&v.target_pod->u.pod)) {
            continue;
        }
        bool ours = f.vmi && ferry_streq(f.vmi->u.vmi.migration.uid, o->meta->uid);
        const char *from = ours    ? f.vmi->u.vmi.migration.source_node
                           : f.vmi ? f.vmi->u.vmi.node_name
                                   : NULL;
        all++;
        if (from) {
            out[from[1] - '0']++;
        }
        if (ours && !f.vmi->u.vmi.migration.completed) {
            in[f.vmi->u.vmi.migration.target_node[1] - '0']++;
        }
    }
    for (int i = 0; i < WORLD_NODES; i++) {
        if (out[i] > l->outbound_per_node) {
            world_fail("%u moves leave n%d", out[i], i);
        }
        if (in[i] > l->inbound_per_node) {
            world_fail("%u moves enter n%d", in[i], i);
        }
    }
    if (all > l->cluster) {
        world_fail("%u moves at a time", all);
    }
}

static void check_hand_over(const struct plan_action *a, const struct api_object *before)
{
    const struct api_object *after = get(API_KIND_VMI, a->name, true);
    const struct api_migration_state *was = &before->u.vmi.migration, *is = &after->u.vmi.migration;

    if (was->present && !was->completed && !ferry_streq(was->uid, is->uid)) {
        const struct world_item *owner = NULL;

        for (size_t i = 0; i < world.n_items; i++) {
            const struct api_object *o = world.items[i]->now;

            if (o && o->kind == API_KIND_MIGRATION && ferry_streq(o->meta->uid, was->uid) &&
                !wire_migration_is_over(&o->u.migration)) {
                owner = world.items[i];
            }
        }
        if (owner) {
            world_fail("%s was handed over while %s moved it", a->name, owner->name);
        }
    }
}

/* ---- the controller --------------------------------------------------------------------------
 */

static struct ferry_error refusal; /* what the API said of the last refused pod */

/* A quota that is full while the storm lasts, and an admission that has its moods. */
static bool refuses(const struct plan_action *a)
{
    size_t pods = 0;

    for (size_t i = 0; i < world.n_items; i++) {
        pods += world.items[i]->kind == API_KIND_POD && world.items[i]->now;
    }
    bool quota = world.storm && world.seed % 3 == 0 && pods >= WORLD_VMS + 1;
    bool mood = world.storm && world_chance(2);

    ferry_fail_reason(&refusal, FERRY_DENIED,
                      wire_error_text(quota ? WIRE_ERROR_QUOTA : WIRE_ERROR_NONE), "%s",
                      quota ? "exceeded quota: pods" : "violates PodSecurity");
    return a->kind == API_KIND_POD && world_find(API_KIND_POD, a->name) == NULL && (quota || mood);
}

/* Nothing ends by its deadline before that has passed by a clock that nobody sets. */
static void check_deadline(const struct plan *p, const struct api_object *m)
{
    const struct {
        const char *reason;
        int64_t limit_s;
    } rows[] = {
        {"PrepareTimeout", settings.prepare_timeout_s},
        {"ConnectTimeout", settings.connect_timeout_s},
        {"PendingTimeout", settings.pending_timeout_s},
        {"UnschedulableTimeout", settings.unschedulable_timeout_s},
        {"Stuck", settings.stuck_timeout_s},
    };

    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        const struct world_item *item = world_find(API_KIND_MIGRATION, m->meta->name);
        int64_t took_ms = world.now_ms - item->born_ms, slack_ms = world.seed % 4 ? 2000 : 120000;

        if (ferry_streq(p->reason, rows[i].reason) && item->born_ms > started_ms &&
            took_ms < rows[i].limit_s * 1000 - slack_ms) {
            world_fail("%s: %s after %lld s", item->name, rows[i].reason,
                       (long long)took_ms / 1000);
        }
    }
}

static int apply_one(const struct plan_action *a)
{
    int rc = 0;

    if (a->op == PLAN_EVENT) {
        return 0;
    }
    if (budget == 0) {
        return -FERRY_CANCELLED;
    }
    budget -= budget > 0;
    if (world.storm && world_chance(2)) {
        return -FERRY_RETRY; /* the server was away, and nothing was done */
    }
    if (a->op == PLAN_CREATE && refuses(a)) {
        rc = -FERRY_DENIED;
    } else if (a->op == PLAN_CREATE) {
        rc = world_create(a->kind, a->name, a->body);
        check_limits();
    } else if (a->op == PLAN_DELETE) {
        if (a->kind == API_KIND_POD) {
            check_pod_delete(a->name, a->uid);
        }
        rc = world_delete(a->kind, a->name, a->uid);
        rc = rc == -FERRY_NOT_FOUND ? 0 : rc;
    } else {
        const struct api_object *now = get(a->kind, a->name, true);
        api_cleanup_object struct api_object *before =
            now ? api_object_ref((struct api_object *)now) : NULL;

        rc = world_patch(a->kind, a->name, a->body);
        if (rc == 0 && before && a->kind == API_KIND_VMI && get(a->kind, a->name, true)) {
            check_hand_over(a, before);
            check_limits();
        }
    }
    /* Done, but the answer was lost. */
    return rc == 0 && world.storm && world_chance(2) ? -FERRY_RETRY : rc;
}

static int apply(const struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        int rc = apply_one(&p->actions[i]);

        if (rc == -FERRY_CONFLICT && p->actions[i].op == PLAN_CREATE) {
            return 0;
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static void update_ledger(const char *vmi_name)
{
    struct family f = family_of(vmi_name, false);

    for (size_t i = 0; i < f.n_moves; i++) {
        if (wire_migration_is_over(&f.moves[i]->u.migration)) {
            limits_ledger_drop(ledger, f.moves[i]->meta->uid);
        } else {
            struct migration_view v = view_of(f.moves[i], &f);
            struct limits_move row =
                migration_ledger_row(&v, f.moves[i]->meta->name, world_wall_ms());

            limits_ledger_put(ledger, &row);
        }
    }
}

/* As loop_migration.c has it; so is what follows. */
static void give_back(const struct api_object *m)
{
    struct family f = family_of(m->u.migration.vmi_name, true);
    struct migration_view live = view_of(m, &f);

    if (!migration_took_effect(&live)) {
        limits_ledger_disclaim(ledger, m->meta->uid);
    }
}

static void decide(const struct api_object *m, bool live, struct plan *ret)
{
    struct family f = family_of(m->u.migration.vmi_name, live);
    struct migration_view v = view_of(m, &f);
    bool ours = f.vmi && ferry_streq(f.vmi->u.vmi.migration.uid, m->meta->uid);

    plan_done(ret);
    if (ours || wire_migration_is_over(&m->u.migration)) {
        migration_decide(&v, world_wall_ms(), ret);
        return;
    }
    update_ledger(m->u.migration.vmi_name);
    v.limits = limits_ledger_check(ledger, m->meta->uid);
    migration_decide(&v, world_wall_ms(), ret);
    bool hands_off = plan_find(ret, PLAN_PATCH_STATUS, API_KIND_VMI) != NULL;
    if (hands_off || plan_find(ret, PLAN_CREATE, API_KIND_POD)) {
        limits_ledger_claim(ledger, m->meta->uid, hands_off);
    } else if (limits_ledger_is_claimed(ledger, m->meta->uid)) {
        give_back(m);
    }
}

/* As loop_migration.c has it. */
static int undo(const struct api_object *m, struct plan *p, int rc)
{
    bool created = plan_find(p, PLAN_CREATE, API_KIND_POD) != NULL;
    struct family f = family_of(m->u.migration.vmi_name, true);
    struct migration_view live = view_of(m, &f);

    if (rc == -FERRY_RETRY || rc == -FERRY_CANCELLED ||
        !(created || plan_find(p, PLAN_PATCH_STATUS, API_KIND_VMI)) ||
        migration_took_effect(&live)) {
        return rc;
    }
    limits_ledger_disclaim(ledger, m->meta->uid);
    if (created && rc == -FERRY_DENIED) {
        plan_done(p);
        migration_decide_refused(&live, &refusal, world_wall_ms(), p);
        rc = apply(p);
    }
    return rc;
}

static int reconcile_move(const char *name, struct plan *p)
{
    const struct api_object *m = get(API_KIND_MIGRATION, name, false);

    if (!m) {
        return 0;
    }
    api_cleanup_object struct api_object *held = api_object_ref((struct api_object *)m);
    decide(held, false, p);
    if (p->confirm) {
        const struct api_object *now = get(API_KIND_MIGRATION, name, true);

        if (!now) {
            return 0;
        }
        api_object_unref(held);
        held = api_object_ref((struct api_object *)now);
        decide(held, true, p);
    }
    check_deadline(p, held);
    int rc = apply(p);
    if (rc < 0) {
        rc = undo(held, p, rc);
    }
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}

static int reconcile_vmi(const char *name, struct plan *p)
{
    for (int round = 0; round < 2; round++) {
        struct family f = family_of(name, round > 0);

        if (!f.vmi) {
            return 0;
        }
        struct vmi_view v = {.vmi = f.vmi,
                             .pods = f.pods,
                             .n_pods = f.n_pods,
                             .migrations = f.moves,
                             .n_migrations = f.n_moves,
                             .target_node_gone =
                                 f.vmi->u.vmi.migration.target_node &&
                                 !get(API_KIND_NODE, f.vmi->u.vmi.migration.target_node, false),
                             .pod = settings.pod,
                             .clock = seen_steps};
        plan_done(p);
        vmi_decide(&v, world_wall_ms(), p);
        if (!p->confirm) {
            break;
        }
    }
    int rc = apply(p);
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}

/* The first that is given a chance; each look may change what the next sees. */
static const struct api_object *homeless_pod(void)
{
    for (size_t i = 0; i < world.n_items; i++) {
        const struct api_object *o = world.items[i]->now;

        if (o && o->kind == API_KIND_POD && !o->u.pod.node_name && !o->meta->deleted_ms &&
            !world_chance(70)) {
            return o;
        }
    }
    return NULL;
}

static struct schedule_index *make_index(void)
{
    struct schedule_index *x = schedule_index_new();

    for (size_t i = 0; i < world.n_items; i++) {
        const struct api_object *o = world.items[i]->now;

        if (o && o->kind == API_KIND_NODE && world.nodes[o->meta->name[1] - '0'].up &&
            !world.nodes[o->meta->name[1] - '0'].cut) {
            schedule_index_put_node(x, o);
        } else if (o && o->kind == API_KIND_POD) {
            schedule_index_put_pod(x, o);
        }
    }
    return x;
}

static void schedule_pods(void)
{
    const struct api_object *pod = homeless_pod();

    if (pod) {
        struct schedule_index *index = make_index();
        struct schedule_answer a;

        schedule_pick(&(struct schedule_view){.pod = &pod->u.pod, .index = index}, &a);
        char patch[256];
        if (a.node) {
            snprintf(patch, sizeof(patch),
                     "[{\"op\":\"add\",\"path\":\"/spec/nodeName\",\"value\":\"%s\"}]",
                     a.node->meta.name);
        } else {
            snprintf(patch, sizeof(patch),
                     "[{\"op\":\"add\",\"path\":\"/status\",\"value\":{\"phase\":\"Pending\","
                     "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"message\":"
                     "\"none\"}]}}]");
        }
        world_patch(API_KIND_POD, pod->meta->name, patch);
        schedule_index_free(index);
    }
}

static void wake(char kind, const char *name, int priority)
{
    ferry_cleanup_free char *key = ferry_asprintf("%c:%s", kind, name);

    kube_queue_add(queue, key, priority);
}

static void show(const struct world_change *c)
{
    api_cleanup_object struct api_object *old = c->item->seen;
    const struct api_object *o = c->object ? c->object : old;
    const char *vmi = NULL;

    c->item->seen = c->object;
    if (!o) {
        return;
    }
    if (o->kind == API_KIND_VMI) {
        vmi = o->meta->name;
    } else if (o->kind == API_KIND_MIGRATION) {
        vmi = o->u.migration.vmi_name;
        if (!c->object) {
            limits_ledger_drop(ledger, o->meta->uid);
        }
    } else if (o->kind == API_KIND_POD && o->meta->n_owners > 0) {
        vmi = o->meta->owners[0].name;
    } else if (o->kind == API_KIND_NODE) {
        for (int i = 0; i < WORLD_VMS; i++) {
            char name[16];

            snprintf(name, sizeof(name), "v%d", i);
            struct family f = family_of(name, false);
            wake('v', name, 0);
            for (size_t k = 0; k < f.n_moves; k++) {
                wake('m', f.moves[k]->meta->name, KUBE_PRIORITY_ACTIVE);
            }
        }
    }
    if (!vmi) {
        return;
    }
    update_ledger(vmi);
    wake('v', vmi, 0);
    struct family f = family_of(vmi, false);
    for (size_t i = 0; i < f.n_moves; i++) {
        wake('m', f.moves[i]->meta->name, migration_priority(&f.moves[i]->u.migration));
    }
    for (size_t i = 0;; i++) {
        const char *next = limits_ledger_next(ledger, i);

        if (!next) {
            break;
        }
        wake('m', next, KUBE_PRIORITY_USER);
    }
}

/* The watch of a kind broke: what was on its way is lost, and a list jumps over it. */
static void relist(enum api_kind kind)
{
    size_t kept = 0;

    for (size_t i = 0; i < world.n_changes; i++) {
        if (world.changes[i].item->kind == kind) {
            api_object_unref(world.changes[i].object);
        } else {
            world.changes[kept++] = world.changes[i];
        }
    }
    world.n_changes = kept;
    for (size_t i = 0; i < world.n_items; i++) {
        struct world_item *item = world.items[i];

        if (item->kind == kind && item->now != item->seen) {
            show(&(struct world_change){item, item->now ? api_object_ref(item->now) : NULL});
        }
    }
}

/* Some of the changes of the kind reach its cache, the oldest first. */
static void deliver_some(enum api_kind kind)
{
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < world.n_changes; i++) {
        n += world.changes[i].item->kind == kind;
    }
    n = world.storm ? world_random((uint32_t)n + 1) : n;
    for (size_t i = 0; i < world.n_changes; i++) {
        if (world.changes[i].item->kind == kind && n > 0) {
            show(&world.changes[i]);
            n--;
        } else {
            world.changes[kept++] = world.changes[i];
        }
    }
    world.n_changes = kept;
}

/* Each kind has a watch of its own: none knows how far the others are. */
static void deliver(void)
{
    static const enum api_kind kinds[] = {API_KIND_NODE, API_KIND_POD, API_KIND_VMI,
                                          API_KIND_MIGRATION};
    enum { N = FERRY_COUNT(kinds) };

    for (size_t i = 0; i < N; i++) {
        size_t k = (i + world_random(N)) % N; /* now and then one is not served at all */

        if (world.storm && world_random(150) == 0) {
            world_say("a watch is lost");
            relist(kinds[k]);
        } else {
            deliver_some(world.storm ? kinds[k] : kinds[i]);
        }
    }
}

static void start_controller(void)
{
    budget = world.storm && world_chance(50) ? (int)world_random(60) : -1;
    queue = kube_queue_new(&(struct kube_queue_config){.now_ns = queue_clock});
    ledger = limits_ledger_new(&settings.limits);
    seen_steps = (struct clock_steps){0};
    started_ms = world.now_ms;
    for (size_t i = 0; i < world.n_changes; i++) {
        api_object_unref(world.changes[i].object);
    }
    world.n_changes = 0;
    for (size_t i = 0; i < world.n_items; i++) {
        struct world_item *item = world.items[i];

        api_object_unref(item->seen);
        item->seen = item->now ? api_object_ref(item->now) : NULL;
    }
    for (size_t i = 0; i < world.n_items; i++) { /* caches first, then work */
        struct world_item *item = world.items[i];

        if (item->seen) {
            show(&(struct world_change){item, api_object_ref(item->seen)});
        }
    }
}

static void stop_controller(void)
{
    kube_queue_free(queue);
    limits_ledger_free(ledger);
}

static void work(void)
{
    for (int i = 0; i < 20; i++) {
        int priority = 0;
        ferry_cleanup_free char *key = kube_queue_get(queue, 0, &priority);
        plan_cleanup struct plan p = {0};

        if (!key) {
            return;
        }
        int rc = key[0] == 'm' ? reconcile_move(key + 2, &p) : reconcile_vmi(key + 2, &p);
        kube_queue_done(queue, key);
        if (rc == -FERRY_CANCELLED || (budget == 0 && rc < 0)) {
            world_say("the controller dies");
            restarts++;
            stop_controller();
            start_controller();
            return;
        }
        if (rc < 0) {
            kube_queue_retry(queue, key, priority);
        } else {
            kube_queue_forget(queue, key);
        }
        if (p.again_ms) {
            kube_queue_add_after(queue, key, priority, p.again_ms * FERRY_NS_PER_MS);
        }
    }
}

/* ---- histories -------------------------------------------------------------------------------
 */

static void make_vm(int i)
{
    char name[16], json[512];

    snprintf(name, sizeof(name), "v%d", i);
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"labels\":{}},\"spec\":{"
             "\"domain\":{\"memory\":{\"guest\":\"64Mi\"}}}}",
             name);
    if (world_create(API_KIND_VMI, name, json) == 0) {
        world_new_guest(i);
    }
}

static void users_act(void)
{
    if (moves_made < MOVES_MAX && world_random(15) == 0) {
        char name[16], json[512];
        bool automatic = world_chance(30);

        snprintf(name, sizeof(name), "m%u", moves_made++);
        snprintf(json, sizeof(json),
                 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\"%s},\"spec\":{\"vmiName\":"
                 "\"v%u\"%s}}",
                 name,
                 automatic ? ",\"annotations\":{\"kubevirt.io/evacuationMigration\":\"n0\"}" : "",
                 world_random(WORLD_VMS), automatic ? ",\"priority\":\"system-critical\"" : "");
        world_create(API_KIND_MIGRATION, name, json);
    }
    if (moves_made > 0 && world_random(120) == 0) {
        char name[16];

        snprintf(name, sizeof(name), "m%u", world_random(moves_made));
        world_delete(API_KIND_MIGRATION, name, NULL);
    }
    if (world_random(250) == 0) { /* whatever it holds */
        const struct world_item *item = world.items[world_random((uint32_t)world.n_items)];

        if (item->now && (item->kind == API_KIND_POD ||
                          (item->kind == API_KIND_VMI && world.seed % 2 && world_chance(20)))) {
            world_delete(item->kind, item->name, NULL);
        }
    }
    if (world_random(60) == 0) { /* nothing when it is there */
        make_vm((int)world_random(WORLD_VMS));
    }
    if (world_random(400) == 0) {
        int64_t most_ms = world.seed % 4 == 0 || world_chance(50) ? 20000 : 1200000;

        world.wall_offset_ms += (int64_t)world_random((uint32_t)most_ms * 2) - most_ms;
        world_say("the controller's clock is set: it is %lld ms off",
                  (long long)world.wall_offset_ms);
    }
}

static bool is_dead_for_good(const char *node)
{
    return node && world.nodes[node[1] - '0'].stays_dead;
}

/* Only that node can tell whether it has the guest, or has the other half of it. */
static bool awaits_dead_node(const struct api_vmi *vmi)
{
    const struct api_migration_state *s = &vmi->migration;

    return (vmi_awaits_target(vmi) && is_dead_for_good(s->target_node)) ||
           (vmi_is_migrating(vmi) && ferry_streq(s->mode, "PostCopy") &&
            (is_dead_for_good(s->source_node) || is_dead_for_good(s->target_node)));
}

/* It waits for a node that does nothing any more, and says so: its owner has to act. */
static bool waits_for_dead_node(const struct api_object *move)
{
    struct family f = family_of(move->u.migration.vmi_name, true);
    const char *note = api_map_get(&move->meta->annotations, ANNOTATION_QUEUE);

    const struct api_vmi *vmi = f.vmi ? &f.vmi->u.vmi : NULL;

    if (vmi && note && ferry_streq(vmi->migration.uid, move->meta->uid)) {
        return strstr(note, "PathAway") && awaits_dead_node(vmi);
    }
    if (!wire_phase_is(move->u.migration.phase, PHASE_PENDING) || !vmi || !note ||
        !strstr(note, "SourceBusy")) {
        return false;
    }
    const struct api_object *pod = vmi_current_pod(vmi, f.pods, f.n_pods);
    bool starts = pod && !vmi_has_phase(vmi, PHASE_RUNNING);

    return awaits_dead_node(vmi) || (starts && is_dead_for_good(pod->u.pod.node_name));
}

/* What is still not as it must be in the end, or NULL. */
static const char *unfinished(void)
{
    static char text[256];

    for (size_t i = 0; i < world.n_items; i++) {
        const struct api_object *o = world.items[i]->now;

        if (!o || (o->kind != API_KIND_MIGRATION && o->kind != API_KIND_POD)) {
            continue;
        }
        if (o->kind == API_KIND_MIGRATION &&
            (!wire_migration_is_over(&o->u.migration) || o->meta->deleted_ms) &&
            !waits_for_dead_node(o)) {
            snprintf(text, sizeof(text), "migration %s is %s", o->meta->name,
                     o->meta->deleted_ms ? "still there" : o->u.migration.phase);
            return text;
        }
        const struct api_object *vmi =
            o->kind == API_KIND_POD ? get(API_KIND_VMI, o->meta->owners[0].name, true) : NULL;
        if (vmi && !wire_vmi_is_over(&vmi->u.vmi) && world_guest_in(o->meta->uid) < 0 &&
            !awaits_dead_node(&vmi->u.vmi) && !is_dead_for_good(o->u.pod.node_name)) {
            snprintf(text, sizeof(text), "pod %s is left over", o->meta->name);
            return text;
        }
    }
    return NULL;
}

static void run(uint64_t seed, bool verbose)
{
    moves_made = 0;
    settings = migration_default_settings;
    settings.limits.cluster = 2;
    settings.limits.outbound_per_node = 1;
    settings.limits.inbound_per_node = 1;
    world_start(seed, verbose);
    for (int i = 0; i < WORLD_VMS; i++) {
        make_vm(i);
    }
    start_controller();
    int64_t began = world.now_ms;
    const char *left = "";

    while (left && world.now_ms < began + STORM_MS + CALM_MS) {
        if (world.storm && world.now_ms > began + STORM_MS) {
            world_say("the storm is over");
            world.storm = false;
            budget = -1;
        }
        if (world.storm) {
            users_act();
        }
        clock_steps_observe(&seen_steps, world_wall_ms(), world.now_ms);
        deliver();
        work();
        schedule_pods();
        world_act();
        check_guests();
        world.now_ms += STEP_MS;
        left = world.storm || world.n_changes > 0 ? "" : unfinished();
    }
    if (left) {
        world_fail("not over four hours after the last fault: %s", left);
    }
    stop_controller();
    world_end();
}

int main(int argc, char **argv)
{
    unsigned long long seed = 1, count = 100;
    bool verbose = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[++i], NULL, 10);
            count = 1;
        } else if (i + 1 < argc && strcmp(argv[i], "--from") == 0) {
            seed = strtoull(argv[++i], NULL, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--count") == 0) {
            count = strtoull(argv[++i], NULL, 10);
        } else {
            fprintf(stderr, "usage: sim [--seed N | --from N --count N] [--verbose]\n");
            return 2;
        }
    }
    printf("seeds %llu to %llu\n", seed, seed + count - 1);
    for (unsigned long long i = 0; i < count; i++) {
        run(seed + i, verbose);
    }
    printf("%llu histories, %u deaths of the controller: all is well\n", count, restarts);
    return 0;
}
