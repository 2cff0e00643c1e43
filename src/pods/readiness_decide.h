/* When a launcher is asked whether it works, and what its answers mean for its pod, as kubelet does
 * with a readiness probe: one good answer makes a pod ready, only several bad ones in a row make it
 * not ready. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    READINESS_TIMEOUT_MS = 5000,
    READINESS_PERIOD_MS = 10000, /* while it is ready */
    READINESS_AGAIN_MS = 1000,   /* after a bad answer of one that is ready */
    READINESS_FIRST_MS = 50,     /* while it starts; doubled up to the former */
    READINESS_FAILURES = 3,
};

struct readiness_state { /* all zero: not asked yet */
    bool ready;
    int failures; /* in a row */
    int64_t next_ms;
};

/* True when that changes whether it is ready. */
bool readiness_decide(struct readiness_state *s, bool answered, int64_t now_ms);
/* Whether enough was heard to say so. */
bool readiness_known(const struct readiness_state *s);
/* Whether what a launcher answered is good: the first line of an HTTP answer. */
bool readiness_answer_good(const char *text);
