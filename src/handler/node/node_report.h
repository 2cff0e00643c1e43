/* What this node says about itself: pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/object.h"
#include "handler/node/node_cpu.h"

struct node_facts {
    const char *name, *address;
    int64_t cpus, memory_bytes, pods;
    const char *kernel, *os_image, *version;
    const char *migration_address; /* "" = none that could be used */
    /* The definition that it is from, and what keeps it from being used; "" = none. */
    const char *migration_network, *migration_trouble;
    bool kvm;                   /* hardware runs guests here */
    int api_port;               /* 0 = the node API is not served */
    const struct node_cpu *cpu; /* NULL = not known yet: what the node says stays */
};

/* Manifest to create the Node with; JSON, the caller's. */
char *node_report_manifest(const struct node_facts *f);
/* Labels and heartbeat. Guarded by the object's UID. */
struct api_patch *node_report_metadata(const struct api_object *node, const struct node_facts *f,
                                       int64_t now_ms);
/* PRETTY_NAME of the text of os-release, or "Linux"; the caller's. */
char *node_report_os_image(const char *os_release);
/* Whether the node has no kubelet but this agent. */
bool node_report_is_ours(const struct api_object *node);
/* Addresses, resources and the Ready condition; NULL on a node whose status belongs to a kubelet.
 * Guarded by the object's resourceVersion. */
struct api_patch *node_report_status(const struct api_object *node, const struct node_facts *f,
                                     int64_t now_ms);
