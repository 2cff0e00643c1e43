/* How a program that runs until it is told to stop begins and ends. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/options.h"

struct ferry_daemon {
    const char *program;                 /* in messages and in the log */
    const struct ferry_command *command; /* takes options alone */
    const struct ferry_log_options *log;
    const char *root_for; /* why it has to be root; NULL = it has not */
    int signal;           /* one more that ferry_signals_wait() returns, or 0 */
    /* Of the options together, before anything is done; a failure is one of the call. Or NULL. */
    int (*check)(void *ctx, struct ferry_error *err);
    /* To the end. -FERRY_CANCELLED is no failure: it was told to stop before it was up. */
    int (*run)(void *ctx, struct ferry_error *err);
    void *ctx;
};

/* Options, settings file, checks and log; signals are blocked, then it runs. The exit status. */
int ferry_daemon_main(const struct ferry_daemon *d, int argc, char **argv);
/* The first part alone: nothing but the log is changed. */
int ferry_daemon_parse(const struct ferry_daemon *d, int argc, char **argv,
                       struct ferry_error *err);

/* Whether a signal to stop has come; stays true. The first thread alone. */
bool ferry_daemon_stopping(void);

/* For one process per ROOT: descriptor of ROOT/run/ferry/FILE, locked until it is closed. `program`
 * is who has it otherwise. */
int ferry_daemon_lock(const char *root, const char *file, const char *program,
                      struct ferry_error *err);
/* "" or an absolute path; INVALID names --root. */
int ferry_daemon_check_root(const char *root, struct ferry_error *err);

/* What is installed with this program: DIRECTORY-OF-PROGRAM/`path`, owned by the caller. NULL when
 * it cannot be told. */
char *ferry_daemon_beside(const char *path);
/* As many descriptors as are allowed. */
void ferry_daemon_raise_fds(void);
