/* What a pod asks of nodes and of other pods, held against one of them. Pure. */
#pragma once

#include "api/object.h"

/* Every node has a host name, labelled or not. NULL = no such label. */
const char *schedule_node_label(const struct api_node *node, const char *key);

bool schedule_selects(const struct api_label_selector *s, const struct api_map *labels);
/* One term of several must hold; none at all hold everywhere. */
bool schedule_terms_hold(const struct api_node_term *terms, size_t n, const struct api_node *node);
bool schedule_term_holds(const struct api_node_term *term, const struct api_node *node);
/* nodeSelector and required node affinity. */
bool schedule_wants_node(const struct api_pod *pod, const struct api_node *node);
/* False when a taint keeps the pod off; `soft` counts those that only would rather not have it. */
bool schedule_tolerates(const struct api_pod *pod, const struct api_node *node, size_t *soft);
/* Whether `other` is one that the term of `pod` speaks of. */
bool schedule_term_is_about(const struct api_pod_term *term, const struct api_pod *pod,
                            const struct api_pod *other);
/* Rules that cannot be judged here; they are not ignored. */
bool schedule_is_unknown(const struct api_pod *pod);
