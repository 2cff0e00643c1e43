/* The Kubernetes and KubeVirt objects that Ferry reads, as C values.
 *
 * Decoded from JSON by tables (fields_*.c); strings, maps and raw values point into the JSON values
 * that the object keeps, so an object is valid as long as it is referenced and never changes:
 * decide functions read these structs and nothing else. Writes are patches, so fields that are not
 * here survive. */
#pragma once

#include "api/kinds_core.h"
#include "api/kinds_kubevirt.h"

enum api_kind {
    API_KIND_NONE, /* parsed, not decoded: only meta is set */
    API_KIND_NODE,
    API_KIND_POD,
    API_KIND_VMI,
    API_KIND_MIGRATION,
    API_KIND_LEASE,
    API_KIND_NAMESPACE,
    API_KIND_EVENT,
    API_KIND_CONFIG_MAP,
    API_KIND_SECRET,
    API_KIND_VOLUME,
    API_KIND_CLAIM,
    API_KIND_QUOTA,
    API_KIND_STORAGE_CLASS,
    API_KIND_STORAGE_PROFILE,
    API_KIND_NETWORK,
    API_KIND_VM,
    API_KIND_KUBEVIRT,
    API_KIND_POLICY,
    API_KIND_COUNT
};

/* One immutable object: its JSON and its decoded form. Reference-counted, any thread. Memory behind
 * the kind's own member of `u` is not there: never copy a whole object. */
struct api_object {
    enum api_kind kind;
    const yyjson_val *root; /* the JSON object */
    const struct api_meta *meta;
    /* Of a KubeVirt, policy: the first field that does not decode ("spec.x: must be ..."), and what
     * is behind it in the document is as if absent; else NULL. Other kinds do not parse then. */
    const char *invalid;
    union {
        struct api_meta bare;
        struct api_node node;
        struct api_pod pod;
        struct api_vmi vmi;
        struct api_migration migration;
        struct api_lease lease;
        struct api_namespace namespace_;
        struct api_event event;
        struct api_config_map config_map;
        struct api_secret secret;
        struct api_volume volume;
        struct api_claim claim;
        struct api_quota quota;
        struct api_storage_class storage_class;
        struct api_storage_profile storage_profile;
        struct api_network network;
        struct api_vm vm;
        struct api_kubevirt kubevirt;
        struct api_policy policy;
    } u;
};
