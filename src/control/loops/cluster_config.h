/* The KubeVirt object that is in force: the last one whose values can be used. Any thread. */
#pragma once

#include "control/loops/cluster.h"

struct cluster_config *cluster_config_new(void);
void cluster_config_free(struct cluster_config *c); /* takes NULL */

/* Looks at the cache again; called when a KubeVirt object changed. True when something else is in
 * force now. Says what is wrong in the log. */
bool cluster_config_refresh(struct cluster *c);

/* Referenced, or NULL; `settings` are the cluster's with the limits that are in force. */
struct api_object *cluster_config_get(struct cluster *c, struct migration_settings *ret_settings);
