/* Finds the processes of a site on this machine, whatever its state file says: those that carry the
 * supervisor's mark in their environment, everything that descends from them, and the sandboxes of
 * its pods, which outlive the agent that started them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct site_found {
    pid_t pid;
    uint64_t start_time;
    bool sandbox; /* PID 1 of a pod: everything in the pod ends with it */
    char name[32];
};

/* Owned by the caller, `*ret_n` entries; never includes the calling process. */
struct site_found *site_sweep(const char *root, size_t *ret_n);

/* Whether a process's environment (as in /proc/PID/environ) says that it belongs to `root`. */
bool site_sweep_marked(const char *environ_text, size_t len, const char *root);

/* Pid of the sandbox from sandbox.json, as bubblewrap writes it; 0 when it cannot be told.
 * `*ret_pid_ns` is the inode of its pid namespace, 0 when not given. */
pid_t site_sweep_sandbox(const char *json, size_t len, uint64_t *ret_pid_ns);
