/* What starting and stopping a VirtualMachine means under its run strategy, as KubeVirt has it.
 * Pure. */
#pragma once

#include "api/kinds.h"
#include "base/error.h"

enum power { POWER_START, POWER_STOP };

struct power_plan {
    bool status;  /* the patch goes to the status */
    bool nothing; /* it is so already */
    char *patch;  /* a JSON merge patch, owned by the caller; NULL when `nothing` */
};

/* `vmi` is the instance of the VM's name, or NULL. */
int power_decide(const struct api_object *vm, const struct api_vmi *vmi, enum power what,
                 struct power_plan *ret, struct ferry_error *err);

/* The request that a VM of the strategy Manual needs to run for the first time. */
#define POWER_START_REQUEST "{\"status\":{\"stateChangeRequests\":[{\"action\":\"Start\"}]}}"
