/* Where a pod's volumes are on this host, made ready for its user. Any thread. */
#pragma once

#include <sys/types.h>

#include "kube/client.h"
#include "pods/pod_volumes.h"
#include "pods/sandbox.h"

/* Finds the directories and devices of `volumes` and fills in `ret->disks` (whose strings
 * pod_storage_done() frees). RETRY while a claim is not bound, or a ConfigMap, Secret or key
 * is missing; INVALID when a volume is of a kind
 * that this node cannot mount; NOT_FOUND when a path is missing.
 *
 * What belongs to the pod alone is made in its directory. An image that is there is given to the
 * sandboxes' user, and so is a host directory that was made here; a directory that was there before
 * keeps its owner, but that of a claim is opened to the sandboxes' group. To be done after the
 * sandbox has started: it holds what it was given. */
int pod_storage_ready(struct kube_client *client, const struct sandbox_host *host, const char *ns,
                      const char *pod_uid, const struct pod_volumes *volumes,
                      struct sandbox_disks *ret, struct ferry_error *err);
void pod_storage_done(struct sandbox_disks *d);
#define pod_storage_cleanup ferry_cleanup(pod_storage_done)
