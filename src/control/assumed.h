/* Pods that were given a node and do not show it in the cache yet: the next choice counts them
 * there. An entry is there from the choice until the cache shows the node, the pod is gone, or
 * binding it failed. Any thread. */
#pragma once

#include <stdbool.h>

#include "api/object.h"

struct assumed;
struct assumed *assumed_new(void);
void assumed_free(struct assumed *a); /* takes NULL */

/* References the pod; one that is there stays as it is. */
void assumed_put(struct assumed *a, const struct api_object *pod, const char *node);
void assumed_drop(struct assumed *a, const char *uid);
bool assumed_has(struct assumed *a, const char *uid);
/* The pod, referenced, with the name of its node, owned by the caller; NULL = there is no such. */
struct api_object *assumed_get(struct assumed *a, const char *uid, char **ret_node);
/* Forgets all but those of these pods that have no node. */
void assumed_settle(struct assumed *a, const struct api_object *const *pods, size_t n);
