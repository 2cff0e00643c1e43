/* What to do about one VMI: an ordered list of rules, the first that applies decides. Pure. */
#pragma once

#include "api/object.h"
#include "control/plan/clock_steps.h"
#include "control/plan/plan.h"
#include "control/pod/pod_render.h"

struct vmi_view {
    const struct api_object *vmi;
    const struct api_object *const *pods; /* launcher pods created for this VMI's UID */
    size_t n_pods;
    const struct api_object *const *migrations; /* all of this VMI */
    size_t n_migrations;
    const struct api_object *const *nodes; /* of the whole site; looked at before there is a pod */
    size_t n_nodes;
    bool target_node_gone; /* of the last move: there is no such Node object */
    struct storage_view storage;
    struct pod_settings pod;
    const struct api_kubevirt *site; /* the site's configuration, or NULL */
    int64_t user; /* that its guest shall run as, while it has no pod; 0 = the nodes' own for all */
    bool no_user; /* all users are taken */
    struct clock_steps clock; /* what is known of the clock */
};

/* Why an image of its pod does not come, as Kubernetes has it of a container; KubeVirt shows it as
 * the reason of the VMI's Synchronized. */
#define VMI_ERR_IMAGE_PULL "ErrImagePull"
#define VMI_IMAGE_PULL_BACK_OFF "ImagePullBackOff"
bool vmi_reason_is_of_image(const char *reason); /* may be NULL */

void vmi_decide(const struct vmi_view *view, int64_t now_ms, struct plan *ret);
