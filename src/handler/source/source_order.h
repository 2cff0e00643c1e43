/* Whether the memory of a guest may be sent: a status alone may be anybody's word. There must be a
 * migration that asks for it and is not over, and a target pod that the controller made for it.
 * Pure.
 */
#pragma once

#include "api/kinds.h"

enum source_order {
    SOURCE_ORDER_UNKNOWN, /* nobody has looked yet */
    SOURCE_ORDER_GIVEN,
    SOURCE_ORDER_AWAITED, /* the target pod is not there: the controller says what becomes of it */
    SOURCE_ORDER_NONE,
};

/* Of the move that the VMI's status names, which shall leave `node`. `pod` is the target pod that
 * it names, `migration` the one that the pod names; NULL = there is none. `*ret_why` is set for
 * SOURCE_ORDER_NONE; static. */
enum source_order source_order_of(const struct api_vmi *vmi, const char *node,
                                  const struct api_pod *pod, const struct api_migration *migration,
                                  const char **ret_why);
