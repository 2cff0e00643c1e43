/* Follows one move until it is over. */
#pragma once

#include "base/error.h"
#include "cli/outcome.h"
#include "cli/session.h"

/* Shows progress on standard output: one line that is redrawn on a terminal, else a line per
 * change; `quiet` shows only the end. The caller has blocked signals (ferry_signals_block);
 * SIGINT ends the watching, not the move, with -FERRY_CANCELLED. A short absence of the API server
 * is waited out. */
int watch_migration(struct session *s, const char *name, bool quiet, enum outcome *ret,
                    struct ferry_error *err);
