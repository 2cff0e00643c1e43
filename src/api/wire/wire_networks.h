/* Which taps of a pod go where: its annotation ferry.io/networks, {"tap0": "NAMESPACE/NAME"},
 * written by the controller, read by whoever runs the pod. Pure. */
#pragma once

#include "api/guest_nic.h"
#include "base/error.h"

enum { WIRE_NAMESPACE = 64, WIRE_NAME = 254 };

struct wire_network {
    unsigned tap;                             /* below API_GUEST_NICS */
    char ns[WIRE_NAMESPACE], name[WIRE_NAME]; /* of the definition */
};
struct wire_networks {
    struct wire_network list[API_GUEST_NICS];
    size_t n;
};

/* `text` may be NULL or "": there are none. -FERRY_INVALID says what is wrong. */
int wire_networks_read(const char *text, struct wire_networks *ret, struct ferry_error *err);
/* By the name of the tap ("tap0"); NULL when it is not attached. */
const struct wire_network *wire_networks_of(const struct wire_networks *n, const char *tap);

/* What the guest's interfaces want, the caller's; NULL when that is nothing. */
char *wire_networks_text(const struct api_vmi *vmi);
