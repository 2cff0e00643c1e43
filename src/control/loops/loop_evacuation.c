/* Key: the name of a node. One pass looks at every VMI on it. */
#include "base/clock.h"
#include "base/str.h"
#include "control/evacuate/evacuation_decide.h"
#include "control/loops/cluster_config.h"
#include "control/loops/loops.h"
#include "control/loops/plan_apply.h"

enum { AGAIN_MS = 10000 };

/* `*again_ms`: the earliest that anything wants to be looked at again; 0 = nothing does. */
static int evacuate_one(struct cluster *c, struct evacuation_view *v, int64_t *again_ms,
                        struct ferry_error *err)
{
    const struct api_meta *m = v->vmi->meta;
    cluster_cleanup_family struct cluster_family f = cluster_family(c, m->namespace_, m->name);
    plan_cleanup struct plan p = {0};

    v->pods = (const struct api_object *const *)f.pods.items;
    v->n_pods = f.pods.n;
    v->migrations = (const struct api_object *const *)f.migrations.items;
    v->n_migrations = f.migrations.n;
    evacuation_decide(v, ferry_now_unix_ms(), &p);
    if (p.again_ms > 0 && (*again_ms == 0 || p.again_ms < *again_ms)) {
        *again_ms = p.again_ms;
    }
    return plan_apply(&p, &c->writer, err);
}

int loop_evacuation_reconcile(void *ctx, const char *key, struct kube_again *again,
                              struct ferry_error *err)
{
    struct cluster *c = ctx;
    struct migration_settings settings;
    api_cleanup_object struct api_object *kubevirt = cluster_config_get(c, &settings);
    api_cleanup_object struct api_object *node = kube_informer_get(c->nodes, NULL, key);
    kube_cleanup_snapshot struct kube_snapshot vmis = kube_informer_find(c->vmis, key);
    struct evacuation_view view = {.node = key};
    int64_t again_ms = 0;
    int rc = 0;

    if (kubevirt) {
        view.cluster_strategy =
            api_json_str(kubevirt->root, "/spec/configuration/evictionStrategy");
    }
    view.drain = evacuation_is_drained(
        node, kubevirt
                  ? api_json_str(kubevirt->root, "/spec/configuration/migrations/nodeDrainTaintKey")
                  : NULL);
    for (size_t i = 0; i < vmis.n; i++) {
        view.vmi = vmis.items[i];
        /* One that cannot be taken away now does not keep the others. */
        int one = evacuate_one(c, &view, &again_ms, err);
        rc = one < 0 && one != -FERRY_NOT_FOUND ? one : rc;
    }
    if (!again_ms && view.drain && vmis.n > 0) {
        again_ms = AGAIN_MS;
    }
    if (again_ms) {
        *again = (struct kube_again){.wanted = true, .after_ns = again_ms * FERRY_NS_PER_MS};
    }
    return rc;
}
