/* Registers this node and says every ten seconds that it lives. */
#pragma once

#include "base/error.h"
#include "kube/client.h"

struct heartbeat;

struct heartbeat_config {
    struct kube_client *client;
    const char *node, *address; /* borrowed, numeric address */
};

int heartbeat_start(const struct heartbeat_config *cfg, struct heartbeat **ret,
                    struct ferry_error *err);
void heartbeat_stop(struct heartbeat *h); /* takes NULL */
