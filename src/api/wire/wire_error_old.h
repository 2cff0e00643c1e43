/* The one place where messages are searched for words: those of Ferry's programs of the last two
 * versions, whose errors carry no reason, and of programs of others, which have none to give. Their
 * messages are kept in tests/golden/messages. A message in other words is no error here: it is then
 * treated as any of its class. The code that a failure's text begins with
 * is read by wire_reason_of_failure(). Pure. */
#pragma once

#include <stddef.h>

#include "api/wire/wire_error.h"

/* What an API server's answer is about: ours before it gave reasons, kube-apiserver (its quota, and
 * webhooks of such a Ferry). */
enum wire_error wire_error_old_answer(int status, const char *message);

/* Why a scheduler found no node, by its message: kube-scheduler's condition has the reason
 * Unschedulable whatever it is, and ferry-controller's scheduler uses its words. */
enum wire_unschedulable {
    WIRE_UNSCHEDULABLE_FOR_NOW, /* nodes are short of something, or nobody knows */
    WIRE_UNSCHEDULABLE_NEVER,   /* no node matches what the pod asks of nodes */
    WIRE_UNSCHEDULABLE_VOLUME,  /* a volume is what is missing */
};
enum wire_unschedulable wire_error_old_unschedulable(const char *message);

/* What no other node has, by the note on a migration that waits: the rest of `note` from there on,
 * or NULL. Older controllers wrote no member "lack". */
const char *wire_error_old_lack(const char *note, enum wire_lack *ret);
