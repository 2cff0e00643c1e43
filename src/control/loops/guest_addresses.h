/* Addresses of guests, where there is no Multus to give them: one per interface and pool of its
 * NetworkAttachmentDefinition, taken before the pod is made, kept as long as the VMI, whatever node
 * it is on. */
#pragma once

#include "control/loops/cluster.h"

/* 1 when the VMI has just been given its addresses (and will come back with them), 0 when there is
 * nothing to do. */
int guest_addresses_give(struct cluster *c, const struct api_object *vmi, struct ferry_error *err);
/* The VMI of that name is gone: what it had is free again, and what others left that are gone, too.
 */
int guest_addresses_free(struct cluster *c, const char *ns, const char *name,
                         struct ferry_error *err);
