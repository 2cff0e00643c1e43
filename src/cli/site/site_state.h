/* The state file of a site: its settings, and which processes run for it.
 *
 * `ferry up` writes it before it makes anything, so that what was made can always be found and
 * removed; from then on the supervisor alone writes it. A process is named by pid and start time:
 * a pid that was given to somebody else is not taken for ours. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"

enum { SITE_PROCESS_NAME = 48 };

struct site_process {
    char name[SITE_PROCESS_NAME];
    pid_t pid; /* 0 = does not run */
    uint64_t start_time;
    int restarts;  /* starts by this supervisor after the first one */
    int last_exit; /* code of its last end, 128 + signal; -1 = never ended */
};

/* What was not there before the site, and may go with it. */
struct site_made {
    bool root;  /* its directory */
    bool netns; /* the mount at /run/netns, which `ip netns add` makes for all */
};

struct site_state {
    char *bin_dir, *guest_dir;
    int nodes, port;
    struct site_made made;
    struct site_process supervisor;
    struct site_process *daemons;
    size_t n_daemons;
};

/* -FERRY_NOT_FOUND when there is no such file, -FERRY_INVALID when it cannot be understood. */
int site_state_read(const char *path, struct site_state **ret, struct ferry_error *err);
int site_state_write(const char *path, const struct site_state *s, struct ferry_error *err);
void site_state_free(struct site_state *s);
FERRY_DEFINE_CLEANUP(struct site_state *, site_state_free)
#define site_cleanup_state ferry_cleanup(site_state_freep)

/* To and from the file's text, without touching a file. */
char *site_state_encode(const struct site_state *s);
int site_state_decode(const char *text, size_t len, struct site_state **ret,
                      struct ferry_error *err);

/* Keeps two of `ferry up` and `ferry down` from working on one site at the same time: a descriptor
 * that holds the lock until it is closed, -FERRY_NOT_FOUND when there is no such directory. */
int site_state_lock(const char *root, struct ferry_error *err);
/* Takes its file away where there is no site; for who holds it. */
void site_state_drop_lock(const char *root);

/* Whether this very process is still there. */
bool site_process_alive(const struct site_process *p);
