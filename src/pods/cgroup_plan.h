/* What a pod may use of its host, and what is written into which control group for it. Pure.
 *
 * Both kinds of hierarchies are known, also side by side: a controller that is mounted by itself
 * (version 1) is used there, all others are taken from the unified hierarchy (version 2). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/error.h"

enum cgroup_controller { CGROUP_CPU, CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CONTROLLERS };

/* Where each controller is; mount NULL = this host has none. */
struct cgroup_layout {
    struct cgroup_place {
        char *mount; /* owned */
        bool unified;
    } of[CGROUP_CONTROLLERS];
    char *node; /* name of the group that holds those of this node's pods; owned */
    int locks[CGROUP_CONTROLLERS];
    size_t n_locks;
};

/* 0 = not asked for. */
struct cgroup_limits {
    int64_t cpu_request_milli, cpu_limit_milli, memory_limit_bytes;
    int64_t memory_default_bytes; /* where there is no limit: nobody asked for it, but it holds */
};

struct cgroup_write {
    enum cgroup_controller controller;
    const char *file;
    char value[48];
    bool may_miss; /* older kernels do not have the file */
};
enum { CGROUP_WRITES_MAX = 8 };

/* Mount point of the unified hierarchy, owned by the caller; NULL = there is none. */
char *cgroup_unified_mount(const char *mountinfo);
/* `unified_controllers`: its cgroup.controllers, or "". */
void cgroup_layout_read(const char *mountinfo, const char *unified_controllers,
                        struct cgroup_layout *ret);
void cgroup_layout_done(struct cgroup_layout *l);

const char *cgroup_controller_name(enum cgroup_controller c);

/* From a container's resources. */
int cgroup_limits_read(const yyjson_val *container, struct cgroup_limits *ret,
                       struct ferry_error *err);

size_t cgroup_plan(const struct cgroup_limits *limits, const struct cgroup_layout *layout,
                   struct cgroup_write ret[CGROUP_WRITES_MAX]);
/* The first limit that was asked for and cannot be kept here, or NULL. */
const char *cgroup_unkept(const struct cgroup_limits *limits, const struct cgroup_layout *layout);

/* The file of the memory controller that counts what the kernel killed for want of memory. */
const char *cgroup_kills_file(const struct cgroup_layout *layout);
