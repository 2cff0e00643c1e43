#include "kube/addresses.h"

#include <stdlib.h>
#include <string.h>

#include "api/address_name.h"
#include "api/wire/wire_keys.h"
#include "base/log.h"
#include "base/str.h"

enum { TRIES = 32 };

int kube_addresses_list(struct kube_client *client, struct kube_addresses *ret,
                        struct ferry_error *err)
{
    const struct kube_list_options options = {.label_selector = LABEL_ADDRESS};
    int rc = kube_client_list(client, kube_ref(API_KIND_LEASE, API_ADDRESS_NAMESPACE, NULL),
                              &options, &ret->leases, err);

    if (rc < 0) {
        return rc;
    }
    ret->claims = ferry_xcalloc(ret->leases.n + 1, sizeof(*ret->claims));
    for (size_t i = 0; i < ret->leases.n; i++) {
        const struct api_object *o = ret->leases.items[i];
        struct api_nad_claim *c = &ret->claims[ret->n];

        if (api_address_of_name(o->meta->name, &c->ip)) {
            c->holder = o->u.lease.holder;
            ret->n++;
        }
    }
    return 0;
}

void kube_addresses_done(struct kube_addresses *a)
{
    kube_list_done(&a->leases);
    free(a->claims);
    *a = (struct kube_addresses){0};
}

static struct kube_ref ref_of(const char *name)
{
    return kube_ref(API_KIND_LEASE, API_ADDRESS_NAMESPACE, name);
}

int kube_address_take(struct kube_client *client, const struct api_ip *ip, const char *holder,
                      const struct api_object *owner, struct ferry_error *err)
{
    char name[API_ADDRESS_NAME];
    ferry_cleanup_free char *body = api_address_manifest(api_address_name(ip, name), holder, owner);

    return kube_client_create(client, ref_of(NULL), body, NULL, err);
}

int kube_address_release(struct kube_client *client, const struct api_ip *ip,
                         struct ferry_error *err)
{
    char name[API_ADDRESS_NAME];
    const struct kube_delete_options options = {0};
    int rc = kube_client_delete(client, ref_of(api_address_name(ip, name)), &options, err);

    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}

/* CONFLICT when somebody was faster. */
static int hold_one(struct kube_client *client, const struct api_nad_pool *pool, const char *holder,
                    const struct api_object *owner, struct api_ip_net *ret, struct ferry_error *err)
{
    kube_cleanup_addresses struct kube_addresses all = {0};
    char text[API_IP_TEXT];
    bool held;
    int rc = kube_addresses_list(client, &all, err);

    if (rc < 0) {
        return rc;
    }
    if (!api_nad_pick(pool, all.claims, all.n, holder, ret, &held)) {
        return ferry_fail(err, FERRY_RETRY, "no address of %s is free",
                          api_ip_net_text(&pool->ranges[0].net, text));
    }
    if (held) {
        return 0;
    }
    rc = kube_address_take(client, &ret->ip, holder, owner, err);
    if (rc == 0) {
        ferry_info("address taken", F_STR("address", api_ip_text(&ret->ip, text)),
                   F_STR("holder", holder));
    }
    return rc;
}

int kube_addresses_hold(struct kube_client *client, const struct api_nad *nad, const char *holder,
                        const struct api_object *owner, struct api_ip_net *ret,
                        struct ferry_error *err)
{
    for (size_t i = 0; i < nad->n_pools; i++) {
        int rc = -FERRY_CONFLICT;

        for (int k = 0; k < TRIES && rc == -FERRY_CONFLICT; k++) {
            rc = hold_one(client, &nad->pools[i], holder, owner, &ret[i], err);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static bool kept(const struct api_ip *ip, const struct api_ip_net *keep, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (api_ip_compare(ip, &keep[i].ip) == 0) {
            return true;
        }
    }
    return false;
}

int kube_addresses_trim(struct kube_client *client, const char *holder,
                        const struct api_ip_net *keep, size_t n_keep, struct ferry_error *err)
{
    kube_cleanup_addresses struct kube_addresses all = {0};
    int rc = kube_addresses_list(client, &all, err);

    for (size_t i = 0; rc == 0 && i < all.n; i++) {
        if (ferry_streq(all.claims[i].holder, holder) && !kept(&all.claims[i].ip, keep, n_keep)) {
            rc = kube_address_release(client, &all.claims[i].ip, err);
        }
    }
    return rc;
}
