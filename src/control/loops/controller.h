/* All controllers of one process: caches, queues, workers, and which event wakes which key. */
#pragma once

#include <stdbool.h>

#include "base/str.h"
#include "control/migration/migration_decide.h"
#include "kube/client.h"

struct controller;

struct controller_config {
    struct kube_client *client; /* must outlive the controller */
    bool embedded;              /* place pods and watch over nodes, as Kubernetes does itself */
    unsigned workers;           /* per queue; 0 = 3 */
    const char *host;           /* for events; may be NULL */
    struct migration_settings settings;
    const char *lease_ns, *lease_name; /* that this process holds; may be NULL */
    bool (*stop)(void);                /* polled while the API server is away; true = give up */
};

/* Returns when the caches are filled and the workers run. */
int controller_start(const struct controller_config *cfg, struct controller **ret,
                     struct ferry_error *err);
/* Finishes what is being worked on; takes NULL. */
void controller_stop(struct controller *c);

/* Figures in Prometheus' text format; any thread. */
void controller_metrics(struct controller *c, struct ferry_buf *out);
