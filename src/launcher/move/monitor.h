/* The eye on an outgoing migration: samples it, lets the strategy judge, carries out what it
 * decides and what was asked for. Any thread, except where said. */
#pragma once

#include "launcher/report/context.h"
#include "launcher/report/record.h"
#include "launcher/strategy/strategy.h"

struct monitor;

struct monitor_config {
    const struct context *c;
    const char *uid;
    struct wire_options options;
    int64_t data_bytes; /* memory and disks that are to be moved */
    int64_t started_ns;
    bool vfio;
    struct record *record; /* outlives the monitor */
};

int monitor_start(const struct monitor_config *cfg, struct monitor **ret, struct ferry_error *err);
/* Ends its thread; takes NULL. Figures stay readable until monitor_free(). */
void monitor_stop(struct monitor *m);
void monitor_free(struct monitor *m); /* takes NULL */

/* The latest look. */
void monitor_sample(struct monitor *m, struct launcher_sample *ret);
/* The final figures, if libvirt told them (`present`). */
void monitor_final(struct monitor *m, struct launcher_sample *ret);
/* Whether the transport bridges an outage, and what this move has of it; 0 = not measured. */
void monitor_set_path(struct monitor *m, bool away, int64_t bytes_per_s);

/* Writes down that the current migration shall be aborted, and why; the monitor then does it.
 * CONFLICT in post-copy, which can only finish. Fine when it is being aborted or over. */
int monitor_decide_abort(const struct context *c, enum state_abort why, const char *detail,
                         struct ferry_error *err);
