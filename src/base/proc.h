/* Starting and watching processes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

struct ferry_spawn {
    const char *const *argv; /* NULL-terminated; argv[0] without a slash is looked up in PATH */
    const char *const *env;  /* NULL = inherit */
    int out_fd;              /* standard output and error; -1 = inherit */
    const int *pass_fds;     /* become 3, 4, ... in the child, announced as LISTEN_FDS */
    size_t n_pass_fds;
    int program_dir; /* > 2: where argv[0] lies, for a user who may not walk its path; 0 = none */
    const char *const *join_files; /* control groups to enter first (their cgroup.procs), or NULL */
    const char *netns;             /* enter this network namespace first (path), or NULL */
    uid_t uid;                     /* with `drop`: run as these, no supplementary groups */
    gid_t gid;
    bool drop;
    bool new_session; /* setsid: survive the terminal */
};

/* Where PATH has a program; the caller frees it. A name with a slash is returned as it is. */
char *ferry_find_program(const char *name, struct ferry_error *err);

/* Standard input is /dev/null. A command that cannot be executed is an error here, not in the
 * child. */
int ferry_spawn(const struct ferry_spawn *what, pid_t *ret_pid, struct ferry_error *err);

/* Waits for a child until `deadline_ns`; `*ret_code` is its exit code, or 128 + signal. */
int ferry_wait_child(pid_t pid, int64_t deadline_ns, int *ret_code, struct ferry_error *err);

/* Runs a command to its end; output (both streams) goes to `ret_output` when given. An exit code
 * other than 0 is an error that carries the last line of output. What the terminal sends to this
 * program (Ctrl-C) does not reach the command. */
int ferry_run(const char *const *argv, struct ferry_buf *ret_output, struct ferry_error *err);

/* Start time in clock ticks since boot: with the pid it identifies a process across restarts of the
 * reader. 0 = no such process, or a zombie. */
uint64_t ferry_proc_start_time(pid_t pid);

/* SIGTERM, then SIGKILL after `grace_ms`; returns when it is gone. Works for any process. Does
 * nothing when the process at `pid` did not start at `start_time` (0 = do not check). */
int ferry_proc_end(pid_t pid, uint64_t start_time, int64_t grace_ms, struct ferry_error *err);
