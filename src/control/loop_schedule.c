/* Theory of operation.
 *
 * One worker chooses a node for one pod after the other. What it decides on, the board, is made
 * from the caches and used for a moment, so that a queue of pods does not look at all pods for each
 * of them; what was placed meanwhile is put down on it. From the choice until the cache shows it,
 * the pod is `assumed` on its node, so that the next board counts it. Others write the bindings
 * down meanwhile; one that fails is no longer assumed, and its pod comes back. */
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/assumed.h"
#include "control/facts.h"
#include "control/loops.h"
#include "control/names.h"
#include "control/plan_apply.h"
#include "control/schedule_pick.h"

enum { RETRY_MS = 5000, BIND_RETRY_MS = 1000, BOARD_MS = 100 };

struct board {
    int64_t made_ns; /* 0 = there is none */
    struct kube_snapshot nodes, pods, claims, volumes, classes;
    struct schedule_pod *placed;
    struct schedule_view view;
    struct schedule_index *index;
    struct api_object **added; /* placed since */
    size_t n_added;
    char **names; /* of nodes of assumed pods */
    size_t n_names;
};

struct loop_schedule {
    struct cluster *cluster;
    struct kube_queue *pods, *bindings; /* keys of pods; UIDs of assumed ones */
    struct assumed *assumed;
    atomic_bool stale;  /* a binding failed: the board counts a pod where it is not */
    struct board board; /* of the worker that chooses */
};

struct loop_schedule *loop_schedule_new(struct cluster *c, struct kube_queue *pods,
                                        struct kube_queue *bindings)
{
    struct loop_schedule *l = ferry_xcalloc(1, sizeof(*l));

    l->cluster = c;
    l->pods = pods;
    l->bindings = bindings;
    l->assumed = assumed_new();
    return l;
}

static void drop_board(struct loop_schedule *l)
{
    struct board *b = &l->board;

    schedule_index_free(b->index);
    for (size_t i = 0; i < b->n_added; i++) {
        api_object_unref(b->added[i]);
    }
    free(b->added);
    for (size_t i = 0; i < b->n_names; i++) {
        free(b->names[i]);
    }
    free(b->names);
    free(b->placed);
    kube_snapshot_done(&b->nodes);
    kube_snapshot_done(&b->pods);
    kube_snapshot_done(&b->claims);
    kube_snapshot_done(&b->volumes);
    kube_snapshot_done(&b->classes);
    *b = (struct board){0};
}

void loop_schedule_free(struct loop_schedule *l)
{
    if (!l) {
        return;
    }
    drop_board(l);
    assumed_free(l->assumed);
    free(l);
}

#define OBJECTS(s) (const struct api_object *const *)(s).items

/* The board's own copy of the name, or NULL. */
static const char *assumed_node(struct loop_schedule *l, const struct api_object *pod)
{
    struct board *b = &l->board;
    char *node = NULL;

    api_object_unref(assumed_get(l->assumed, pod->meta->uid, &node));
    if (node) {
        b->names = ferry_xrealloc(b->names, b->n_names + 1, sizeof(*b->names));
        b->names[b->n_names++] = node;
    }
    return node;
}

static void make_board(struct loop_schedule *l)
{
    struct board *b = &l->board;

    drop_board(l);
    atomic_store(&l->stale, false);
    b->nodes = kube_informer_list(l->cluster->nodes);
    b->pods = kube_informer_list(l->cluster->pods);
    b->claims = kube_informer_list(l->cluster->claims);
    b->volumes = kube_informer_list(l->cluster->volumes);
    b->classes = kube_informer_list(l->cluster->classes);
    b->placed = ferry_xcalloc(b->pods.n + 1, sizeof(*b->placed));
    assumed_settle(l->assumed, OBJECTS(b->pods), b->pods.n);
    for (size_t i = 0; i < b->pods.n; i++) {
        const struct api_pod *p = &b->pods.items[i]->u.pod;
        bool homeless = ferry_str_empty(p->node_name);

        b->placed[i] =
            (struct schedule_pod){p, homeless ? assumed_node(l, b->pods.items[i]) : p->node_name};
    }
    b->view = (struct schedule_view){.nodes = OBJECTS(b->nodes),
                                     .n_nodes = b->nodes.n,
                                     .pods = b->placed,
                                     .n_pods = b->pods.n,
                                     .claims = OBJECTS(b->claims),
                                     .n_claims = b->claims.n,
                                     .volumes = OBJECTS(b->volumes),
                                     .n_volumes = b->volumes.n,
                                     .classes = OBJECTS(b->classes),
                                     .n_classes = b->classes.n};
    b->index = schedule_index_new(&b->view);
    b->view.index = b->index;
    b->made_ns = ferry_now_ns();
}

