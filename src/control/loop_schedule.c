/* Theory of operation.
 *
 * One worker places one pod after the other. Between a binding and the moment when the cache shows
 * it, the pod is remembered as `assumed` on its node, so that the next decision counts it. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/facts.h"
#include "control/loops.h"
#include "control/names.h"
#include "control/plan_apply.h"
#include "control/schedule_pick.h"

enum { RETRY_MS = 5000 };

struct assumed {
    char *uid, *node;
};

struct loop_schedule {
    struct cluster *cluster;
    struct assumed *assumed; /* the worker's own */
    size_t n;
};

struct loop_schedule *loop_schedule_new(struct cluster *c)
{
    struct loop_schedule *l = ferry_xcalloc(1, sizeof(*l));

    l->cluster = c;
    return l;
}

static void drop(struct loop_schedule *l, size_t i)
{
    free(l->assumed[i].uid);
    free(l->assumed[i].node);
    l->assumed[i] = l->assumed[--l->n];
}

void loop_schedule_free(struct loop_schedule *l)
{
    if (!l) {
        return;
    }
    for (size_t i = 0; i < l->n; i++) {
        free(l->assumed[i].uid);
        free(l->assumed[i].node);
    }
    free(l->assumed);
    free(l);
}

static const char *assumed_node(const struct loop_schedule *l, const char *uid)
{
    for (size_t i = 0; i < l->n; i++) {
        if (ferry_streq(l->assumed[i].uid, uid)) {
            return l->assumed[i].node;
        }
    }
    return NULL;
}

static void assume(struct loop_schedule *l, const char *uid, const char *node)
{
    l->assumed = ferry_xrealloc(l->assumed, l->n + 1, sizeof(*l->assumed));
    l->assumed[l->n++] = (struct assumed){ferry_strdup(uid), ferry_strdup(node)};
}

/* Assumptions that the cache has caught up with, or whose pod is gone. */
static void forget_settled(struct loop_schedule *l, const struct kube_snapshot *pods)
{
    for (size_t i = l->n; i-- > 0;) {
        bool waits = false;

        for (size_t k = 0; k < pods->n; k++) {
            waits = waits || (ferry_streq(pods->items[k]->meta->uid, l->assumed[i].uid) &&
                              ferry_str_empty(pods->items[k]->u.pod.node_name));
        }
        if (!waits) {
            drop(l, i);
        }
    }
}

static void pick(struct loop_schedule *l, const struct api_object *pod,
                 const struct kube_snapshot *nodes, struct schedule_answer *ret)
{
    kube_cleanup_snapshot struct kube_snapshot pods = kube_informer_list(l->cluster->pods);
    ferry_cleanup_free struct schedule_pod *placed = ferry_xcalloc(pods.n + 1, sizeof(*placed));

    forget_settled(l, &pods);
    for (size_t i = 0; i < pods.n; i++) {
        const struct api_pod *p = &pods.items[i]->u.pod;

        placed[i].pod = p;
        placed[i].node =
            ferry_str_empty(p->node_name) ? assumed_node(l, p->meta.uid) : p->node_name;
    }
    schedule_pick(&(struct schedule_view){.pod = &pod->u.pod,
                                          .nodes = (const struct api_object *const *)nodes->items,
                                          .n_nodes = nodes->n,
                                          .pods = placed,
                                          .n_pods = pods.n},
                  ret);
}

static int report_unschedulable(struct loop_schedule *l, const struct api_object *pod,
                                const char *message, struct ferry_error *err)
{
    struct plan_condition c = {.type = CONDITION_POD_SCHEDULED,
                               .status = "False",
                               .reason = "Unschedulable",
                               .message = message};
    plan_cleanup struct plan p = {0};
    struct api_patch *patch = api_patch_new();

    plan_guard(patch, pod);
    if (!plan_set_condition(patch, pod, &pod->u.pod.conditions, &c, ferry_now_unix_ms())) {
        api_patch_free(patch);
        return 0;
    }
    plan_patch_status(&p, pod, patch);
    plan_event(&p, pod, KUBE_EVENT_WARNING, "FailedScheduling", "%s", message);
    return plan_apply(&p, l->cluster->client, l->cluster->recorder, err);
}

static int bind_pod(struct loop_schedule *l, const struct api_object *pod, const char *node,
                    struct ferry_error *err)
{
    int rc = kube_client_bind(l->cluster->client, pod, node, err);

    if (rc < 0) {
        return rc;
    }
    assume(l, pod->meta->uid, node);
    ferry_info("pod placed", F_STR("namespace", pod->meta->namespace_),
               F_STR("pod", pod->meta->name), F_STR("node", node));
    kube_record(l->cluster->recorder, pod, KUBE_EVENT_NORMAL, "Scheduled",
                "Successfully assigned %s/%s to %s", pod->meta->namespace_, pod->meta->name, node);
    return 0;
}

int loop_schedule_reconcile(void *ctx, const char *key, struct kube_again *again,
                            struct ferry_error *err)
{
    struct loop_schedule *l = ctx;
    ferry_cleanup_free char *ns = NULL, *name = NULL;

    if (!cluster_split_key(key, &ns, &name)) {
        return 0;
    }
    api_cleanup_object struct api_object *pod = kube_informer_get(l->cluster->pods, ns, name);
    if (!pod || !ferry_str_empty(pod->u.pod.node_name) || pod->meta->deleted_ms ||
        pod_is_down(&pod->u.pod) || assumed_node(l, pod->meta->uid)) {
        return 0;
    }
    kube_cleanup_snapshot struct kube_snapshot nodes = kube_informer_list(l->cluster->nodes);
    struct schedule_answer answer;
    pick(l, pod, &nodes, &answer);
    int rc;
    if (answer.node) {
        rc = bind_pod(l, pod, answer.node->meta.name, err);
    } else {
        *again = (struct kube_again){.wanted = true, .after_ns = RETRY_MS * FERRY_NS_PER_MS};
        rc = report_unschedulable(l, pod, answer.message, err);
    }
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}
