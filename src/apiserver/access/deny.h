/* Certificates of nodes that were removed: refused from then on. A node that comes back gets new
 * ones. One config map per removed node, written in the transaction that removes it or marks it as
 * being deleted. */
#pragma once

#include "apiserver/access/auth.h"
#include "apiserver/store/store.h"

/* Inside the transaction that deletes object `e`: when it is a node, its certificates end here. */
int deny_removed(struct store *store, const struct entry *e, struct ferry_error *err);
/* The certificate of this peer (a node's or its relay's) is older than the removal of its node. */
bool deny_check(struct store *store, const struct http_peer *peer);
