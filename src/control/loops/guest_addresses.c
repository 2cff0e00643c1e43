#include "control/loops/guest_addresses.h"

#include <string.h>

#include "api/guest_nic.h"
#include "api/json.h"
#include "api/wire/wire_addresses.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/log.h"
#include "base/str.h"
#include "control/plan/plan.h"
#include "kube/addresses.h"

#define HOLDER "vmi:"

static char *holder_of(const char *ns, const char *name, const char *interface)
{
    return ferry_asprintf(HOLDER "%s/%s/%s", ns, name, interface);
}

static int definition(struct cluster *c, const char *network, const char *ns, struct api_nad *ret,
                      struct ferry_error *err)
{
    ferry_cleanup_free char *in = NULL, *name = NULL;

    api_guest_network(network, ns, &in, &name);
    api_cleanup_object struct api_object *o = kube_informer_get(c->attachments, in, name);
    if (!o) {
        return ferry_fail(err, FERRY_RETRY, "there is no NetworkAttachmentDefinition %s/%s", in,
                          name);
    }
    int rc = api_nad_parse(api_json_str(o->root, "/spec/config"), ret, err);
    return rc < 0 ? ferry_wrap(err, "NetworkAttachmentDefinition %s/%s", in, name) : 0;
}

static int give_one(struct cluster *c, const struct api_object *vmi,
                    const struct api_guest_nic *nic, struct wire_interface *ret,
                    struct ferry_error *err)
{
    const char *ns = vmi->meta->namespace_;
    ferry_cleanup_free char *holder = holder_of(ns, vmi->meta->name, nic->name);
    struct api_nad nad;
    int rc = definition(c, nic->network, ns, &nad, err);

    rc = rc < 0 ? rc : kube_addresses_hold(c->client, &nad, holder, NULL, ret->nets, err);
    if (rc == 0) {
        ret->name = nic->name;
        ret->n = nad.n_pools;
    }
    return rc;
}

static int write_down(struct cluster *c, const struct api_object *vmi, const char *json,
                      struct ferry_error *err)
{
    struct api_patch *p = api_patch_new();

    api_patch_test_str(p, "/metadata/uid", vmi->meta->uid);
    plan_set_annotation(p, vmi, ANNOTATION_ADDRESSES, json);
    ferry_cleanup_free char *body = api_patch_take(p);
    return kube_client_patch(c->client, kube_ref_of(vmi), KUBE_PATCH_JSON, body, NULL, err);
}

int guest_addresses_give(struct cluster *c, const struct api_object *vmi, struct ferry_error *err)
{
    struct api_guest_nic nics[API_GUEST_NICS];
    size_t n = api_guest_nics(&vmi->u.vmi, nics);
    struct wire_addresses given = {0};

    if (n == 0 || vmi->meta->deleted_ms || wire_vmi_is_over(&vmi->u.vmi) ||
        api_map_get(&vmi->meta->annotations, ANNOTATION_ADDRESSES)) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (nics[i].network && give_one(c, vmi, &nics[i], &given.list[given.n], err) < 0) {
            kube_record(c->writer.recorder, vmi, KUBE_EVENT_WARNING, "FailedNetwork", "%s",
                        err->msg);
            return ferry_wrap(err, "interface %s", nics[i].name);
        }
        given.n += nics[i].network != NULL;
    }
    if (given.n == 0) {
        return 0;
    }
    ferry_cleanup_free char *json = wire_addresses_text(&given);
    int rc = write_down(c, vmi, json, err);
    return rc < 0 ? rc : 1;
}

/* Whether nobody is there any more who has what `holder` names. */
static bool is_left(struct cluster *c, const char *holder)
{
    const char *key = holder && ferry_str_starts(holder, HOLDER) ? holder + strlen(HOLDER) : NULL;
    const char *slash = key ? strchr(key, '/') : NULL, *end = slash ? strchr(slash + 1, '/') : NULL;

    if (!end) {
        return false;
    }
    ferry_cleanup_free char *ns = ferry_strndup(key, (size_t)(slash - key));
    ferry_cleanup_free char *name = ferry_strndup(slash + 1, (size_t)(end - slash - 1));
    api_cleanup_object struct api_object *vmi = kube_informer_get(c->vmis, ns, name);
    return !vmi;
}

int guest_addresses_free(struct cluster *c, const char *ns, const char *name,
                         struct ferry_error *err)
{
    kube_cleanup_snapshot struct kube_snapshot networks = kube_informer_list(c->attachments);
    kube_cleanup_addresses struct kube_addresses all = {0};
    int rc = networks.n ? kube_addresses_list(c->client, &all, err) : 0;

    for (size_t i = 0; rc == 0 && i < all.n; i++) {
        if (is_left(c, all.claims[i].holder)) {
            rc = kube_address_release(c->client, &all.claims[i].ip, err);
        }
    }
    return rc < 0 ? ferry_wrap(err, "freeing the addresses of %s/%s", ns, name) : 0;
}
