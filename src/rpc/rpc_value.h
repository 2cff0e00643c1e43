/* Whether one value of a domain's XML is what its rule allows. Pure. */
#pragma once

#include "rpc/rpc_rules.h"

/* `agreed` and `unit_agreed` may be NULL: nothing was. The units count for RPC_SIZE alone; NULL =
 * KiB. */
bool rpc_value_allowed(const struct rpc_rule *rule, const char *value, const char *unit,
                       const char *agreed, const char *unit_agreed);
