#include "control/loops/cluster.h"

#include <string.h>

#include "api/wire/wire_keys.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

int64_t cluster_now_ms(struct cluster *c, struct clock_steps *ret)
{
    pthread_mutex_lock(&c->clock_lock);
    int64_t now_ms = ferry_now_unix_ms();

    bool was_set = clock_steps_observe(&c->clock, now_ms, ferry_now_ns() / FERRY_NS_PER_MS);
    *ret = c->clock;
    pthread_mutex_unlock(&c->clock_lock);
    if (was_set) {
        ferry_warn("clock was set; deadlines do not count the step",
                   F_INT("milliseconds", ret->steps[ret->n_steps - 1].by_ms));
        kube_queue_add(c->clock_changes, "clock", 0);
    }
    return now_ms;
}

void cluster_storage_done(struct cluster_storage *s)
{
    kube_snapshot_done(&s->claims);
    kube_snapshot_done(&s->classes);
    kube_snapshot_done(&s->profiles);
    *s = (struct cluster_storage){0};
}

static void add_claim(struct cluster *c, struct cluster_storage *s, const char *ns,
                      const char *name)
{
    struct api_object *o = name ? kube_informer_get(c->claims, ns, name) : NULL;

    if (o) {
        s->claims.items = (struct api_object **)ferry_xrealloc(
            (void *)s->claims.items, s->claims.n + 1, sizeof(*s->claims.items));
        s->claims.items[s->claims.n++] = o;
    }
}

struct cluster_storage cluster_storage(struct cluster *c, const char *ns,
                                       const struct api_machine *m, const struct api_machine *other)
{
    struct cluster_storage s = {0};

    for (size_t i = 0; m && i < m->n_volumes; i++) {
        add_claim(c, &s, ns, storage_claim_name(&m->volumes[i]));
    }
    for (size_t i = 0; other && i < other->n_volumes; i++) {
        add_claim(c, &s, ns, storage_claim_name(&other->volumes[i]));
    }
    if (s.claims.n > 0) {
        s.classes = kube_informer_list(c->classes);
        s.profiles = kube_informer_list(c->profiles);
    }
    s.view = (struct storage_view){
        .claims = (const struct api_object *const *)s.claims.items,
        .n_claims = s.claims.n,
        .classes = (const struct api_object *const *)s.classes.items,
        .n_classes = s.classes.n,
        .profiles = (const struct api_object *const *)s.profiles.items,
        .n_profiles = s.profiles.n,
    };
    return s;
}

void cluster_family_done(struct cluster_family *f)
{
    api_object_unref(f->vmi);
    kube_snapshot_done(&f->pods);
    kube_snapshot_done(&f->migrations);
    api_object_unref(f->node);
    cluster_storage_done(&f->storage);
    *f = (struct cluster_family){0};
}

char *cluster_index_migration(const struct api_object *m)
{
    return ferry_str_empty(m->u.migration.vmi_name)
               ? NULL
               : cluster_key(m->meta->namespace_, m->u.migration.vmi_name);
}

char *cluster_index_pod(const struct api_object *pod)
{
    bool launcher = ferry_streq(api_map_get(&pod->meta->labels, LABEL_APP), LABEL_APP_LAUNCHER);

    return launcher ? ferry_strdup(api_map_get(&pod->meta->labels, LABEL_CREATED_BY)) : NULL;
}

char *cluster_index_vmi(const struct api_object *vmi)
{
    return ferry_str_empty(vmi->u.vmi.node_name) ? NULL : ferry_strdup(vmi->u.vmi.node_name);
}

static struct kube_snapshot migrations_of(struct cluster *c, const char *ns, const char *vmi_name)
{
    ferry_cleanup_free char *key = cluster_key(ns, vmi_name);

    return kube_informer_find(c->migrations, key);
}

/* What goes with the VMI. */
static void look_around_vmi(struct cluster *c, struct cluster_family *f)
{
    if (f->vmi) {
        const char *node = f->vmi->u.vmi.node_name;

        f->node = ferry_str_empty(node) ? NULL : kube_informer_get(c->nodes, NULL, node);
        f->storage = cluster_storage(c, f->vmi->meta->namespace_, &f->vmi->u.vmi.machine, NULL);
    }
}

struct cluster_family cluster_family(struct cluster *c, const char *ns, const char *vmi_name)
{
    struct cluster_family f = {.vmi = kube_informer_get(c->vmis, ns, vmi_name),
                               .migrations = migrations_of(c, ns, vmi_name)};

    if (f.vmi) {
        f.pods = kube_informer_find(c->pods, f.vmi->meta->uid);
    }
    look_around_vmi(c, &f);
    return f;
}

bool cluster_is_behind(struct cluster *c, const struct cluster_family *f)
{
    int64_t now_ns = ferry_now_ns();
    bool behind = pending_writes_is_ahead(c->writer.pending, f->vmi, now_ns);

    for (size_t i = 0; !behind && i < f->pods.n; i++) {
        behind = pending_writes_is_ahead(c->writer.pending, f->pods.items[i], now_ns);
    }
    return behind;
}

int cluster_family_live(struct cluster *c, const char *ns, const char *vmi_name,
                        struct cluster_family *ret, struct ferry_error *err)
{
    api_cleanup_object struct api_object *vmi = NULL;
    kube_cleanup_list struct kube_list list = {0};
    int rc = kube_client_get(c->client, kube_ref(API_KIND_VMI, ns, vmi_name), &vmi, err);

    if (rc < 0 && rc != -FERRY_NOT_FOUND) {
        return rc;
    }
    if (vmi) {
        ferry_cleanup_free char *selector = ferry_asprintf(
            "%s=%s,%s=%s", LABEL_APP, LABEL_APP_LAUNCHER, LABEL_CREATED_BY, vmi->meta->uid);

        rc = kube_client_list(c->client, kube_ref(API_KIND_POD, ns, NULL),
                              &(struct kube_list_options){.label_selector = selector}, &list, err);
        if (rc < 0) {
            return rc;
        }
    }
    *ret = (struct cluster_family){
        .vmi = ferry_take_ptr(vmi),
        .pods = {.items = ferry_take_ptr(list.items), .n = list.n},
        .migrations = migrations_of(c, ns, vmi_name),
    };
    list.n = 0;
    look_around_vmi(c, ret);
    return 0;
}

const struct api_object *cluster_target_pod(const struct kube_snapshot *pods,
                                            const char *migration_uid)
{
    for (size_t i = 0; i < pods->n; i++) {
        if (ferry_streq(api_map_get(&pods->items[i]->meta->labels, LABEL_MIGRATION_JOB_UID),
                        migration_uid)) {
            return pods->items[i];
        }
    }
    return NULL;
}

bool cluster_split_key(const char *key, char **ret_ns, char **ret_name)
{
    const char *slash = strchr(key, '/');

    if (!slash) {
        return false;
    }
    *ret_ns = ferry_strndup(key, (size_t)(slash - key));
    *ret_name = ferry_strdup(slash + 1);
    return true;
}

char *cluster_key(const char *ns, const char *name)
{
    return ferry_asprintf("%s/%s", ns ? ns : "", name);
}
