/* What KubeVirt's webhooks hold the parts of a machine to: disks have volumes and volumes disks, no
 * two devices have the same place in the boot order, interfaces have networks and networks
 * interfaces, nothing is there twice. Pure; what it costs is bounded. */
#pragma once

#include "api/spec/vmi_findings.h"

/* The largest machine that a launcher makes. */
enum {
    VMI_CPUS_MAX = 255,
    VMI_DISKS_MAX = 16,
    VMI_HOST_DEVICES_MAX = 32,
    VMI_MEMORY_MIN = 1 << 20
};

/* `spec` of a VMI, whose fields are at `where`. `complete`: volumes without a disk have been given
 * one (vmi_defaults.h), and are not to be expected. */
void vmi_rules(const yyjson_val *spec, const char *where, bool complete, struct vmi_findings *ret);
/* Annotations that KubeVirt would act upon; `where` is that of metadata. */
void vmi_rules_annotations(const yyjson_val *metadata, const char *where, struct vmi_findings *ret);
/* Those of a VirtualMachine's own fields. */
void vmi_rules_vm(const yyjson_val *spec, struct vmi_findings *ret);
