/* The node's own API (docs/contracts/node-api.md): HTTPS for the API server and administrators,
 * the same on handler.sock for root on this host. Read-only. Threads of its own; all calls here
 * from one thread. */
#pragma once

#include "handler/move/pass.h"
#include "http/server.h"

struct node_api_config {
    const struct pass_node *node; /* borrowed, as all else */
    struct kube_informer *here, *coming;
    const char *pki_dir; /* ca.crt, node.crt, node.key; relay.crt and relay.key for probes */
    const char *socket;  /* handler.sock */
    int port;            /* 0 = any that is free */
};

struct node_api;

/* A node without certificate files serves on the socket alone, and says so. */
int node_api_start(const struct node_api_config *cfg, struct node_api **ret,
                   struct ferry_error *err);
/* Where HTTPS is served; 0 = nowhere. */
int node_api_port(const struct node_api *a);
/* Serves with the certificate that is on disk now, if it was changed. */
void node_api_refresh(struct node_api *a);
void node_api_stop(struct node_api *a); /* takes NULL */

/* NULL when the caller may use the API, else why not. Pure. */
const char *node_api_refusal(const struct http_peer *peer);
