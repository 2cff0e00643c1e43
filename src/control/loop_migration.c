/* Theory of operation.
 *
 * Everything about a migration is decided from the caches, except two things. What rests on an
 * object not being there is decided again from the API itself. And limits need to know of target
 * pods that were created a moment ago and are not in the cache: while a migration is Pending, the
 * decision is taken under a lock, and a create is noted in `started` before it is sent; a note
 * counts as an active move until the pod shows up or the migration ends. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/cluster_config.h"
#include "control/facts.h"
#include "control/loops.h"
#include "control/names.h"
#include "control/plan_apply.h"

struct loop_migration {
    struct cluster *cluster;
    pthread_mutex_t lock; /* guards all below */
    char **started;       /* UIDs of migrations whose target pod was asked for */
    size_t n_started;
};

struct loop_migration *loop_migration_new(struct cluster *c)
{
    struct loop_migration *l = ferry_xcalloc(1, sizeof(*l));

    l->cluster = c;
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void loop_migration_free(struct loop_migration *l)
{
    if (!l) {
        return;
    }
    for (size_t i = 0; i < l->n_started; i++) {
        free(l->started[i]);
    }
    free(l->started);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

int loop_migration_priority(const struct api_migration *m)
{
    return migration_is_running(m) ? KUBE_PRIORITY_ACTIVE : migration_priority(m);
}

/* ---- limits ----------------------------------------------------------------------------------
 */

static bool is_started_locked(const struct loop_migration *l, const char *uid)
{
    for (size_t i = 0; i < l->n_started; i++) {
        if (strcmp(l->started[i], uid) == 0) {
            return true;
        }
    }
    return false;
}

static void note_started_locked(struct loop_migration *l, const char *uid)
{
    if (!is_started_locked(l, uid)) {
        l->started = ferry_xrealloc(l->started, l->n_started + 1, sizeof(char *));
        l->started[l->n_started++] = ferry_strdup(uid);
    }
}

static void forget_started_locked(struct loop_migration *l, const char *uid)
{
    for (size_t i = 0; i < l->n_started; i++) {
        if (strcmp(l->started[i], uid) == 0) {
            free(l->started[i]);
            l->started[i] = l->started[--l->n_started];
            return;
        }
    }
}

static const char *text_or_empty(const char *s)
{
    return s ? s : "";
}

static int by_vmi(const void *a, const void *b)
{
    const struct api_object *x = *(struct api_object *const *)a;
    const struct api_object *y = *(struct api_object *const *)b;
    int ns = strcmp(text_or_empty(x->meta->namespace_), text_or_empty(y->meta->namespace_));

    return ns ? ns
              : strcmp(text_or_empty(x->u.migration.vmi_name),
                       text_or_empty(y->u.migration.vmi_name));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted UIDs of the migrations that have a target pod; the strings belong to the pods. */
static const char **uids_with_pod(const struct kube_snapshot *pods, size_t *ret_n)
{
    const char **uids = ferry_xcalloc(pods->n + 1, sizeof(*uids));
    size_t n = 0;

    for (size_t i = 0; i < pods->n; i++) {
        const char *uid = api_map_get(&pods->items[i]->meta->labels, LABEL_MIGRATION_JOB_UID);

        if (uid && !pod_is_down(&pods->items[i]->u.pod)) {
            uids[n++] = uid;
        }
    }
    qsort(uids, n, sizeof(*uids), by_text);
    *ret_n = n;
    return uids;
}

/* The migrations of one VMI, and that VMI. */
struct group {
    struct api_object *const *migrations;
    size_t n;
    struct api_object *vmi; /* or NULL */
};

static struct limits_entry make_entry_locked(struct loop_migration *l, const struct api_object *o,
                                             const struct group *g, bool has_pod)
{
    const struct api_migration *m = &o->u.migration;
    const struct api_vmi *vmi = g->vmi ? &g->vmi->u.vmi : NULL;
    struct migration_view view = {.migration = o,
                                  .vmi = g->vmi,
                                  .source_pod = g->vmi, /* that it has a pod is not in question */
                                  .migrations = (const struct api_object *const *)g->migrations,
                                  .n_migrations = g->n};
    bool ours = vmi && ferry_streq(vmi->migration.uid, m->meta.uid);

    if (has_pod) {
        forget_started_locked(l, m->meta.uid);
    }
    return (struct limits_entry){
        .migration = m,
        .source_node = ours  ? vmi->migration.source_node
                       : vmi ? vmi->node_name
                             : NULL,
        .active = has_pod || migration_is_running(m) || is_started_locked(l, m->meta.uid),
        .ready = migration_is_startable(&view, NULL),
    };
}

static struct limits_answer check_limits_locked(struct loop_migration *l,
                                                const struct api_migration *self,
                                                const struct migration_limits *limits)
{
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(l->cluster->migrations);
    kube_cleanup_snapshot struct kube_snapshot pods = kube_informer_list(l->cluster->pods);
    kube_cleanup_snapshot struct kube_snapshot vmis = {
        .items = ferry_xcalloc(all.n + 1, sizeof(struct api_object *))};
    ferry_cleanup_free struct limits_entry *entries = ferry_xcalloc(all.n + 1, sizeof(*entries));
    size_t n_uids, n = 0;
    ferry_cleanup_free const char **uids = uids_with_pod(&pods, &n_uids);

    qsort(all.items, all.n, sizeof(struct api_object *), by_vmi);
    for (size_t from = 0, to; from < all.n; from = to) {
        for (to = from + 1; to < all.n && by_vmi(&all.items[from], &all.items[to]) == 0;) {
            to++;
        }
        struct group g = {
            .migrations = all.items + from,
            .n = to - from,
            .vmi = kube_informer_get(l->cluster->vmis, all.items[from]->meta->namespace_,
                                     text_or_empty(all.items[from]->u.migration.vmi_name))};
        if (g.vmi) {
            vmis.items[vmis.n++] = g.vmi; /* entries point into it */
        }
        for (size_t i = from; i < to; i++) {
            const char *uid = all.items[i]->meta->uid;

            if (migration_is_final(&all.items[i]->u.migration)) {
                forget_started_locked(l, uid);
            } else {
                bool has_pod = bsearch(&uid, uids, n_uids, sizeof(*uids), by_text) != NULL;

                entries[n++] = make_entry_locked(l, all.items[i], &g, has_pod);
            }
        }
    }
    return migration_limits_check(entries, n, self, limits);
}

/* ---- reconcile -------------------------------------------------------------------------------
 */

/* Decides; a Pending migration under the lock, with its claim noted when it starts. */
static void decide(struct loop_migration *l, const struct api_object *m,
                   const struct cluster_family *f, struct plan *ret)
{
    const struct api_object *const *pods = (const struct api_object *const *)f->pods.items;
    struct cluster *c = l->cluster;
    struct migration_settings settings;
    api_cleanup_object struct api_object *kubevirt = cluster_config_get(c, &settings);
    api_cleanup_object struct api_object *ns =
        kube_informer_get(c->namespaces, NULL, m->meta->namespace_);
    kube_cleanup_snapshot struct kube_snapshot policies = kube_informer_list(c->policies);
    struct migration_view view = {
        .migration = m,
        .vmi = f->vmi,
        .target_pod = cluster_target_pod(&f->pods, m->meta->uid),
        .source_pod = f->vmi ? vmi_current_pod(&f->vmi->u.vmi, pods, f->pods.n) : NULL,
        .migrations = (const struct api_object *const *)f->migrations.items,
        .n_migrations = f->migrations.n,
        .kubevirt = kubevirt,
        .namespace_ = ns,
        .policies = (const struct api_object *const *)policies.items,
        .n_policies = policies.n,
        .settings = &settings,
    };
    bool pending = strcmp(m->u.migration.phase, PHASE_PENDING) == 0;

    if (pending) {
        pthread_mutex_lock(&l->lock);
        view.limits = check_limits_locked(l, &m->u.migration, &settings.limits);
    }
    migration_decide(&view, ferry_now_unix_ms(), ret);
    if (pending) {
        if (plan_find(ret, PLAN_CREATE, API_KIND_POD)) {
            note_started_locked(l, m->meta->uid);
        }
        pthread_mutex_unlock(&l->lock);
    }
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
                   struct plan *p, struct ferry_error *err)
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
    decide(l, now, f, p);
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
    plan_cleanup struct plan p = {0};
    decide(l, m, &f, &p);
    if (p.confirm) {
        int go = confirm(l, &m, &f, &p, err);

        if (go <= 0) {
            return go;
        }
    }
    int rc = plan_apply(&p, l->cluster->client, l->cluster->recorder, err);
    if (rc == 0) {
        log_phase(m, f.vmi, &p);
    } else if (plan_find(&p, PLAN_CREATE, API_KIND_POD)) {
        pthread_mutex_lock(&l->lock);
        forget_started_locked(l, m->meta->uid);
        pthread_mutex_unlock(&l->lock);
    }
    if (p.again_ms) {
        *again = (struct kube_again){.wanted = true,
                                     .after_ns = p.again_ms * FERRY_NS_PER_MS,
                                     .priority = loop_migration_priority(&m->u.migration)};
    }
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}
