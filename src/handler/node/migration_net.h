/* The migration network of this node: follows the site's configuration.
 *
 * spec.configuration.migrations.network of the KubeVirt object names a NetworkAttachmentDefinition.
 * Where there is no kubelet (and so nobody else to do it), the interface is made from it here, with
 * an address that is taken for this node and kept. On Kubernetes nothing is made: it is found or
 * not. */
#pragma once

#include "handler/node/address.h"
#include "kube/client.h"

struct migration_net;

struct migration_net_config {
    struct kube_client *client;
    const char *node, *address, *interface; /* borrowed */
    /* Called, from any thread, when it is time to follow. */
    void (*wake)(void *ctx);
    void *ctx;
};

int migration_net_start(const struct migration_net_config *cfg, struct migration_net **ret,
                        struct ferry_error *err);
void migration_net_stop(struct migration_net *m); /* takes NULL */

/* Brings the interface to what is configured; to be called again after a while, and by one thread
 * at a time. */
int migration_net_follow(struct migration_net *m, struct ferry_error *err);

/* Where moves come in. RETRY, with why, while the network that is configured is not there: guest
 * memory does not take another one. Any thread. */
int migration_net_address(struct migration_net *m, char ret[ADDRESS_SIZE], struct ferry_error *err);

/* Whether the KubeVirt object, which is followed here, wants guests emulated. Any thread. */
bool migration_net_site_emulates(struct migration_net *m);

enum { MIGRATION_NET_TEXT = 256 };
/* The definition that the address is from, "" without one; and what is wrong with it, "" = nothing.
 * Any thread. */
void migration_net_tell(struct migration_net *m, char ret_network[MIGRATION_NET_TEXT],
                        char ret_trouble[MIGRATION_NET_TEXT]);
