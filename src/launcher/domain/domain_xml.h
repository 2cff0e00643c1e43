/* A VMI object to libvirt's domain XML. Pure: values in, text out.
 *
 * The same VMI and disks give the same text on every node. The machine type is what the VMI's
 * status has: the controller chose one that all nodes have. Where it could not, an alias stays in
 * the text, and the QEMU that starts the guest decides; a guest that moves keeps what it has,
 * because its source sends the type along. Parts of the object that change what the guest sees and
 * that Ferry does not support are refused by name; nothing is dropped silently. */
#pragma once

#include <stdbool.h>

#include "api/kinds.h"
#include "base/error.h"
#include "launcher/domain/disks.h"

struct domain_xml_options {
    bool kvm;                /* domain type kvm; else emulation */
    const char *emulator;    /* QEMU's path */
    const char *guest_dir;   /* where kernelBoot's "ferry.io/builtin" finds its files */
    const char *disk_dir;    /* images: VOLUME/disk.img below */
    const char *console_dir; /* serial.sock and serial.log go here */
    /* "NAME=VALUE"..., NULL: which devices of the host were given to the pod, as KubeVirt's device
     * plugins say it; see domain_devices.h. NULL = none */
    const char *const *environment;
    const char *qmp_path;         /* monitors of QEMU beside libvirt's: for single calls, */
    const char *qmp_session_path; /* and for the connection that is kept (qmp_session.h) */
};

/* `disks`: those of the VMI. `*ret_xml` is owned by the caller. */
int domain_xml(const struct api_vmi *vmi, const struct disks *disks,
               const struct domain_xml_options *opt, char **ret_xml, struct ferry_error *err);

/* Path of the guest's kernel; NULL when it boots otherwise. Owned by the caller. */
int domain_xml_kernel(const struct api_vmi *vmi, const struct domain_xml_options *opt, char **ret,
                      struct ferry_error *err);

/* "NAMESPACE_NAME", as KubeVirt names domains; owned by the caller. */
char *domain_xml_name(const char *namespace_, const char *name);
