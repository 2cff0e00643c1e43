/* The network interfaces of a guest that have a tap device in its pod. Pure.
 *
 * They are numbered in the order of the VMI's interfaces: tap0, tap1, ... Those on a network that
 * a NetworkAttachmentDefinition describes are attached to it by whoever runs the pod. */
#pragma once

#include <stddef.h>

#include "api/kinds.h"

enum { API_GUEST_NICS = 8, API_MAC_TEXT = 18 };

struct api_guest_nic {
    const char *name;       /* of interface and network; points into the VMI */
    const char *network;    /* multus.networkName; NULL = the pod network */
    char mac[API_MAC_TEXT]; /* what the VMI says, else one that is made from it */
    unsigned tap;           /* its number */
};

/* How many there are; at most API_GUEST_NICS are written. */
size_t api_guest_nics(const struct api_vmi *vmi, struct api_guest_nic ret[API_GUEST_NICS]);
/* One of its own, the same on every node: locally administered, made from the name and
 * the uid of the VM, which outlives its instances, or of a VMI that is nobody's. */
void api_guest_mac(const char *owner_uid, const char *interface, char ret[API_MAC_TEXT]);

/* The namespace and name of a definition that `network` names from within `ns`; owned by the
 * caller. */
void api_guest_network(const char *network, const char *ns, char **ret_ns, char **ret_name);
