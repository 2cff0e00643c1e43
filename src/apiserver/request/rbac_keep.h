/* The server's own writes of roles and bindings. */
#pragma once

#include "apiserver/access/rbac_view.h"
#include "apiserver/store/store.h"

/* Makes the roles and bindings that every site has, and mends those that lack something. */
int rbac_keep_policies(struct store *store, struct ferry_error *err);
/* Writes into each aggregated ClusterRole what it gathers, for those who read it; the rights
 * themselves do not wait for that. */
int rbac_keep_aggregates(struct store *store, struct rbac *rbac, struct ferry_error *err);
