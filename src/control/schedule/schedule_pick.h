/* Which node a pod goes to, for the embedded engine (on Kubernetes its own scheduler decides).
 *
 * Filters, as kube-scheduler has them and in its order: node ready and schedulable, taints, node
 * selector and affinity, resources (extended ones and huge pages, too), volumes, spread, affinity
 * between pods in both directions. Among those left, what the pod prefers, then the one whose
 * memory is least used. A rule that is not known here is not ignored but makes the pod
 * unschedulable, by name. Explains itself in kube-scheduler's words. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/object.h"

/* ---- nodes and pods --------------------------------------------------------------------------
 */

/* All nodes and pods that there are, kept from one choice to the next: which pod is where, what is
 * in use, who has which label. Told of every change by its owner, who also locks; keeps references.
 * What it answers follows from what is in it, never from the order in which it came. */
struct schedule_index;
struct schedule_index *schedule_index_new(void);
void schedule_index_free(struct schedule_index *x); /* takes NULL */

/* New or changed. A pod is where it says. */
void schedule_index_put_node(struct schedule_index *x, const struct api_object *node);
void schedule_index_drop_node(struct schedule_index *x, const char *name);
void schedule_index_put_pod(struct schedule_index *x, const struct api_object *pod);
void schedule_index_drop_pod(struct schedule_index *x, const char *uid);

/* Counts the pod on that node from now on, until it says itself where it is, or is dropped; NULL
 * takes it back. Nothing when there is no such pod. */
void schedule_index_assume(struct schedule_index *x, const char *uid, const char *node);
/* The pod, valid until the next change, or NULL; `*ret_node` is where it is or is about to be, NULL
 * = nowhere. */
const struct api_object *schedule_index_pod(const struct schedule_index *x, const char *uid,
                                            const char **ret_node);

/* ---- the choice ------------------------------------------------------------------------------
 */

struct schedule_view {
    const struct api_pod *pod;
    struct schedule_index *index; /* learns what is asked about */
    /* PersistentVolumeClaims, PersistentVolumes and StorageClasses: all there are; needed when the
     * pod names a claim. */
    const struct api_object *const *claims, *const *volumes, *const *classes;
    size_t n_claims, n_volumes, n_classes;
};

enum { SCHEDULE_TEXT = 1024, SCHEDULE_CLAIMS = 32 };

struct schedule_answer {
    const struct api_node *node; /* NULL = none fits; valid until the index changes */
    /* Volumes to be kept for claims of the pod before it may go there. */
    struct {
        const struct api_object *claim, *volume;
    } keep[SCHEDULE_CLAIMS];
    size_t n_keep;
    char message[SCHEDULE_TEXT]; /* "0/2 nodes are available: 2 Insufficient memory." */
};

void schedule_pick(const struct schedule_view *view, struct schedule_answer *ret);
/* Does the pod name a claim? */
bool schedule_names_claim(const struct api_pod *pod);
