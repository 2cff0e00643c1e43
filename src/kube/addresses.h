/* Who has which address: one Lease per address, in one namespace for the whole site.
 *
 * The name of a claim is made from its address, so the API server itself sees to it that an address
 * is taken only once; the holder is who took it. A claim is made and removed, never changed, and
 * roles let a node make and remove only its own. It goes with its owner, if it has one. */
#pragma once

#include "api/nad.h"
#include "kube/client.h"

struct kube_addresses {
    struct kube_list leases;
    struct api_nad_claim *claims; /* holders point into `leases` */
    size_t n;
};

/* All that are taken. */
int kube_addresses_list(struct kube_client *client, struct kube_addresses *ret,
                        struct ferry_error *err);
void kube_addresses_done(struct kube_addresses *a);
#define kube_cleanup_addresses ferry_cleanup(kube_addresses_done)

/* CONFLICT when somebody has it. `owner` may be NULL; it must be cluster-scoped. */
int kube_address_take(struct kube_client *client, const struct api_ip *ip, const char *holder,
                      const struct api_object *owner, struct ferry_error *err);
int kube_address_release(struct kube_client *client, const struct api_ip *ip,
                         struct ferry_error *err);
/* One address out of each pool for `holder`: those that it has, and free ones for the rest, which
 * are taken. `ret` has room for nad->n_pools. RETRY when a pool has no free address. */
int kube_addresses_hold(struct kube_client *client, const struct api_nad *nad, const char *holder,
                        const struct api_object *owner, struct api_ip_net *ret,
                        struct ferry_error *err);
/* Gives back what `holder` has beyond `keep`. */
int kube_addresses_trim(struct kube_client *client, const char *holder,
                        const struct api_ip_net *keep, size_t n_keep, struct ferry_error *err);
