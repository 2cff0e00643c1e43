/* One side of one move at work: its listeners, the thread that accepts on them, and a thread per
 * accepted connection. */
#pragma once

#include <stddef.h>

#include <yyjson.h>

#include "base/error.h"
#include "relay/spec.h"
#include "tls/credentials.h"

struct relay_group;

/* Takes `spec`, also on failure. Borrows `credentials`. When it returns, connections are accepted.
 */
int relay_group_start(struct relay_spec *spec_take, struct tls_credentials *credentials,
                      struct relay_group **ret, struct ferry_error *err);
/* Stops accepting, removes the socket files, ends every stream, waits for their threads, frees. */
void relay_group_stop(struct relay_group *g);

const struct relay_spec *relay_group_spec(const struct relay_group *g);
size_t relay_group_stream_count(struct relay_group *g);

/* What GET and PUT answer: adds fields to `obj`. */
void relay_group_describe(struct relay_group *g, yyjson_mut_doc *doc, yyjson_mut_val *obj);
/* Adds one object per stream to the array `list`. */
void relay_group_describe_streams(struct relay_group *g, yyjson_mut_doc *doc, yyjson_mut_val *list);
