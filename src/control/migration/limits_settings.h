/* The limits that the KubeVirt object sets. Pure. */
#pragma once

#include "api/object.h"
#include "control/migration/migration_limits.h"

/* Over those that are in `*limits`. Ferry's own are its annotations
 * ferry.io/parallelInboundMigrationsPerNode and ferry.io/migrationBandwidthPerNode. */
int limits_settings(const struct api_object *kubevirt, struct migration_limits *limits,
                    struct ferry_error *err);
