/* The connection to libvirtd, and what it tells us.
 *
 * One domain is looked at. Events are queued here and pulled by whoever needs them (no callbacks
 * leave this file). All functions may be called from any thread, virt_open() from one only. */
#pragma once

#include <libvirt/libvirt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "launcher/libvirt/guest_event.h"
#include "launcher/libvirt/view.h"
#include "launcher/strategy/sample.h"

struct virt;

enum virt_event_type {
    VIRT_EVENT_OPENED,        /* connected (again): states may have changed unseen */
    VIRT_EVENT_CLOSED,        /* the connection is gone */
    VIRT_EVENT_LIFECYCLE,     /* the domain's state changed */
    VIRT_EVENT_ITERATION,     /* a new round of memory copying */
    VIRT_EVENT_JOB_COMPLETED, /* a migration is through; `completed` has its final figures */
    VIRT_EVENT_DEVICE,        /* the guest let go of a device, or refused to */
    VIRT_EVENT_GUEST,         /* `guest` happened to it */
    VIRT_EVENT_WAKE,          /* virt_wake() */
};

struct virt_event {
    uint64_t seq;
    enum virt_event_type type;
    int iteration;
    struct launcher_sample completed;
    struct guest_event guest;
};

/* Starts libvirt's event loop on a thread that lives as long as the process: call once. */
int virt_new(const char *uri, const char *domain_name, struct virt **ret, struct ferry_error *err);
/* Closes the connection and frees; takes NULL. */
void virt_free(struct virt *v);

/* Connects unless connected; waits for a second at most, then class RETRY while it is tried on. */
int virt_open(struct virt *v, struct ferry_error *err);

/* The domain; class NOT_FOUND when there is none, RETRY when libvirtd is away. Free with
 * virDomainFree(). */
virDomainPtr virt_domain(struct virt *v, struct ferry_error *err);
/* The connection, referenced: virConnectClose() it. */
virConnectPtr virt_connection(struct virt *v, struct ferry_error *err);

/* QEMU's version as libvirt writes it (10001000 is 10.1). Asked for once per connection: libvirt
 * takes most of a second for it, so let somebody ask before it is needed. */
int virt_qemu_version(struct virt *v, unsigned long *ret, struct ferry_error *err);

/* State of the domain; an absent one is view_none(), not an error. */
int virt_view(struct virt *v, struct view *ret, struct ferry_error *err);
/* Job statistics of the domain; `completed`: of the last finished job. */
int virt_sample(struct virt *v, bool completed, struct launcher_sample *ret,
                struct ferry_error *err);
/* There is no job on the domain, and libvirt said so. */
bool virt_job_over(struct virt *v);

/* The first event after `after`; waits for one until `deadline_ns`. False when none came. */
bool virt_next_event(struct virt *v, uint64_t after, int64_t deadline_ns, struct virt_event *ret);
uint64_t virt_last_event(struct virt *v);
void virt_wake(struct virt *v);

/* Fills `err` from libvirt's last error on this thread; returns the negative class. */
int virt_fail(struct ferry_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline void virt_domain_freep(virDomainPtr *d)
{
    if (*d) {
        virDomainFree(*d);
    }
}
#define virt_cleanup_domain ferry_cleanup(virt_domain_freep)
