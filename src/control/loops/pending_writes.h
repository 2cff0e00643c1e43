/* What was written and does not show in the caches yet. A decision from a cache that lags behind
 * one's own writes would repeat them: it waits for the cache instead, which wakes it. Only a matter
 * of needless calls: every write is guarded, and what is remembered here is forgotten after a few
 * seconds, with the process, or when it shows. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/object.h"

struct pending_writes;
struct pending_writes *pending_writes_new(void);
void pending_writes_free(struct pending_writes *w); /* takes NULL */

/* `version` is the object's resourceVersion after the write; NULL = its deletion was asked for. */
void pending_writes_note(struct pending_writes *w, const char *uid, const char *version,
                         int64_t now_ns);
/* Was this object changed since, by us? `seen` may be NULL: nothing is known of what is not there.
 */
bool pending_writes_is_ahead(struct pending_writes *w, const struct api_object *seen,
                             int64_t now_ns);
/* How many are remembered. */
size_t pending_writes_count(struct pending_writes *w);
