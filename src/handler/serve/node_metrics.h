/* The node agent's own figures as Prometheus text. Pure. */
#pragma once

#include "base/str.h"
#include "handler/local/launcher_status.h"

struct node_metrics {
    const char *node, *version;
    size_t roles[4]; /* VMIs by enum node_role */
};
void node_metrics_begin(struct ferry_buf *out, const struct node_metrics *m);

/* One VM whose launcher answers. */
struct node_metrics_vm {
    const char *ns, *name;
    const struct launcher_status *status;
};
/* KubeVirt's five figures of running migrations; what libvirt did not say is left out. */
void node_metrics_moves(struct ferry_buf *out, const char *node, const struct node_metrics_vm *vms,
                        size_t n);
