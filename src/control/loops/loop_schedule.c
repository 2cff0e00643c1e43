/* Theory of operation.
 *
 * One worker chooses a node for one pod after the other. What it decides on, the index, follows the
 * caches: their threads tell it of every node and pod, and it is never made anew. From the choice
 * until the cache shows it, the pod is assumed on its node, so that the next choice counts it.
 * Others write the bindings down meanwhile; one that fails is no longer assumed, and its pod comes
 * back. */
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/loops/loops.h"
#include "control/loops/plan_apply.h"
#include "control/plan/facts.h"
#include "control/schedule/schedule_pick.h"

enum { RETRY_MS = 5000, BIND_RETRY_MS = 1000 };

struct loop_schedule {
    struct cluster *cluster;
    struct kube_queue *pods, *bindings; /* keys of pods; UIDs of assumed ones */
    pthread_mutex_t lock;               /* guards all below */
    struct schedule_index *index;
    void *refused; /* keys of pods that no node was found for, a tsearch tree */
};

struct loop_schedule *loop_schedule_new(struct cluster *c, struct kube_queue *pods,
                                        struct kube_queue *bindings)
{
    struct loop_schedule *l = ferry_xcalloc(1, sizeof(*l));

    l->cluster = c;
    l->pods = pods;
    l->bindings = bindings;
    l->index = schedule_index_new();
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void loop_schedule_free(struct loop_schedule *l)
{
    if (!l) {
        return;
    }
    schedule_index_free(l->index);
    tdestroy(l->refused, free);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* ---- what the caches show --------------------------------------------------------------------
 */

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void note_refused_locked(struct loop_schedule *l, const struct api_meta *pod, bool refused)
{
    ferry_cleanup_free char *key = cluster_key(pod->namespace_, pod->name);
    void *found = tfind(key, &l->refused, by_text);

    if (refused && !found) {
        if (!tsearch(key, &l->refused, by_text)) {
            abort(); /* out of memory */
        }
        key = NULL; /* the tree's */
    } else if (!refused && found) {
        char *old = *(char **)found;

        tdelete(key, &l->refused, by_text);
        free(old);
    }
}

static void wake_key(const void *node, VISIT visit, void *queue)
{
    if (visit == postorder || visit == leaf) {
        kube_queue_add(queue, *(char *const *)node, 0);
    }
}

void loop_schedule_wake(struct loop_schedule *l)
{
    pthread_mutex_lock(&l->lock);
    twalk_r(l->refused, wake_key, l->pods);
    pthread_mutex_unlock(&l->lock);
}

void loop_schedule_pod_seen(struct loop_schedule *l, const struct api_object *old,
                            const struct api_object *now)
{
    const struct api_object *last = now ? now : old;

    pthread_mutex_lock(&l->lock);
    if (old && (!now || !ferry_streq(old->meta->uid, now->meta->uid))) {
        schedule_index_drop_pod(l->index, old->meta->uid);
    }
    if (now) {
        schedule_index_put_pod(l->index, now);
    }
    if (last && (!now || !ferry_str_empty(now->u.pod.node_name) || wire_pod_is_over(&now->u.pod))) {
        note_refused_locked(l, last->meta, false);
    }
    pthread_mutex_unlock(&l->lock);
}

void loop_schedule_node_seen(struct loop_schedule *l, const struct api_object *old,
                             const struct api_object *now)
{
    pthread_mutex_lock(&l->lock);
    if (now) {
        schedule_index_put_node(l->index, now);
    } else {
        schedule_index_drop_node(l->index, old->meta->name);
    }
    pthread_mutex_unlock(&l->lock);
}

/* ---- the choice ------------------------------------------------------------------------------
 */

/* What is known of volumes; nothing for a pod that names no claim. */
struct storage {
    struct kube_snapshot claims, volumes, classes;
};

static struct storage look_at_storage(struct cluster *c, const struct api_pod *pod)
{
    struct storage s = {0};

    if (schedule_names_claim(pod)) {
        s.claims = kube_informer_list(c->claims);
        s.volumes = kube_informer_list(c->volumes);
        s.classes = kube_informer_list(c->classes);
    }
    return s;
}

static void storage_done(struct storage *s)
{
    kube_snapshot_done(&s->claims);
    kube_snapshot_done(&s->volumes);
    kube_snapshot_done(&s->classes);
}

#define OBJECTS(s) (const struct api_object *const *)(s).items

/* Chooses and assumes. False when there is nothing to choose: the pod has its place, or is not the
 * one that the cache has shown meanwhile; that wakes it again. */
static bool pick(struct loop_schedule *l, const struct api_object *pod, const struct storage *s,
                 struct schedule_answer *ret)
{
    struct schedule_view view = {.pod = &pod->u.pod,
                                 .index = l->index,
                                 .claims = OBJECTS(s->claims),
                                 .n_claims = s->claims.n,
                                 .volumes = OBJECTS(s->volumes),
                                 .n_volumes = s->volumes.n,
                                 .classes = OBJECTS(s->classes),
                                 .n_classes = s->classes.n};
    const char *node = NULL;

    pthread_mutex_lock(&l->lock);
    bool wanted = schedule_index_pod(l->index, pod->meta->uid, &node) && !node;
    if (wanted) {
        schedule_pick(&view, ret);
    }
    bool fits = wanted && ret->node && ret->n_keep == 0;
    if (fits) {
        schedule_index_assume(l->index, pod->meta->uid, ret->node->meta.name);
    }
    if (wanted) {
        note_refused_locked(l, pod->meta, !fits);
    }
    pthread_mutex_unlock(&l->lock);
    return wanted;
}

/* Keeps the volumes for the pod's claims; the API server binds them, and then the pod may go where
 * they are. */
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
    return plan_apply(&p, &l->cluster->writer, err);
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

/* The pod, referenced, with the name of its node, owned by the caller; NULL when it is gone. */
static struct api_object *chosen(struct loop_schedule *l, const char *uid, char **ret_node)
{
    const char *node = NULL;

    pthread_mutex_lock(&l->lock);
    const struct api_object *pod = schedule_index_pod(l->index, uid, &node);
    bool assumed = pod && node && ferry_str_empty(pod->u.pod.node_name);
    struct api_object *ret = assumed ? api_object_ref((struct api_object *)(uintptr_t)pod) : NULL;
    *ret_node = ret ? ferry_strdup(node) : NULL;
    pthread_mutex_unlock(&l->lock);
    return ret;
}

int loop_schedule_bind(void *ctx, const char *uid, struct kube_again *again,
                       struct ferry_error *err)
{
    struct loop_schedule *l = ctx;
    ferry_cleanup_free char *node = NULL;
    api_cleanup_object struct api_object *pod = chosen(l, uid, &node);
    (void)again;

    if (!pod) {
        return 0;
    }
    int rc = kube_client_bind(l->cluster->client, pod, node, err);
    if (rc < 0) { /* chosen anew, unless the cache shows by then that it has a node or is gone */
        ferry_cleanup_free char *key = cluster_key(pod->meta->namespace_, pod->meta->name);

        pthread_mutex_lock(&l->lock);
        schedule_index_assume(l->index, uid, NULL);
        pthread_mutex_unlock(&l->lock);
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
        wire_pod_is_over(&pod->u.pod)) {
        return 0;
    }
    struct schedule_answer answer;
    struct storage storage = look_at_storage(l->cluster, &pod->u.pod);
    int rc = 0;
    if (pick(l, pod, &storage, &answer)) {
        if (answer.node && answer.n_keep == 0) {
            kube_queue_add(l->bindings, pod->meta->uid, 0);
        } else {
            *again = (struct kube_again){.wanted = true, .after_ns = RETRY_MS * FERRY_NS_PER_MS};
            rc = answer.node ? keep_volumes(l, &answer, err)
                             : report_unschedulable(l, pod, answer.message, err);
        }
    }
    storage_done(&storage);
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}
