/* What happened lately, for watchers: a window of events in the order of their commits. A writer
 * never waits for a watcher; a watcher that falls behind the window is told so and lists again. Any
 * thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "apiserver/store/entry.h"

struct hub;

enum hub_type { HUB_ADDED, HUB_MODIFIED, HUB_DELETED };

struct hub_event {
    enum hub_type type;
    struct entry *now;    /* for HUB_DELETED: the object at its end, with the version of its end */
    struct entry *before; /* NULL for HUB_ADDED */
};
void hub_event_done(struct hub_event *e);

/* `version`: what the store holds now; events up to it are not known. */
struct hub *hub_new(uint64_t version, size_t max_events, size_t max_bytes);
void hub_free(struct hub *h);

/* The hub takes references of its own. Versions must grow. */
void hub_publish(struct hub *h, enum hub_type type, struct entry *now, struct entry *before);

enum { HUB_BATCH = 64 };
struct hub_batch {
    struct hub_event events[HUB_BATCH];
    size_t n;
    uint64_t version; /* everything up to here was looked at: go on from here */
};
void hub_batch_done(struct hub_batch *b);
#define cleanup_hub_batch ferry_cleanup(hub_batch_done)

/* Events of `resource` (NULL = all) after `after`; waits up to `timeout_ms` while there are none.
 * 0, or -1 when `after` is no longer (or not yet) in the window. */
int hub_wait(struct hub *h, const struct api_resource *resource, uint64_t after, int timeout_ms,
             struct hub_batch *ret);
