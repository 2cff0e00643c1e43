/* Measures the guest for a plan. Any thread; takes about three seconds. */
#pragma once

#include "launcher/report/context.h"
#include "launcher/strategy/plan.h"

/* Samples the dirty rate and makes a plan under `options`, whose pathBytesPerS (or bandwidth limit)
 * says what the path carries. `vmi` (optional) says which disks are copied. `*ret_json` is owned by
 * the caller. CONFLICT without a running guest or while it is being moved. */
int planner_run(const struct context *c, const struct wire_options *options,
                const struct api_vmi *vmi, char **ret_json, struct ferry_error *err);
