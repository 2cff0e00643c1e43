/* Who is where: what each node has in use, and which of its domains have pods that a rule speaks
 * of. What the files of schedule_pick() share; not for others.
 *
 * A rule is held against the pods that have one of the labels that it names, not against all:
 * `labels` knows the pods by those keys that any rule has asked for so far, and `apart` what pods
 * ask of others by a label of those. */
#pragma once

#include "control/label_index.h"
#include "control/schedule_pick.h"

struct schedule_use {
    int64_t cpu_milli, memory_bytes, hugepages_2mi, hugepages_1gi, pods;
    size_t first; /* of its pods, SIZE_MAX = it has none; the others follow by `next` */
};

/* A term by which a pod keeps others off. */
struct schedule_apart {
    size_t pod;
    const struct api_pod_term *term;
};

struct schedule_index {
    size_t *by_name; /* indices of nodes, by their names */
    size_t n_nodes;
    size_t *home; /* of each pod: index of its node; SIZE_MAX = none that counts */
    size_t *next; /* of each pod: the next on its node, or SIZE_MAX */
    size_t n_pods, cap;
    struct schedule_use *use; /* of each node */

    struct label_index *labels; /* pods that count, by their labels of these keys */
    char **keys;
    size_t n_keys;

    struct schedule_apart *apart;
    size_t n_apart;
    struct label_index *apart_by; /* of `apart`, by a label that the term names */
    size_t *apart_any;            /* of `apart`, those that name none */
    size_t n_apart_any;
};

/* How many of the pods that hold are in the node's domain of `topology`, by node; owned by the
 * caller. Nodes without that label have none. `selector` is part of what `about` asks. The view has
 * its index. */
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
