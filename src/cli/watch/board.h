/* Follows many moves: a line for each that goes on, redrawn on a terminal, printed at every change
 * otherwise; a last line for each that ended meanwhile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/session/session.h"

struct board_options {
    bool all_namespaces;
    const char *node; /* only moves that leave this node, or NULL */
    bool until_idle;  /* return when no move goes on; else at SIGINT */
    bool once;        /* show what there is and return */
};

struct board_counts { /* of those that ended while they were watched */
    size_t moved, cancelled, failed;
};

/* The caller has blocked signals. SIGINT ends the watching, not the moves, with -FERRY_CANCELLED.
 * A short absence of the API server is waited out. */
int board_watch(struct session *s, const struct board_options *o, struct board_counts *ret,
                struct ferry_error *err);
