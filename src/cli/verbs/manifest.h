/* Objects that the command line creates, as JSON. Pure. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/options.h"

/* A VirtualMachine that runs the built-in test guest. */
struct manifest_vm {
    const char *name;
    const char *memory;       /* quantity: "128Mi" */
    int dirty_rate;           /* MiB per second that the guest rewrites */
    int working_set;          /* MiB that it rewrites; 0 = a quarter of its memory */
    int heartbeat;            /* lines per second on its serial line; 0 = 20 */
    const char *run_strategy; /* NULL = Manual */
};
/* Checks that the parts fit together; `*ret` is owned by the caller. */
int manifest_vm(const struct manifest_vm *vm, char **ret, struct ferry_error *err);

/* A VirtualMachineInstanceMigration with a generated name; `node` may be NULL. */
char *manifest_migration(const char *vm, const char *node);

/* The same for a VM that leaves `node` because it is drained; the mark is KubeVirt's. */
char *manifest_evacuation(const char *vm, const char *node);

/* A MigrationPolicy; what is false, NULL or negative is left to the cluster's settings. */
struct manifest_policy {
    const char *name;
    struct ferry_option_list vm_labels, namespace_labels; /* "KEY=VALUE" */
    bool auto_converge, post_copy, disruption;
    const char *bandwidth;
    int completion_timeout_s, max_downtime_ms;
};
int manifest_policy(const struct manifest_policy *p, char **ret, struct ferry_error *err);

/* Whether `name` can be an object's name (RFC 1123 label). */
int manifest_check_name(const char *what, const char *name, struct ferry_error *err);
