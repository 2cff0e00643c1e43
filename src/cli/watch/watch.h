/* Follows one move until it is over. */
#pragma once

#include "base/error.h"
#include "cli/session/session.h"
#include "cli/views/outcome.h"

struct watch_options {
    bool quiet; /* only the end is shown */
    bool once;  /* how it is now, then return; `*ret` may be OUTCOME_GOING then */
};

/* Shows progress on standard output: one line that is redrawn on a terminal, else a line per
 * change. The caller has blocked signals (ferry_signals_block);
 * SIGINT ends the watching, not the move, with -FERRY_CANCELLED. A short absence of the API server
 * is waited out. */
int watch_migration(struct session *s, const char *name, struct watch_options options,
                    enum outcome *ret, struct ferry_error *err);
