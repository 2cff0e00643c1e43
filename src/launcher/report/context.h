/* What the parts of one launcher share. Filled at the start, constant afterwards; what it points to
 * guards itself. */
#pragma once

#include <stdatomic.h>

#include "launcher/domain/domain_xml.h"
#include "launcher/libvirt/virt.h"
#include "launcher/report/events.h"
#include "launcher/report/state.h"

struct gate;
struct qmp_session;

struct context {
    const char *namespace_, *name, *uid; /* of the VMI that this launcher is for */
    const char *migration_dir;           /* sockets of moves */
    const char *libvirt_socket;          /* of our libvirtd, as the pod sees it; NULL = none */
    const char *control_socket;          /* where a move's source reaches it, through the filter */
    bool system;                         /* libvirt is qemu:///system, else session */
    const char *record_dir;
    const char *devices_path; /* the file of unplug.h */
    struct domain_xml_options domain;
    struct virt *virt;
    struct qmp_session *qmp;
    struct gate *gate;
    atomic_bool *libvirtd_hangs; /* set it to have our libvirtd killed and started again */
    int kills_fd;                /* counts what the kernel kills in this pod for memory, or -1 */
    bool gated;                  /* libvirtd asks the gate; else nothing is known by it */
    struct state *state;
    struct events *events;
};

/* Publishes the current migration: an event of type "migration". */
void context_publish_migration(const struct context *c, const struct launcher_sample *sample);
/* Class INVALID unless `vmi` is the one that this launcher is for. */
int context_check_vmi(const struct context *c, const struct api_vmi *vmi, struct ferry_error *err);
/* The guest's domain as it is told (guest_note.h). */
int context_view(const struct context *c, struct view *ret, struct ferry_error *err);
/* How often the kernel has killed something in this pod for its memory; 0 where that is not known.
 */
int64_t context_oom_kills(const struct context *c);
/* Its domain XML, and that the files it names are here: what fails now would fail when the guest
 * starts, in words that say less. `*ret_xml` is owned by the caller. */
int context_domain(const struct context *c, const struct api_vmi *vmi, char **ret_xml,
                   struct ferry_error *err);
