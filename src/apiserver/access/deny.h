/* Certificates of nodes that were removed: refused from then on, whenever they were or will be
 * signed. A node that comes back with a token gets new ones.
 *
 * One config map per removed node (kube-system/ferry-denied.NODE), written in the transaction that
 * removes the Node or marks it as being deleted; it stays. Joining writes a generation into it, in
 * the transaction that uses the token up, and the certificates that are then signed name it
 * (tls/denial.h). So it does not matter how signing and removing meet: what was signed for another
 * generation, or for none, is worth nothing. */
#pragma once

#include "apiserver/access/auth.h"
#include "apiserver/store/store.h"
#include "tls/denial.h"

/* Inside the transaction that deletes object `e`: when it is a node, its certificates end here. */
int deny_removed(struct store *store, const struct entry *e, struct ferry_error *err);
/* Inside the transaction in which the node joins: from then on certificates of `generation` are
 * good, "" when it was never removed. */
int deny_lift(struct store *store, const char *node, char generation[TLS_GENERATION_SIZE],
              struct ferry_error *err);

/* The certificate of this peer (a node's or its relay's) is none that its node may have. */
bool deny_check(struct store *store, const struct http_peer *peer);
/* The same of a certificate of the node that is not there to be looked at. */
bool deny_check_node(struct store *store, const char *node, const char *generation,
                     int64_t begin_s);

/* All denials as JSON, for relays (docs/contracts/relay.md): {"nodes": [...]}. */
void deny_list(struct store *store, struct ferry_buf *out);
