#include "control/migration/limits_settings.h"

#include <yyjson.h>

#include "api/policy.h"
#include "api/wire/wire_keys.h"
#include "base/str.h"

static int annotated_limits(const struct api_object *kubevirt, struct migration_limits *l,
                            struct ferry_error *err)
{
    const char *inbound = api_map_get(&kubevirt->meta->annotations, ANNOTATION_INBOUND_LIMIT);
    const char *budget = api_map_get(&kubevirt->meta->annotations, ANNOTATION_BANDWIDTH_BUDGET);
    long long n = 0;

    if (inbound) {
        if (ferry_parse_int(inbound, 0, UINT32_MAX, &n, NULL) < 0) {
            return ferry_fail(err, FERRY_INVALID, "annotation %s of '%s' must be a number",
                              ANNOTATION_INBOUND_LIMIT, kubevirt->meta->name);
        }
        l->inbound_per_node = (unsigned)n;
    }
    int64_t bytes = 0;
    if (budget) {
        if (api_quantity(budget, 1, &bytes, NULL) < 0 || bytes < 0) {
            return ferry_fail(err, FERRY_INVALID, "annotation %s of '%s' must be a quantity",
                              ANNOTATION_BANDWIDTH_BUDGET, kubevirt->meta->name);
        }
        l->bandwidth_per_node = bytes;
    }
    return 0;
}

int limits_settings(const struct api_object *kubevirt, struct migration_limits *limits,
                    struct ferry_error *err)
{
    struct migration_limits l = *limits;
    const struct policy_sources alone = {.kubevirt = kubevirt};
    ferry_cleanup_free char *json = policy_resolve(&alone, NULL, err);

    if (!json) {
        return -FERRY_INVALID;
    }
    yyjson_val *config =
        kubevirt ? yyjson_ptr_get((yyjson_val *)kubevirt->root, POLICY_CONFIGURATION) : NULL;
    if (config) {
        l.cluster = (unsigned)api_json_int(config, "/parallelMigrationsPerCluster", l.cluster);
        l.outbound_per_node = (unsigned)api_json_int(config, "/parallelOutboundMigrationsPerNode",
                                                     l.outbound_per_node);
    }
    if (kubevirt && annotated_limits(kubevirt, &l, err) < 0) {
        return -FERRY_INVALID;
    }
    *limits = l;
    return 0;
}
