/* Attaches the taps of a running pod to networks of this host. Any thread. */
#pragma once

#include "kube/client.h"
#include "pods/sandbox.h"

/* Idempotent: what was attached is noted in the pod's directory. `pod` says by its annotation which
 * networks (pod_net_plan.h). NOT_FOUND while a definition is missing. */
int pod_net_attach(struct kube_client *client, const struct sandbox_host *host,
                   const struct api_object *pod, struct ferry_error *err);
