/* Who is where: what each node has in use, and which of its domains have pods that a rule speaks
 * of. What the files of schedule_pick() share; not for others.
 *
 * A rule is held against the pods that have one of the labels that it names, not against all:
 * `labels` knows the pods by those keys that any rule has asked for so far, and `apart_by` what
 * pods ask of others by a label of those. */
#pragma once

#include <stdint.h>

#include "control/schedule/label_index.h"
#include "control/schedule/schedule_pick.h"

struct schedule_node {
    struct api_object *node;
    size_t at;                                                           /* among the nodes */
    int64_t cpu_milli, memory_bytes, hugepages_2mi, hugepages_1gi, pods; /* in use */
    struct schedule_entry *first;                                        /* of its pods */
};

/* A term by which a pod keeps others off. */
struct schedule_apart {
    const struct schedule_entry *pod;
    const struct api_pod_term *term;
    struct label_member by;
};

/* A pod. */
struct schedule_entry {
    struct api_object *pod;
    char *assumed;                      /* the node that was chosen; NULL = it says itself */
    struct schedule_node *home;         /* NULL = none that counts */
    struct schedule_entry *prev, *next; /* of the same node; of the strays */
    bool stray;                         /* its node is not known (yet) */
    struct schedule_label *labels;      /* those whose keys are known */
    struct schedule_apart *apart;
    size_t n_apart;
};

struct schedule_label {
    struct schedule_label *next; /* of the same pod */
    struct label_member by;
};

/* Which nodes share a value of a label. */
struct schedule_topology {
    char *key;
    size_t *domain; /* of each node; SIZE_MAX = it has no such label */
    size_t n_domains;
    size_t made_for; /* the index' `shape` then */
};

struct schedule_index {
    struct schedule_node **nodes; /* by name */
    size_t n_nodes, cap_nodes;
    size_t shape; /* changes with the set of nodes and their labels */
    struct schedule_topology *topologies;
    size_t n_topologies;

    void *pods; /* tsearch tree of entries, by UID */
    struct schedule_entry *strays;

    struct label_index *labels; /* pods that count, by their labels of these keys */
    char **keys;
    size_t n_keys;

    struct label_index *apart_by; /* terms, by a label that they name; by "" when they name none */
};

static inline const struct api_node *schedule_node_at(const struct schedule_view *v, size_t i)
{
    return &v->index->nodes[i]->node->u.node;
}

/* Pods are found by labels of this key from now on. False when there are too many such. */
bool schedule_index_learn(struct schedule_index *x, const char *key);

/* Valid until a node changes or another topology is asked for. */
const struct schedule_topology *schedule_topology(struct schedule_index *x, const char *key);

/* How many of the pods that hold are in the node's domain of `topology`, by node; owned by the
 * caller. Nodes without that label have none. `selector` is part of what `about` asks. */
struct schedule_question {
    const char *topology;
    const struct api_label_selector *selector;
    bool (*about)(const void *rule, const struct api_pod *other);
    const void *rule;
};
size_t *schedule_count(const struct schedule_view *v, const struct schedule_question *q);

/* Calls `each` for the terms of others that may speak of the view's pod. */
void schedule_each_apart(const struct schedule_view *v,
                         void (*each)(void *ctx, const struct schedule_apart *a), void *ctx);

/* May the pod be on node i, as far as other pods go? NULL, or the reason why not (static). */
struct schedule_rules;
struct schedule_rules *schedule_rules_make(const struct schedule_view *v);
void schedule_rules_free(struct schedule_rules *r);
const char *schedule_rules_check(const struct schedule_rules *r, size_t node);
/* What speaks for a node: sum of the weights of what is preferred. */
int64_t schedule_rules_score(const struct schedule_rules *r, size_t node);
