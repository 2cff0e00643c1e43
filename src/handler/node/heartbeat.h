/* Registers this node and says every ten seconds that it lives. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "kube/client.h"

struct heartbeat;
struct migration_net;
struct node_cpu;

struct heartbeat_config {
    struct kube_client *client;
    const char *node, *address;    /* borrowed, numeric address */
    struct migration_net *network; /* borrowed */
    bool kvm;                      /* hardware runs guests here */
    int api_port;
};

int heartbeat_start(const struct heartbeat_config *cfg, struct heartbeat **ret,
                    struct ferry_error *err);
/* For the next beat: the port of the node API, 0 = none. Any thread. */
void heartbeat_set_port(struct heartbeat *h, int api_port);
/* For the next beats: the CPUs that guests can have here; stays valid. Any thread. */
void heartbeat_set_cpu(struct heartbeat *h, const struct node_cpu *cpu);
/* Beats now instead of when it is due: something about the node has changed. Any thread. */
void heartbeat_hurry(struct heartbeat *h);
void heartbeat_stop(struct heartbeat *h); /* takes NULL */
