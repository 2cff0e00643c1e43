/* A connection to QEMU's monitor that is opened before post-copy begins and kept: when the streams
 * die, QEMU's main loop may wait for a page that only the recovery brings, and a new connection
 * could not agree on capabilities then. Any thread. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "launcher/libvirt/qmp.h"

struct qmp_session;

/* `store` is a pair of connected datagram sockets that outlives this process (ferry-init has it,
 * too), or {-1, -1}. What a predecessor kept in it is taken over. Takes the descriptors. */
struct qmp_session *qmp_session_new(const char *path, const int store[2]);
/* Leaves the connection in the store. Takes NULL. */
void qmp_session_free(struct qmp_session *k);

/* Opens the connection unless there is one. */
int qmp_session_open(struct qmp_session *k, int64_t deadline_ns, struct ferry_error *err);
/* Closes it: the guest left, or the move is over. */
void qmp_session_close(struct qmp_session *k);

/* qmp_execute() on it; opened when there is none. Where the main loop may wait for memory, on the
 * target of a post-copy, out of band only: what is not answered holds up what comes after. */
int qmp_session_execute(struct qmp_session *k, const struct qmp_command *c, int64_t deadline_ns,
                        yyjson_doc **ret, struct ferry_error *err);

/* On the source: status of the migration, "postcopy-paused" and so on; "none" when there is none.
 */
int qmp_session_migration_status(struct qmp_session *k, char *ret, size_t size, int64_t deadline_ns,
                                 struct ferry_error *err);
