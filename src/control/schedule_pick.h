/* Which node a pod goes to, for the embedded engine (on Kubernetes its own scheduler decides).
 *
 * Filters, as kube-scheduler has them and in its order: node ready and schedulable, taints, node
 * selector and affinity, resources (extended ones and huge pages, too), volumes, spread, affinity
 * between pods in both directions. Among those left, what the pod prefers, then the one whose
 * memory is least used. A rule that is not known here is not ignored but makes the pod
 * unschedulable, by name. Explains itself in kube-scheduler's words. Pure. */
#pragma once

#include <stddef.h>

#include "api/object.h"

struct schedule_pod {
    const struct api_pod *pod;
    const char *node; /* where it is or is about to be; NULL = nowhere */
};

struct schedule_view {
    const struct api_pod *pod;
    const struct api_object *const *nodes;
    size_t n_nodes;
    const struct schedule_pod *pods; /* all there are */
    size_t n_pods;
    /* PersistentVolumeClaims, PersistentVolumes and StorageClasses: all there are */
    const struct api_object *const *claims, *const *volumes, *const *classes;
    size_t n_claims, n_volumes, n_classes;
    struct schedule_index *index; /* of these nodes and pods, for several picks; or NULL */
};

/* What all picks need to know of the same nodes and pods: which pod is where, what is in use. */
struct schedule_index;
struct schedule_index *schedule_index_new(const struct schedule_view *view);
void schedule_index_free(struct schedule_index *x); /* takes NULL */
/* The last pod of the view is new in it, and about to be on one of the view's nodes. */
void schedule_index_add(struct schedule_index *x, const struct schedule_view *view);

enum { SCHEDULE_TEXT = 1024, SCHEDULE_CLAIMS = 32 };

struct schedule_answer {
    const struct api_node *node; /* NULL = none fits */
    /* Volumes to be kept for claims of the pod before it may go there. */
    struct {
        const struct api_object *claim, *volume;
    } keep[SCHEDULE_CLAIMS];
    size_t n_keep;
    char message[SCHEDULE_TEXT]; /* "0/2 nodes are available: 2 Insufficient memory." */
};

void schedule_pick(const struct schedule_view *view, struct schedule_answer *ret);
