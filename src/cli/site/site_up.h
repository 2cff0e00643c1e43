/* Brings a site up on this machine: network, supervisor, credentials, then waits until every node
 * is ready. What an interrupted attempt made is removed again; a failed one leaves its files,
 * because the logs tell why it failed. */
#pragma once

#include "base/error.h"
#include "cli/site/site_plan.h"

enum site_up_result { SITE_UP_STARTED, SITE_UP_RESUMED, SITE_UP_WAS_RUNNING };

/* `nodes` and `port` of the settings may be -1: as the site at `root` has them, else the defaults.
 * Reports each step on standard output. Returns an enum site_up_result; -FERRY_CANCELLED after
 * SIGINT or SIGTERM, which the caller has blocked (ferry_signals_block). `*ret_plan` is set on
 * success. */
int site_up(const struct site_settings *settings, struct site_plan **ret_plan,
            struct ferry_error *err);
