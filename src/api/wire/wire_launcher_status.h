/* What a launcher says about itself (docs/contracts/launcher.md): one table writes it
 * and reads it. Pure. The launcher runs beside the hypervisor: what is read is checked, not
 * trusted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "api/wire/wire_abort.h"
#include "api/wire/wire_launcher_words.h"
#include "api/wire/wire_mode.h"
#include "base/error.h"

enum {
    LAUNCHER_UID_SIZE = 64,
    LAUNCHER_FAILURE_SIZE = 512,
    LAUNCHER_CODE_SIZE = 40,
    LAUNCHER_MACHINE_SIZE = 64,
    LAUNCHER_VOLUME_SIZE = 64,
};

/* One look at a running migration. A figure that was not told is -1, of disks 0. */
struct launcher_sample {
    bool present; /* figures are there; libvirt has none before the first byte */
    bool active;  /* an unfinished outgoing migration; not told */
    int64_t elapsed_ms;
    int64_t total_bytes, processed_bytes, remaining_bytes; /* memory and disks */
    int64_t disk_total_bytes, disk_remaining_bytes;        /* of these, disks */
    int64_t bytes_per_s, dirty_bytes_per_s;
    int64_t iteration;
    int64_t postcopy_requests; /* not told */
    int64_t downtime_ms;       /* expected while active, real afterwards; -1 = not known */
    int64_t throttle_percent;
};

struct launcher_migration {
    char uid[LAUNCHER_UID_SIZE];
    enum launcher_role role; /* NONE: there was none yet */
    enum launcher_phase phase;
    enum wire_mode mode;
    int64_t start_ms, end_ms; /* wall clock; 0 = not yet */
    bool abort_requested;
    enum wire_abort abort_status;
    char failure_reason[LAUNCHER_FAILURE_SIZE];
    char reason_code[LAUNCHER_CODE_SIZE];
    bool never_ran;      /* target, failed: its vCPUs never ran and never will */
    bool filtered;       /* target: its control channel leads to a filter */
    int64_t recoveries;  /* of a broken post-copy */
    int64_t downtime_ms; /* -1 = not known */
    struct launcher_sample sample;
};

/* What happened to the guest since it came to this launcher, and does not show in its state. */
struct launcher_guest {
    int64_t reset_ms;    /* the latest reset; 0 = none. By its watchdog, too */
    int64_t watchdog_ms; /* when its watchdog fired last; 0 = never */
    enum launcher_watchdog watchdog;
    char volume[LAUNCHER_VOLUME_SIZE]; /* that it stands still for, "" = not known, or for none */
    enum launcher_disk_error disk_error;
};

struct launcher_status {
    enum launcher_domain domain;
    enum launcher_reason domain_reason;
    char machine[LAUNCHER_MACHINE_SIZE]; /* type of a domain that has a QEMU; "" = not said */
    struct launcher_guest guest;
    struct launcher_migration migration; /* the latest */
};

/* The answer to GET /v1/status; the caller's. */
char *wire_launcher_status_write(const struct launcher_status *s);
int wire_launcher_status_read(const char *json, size_t len, struct launcher_status *ret,
                              struct ferry_error *err);

/* Parts of it, which events, records and the launcher's state carry, too. */
yyjson_mut_val *wire_launcher_migration_write(yyjson_mut_doc *doc,
                                              const struct launcher_migration *m);
yyjson_mut_val *wire_launcher_sample_write(yyjson_mut_doc *doc, const struct launcher_sample *s);
yyjson_mut_val *wire_launcher_guest_write(yyjson_mut_doc *doc, const struct launcher_guest *g);
/* `o` may be NULL: nothing happened. */
int wire_launcher_guest_read(const yyjson_val *o, struct launcher_guest *ret,
                             struct ferry_error *err);