static void pick(struct loop_schedule *l, const struct api_object *pod, struct schedule_answer *ret)
{
    bool old =
        atomic_load(&l->stale) || ferry_now_ns() - l->board.made_ns > BOARD_MS * FERRY_NS_PER_MS;

    if (old) {
        make_board(l);
    }
    l->board.view.pod = &pod->u.pod;
    schedule_pick(&l->board.view, ret);
    if ((!ret->node || ret->n_keep > 0) && !old) { /* what is free now was perhaps not then */
        make_board(l);
        l->board.view.pod = &pod->u.pod;
        schedule_pick(&l->board.view, ret);
    }
}

/* Keeps the volumes for the pod's claims; the API server binds them, and then the pod may go where
 * they are. The board does not show it: the next choice is made on a new one. */
static int keep_volumes(struct loop_schedule *l, const struct schedule_answer *answer,
                        struct ferry_error *err)
{
    plan_cleanup struct plan p = {0};

    for (size_t i = 0; i < answer->n_keep; i++) {
        const struct api_object *volume = answer->keep[i].volume;
        const struct api_meta *claim = answer->keep[i].claim->meta;
        struct api_patch *patch = api_patch_new();

        plan_guard(patch, volume);
        plan_ensure_object(patch, volume, "/spec/claimRef");
        api_patch_add_str(patch, "/spec/claimRef/apiVersion", "v1");
        api_patch_add_str(patch, "/spec/claimRef/kind", "PersistentVolumeClaim");
        api_patch_add_str(patch, "/spec/claimRef/namespace", claim->namespace_);
        api_patch_add_str(patch, "/spec/claimRef/name", claim->name);
        api_patch_add_str(patch, "/spec/claimRef/uid", claim->uid);
        plan_patch(&p, volume, patch);
    }
    int rc = plan_apply(&p, &l->cluster->writer, err);
    drop_board(l);
    return rc;
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
    return plan_apply(&p, &l->cluster->writer, err);
}

/* `node` is on the board. A second entry of a pod that is there already, without a node, does not
 * count twice. */
static void put_on_board(struct loop_schedule *l, const struct api_object *pod,
                         const struct api_node *node)
{
    struct board *b = &l->board;

    b->added = ferry_xrealloc(b->added, b->n_added + 1, sizeof(*b->added));
    b->added[b->n_added++] = api_object_ref((struct api_object *)pod);
    b->placed = ferry_xrealloc(b->placed, b->view.n_pods + 1, sizeof(*b->placed));
    b->placed[b->view.n_pods++] = (struct schedule_pod){&pod->u.pod, node->meta.name};
    b->view.pods = b->placed;
    schedule_index_add(b->index, &b->view);
}

static void place(struct loop_schedule *l, const struct api_object *pod,
                  const struct api_node *node)
{
    assumed_put(l->assumed, pod, node->meta.name);
    put_on_board(l, pod, node);
    kube_queue_add(l->bindings, pod->meta->uid, 0);
}

int loop_schedule_bind(void *ctx, const char *uid, struct kube_again *again,
                       struct ferry_error *err)
{
    struct loop_schedule *l = ctx;
    ferry_cleanup_free char *node = NULL;
    api_cleanup_object struct api_object *pod = assumed_get(l->assumed, uid, &node);
    (void)again;

    if (!pod) {
        return 0;
    }
    int rc = kube_client_bind(l->cluster->client, pod, node, err);
    if (rc < 0) { /* chosen anew, unless the cache shows by then that it has a node or is gone */
        ferry_cleanup_free char *key = cluster_key(pod->meta->namespace_, pod->meta->name);

        assumed_drop(l->assumed, uid);
        atomic_store(&l->stale, true);
        kube_queue_add_after(l->pods, key, 0, BIND_RETRY_MS * FERRY_NS_PER_MS);
        return rc == -FERRY_NOT_FOUND || rc == -FERRY_CONFLICT ? 0 : rc;
    }
    ferry_info("pod placed", F_STR("namespace", pod->meta->namespace_),
               F_STR("pod", pod->meta->name), F_STR("node", node));
    kube_record(l->cluster->writer.recorder, pod, KUBE_EVENT_NORMAL, "Scheduled",
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
        pod_is_down(&pod->u.pod) || assumed_has(l->assumed, pod->meta->uid)) {
        return 0;
    }
    struct schedule_answer answer;
    pick(l, pod, &answer);
    if (answer.node && answer.n_keep == 0) {
        place(l, pod, answer.node);
        return 0;
    }
    *again = (struct kube_again){.wanted = true, .after_ns = RETRY_MS * FERRY_NS_PER_MS};
    int rc = answer.node ? keep_volumes(l, &answer, err)
                         : report_unschedulable(l, pod, answer.message, err);
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}
