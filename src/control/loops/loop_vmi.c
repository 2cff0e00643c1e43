#include "api/wire/wire_accelerator.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/loops/cluster_config.h"
#include "control/loops/guest_addresses.h"
#include "control/loops/guest_users.h"
#include "control/loops/loops.h"
#include "control/loops/plan_apply.h"
#include "control/network/network_decide.h"
#include "control/plan/facts.h"
#include "control/vm/vmi_decide.h"

static bool target_node_gone(struct cluster *c, const struct api_object *vmi)
{
    const char *name = vmi->u.vmi.migration.target_node;
    api_cleanup_object struct api_object *node =
        ferry_str_empty(name) ? NULL : kube_informer_get(c->nodes, NULL, name);

    return !ferry_str_empty(name) && !node;
}

static bool has_yet_to_start(const struct cluster_family *f)
{
    const struct api_vmi *vmi = &f->vmi->u.vmi;

    return f->pods.n == 0 && !vmi->meta.deleted_ms &&
           (vmi_has_phase(vmi, PHASE_NONE) || vmi_has_phase(vmi, PHASE_PENDING));
}

/* All nodes, for one that has yet to start; of a large site that is much to copy for every pass. */
static struct kube_snapshot nodes_for(struct cluster *c, const struct cluster_family *f)
{
    const struct api_vmi *vmi = &f->vmi->u.vmi;
    bool chosen = !ferry_str_empty(vmi->machine_type) &&
                  wire_accelerator_of_vmi(&vmi->meta) != ACCELERATOR_NONE;

    return has_yet_to_start(f) && !chosen ? kube_informer_list(c->nodes)
                                          : (struct kube_snapshot){0};
}

static void decide(struct cluster *c, const struct cluster_family *f, struct plan *ret)
{
    kube_cleanup_snapshot struct kube_snapshot nodes = nodes_for(c, f);
    struct migration_settings unused;
    api_cleanup_object struct api_object *site = cluster_config_get(c, &unused);
    struct clock_steps clock;
    int64_t now_ms = cluster_now_ms(c, &clock);
    bool starts = has_yet_to_start(f);
    int64_t user = starts ? guest_users_give(c->users, f->vmi) : 0;
    struct vmi_view view = {.vmi = f->vmi,
                            .pods = (const struct api_object *const *)f->pods.items,
                            .n_pods = f->pods.n,
                            .migrations = (const struct api_object *const *)f->migrations.items,
                            .n_migrations = f->migrations.n,
                            .nodes = (const struct api_object *const *)nodes.items,
                            .n_nodes = nodes.n,
                            .target_node_gone = target_node_gone(c, f->vmi),
                            .storage = f->storage.view,
                            .pod = c->settings.pod,
                            .site = site ? &site->u.kubevirt : NULL,
                            .user = user,
                            .no_user = starts && !user,
                            .clock = clock};

    vmi_decide(&view, now_ms, ret);
}

static void log_phase(const struct api_object *vmi, const struct plan *p)
{
    if (p->phase) {
        ferry_info("VMI phase", F_STR("namespace", vmi->meta->namespace_),
                   F_STR("vmi", vmi->meta->name),
                   F_STR("from", vmi->u.vmi.phase ? vmi->u.vmi.phase : ""), F_STR("to", p->phase),
                   F_STR("node", vmi->u.vmi.node_name), F_STR("rule", p->rule),
                   F_STR("reason", p->reason));
    }
}

/* Networks of a VM that is otherwise settled may have changed. */
static int keep_up(struct cluster *c, const struct cluster_family *f, struct kube_again *again,
                   struct ferry_error *err)
{
    const struct api_object *const *pods = (const struct api_object *const *)f->pods.items;
    const struct api_object *pod = vmi_current_pod(&f->vmi->u.vmi, pods, f->pods.n);
    plan_cleanup struct plan network = {0};

    network_decide(f->vmi, pod, ferry_now_unix_ms(), &network);
    if (network.again_ms) {
        *again =
            (struct kube_again){.wanted = true, .after_ns = network.again_ms * FERRY_NS_PER_MS};
    }
    return plan_apply(&network, &c->writer, err);
}

int loop_vmi_reconcile(void *ctx, const char *key, struct kube_again *again,
                       struct ferry_error *err)
{
    struct cluster *c = ctx;
    ferry_cleanup_free char *ns = NULL, *name = NULL;

    if (!cluster_split_key(key, &ns, &name)) {
        return 0;
    }
    cluster_cleanup_family struct cluster_family f = cluster_family(c, ns, name);
    if (!f.vmi) { /* its pods go by their owner reference */
        return c->embedded ? guest_addresses_free(c, ns, name, err) : 0;
    }
    int given = c->embedded ? guest_addresses_give(c, f.vmi, err) : 0;
    if (given != 0) {
        return given < 0 ? given : 0;
    }
    if (cluster_is_behind(c, &f)) {
        *again = (struct kube_again){.wanted = true, .after_ns = FERRY_NS_PER_S};
        return 0;
    }
    plan_cleanup struct plan p = {0};
    decide(c, &f, &p);
    if (p.confirm) {
        plan_done(&p);
        cluster_family_done(&f);
        int rc = cluster_family_live(c, ns, name, &f, err);
        if (rc < 0 || !f.vmi) {
            return rc;
        }
        decide(c, &f, &p);
    }
    int rc = plan_apply(&p, &c->writer, err);
    if (rc == 0) {
        log_phase(f.vmi, &p);
    }
    if (p.again_ms) {
        *again = (struct kube_again){.wanted = true, .after_ns = p.again_ms * FERRY_NS_PER_MS};
    }
    if (rc == 0 && p.n == 0) {
        rc = keep_up(c, &f, again, err);
    }
    return rc == -FERRY_NOT_FOUND ? 0 : rc; /* gone meanwhile: the caches will show it */
}
