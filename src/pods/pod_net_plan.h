/* How the taps of a pod are attached to networks of the host. Pure; pod_net.c does it.
 *
 * For each tap the pod gets one end of a veth pair, and a bridge that joins the two; the other end
 * is a port of the host's bridge. All of it goes with the pod's network namespace. */
#pragma once

#include <sys/types.h>

#include "api/nad.h"
#include "api/wire/wire_networks.h"
#include "base/str.h"

struct pod_net_place {
    const char *pod_uid;
    pid_t pid; /* of the sandbox's first process, as the host sees it */
    uid_t uid; /* who may open the tap */
    gid_t gid;
    bool bridge_exists;
};

/* Of the host's end of a tap's veth pair. */
void pod_net_port(const char *pod_uid, unsigned tap, char ret[API_NAD_LINK_NAME]);

/* Commands of iproute2, one per line without the word "ip": those for the host, and those for the
 * pod's namespace, which follow them. Only a bridge can be attached to. */
int pod_net_plan(const struct wire_network *net, const struct api_nad *nad,
                 const struct pod_net_place *place, struct ferry_buf *ret_host,
                 struct ferry_buf *ret_pod, struct ferry_error *err);
