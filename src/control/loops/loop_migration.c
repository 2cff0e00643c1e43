/* Theory of operation.
 *
 * Everything about a migration is decided from the caches, except two things. What rests on an
 * object not being there is decided again from the API itself. And limits need to know of target
 * pods that were created, and of moves that were handed over, a moment ago and are not in the
 * cache: these decisions are taken under a lock, and claimed in the ledger before anything is sent.
 *
 * The ledger follows the caches: whatever wakes a migration brings the rows of all migrations of
 * its VMI up to date first, under the same lock, so that the last to write has seen the latest. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/loops/cluster_config.h"
#include "control/loops/loops.h"
#include "control/loops/plan_apply.h"
#include "control/plan/facts.h"

struct loop_migration {
    struct cluster *cluster;
    pthread_mutex_t lock; /* guards all below */
    struct limits_ledger *ledger;
};

struct loop_migration *loop_migration_new(struct cluster *c)
{
    struct loop_migration *l = ferry_xcalloc(1, sizeof(*l));

    l->cluster = c;
    l->ledger = limits_ledger_new(&c->settings.limits);
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void loop_migration_free(struct loop_migration *l)
{
    if (!l) {
        return;
    }
    limits_ledger_free(l->ledger);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

int loop_migration_priority(const struct api_migration *m)
{
    return migration_is_running(m) ? KUBE_PRIORITY_ACTIVE : migration_priority(m);
}

/* ---- what is looked at -----------------------------------------------------------------------
 */

/* Settings of all migrations, as they are now. */
struct surroundings {
    struct migration_settings settings;
    struct api_object *kubevirt, *ns; /* or NULL */
    struct kube_snapshot policies;
    struct clock_steps clock; /* with the wall clock as it was then */
    int64_t now_ms;
};

static struct surroundings look_around(struct cluster *c, const char *ns)
{
    struct surroundings s = {.ns = kube_informer_get(c->namespaces, NULL, ns),
                             .policies = kube_informer_list(c->policies)};

    s.kubevirt = cluster_config_get(c, &s.settings);
    s.now_ms = cluster_now_ms(c, &s.clock);
    return s;
}

static void surroundings_done(struct surroundings *s)
{
    api_object_unref(s->kubevirt);
    api_object_unref(s->ns);
    kube_snapshot_done(&s->policies);
}

/* Is there no such node; since when does it not report? */
static bool look_at_node(struct cluster *c, const char *name, int64_t *ret_silent_ms)
{
    api_cleanup_object struct api_object *node =
        ferry_str_empty(name) ? NULL : kube_informer_get(c->nodes, NULL, name);

    if (node) {
        *ret_silent_ms = node_silent_since(&node->u.node);
    }
    return !ferry_str_empty(name) && !node;
}

static struct migration_view make_view(struct cluster *c, const struct api_object *m,
                                       const struct cluster_family *f, const struct surroundings *s)
{
    const struct api_object *const *pods = (const struct api_object *const *)f->pods.items;
    const struct api_migration_state *state = f->vmi ? &f->vmi->u.vmi.migration : NULL;
    bool ours = state && ferry_streq(state->uid, m->meta->uid) && !state->completed;
    struct migration_view v = {
        .migration = m,
        .vmi = f->vmi,
        .target_pod = cluster_target_pod(&f->pods, m->meta->uid),
        .source_pod = f->vmi ? vmi_current_pod(&f->vmi->u.vmi, pods, f->pods.n) : NULL,
        .migrations = (const struct api_object *const *)f->migrations.items,
        .n_migrations = f->migrations.n,
        .source_node = f->node,
        .storage = f->storage.view,
        .kubevirt = s->kubevirt,
        .namespace_ = s->ns,
        .policies = (const struct api_object *const *)s->policies.items,
        .n_policies = s->policies.n,
        .settings = &s->settings,
        .clock = s->clock,
    };

    if (ours) {
        v.source_node_gone = look_at_node(c, state->source_node, &v.source_silent_ms);
        v.target_node_gone = look_at_node(c, state->target_node, &v.target_silent_ms);
    }
    return v;
}

/* ---- limits ----------------------------------------------------------------------------------
 */

static void update_ledger_locked(struct loop_migration *l, const struct cluster_family *f,
                                 const struct surroundings *s)
{
    limits_ledger_set(l->ledger, &s->settings.limits);
    for (size_t i = 0; i < f->migrations.n; i++) {
        const struct api_object *m = f->migrations.items[i];

        if (wire_migration_is_over(&m->u.migration)) {
            limits_ledger_drop(l->ledger, m->meta->uid);
            continue;
        }
        struct migration_view view = make_view(l->cluster, m, f, s);
        ferry_cleanup_free char *key = cluster_key(m->meta->namespace_, m->meta->name);
        struct limits_move row = migration_ledger_row(&view, key, s->now_ms);
        limits_ledger_put(l->ledger, &row);
    }
}

void loop_migration_changed(struct loop_migration *l, const char *ns, const char *vmi_name)
{
    struct surroundings s = look_around(l->cluster, ns);

    pthread_mutex_lock(&l->lock);
    cluster_cleanup_family struct cluster_family f = cluster_family(l->cluster, ns, vmi_name);
    update_ledger_locked(l, &f, &s);
    pthread_mutex_unlock(&l->lock);
    surroundings_done(&s);
}

void loop_migration_gone(struct loop_migration *l, const char *uid)
{
    pthread_mutex_lock(&l->lock);
    limits_ledger_drop(l->ledger, uid);
    pthread_mutex_unlock(&l->lock);
}

char *loop_migration_next(struct loop_migration *l, size_t i)
{
    pthread_mutex_lock(&l->lock);
    char *key = ferry_strdup(limits_ledger_next(l->ledger, i));
    pthread_mutex_unlock(&l->lock);
    return key;
}

/* ---- reconcile -------------------------------------------------------------------------------
 */

static bool finds_no_node(const struct api_object *pod)
{
    const struct api_condition *c =
        pod ? api_condition_find(&pod->u.pod.conditions, CONDITION_POD_SCHEDULED) : NULL;

    return c && ferry_streq(c->status, "False");
}

/* Decides; where limits matter under the lock, with a claim when it goes on. True when it does not
 * go on, but holds a claim of an earlier try whose answer was lost. */
static bool decide(struct loop_migration *l, const struct api_object *m,
                   const struct cluster_family *f, struct plan *ret)
{
    bool idle_claim = false;
    struct surroundings s = look_around(l->cluster, m->meta->namespace_);
    struct migration_view view = make_view(l->cluster, m, f, &s);
    kube_cleanup_snapshot struct kube_snapshot nodes = {0};
    bool ours = f->vmi && ferry_streq(f->vmi->u.vmi.migration.uid, m->meta->uid);

    if (finds_no_node(view.target_pod)) {
        nodes = kube_informer_list(l->cluster->nodes);
        view.nodes = (const struct api_object *const *)nodes.items;
        view.n_nodes = nodes.n;
    }
    if (!ours && !wire_migration_is_over(&m->u.migration)) { /* limits may have a say */
        pthread_mutex_lock(&l->lock);
        cluster_cleanup_family struct cluster_family now =
            cluster_family(l->cluster, m->meta->namespace_, m->u.migration.vmi_name);
        update_ledger_locked(l, &now, &s);
        view.limits = limits_ledger_check(l->ledger, m->meta->uid);
        migration_decide(&view, s.now_ms, ret);
        bool hands_off = plan_find(ret, PLAN_PATCH_STATUS, API_KIND_VMI) != NULL;
        if (hands_off || plan_find(ret, PLAN_CREATE, API_KIND_POD)) {
            limits_ledger_claim(l->ledger, m->meta->uid, hands_off);
        } else {
            idle_claim = limits_ledger_is_claimed(l->ledger, m->meta->uid);
        }
        pthread_mutex_unlock(&l->lock);
    } else {
        migration_decide(&view, s.now_ms, ret);
    }
    surroundings_done(&s);
    return idle_claim;
}

/* Whether a try that was refused had gone through before, unheard. On doubt it has. */
static bool took_effect(struct loop_migration *l, const struct api_object *m,
                        const struct surroundings *s)
{
    struct cluster_family f = {0};
    struct ferry_error ignored = {0};

    if (cluster_family_live(l->cluster, m->meta->namespace_, m->u.migration.vmi_name, &f,
                            &ignored) < 0) {
        return true;
    }
    struct migration_view live = make_view(l->cluster, m, &f, s);
    bool did = migration_took_effect(&live);
    cluster_family_done(&f);
    return did;
}

/* A place that is kept for nothing keeps others out, perhaps the very one that this one waits for.
 */
static void give_back(struct loop_migration *l, const struct api_object *m)
{
    struct surroundings s = look_around(l->cluster, m->meta->namespace_);

    if (!took_effect(l, m, &s)) {
        pthread_mutex_lock(&l->lock);
        limits_ledger_disclaim(l->ledger, m->meta->uid);
        pthread_mutex_unlock(&l->lock);
    }
    surroundings_done(&s);
}

/* What could not be carried out gives its place back, and a refusal is written down. An answer that
 * was lost may hide a success: the place is kept, and asking again is safe. */
static int undo(struct loop_migration *l, const struct api_object *m,
                const struct cluster_family *f, struct plan *p, int rc, struct ferry_error *err)
{
    bool created = plan_find(p, PLAN_CREATE, API_KIND_POD) != NULL;

    if (rc == -FERRY_RETRY || !(created || plan_find(p, PLAN_PATCH_STATUS, API_KIND_VMI))) {
        return rc;
    }
    struct surroundings s = look_around(l->cluster, m->meta->namespace_);
    bool did = took_effect(l, m, &s);

    if (!did) {
        pthread_mutex_lock(&l->lock);
        limits_ledger_disclaim(l->ledger, m->meta->uid);
        pthread_mutex_unlock(&l->lock);
    }
    if (!did && created && (rc == -FERRY_DENIED || rc == -FERRY_INVALID)) {
        struct migration_view view = make_view(l->cluster, m, f, &s);

        plan_done(p);
        migration_decide_refused(&view, err, s.now_ms, p);
        ferry_warn("the target pod was refused", F_STR("namespace", m->meta->namespace_),
                   F_STR("migration", m->meta->name), F_ERR(err));
        rc = plan_apply(p, &l->cluster->writer, err);
    }
    surroundings_done(&s);
    return rc;
}

static void log_phase(const struct api_object *m, const struct api_object *vmi,
                      const struct plan *p)
{
    const struct api_migration_state *s = vmi ? &vmi->u.vmi.migration : &m->u.migration.state;

    if (p->phase) {
        ferry_info("migration phase", F_STR("namespace", m->meta->namespace_),
                   F_STR("migration", m->meta->name), F_STR("vmi", m->u.migration.vmi_name),
                   F_STR("from", m->u.migration.phase), F_STR("to", p->phase),
                   F_STR("source", s->source_node), F_STR("target", s->target_node),
                   F_STR("rule", p->rule), F_STR("reason", p->reason));
    } else if (p->reason) {
        ferry_debug("migration waits", F_STR("migration", m->meta->name),
                    F_STR("reason", p->reason));
    }
}

/* Decides again with what the API says now. 1 = go on, 0 = nothing to do any more. */
static int confirm(struct loop_migration *l, struct api_object **m, struct cluster_family *f,
                   struct plan *p, bool *idle_claim, struct ferry_error *err)
{
    struct api_object *now = NULL;
    int rc = kube_client_get(l->cluster->client, kube_ref_of(*m), &now, err);

    if (rc < 0) {
        return rc == -FERRY_NOT_FOUND ? 0 : rc;
    }
    api_object_unref(*m);
    *m = now;
    cluster_family_done(f);
    rc = cluster_family_live(l->cluster, now->meta->namespace_, now->u.migration.vmi_name, f, err);
    if (rc < 0) {
        return rc;
    }
    plan_done(p);
    *idle_claim = decide(l, now, f, p);
    return 1;
}

int loop_migration_reconcile(void *ctx, const char *key, struct kube_again *again,
                             struct ferry_error *err)
{
    struct loop_migration *l = ctx;
    ferry_cleanup_free char *ns = NULL, *name = NULL;

    if (!cluster_split_key(key, &ns, &name)) {
        return 0;
    }
    api_cleanup_object struct api_object *m = kube_informer_get(l->cluster->migrations, ns, name);
    if (!m || ferry_str_empty(m->u.migration.vmi_name)) {
        return 0;
    }
    cluster_cleanup_family struct cluster_family f =
        cluster_family(l->cluster, ns, m->u.migration.vmi_name);
    if (pending_writes_is_ahead(l->cluster->writer.pending, m, ferry_now_ns()) ||
        cluster_is_behind(l->cluster, &f)) {
        *again = (struct kube_again){.wanted = true,
                                     .after_ns = FERRY_NS_PER_S,
                                     .priority = loop_migration_priority(&m->u.migration)};
        return 0;
    }
    plan_cleanup struct plan p = {0};
    bool idle_claim = decide(l, m, &f, &p);
    if (p.confirm) {
        int go = confirm(l, &m, &f, &p, &idle_claim, err);

        if (go <= 0) {
            return go;
        }
    }
    if (idle_claim) {
        give_back(l, m);
    }
    int rc = plan_apply(&p, &l->cluster->writer, err);
    if (rc == 0) {
        log_phase(m, f.vmi, &p);
    } else {
        rc = undo(l, m, &f, &p, rc, err);
    }
    if (p.again_ms) {
        *again = (struct kube_again){.wanted = true,
                                     .after_ns = p.again_ms * FERRY_NS_PER_MS,
                                     .priority = loop_migration_priority(&m->u.migration)};
    }
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}
