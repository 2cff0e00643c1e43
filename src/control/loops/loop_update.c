/* Theory of operation.
 *
 * One key stands for all VMs. A pass is made at most every five seconds however much happens, and
 * looks only at what may have to be done: VMs with a condition that asks for a move, with an older
 * launcher, or with a move of this controller that is not over. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/evacuate/update_decide.h"
#include "control/loops/cluster_config.h"
#include "control/loops/loops.h"
#include "control/loops/plan_apply.h"
#include "control/plan/facts.h"

enum { PAUSE_MS = 5000 };

struct loop_update {
    struct cluster *cluster;
    int64_t last_pass_ns;     /* the worker's own */
    int64_t last_eviction_ms; /* as well; a successor begins a new batch */
    atomic_size_t outdated;
};

struct loop_update *loop_update_new(struct cluster *c)
{
    struct loop_update *l = ferry_xcalloc(1, sizeof(*l));

    l->cluster = c;
    return l;
}

void loop_update_free(struct loop_update *l)
{
    free(l);
}

size_t loop_update_outdated(const struct loop_update *l)
{
    return atomic_load(&l->outdated);
}

/* What a pass looks at; the families hold what the rows point to. */
struct candidates {
    struct cluster_family *families;
    struct update_vm *vms;
    size_t n;
};

static void candidates_done(struct candidates *c)
{
    for (size_t i = 0; i < c->n; i++) {
        cluster_family_done(&c->families[i]);
    }
    free(c->families);
    free(c->vms);
}

static bool has_open_update(const struct kube_snapshot *migrations)
{
    for (size_t i = 0; i < migrations->n; i++) {
        if (!wire_migration_is_over(&migrations->items[i]->u.migration) &&
            api_map_get(&migrations->items[i]->meta->annotations, ANNOTATION_WORKLOAD_UPDATE)) {
            return true;
        }
    }
    return false;
}

static struct candidates find_candidates(struct loop_update *l)
{
    kube_cleanup_snapshot struct kube_snapshot vmis = kube_informer_list(l->cluster->vmis);
    struct candidates c = {.families = ferry_xcalloc(vmis.n + 1, sizeof(*c.families)),
                           .vms = ferry_xcalloc(vmis.n + 1, sizeof(*c.vms))};

    for (size_t i = 0; i < vmis.n; i++) {
        const struct api_meta *m = vmis.items[i]->meta;
        struct cluster_family f = cluster_family(l->cluster, m->namespace_, m->name);
        const struct api_object *pod =
            f.vmi ? vmi_current_pod(&f.vmi->u.vmi, (const struct api_object *const *)f.pods.items,
                                    f.pods.n)
                  : NULL;

        if (!f.vmi || (!update_is_wanted(&f.vmi->u.vmi) && !has_open_update(&f.migrations) &&
                       !update_is_outdated(f.vmi, pod, l->cluster->settings.pod.launcher_image))) {
            cluster_family_done(&f);
            continue;
        }
        c.vms[c.n] =
            (struct update_vm){.vmi = f.vmi,
                               .pod = pod,
                               .migrations = (const struct api_object *const *)f.migrations.items,
                               .n_migrations = f.migrations.n};
        c.families[c.n++] = f;
    }
    return c;
}

static size_t moves_that_are_not_over(struct cluster *c)
{
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(c->migrations);
    size_t n = 0;

    for (size_t i = 0; i < all.n; i++) {
        n += !wire_migration_is_over(&all.items[i]->u.migration);
    }
    return n;
}

int loop_update_reconcile(void *ctx, const char *key, struct kube_again *again,
                          struct ferry_error *err)
{
    struct loop_update *l = ctx;
    int64_t now_ns = ferry_now_ns();
    int64_t left_ns = l->last_pass_ns ? l->last_pass_ns + PAUSE_MS * FERRY_NS_PER_MS - now_ns : 0;
    (void)key;

    if (left_ns > 0) {
        *again = (struct kube_again){.wanted = true, .after_ns = left_ns};
        return 0;
    }
    l->last_pass_ns = now_ns;
    struct migration_settings settings;
    api_cleanup_object struct api_object *kubevirt = cluster_config_get(l->cluster, &settings);
    struct candidates c = find_candidates(l);
    size_t open = moves_that_are_not_over(l->cluster);
    struct update_result result;
    plan_cleanup struct plan p = {0};

    update_decide(&(struct update_view){.kubevirt = kubevirt,
                                        .launcher_image = settings.pod.launcher_image,
                                        .vms = c.vms,
                                        .n = c.n,
                                        .room = open < settings.limits.cluster
                                                    ? settings.limits.cluster - open
                                                    : 0,
                                        .last_eviction_ms = l->last_eviction_ms},
                  ferry_now_unix_ms(), &p, &result);
    atomic_store(&l->outdated, result.outdated);
    int rc = plan_apply_each(&p, &l->cluster->writer, err);
    if (result.evicts) {
        l->last_eviction_ms = ferry_now_unix_ms();
    }
    if (p.again_ms) {
        *again = (struct kube_again){.wanted = true, .after_ns = p.again_ms * FERRY_NS_PER_MS};
    }
    candidates_done(&c);
    return rc;
}
