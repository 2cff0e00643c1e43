/* What a relay and the one that came before it have to say to each other afterwards.
 *
 * Streams without ferry/1 (raw TLS, plain TCP) cannot change their process, so a predecessor that
 * has some lives on until they end: a predecessor. Its successor, who has the control socket, tells
 * it over the socket of the handover when a move is removed, and when it is to end at once. One
 * datagram each. */
#pragma once

#include <stdbool.h>

#include "relay/common/spec.h"

enum { PREDECESSOR_TEXT = 8 + RELAY_KEY_MAX + 1 };

enum predecessor_order { PREDECESSOR_NONE, PREDECESSOR_END_MOVE, PREDECESSOR_END_ALL };

/* Pure: to and from the text of a datagram. */
void predecessor_put(char ret[PREDECESSOR_TEXT], enum predecessor_order order, enum relay_role role,
                     const char *key);
enum predecessor_order predecessor_get(const char *text, enum relay_role *ret_role,
                                       char ret_key[RELAY_KEY_MAX + 1]);

/* Never waits. False: there is nobody any more. */
bool predecessor_send(int fd, enum predecessor_order order, enum relay_role role, const char *key);
/* The next order, or NONE when there is none. `*ret_gone`: the successor is gone. */
enum predecessor_order predecessor_receive(int fd, enum relay_role *ret_role,
                                           char ret_key[RELAY_KEY_MAX + 1], bool *ret_gone);
