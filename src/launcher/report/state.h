/* What the launcher must still know after its own death: one small JSON file, replaced as a whole
 * and on disk before the action that it announces.
 *
 * Reading takes a copy. Changing: state_lock(), change the values, state_commit(); nothing blocks
 * longer than the write of the file. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/wire/wire_launcher_status.h"
#include "api/wire/wire_options.h"
#include "base/error.h"

enum { STATE_UID_SIZE = LAUNCHER_UID_SIZE, STATE_PAST_MAX = 32 };

enum state_vm {
    STATE_VM_NONE,     /* never asked to start one */
    STATE_VM_STARTING, /* about to start it; whether it came up is for libvirt to say */
    STATE_VM_STARTED,  /* it ran here, it is never started a second time */
    STATE_VM_COUNT
};
enum state_abort { /* why it was aborted, whether or not that worked */
                   STATE_ABORT_NONE,
                   STATE_ABORT_ASKED,
                   STATE_ABORT_STUCK,
                   STATE_ABORT_NOT_CONVERGING,
                   STATE_ABORT_COUNT
};

struct state_migration {
    enum launcher_role role; /* NONE: there was no migration yet */
    enum launcher_phase phase;
    char uid[STATE_UID_SIZE];
    int64_t start_ms, end_ms; /* wall clock; 0 = not yet */
    enum state_abort abort;
    char abort_detail[256]; /* figures that justify an abort of our own */
    bool abort_accepted;    /* libvirt took the abort */
    enum wire_abort abort_status;
    enum wire_mode mode; /* source only; written before libvirt is asked */
    bool suspended;      /* we paused the guest: so that the move ends, or before post-copy */
    int64_t recoveries;  /* of a broken post-copy */
    int64_t disk_bytes;  /* source only: of the disks that are copied */
    bool incoming_seen, finalized; /* target only */
    bool filtered;                 /* target: its control channel leads to a filter */
    bool never_ran;                /* target, failed: its vCPUs never ran and never will */
    char failure_reason[LAUNCHER_FAILURE_SIZE];
    char reason_code[LAUNCHER_CODE_SIZE];
    int64_t downtime_ms; /* -1 = not known */
    struct wire_options options;
};

struct state_values {
    char host_uuid[40];
    enum state_vm vm;
    int64_t grace_s;      /* the VMI's terminationGracePeriodSeconds */
    int64_t memory_bytes; /* the VMI's */
    bool rescued;         /* from a broken post-copy (rescue.h): its QEMU cannot migrate again */
    struct launcher_guest guest; /* what happened to it here */
    bool panicked;               /* its kernel said so */
    int64_t oom_kills;           /* processes of this pod that the kernel had killed for memory when
                                  * the guest was last known to run */
    bool stop;                   /* asked to shut down */
    int64_t stop_deadline_ms;
    struct state_migration migration; /* the latest */
    char past[STATE_PAST_MAX][STATE_UID_SIZE];
    size_t n_past; /* UIDs of earlier migrations: each is one-shot */
};

/* Pure. */
void state_values_init(struct state_values *v);
char *state_encode(const struct state_values *v);
int state_decode(const char *json, size_t len, struct state_values *ret, struct ferry_error *err);
bool state_uid_valid(const char *uid);
bool state_uid_known(const struct state_values *v, const char *uid);
/* Class CONFLICT unless this launcher may take part in migration `uid`, which is new to it. */
int state_may_begin(const struct state_values *v, const char *uid, struct ferry_error *err);
/* Makes `m` the current migration; the former one's UID moves to `past`. */
void state_begin_migration(struct state_values *v, const struct state_migration *m);
bool state_migration_over(const struct state_migration *m);

/* The file. A missing one is a fresh launcher; one that cannot be read is an error, because going
 * on without it could start a guest twice. */
struct state;
int state_open(const char *path, struct state **ret, struct ferry_error *err);
void state_close(struct state *s); /* takes NULL */
void state_get(struct state *s, struct state_values *ret);
struct state_values *state_lock(struct state *s);
/* Writes and unlocks, also on failure; then the values in memory are as before the change. */
int state_commit(struct state *s, struct ferry_error *err);
void state_unlock(struct state *s); /* nothing was changed */
