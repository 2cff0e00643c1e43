/* Being the one who acts: leader election by a Lease object, as Kubernetes components do it.
 *
 * The holder renews the Lease; others wait until it has not changed for its duration, measured by
 * their own clock, and take it by a guarded patch. A holder that cannot renew in two thirds of that
 * time no longer counts itself as such, before anybody else can. A holder whose process is gone is
 * not waited for when that can be told: an identity names host, boot, pid namespace and process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client.h"

struct kube_lease;

struct kube_lease_config {
    struct kube_client *client; /* must outlive the lease */
    const char *ns, *name;      /* of the Lease object */
    bool (*stop)(void);         /* polled while waiting; true = give up with CANCELLED */
};

/* Waits until the lease is held, then keeps it with a thread. Safe from one thread. */
int kube_lease_hold(const struct kube_lease_config *cfg, struct kube_lease **ret,
                    struct ferry_error *err);
bool kube_lease_held(struct kube_lease *l);
/* Gives it back at once so that another need not wait; takes NULL. */
void kube_lease_release(struct kube_lease *l);

/* ---- the decision, pure ----------------------------------------------------------------------
 */

enum kube_lease_step {
    KUBE_LEASE_CREATE, /* there is none */
    KUBE_LEASE_TAKE,   /* free, expired, or its holder is gone */
    KUBE_LEASE_RENEW,  /* it is ours */
    KUBE_LEASE_WAIT,   /* another's */
};

struct kube_lease_view {
    const struct api_lease *lease; /* NULL = none */
    const char *self;
    int64_t unchanged_ms; /* since the caller saw it change, by the caller's clock */
    bool holder_is_gone;
};
enum kube_lease_step kube_lease_decide(const struct kube_lease_view *v);

/* This process as a holder: "HOST_BOOT_NAMESPACE_PID_START"; owned by the caller. */
char *kube_lease_identity(void);
/* True only when the identity is one of this host and its process does not exist any more. */
bool kube_lease_is_gone(const char *identity);
