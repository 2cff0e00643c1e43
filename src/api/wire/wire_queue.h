/* What a migration waits for: its annotation ferry.io/queue, written by the controller. Pure. */
#pragma once

#include "api/wire/wire_error.h"
#include "api/wire/wire_json.h"
#include "api/wire/wire_reason.h"

struct wire_queue {
    enum wire_reason reason;
    const char *message; /* NULL = there is none */
    const char *blocker; /* key of what is in the way, or NULL */
    int64_t position;    /* in the queue; 0 = not a matter of the queue */
    int64_t since_ms;    /* unix time */
    int64_t check_s;     /* it is looked at again at least this often; 0 = not told */
    int64_t deadline_ms; /* it stops waiting then, unix time; 0 = not told */
    yyjson_doc *doc;     /* owns the strings of one that was read */
    /* What the guest has and no other node; in `lack_text`: which node lacks what, or NULL. */
    enum wire_lack lack;
    const char *lack_text;
};

/* False when it does not wait. A reason that is none of the set is REASON_NONE. */
bool wire_queue_read(const char *text, struct wire_queue *ret);
void wire_queue_done(struct wire_queue *q);
#define wire_cleanup_queue ferry_cleanup(wire_queue_done)

/* The text, the caller's; NULL when a string in it is no text. */
char *wire_queue_text(const struct wire_queue *q);
