/* Does a VMI have to be moved so that its secondary networks become what its spec says? Pure.
 *
 * Plugged, unplugged and renamed networks take effect in a new pod only. SR-IOV and a renamed
 * attachment need that at once; for others a controller on the node may do it without a move, and
 * is given some seconds. */
#pragma once

#include "api/object.h"
#include "control/plan/plan.h"

enum network_answer {
    NETWORK_UNKNOWN, /* nothing to do: no condition */
    NETWORK_PENDING, /* somebody else may still do it: condition False */
    NETWORK_MOVE,    /* condition True */
};

/* `pod` is the one that has the VM; NULL = not known. */
enum network_answer network_evaluate(const struct api_vmi *vmi, const struct api_pod *pod,
                                     int64_t now_ms);

/* Keeps the VMI's condition MigrationRequired in line with it. */
void network_decide(const struct api_object *vmi, const struct api_object *pod, int64_t now_ms,
                    struct plan *ret);
