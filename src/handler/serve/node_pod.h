/* The pods of this node as the node API finds them. Any thread. */
#pragma once

#include "handler/local/launcher_client.h"
#include "handler/serve/node_api.h"

bool node_pod_runs(const struct api_object *pod);
/* Of its launcher; owned by the caller. */
char *node_pod_socket(const struct node_api_config *cfg, const struct api_object *pod);
/* With that socket, both borrowed. */
struct launcher_at node_pod_launcher(const char *socket, const struct api_object *pod);

/* The running pod of the VM "NAMESPACE/NAME"; a reference for the caller. There is one at most: a
 * VM does not move to where it is. */
int node_pod_of_vm(const struct node_api_config *cfg, const char *vm, struct api_object **ret,
                   struct ferry_error *err);
