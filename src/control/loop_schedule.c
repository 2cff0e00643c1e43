/* Theory of operation.
 *
 * One worker places one pod after the other. What it decides on, the board, is made from the caches
 * and used for a moment, so that a queue of pods does not look at all pods for each of them; what
 * was placed meanwhile is put down on it. Between a binding and the moment when the cache shows it,
 * the pod is remembered as `assumed` on its node, so that the next board counts it. */
#include <search.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/facts.h"
#include "control/loops.h"
#include "control/names.h"
#include "control/plan_apply.h"
#include "control/schedule_pick.h"

enum { RETRY_MS = 5000, BOARD_MS = 100 };

struct assumed {
    char *uid, *node;
};

struct board {
    int64_t made_ns; /* 0 = there is none */
    struct kube_snapshot nodes, pods, claims, volumes, classes;
    struct schedule_pod *placed;
    struct schedule_view view;
    struct schedule_index *index;
    struct api_object **added; /* placed since */
    size_t n_added;
};

struct loop_schedule {
    struct cluster *cluster;
    /* The worker's own. */
    void *assumed; /* tsearch tree by UID */
    struct board board;
};

static int by_uid(const void *a, const void *b)
{
    return strcmp(((const struct assumed *)a)->uid, ((const struct assumed *)b)->uid);
}

struct loop_schedule *loop_schedule_new(struct cluster *c)
{
    struct loop_schedule *l = ferry_xcalloc(1, sizeof(*l));

    l->cluster = c;
    return l;
}

static void free_assumed(void *p)
{
    struct assumed *a = p;

    free(a->uid);
    free(a->node);
    free(a);
}

static void drop_board(struct loop_schedule *l)
{
    struct board *b = &l->board;

    schedule_index_free(b->index);
    for (size_t i = 0; i < b->n_added; i++) {
        api_object_unref(b->added[i]);
    }
    free(b->added);
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
    tdestroy(l->assumed, free_assumed);
    free(l);
}

static const char *assumed_node(const struct loop_schedule *l, const char *uid)
{
    struct assumed probe = {.uid = (char *)(uintptr_t)uid};
    struct assumed **slot = tfind(&probe, &l->assumed, by_uid);

    return slot ? (*slot)->node : NULL;
}

static void assume(struct loop_schedule *l, const char *uid, const char *node)
{
    struct assumed *a = ferry_xcalloc(1, sizeof(*a));

    *a = (struct assumed){ferry_strdup(uid), ferry_strdup(node)};
    struct assumed **slot = tsearch(a, &l->assumed, by_uid);
    if (!slot) {
        abort(); /* out of memory */
    }
    if (*slot != a) {
        free_assumed(a);
    }
}

#define OBJECTS(s) (const struct api_object *const *)(s).items

static void make_board(struct loop_schedule *l)
{
    struct board *b = &l->board;
    void *still = NULL; /* assumptions that the cache has not caught up with */

    drop_board(l);
    b->nodes = kube_informer_list(l->cluster->nodes);
    b->pods = kube_informer_list(l->cluster->pods);
    b->claims = kube_informer_list(l->cluster->claims);
    b->volumes = kube_informer_list(l->cluster->volumes);
    b->classes = kube_informer_list(l->cluster->classes);
    b->placed = ferry_xcalloc(b->pods.n + 1, sizeof(*b->placed));
    for (size_t i = 0; i < b->pods.n; i++) {
        const struct api_pod *p = &b->pods.items[i]->u.pod;
        struct assumed probe = {.uid = (char *)(uintptr_t)p->meta.uid};
        struct assumed **slot =
            ferry_str_empty(p->node_name) ? tfind(&probe, &l->assumed, by_uid) : NULL;

        b->placed[i] = (struct schedule_pod){p, p->node_name};
        if (slot) {
            struct assumed *a = *slot;

            tdelete(a, &l->assumed, by_uid);
            b->placed[i].node = a->node;
            if (!tsearch(a, &still, by_uid)) {
                abort(); /* out of memory */
            }
        }
    }
    tdestroy(l->assumed, free_assumed);
    l->assumed = still;
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
    bool old = ferry_now_ns() - l->board.made_ns > BOARD_MS * FERRY_NS_PER_MS;

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

/* A second entry of a pod that is on the board already, without a node, does not count twice. */
static void put_on_board(struct loop_schedule *l, const struct api_object *pod)
{
    struct board *b = &l->board;

    b->added = ferry_xrealloc(b->added, b->n_added + 1, sizeof(*b->added));
    b->added[b->n_added++] = api_object_ref((struct api_object *)pod);
    b->placed = ferry_xrealloc(b->placed, b->view.n_pods + 1, sizeof(*b->placed));
    b->placed[b->view.n_pods++] =
        (struct schedule_pod){&pod->u.pod, assumed_node(l, pod->meta->uid)};
    b->view.pods = b->placed;
    schedule_index_add(b->index, &b->view);
}

/* `node` is on the board. */
static int bind_pod(struct loop_schedule *l, const struct api_object *pod,
                    const struct api_node *node, struct ferry_error *err)
{
    int rc = kube_client_bind(l->cluster->client, pod, node->meta.name, err);

    if (rc < 0) {
        return rc;
    }
    assume(l, pod->meta->uid, node->meta.name);
    put_on_board(l, pod);
    ferry_info("pod placed", F_STR("namespace", pod->meta->namespace_),
               F_STR("pod", pod->meta->name), F_STR("node", node->meta.name));
    kube_record(l->cluster->writer.recorder, pod, KUBE_EVENT_NORMAL, "Scheduled",
                "Successfully assigned %s/%s to %s", pod->meta->namespace_, pod->meta->name,
                node->meta.name);
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
    struct schedule_answer answer;
    pick(l, pod, &answer);
    int rc;
    if (answer.node && answer.n_keep == 0) {
        rc = bind_pod(l, pod, answer.node, err);
    } else {
        *again = (struct kube_again){.wanted = true, .after_ns = RETRY_MS * FERRY_NS_PER_MS};
        rc = answer.node ? keep_volumes(l, &answer, err)
                         : report_unschedulable(l, pod, answer.message, err);
    }
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}
