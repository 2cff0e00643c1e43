/* Who is where: what each node has in use, and which of its domains have pods that a rule speaks
 * of. What the files of schedule_pick() share; not for others. */
#pragma once

#include "control/schedule_pick.h"

struct schedule_use {
    int64_t cpu_milli, memory_bytes, hugepages_2mi, hugepages_1gi, pods;
};

struct schedule_index {
    size_t *by_name; /* indices of nodes, by their names */
    size_t n_nodes;
    size_t *home; /* of each pod: index of its node; SIZE_MAX = none that counts */
    size_t n_pods, cap;
    struct schedule_use *use; /* of each node */
    size_t *apart;            /* indices of pods that keep others off */
    size_t n_apart;
};

/* How many of the pods that hold are in the node's domain of `topology`, by node; owned by the
 * caller. Nodes without that label have none. The view has its index. */
size_t *schedule_count(const struct schedule_view *v, const char *topology,
                       bool (*about)(const void *rule, const struct api_pod *other),
                       const void *rule);

/* May the pod be on node i, as far as other pods go? NULL, or the reason why not (static). */
struct schedule_rules;
struct schedule_rules *schedule_rules_make(const struct schedule_view *v);
void schedule_rules_free(struct schedule_rules *r);
const char *schedule_rules_check(const struct schedule_rules *r, size_t node);
/* What speaks for a node: sum of the weights of what is preferred. */
int64_t schedule_rules_score(const struct schedule_rules *r, size_t node);
