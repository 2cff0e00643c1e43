/* The nodes that were removed from the site: asked of the API server and told to this node's relay,
 * again and again, because a relay that was started anew knows nothing. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "kube/client.h"

struct removed_nodes {
    struct kube_client *client;
    const char *relay_socket;
    bool unknown; /* the API server or the relay does not know such calls, and that was said */
};

/* One thread at a time. */
int removed_nodes_tell(struct removed_nodes *r, struct ferry_error *err);
