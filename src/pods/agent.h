/* The pods agent: follows the Pod objects bound to this node and makes sandboxes follow them. */
#pragma once

#include "base/error.h"
#include "kube/client.h"
#include "pods/sandbox.h"

struct agent_config {
    struct kube_client *client; /* borrowed, as all strings */
    const char *node;
    struct sandbox_host host;
};

struct agent;

/* Waits until the API server answers (and says so while it does not), adopts what runs on this
 * host, then works until agent_stop(). `stopping` is asked once a second while waiting; true makes
 * it give up with -FERRY_CANCELLED. */
int agent_start(const struct agent_config *cfg, bool (*stopping)(void), struct agent **ret,
                struct ferry_error *err);
/* Sandboxes run on. Takes NULL. */
void agent_stop(struct agent *a);
