/* Waits until a site that is being brought up answers. All end early with -FERRY_CANCELLED after
 * SIGINT or SIGTERM (blocked by the caller), and with the program's own last words when one of the
 * site's programs keeps dying. */
#pragma once

#include "base/error.h"
#include "cli/site/site_plan.h"

/* Until the API server says that it is ready. */
int site_wait_api(const struct site_plan *p, struct ferry_error *err);

/* Until every node is Ready; reports each on standard output. */
int site_wait_nodes(const struct site_plan *p, struct ferry_error *err);
