/* What the files of pod_render() share. Not for others. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "control/pod/pod_render.h"

struct pod_draft {
    yyjson_mut_doc *doc;
    const struct pod_request *r;
    const struct api_vmi *vmi;
    const struct api_machine *machine;
};

yyjson_mut_val *pod_put_obj(struct pod_draft *d, yyjson_mut_val *to, const char *key);
yyjson_mut_val *pod_put_arr(struct pod_draft *d, yyjson_mut_val *to, const char *key);
/* Replaces; copies both. */
void pod_put_str(struct pod_draft *d, yyjson_mut_val *to, const char *key, const char *value);
/* The member of that name, made when it is not there. */
yyjson_mut_val *pod_member(struct pod_draft *d, yyjson_mut_val *to, const char *key);

/* Whether hardware runs its guest. */
bool pod_is_accelerated(const struct pod_request *r);
/* containers[0].resources */
void pod_render_resources(struct pod_draft *d, yyjson_mut_val *container);
/* Where it may run: nodeSelector, affinity, tolerations, topologySpreadConstraints, ... */
void pod_render_placement(struct pod_draft *d, yyjson_mut_val *spec);
/* volumes, and where they show in the container */
void pod_render_volumes(struct pod_draft *d, yyjson_mut_val *spec, yyjson_mut_val *container);
