/* The CPUs and machines that guests can have on this node, as KubeVirt writes them on the Node:
 * labels by which the scheduler finds a node for a guest that names a model or features, or that
 * came from a host with another CPU. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

struct node_cpu {
    char **labels; /* keys, sorted, each once; the value of each is "true" */
    size_t n;
    bool host_model; /* it is known what host-model means here */
    struct node_cpu *older;
};

/* From the report of `ferry-launcher --describe-cpu`. Names that cannot be part of a label are left
 * out: no guest could ask for them. */
int node_cpu_parse(const char *json, size_t len, struct node_cpu **ret, struct ferry_error *err);
void node_cpu_free(struct node_cpu *c); /* and all older ones; takes NULL */

bool node_cpu_has(const struct node_cpu *c, const char *label);
/* Whether a label is of those kinds, so that one that is not in the list is out of date. */
bool node_cpu_is_kind(const char *label);

static inline void node_cpu_freep(struct node_cpu **c)
{
    node_cpu_free(*c);
}
#define node_cpu_cleanup ferry_cleanup(node_cpu_freep)

/* What a report depends on, as text: the CPU as /proc/cpuinfo has its first one. The caller's. */
char *node_cpu_identity(const char *cpuinfo);
