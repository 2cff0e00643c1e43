/* All moves that this relay serves, by role and key, with KubeVirt's contract: idempotent, replaced
 * on change, no new keys while draining. Answers are JSON texts, owned by the caller. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "relay/env.h"
#include "relay/spec.h"

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

/* From now on new keys are refused. */
void relay_manager_drain(struct relay_manager *m);
size_t relay_manager_stream_count(struct relay_manager *m);
