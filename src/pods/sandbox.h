/* A pod's sandbox on this host: its directory, its processes, and what is left of it after a
 * restart of the agent.
 *
 * All state is in the pod's directory (docs/contracts/paths.md) and in the kernel: nothing here is
 * remembered in memory, so adopting a running sandbox is just probing it. Whether it lives is told
 * by the flock on `exit`, which ferry-init holds; who it is, by the pid that bubblewrap
 * wrote to `sandbox.json` before it, which is nobody else's until then. Calls for one pod must not
 * overlap; different pods are independent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "pods/cgroup.h"
#include "pods/sandbox_args.h"

/* This host, the same for all pods. */
struct sandbox_host {
    const char *root;            /* prefix of host paths that pods name, or NULL */
    const char *host_path_roots; /* below which they must be (host_path.h); NULL = the default */
    const char *pods_dir;        /* ROOT/run/ferry/pods */
    const char *init_path, *launcher_path;
    const char *guest_dir; /* or NULL */
    const char *cache_dir; /* libvirt's capability cache of this node (cache.h) */
    uid_t vm_uid;          /* who runs launcher, libvirtd and QEMU; 0 = qemu:///system */
    gid_t vm_gid;
    bool one_user;   /* of all pods, whatever they say */
    uid_t relay_uid; /* who connects to sockets in m/ and libvirt/ */
    gid_t relay_gid;
    const struct cgroup_layout *cgroups; /* or NULL: pods are not limited */
};

struct sandbox_pod {
    const char *uid, *ns, *name;
    const char *const *args; /* the launcher's, from the pod */
    size_t n_args;
    const struct sandbox_disks *disks;
    const struct cgroup_limits *limits;
    bool vhost_net; /* it asks for /dev/vhost-net */
    bool incoming;  /* a move comes into it, perhaps by post-copy */
    bool kvm;       /* it asks for /dev/kvm */
};

enum sandbox_state {
    SANDBOX_NONE,    /* never started here, or removed */
    SANDBOX_RUNNING, /* PID 1 lives */
    SANDBOX_ENDED,
};

struct sandbox_probe {
    enum sandbox_state state;
    int exit_code;                  /* when ended; 137 when it was killed */
    long long started_ms, ended_ms; /* wall clock, from the files */
    long long stop_ms;              /* when it was first asked to stop, 0 = never */
    long long kills;                /* what the kernel killed for want of memory */
};

/* The host as a pod has it that says whom it is to run as (0 = it does not). */
struct sandbox_host sandbox_host_for(const struct sandbox_host *h, int64_t user);

/* True for what may be used as a directory name below pods_dir. */
bool sandbox_uid_valid(const char *uid);

int sandbox_probe(const struct sandbox_host *h, const char *uid, struct sandbox_probe *ret,
                  struct ferry_error *err);

/* Makes the directory and starts the sandbox. *ret_pid is bubblewrap's own process, a child of the
 * caller, to be reaped after sandbox_wait(). */
int sandbox_start(const struct sandbox_host *h, const struct sandbox_pod *pod, pid_t *ret_pid,
                  struct ferry_error *err);

/* Blocks until the sandbox is over; -FERRY_CANCELLED when `stop_fd` becomes readable first. */
int sandbox_wait(const struct sandbox_host *h, const char *uid, int stop_fd,
                 struct ferry_error *err);

/* "NAMESPACE/NAME" of the pod a directory was made for, owned by the caller; NULL when unknown. */
char *sandbox_pod_key(const struct sandbox_host *h, const char *uid);

/* Signals PID 1: SIGTERM asks the launcher to stop, SIGKILL ends everything inside. Fine when it
 * is over already. */
int sandbox_signal(const struct sandbox_host *h, const char *uid, int sig, struct ferry_error *err);

/* PID 1 of the sandbox as the host sees it; 0 when it is not there. */
pid_t sandbox_pid(const struct sandbox_host *h, const char *uid);

/* SIGTERM, and from now on the probe says since when: the grace period outlives the agent. */
int sandbox_stop(const struct sandbox_host *h, const char *uid, struct ferry_error *err);

/* Removes what is left of an ended sandbox. Missing is fine; running is an error. */
int sandbox_remove(const struct sandbox_host *h, const char *uid, struct ferry_error *err);

/* Copies the pod's capability cache to the node; returns the number of files. */
int sandbox_harvest(const struct sandbox_host *h, const char *uid, struct ferry_error *err);

/* UIDs of all pods that have a directory here, as lines. */
int sandbox_list(const struct sandbox_host *h, struct ferry_buf *ret, struct ferry_error *err);
