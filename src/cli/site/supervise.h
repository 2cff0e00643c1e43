/* The supervisor of a site: one process that keeps the site's programs running.
 *
 * It starts them in the plan's order, each with a log file of its own, and starts one that ended
 * again after a pause that grows while it keeps failing. One that handed over to a successor
 * (ferry-relay, SIGUSR2) has not ended: the successor is watched from then on. SIGTERM ends all of
 * them, then itself. When the supervisor itself dies, its programs run on; a new one takes them
 * over from the state file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/site/site_plan.h"

/* Runs until SIGTERM. Standard error is the supervisor's log. */
int supervise_run(const struct site_plan *p, struct ferry_error *err);

/* Pause before the next start of a program that ended for the `failures`th time in a row after it
 * lived `lived_ms`; a long life clears the count. Pure. */
int64_t supervise_pause_ms(int *failures, int64_t lived_ms);

/* Whether a command line, as /proc shows it, is that of `argv`: the same arguments for a program of
 * the same name, wherever it lies. Pure. */
bool supervise_same_call(const char *cmdline, size_t len, char *const *argv);

/* Every process of a site carries this variable with the site's directory, so that it can be found
 * even when the state file does not know it. */
#define SUPERVISE_MARK "FERRY_SITE"
