/* All moves that this relay serves, by role and key, with KubeVirt's contract: idempotent, replaced
 * on change, no new keys while draining. Answers are JSON texts, owned by the caller. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "relay/common/env.h"
#include "relay/common/spec.h"
#include "relay/manager/group.h"

struct relay_manager;

/* Borrows the credentials. `rate`: bytes per second for all moves together, 0 = no limit. */
int relay_manager_new(struct tls_credentials *server, struct tls_credentials *client, uint64_t rate,
                      struct relay_manager **ret, struct ferry_error *err);
/* Ends every stream, removes every socket file. */
void relay_manager_free(struct relay_manager *m);

/* Takes `spec`, also on failure. A failed replacement of a target leaves the old one in place; a
 * failed replacement of a source leaves none, because the two would share their socket files. */
int relay_manager_put(struct relay_manager *m, struct relay_spec *spec_take, char **ret_json,
                      struct ferry_error *err);
/* A move that no control call asked for. Takes `spec`, also on failure. */
int relay_manager_add(struct relay_manager *m, struct relay_spec *spec_take,
                      struct ferry_error *err);
int relay_manager_get(struct relay_manager *m, enum relay_role role, const char *key,
                      char **ret_json, struct ferry_error *err);
/* Whether there was one. */
bool relay_manager_delete(struct relay_manager *m, enum relay_role role, const char *key);

char *relay_manager_list(struct relay_manager *m, enum relay_role role);
char *relay_manager_streams(struct relay_manager *m);
char *relay_manager_health(struct relay_manager *m);
/* {state: "up"|"away"|"none", bytesPerS, rttUs, sinceS} of all streams to and from a node. */
char *relay_manager_path(struct relay_manager *m, const char *node);
/* For Prometheus. */
char *relay_manager_metrics(struct relay_manager *m);

/* Of all moves together; from JSON {bytesPerS}. */
int relay_manager_set_rate(struct relay_manager *m, const char *json, size_t len, char **ret_json,
                           struct ferry_error *err);

/* Nodes that were removed, in place of those before; from JSON (relay/manager/denied.h). Their
 * relays are refused from now on, and their streams end. */
int relay_manager_set_denied(struct relay_manager *m, const char *json, size_t len, char **ret_json,
                             struct ferry_error *err);

/* What all streams may hold together (relay/common/memory.h). */
void relay_manager_set_memory(struct relay_manager *m, uint64_t bytes);

/* From now on new keys are refused. */
void relay_manager_drain(struct relay_manager *m);
size_t relay_manager_stream_count(struct relay_manager *m);

/* ---- changing the process (manager_handover.c). Nobody else may call meanwhile. ---- */

/* Every move stands still, but for raw and plain streams. */
void relay_manager_pause(struct relay_manager *m);
void relay_manager_resume(struct relay_manager *m);
/* While paused; what is in `*ret` is borrowed, descriptors are added to `fds`. */
void relay_manager_save(struct relay_manager *m, struct relay_state *ret, struct relay_fds *fds);
/* Into an empty manager, which then is paused. On failure it is empty again. */
int relay_manager_restore(struct relay_manager *m, struct relay_state *from, struct relay_fds *fds,
                          struct ferry_error *err);
/* Somebody else has what was saved. What could not be saved goes on: relay_manager_stream_count()
 * says how much. */
void relay_manager_abandon(struct relay_manager *m);
/* Streams that cannot be handed over. */
size_t relay_manager_bound_count(struct relay_manager *m);
/* Takes a socket to a predecessor that lives on for its last streams. */
void relay_manager_add_predecessor(struct relay_manager *m, int fd);
/* Those that still live. */
size_t relay_manager_predecessor_count(struct relay_manager *m);
/* Tells them to end, too. */
void relay_manager_end_predecessors(struct relay_manager *m);

/* The first move, or NULL; borrowed. */
struct relay_group *relay_manager_first(struct relay_manager *m);
