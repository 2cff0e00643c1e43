/* What happened, for whoever listens: the last lines are kept, readers follow at their own pace.
 *
 * Sequence numbers grow across restarts of the launcher (they start at the wall clock's
 * milliseconds), so a reader's "since" never skips anything. Any thread. */
#pragma once

#include <stdint.h>
#include <yyjson.h>

#include "base/str.h"

struct events;

struct events *events_new(void);
void events_free(struct events *e); /* takes NULL; no readers may be left */

/* Publishes `{seq, time, type, ...}`: the members of `object` follow. Consumes `doc`, whose root
 * `object` is. */
void events_publish(struct events *e, const char *type, yyjson_mut_doc *doc_take);

/* Appends the lines after `*io_since` to `out`, at most about 64 KiB of them, and moves it on;
 * waits for one until `deadline_ns`. Returns the number of lines. */
size_t events_read(struct events *e, uint64_t *io_since, int64_t deadline_ns,
                   struct ferry_buf *out);
