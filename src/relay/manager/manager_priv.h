/* Inside of relay/manager: shared by manager.c (the moves of a relay) and manager_handover.c (a
 * relay that changes its process). Nobody else includes it. */
#pragma once

#include <pthread.h>

#include "relay/manager/group.h"
#include "relay/manager/manager.h"

struct manager_node {
    struct relay_group *group;
    struct manager_node *next;
};

struct relay_manager {
    struct relay_env env;
    char instance[2 * FRAME_ID + 1]; /* tells a caller that the relay was started anew */
    pthread_mutex_t lock;            /* over the rest; held while a group starts or stops */
    struct manager_node *groups;
    bool draining;
    struct relay_totals totals[2];
    struct relay_figures shown[2]; /* by the last metrics */
    int *predecessors;             /* sockets to relays that only end their last streams
                                    * (relay/manager/predecessor.h)
                                    */
    size_t n_predecessors;
};

/* manager.c; under the lock, or while nobody else can call. */
void manager_add(struct relay_manager *m, struct relay_group *g);
void manager_name_instance(struct relay_manager *m);
/* manager_handover.c */
void manager_predecessors_done(struct relay_manager *m);
/* What was replaced or removed here must not live on in a predecessor. */
void manager_predecessors_end(struct relay_manager *m, enum relay_role role, const char *key);
