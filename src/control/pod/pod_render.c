#include "control/pod/pod_render.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_networks.h"
#include "api/wire/wire_user.h"
#include "base/count.h"
#include "base/str.h"
#include "control/pod/pod_parts.h"
#include "json/doc.h"

enum {
    SUFFIX = 5,
    GRACE_MARGIN_S = 15, /* for the launcher after the guest's own time */
};

/* FNV-1a over the UID, written in the alphabet that Kubernetes uses for generated names. */
static void make_suffix(const char *uid, char ret[SUFFIX + 1])
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    uint64_t h = UINT64_C(14695981039346656037);

    for (const char *c = uid; *c; c++) {
        h = (h ^ (unsigned char)*c) * UINT64_C(1099511628211);
    }
    for (int i = 0; i < SUFFIX; i++) {
        ret[i] = alphabet[h % (sizeof(alphabet) - 1)];
        h /= sizeof(alphabet) - 1;
    }
    ret[SUFFIX] = '\0';
}

char *pod_name(const struct api_vmi *vmi, const struct api_migration *migration)
{
    char suffix[SUFFIX + 1];

    make_suffix(migration ? migration->meta.uid : vmi->meta.uid, suffix);
    return ferry_asprintf(LABEL_APP_LAUNCHER "-%s-%s", vmi->meta.name, suffix);
}

/* ---- pieces ----------------------------------------------------------------------------------
 */

yyjson_mut_val *pod_put_obj(struct pod_draft *d, yyjson_mut_val *to, const char *key)
{
    return yyjson_mut_obj_add_obj(d->doc, to, key);
}

yyjson_mut_val *pod_put_arr(struct pod_draft *d, yyjson_mut_val *to, const char *key)
{
    return yyjson_mut_obj_add_arr(d->doc, to, key);
}

void pod_put_str(struct pod_draft *d, yyjson_mut_val *to, const char *key, const char *value)
{
    yyjson_mut_obj_put(to, yyjson_mut_strcpy(d->doc, key), yyjson_mut_strcpy(d->doc, value));
}

yyjson_mut_val *pod_member(struct pod_draft *d, yyjson_mut_val *to, const char *key)
{
    yyjson_mut_val *v = yyjson_mut_obj_get(to, key);

    return v ? v : pod_put_obj(d, to, key);
}

/* ---- metadata --------------------------------------------------------------------------------
 */

static void render_labels(struct pod_draft *d, yyjson_mut_val *meta)
{
    yyjson_mut_val *labels = pod_put_obj(d, meta, "labels");
    const struct api_map *own = &d->vmi->meta.labels;

    for (size_t i = 0; i < own->n; i++) {
        if (!ferry_str_starts(own->items[i].key, PREFIX_KUBEVIRT)) {
            pod_put_str(d, labels, own->items[i].key, own->items[i].value);
        }
    }
    pod_put_str(d, labels, LABEL_APP, LABEL_APP_LAUNCHER);
    pod_put_str(d, labels, LABEL_CREATED_BY, d->vmi->meta.uid);
    pod_put_str(d, labels, LABEL_VM_NAME, d->vmi->meta.name);
    if (d->r->migration) {
        pod_put_str(d, labels, LABEL_MIGRATION_JOB_UID, d->r->migration->meta.uid);
    }
}

/* What ferry-pods attaches the taps of the guest's interfaces to. */
static void render_networks(struct pod_draft *d, yyjson_mut_val *annotations)
{
    ferry_cleanup_free char *text = wire_networks_text(d->vmi);

    if (text) {
        pod_put_str(d, annotations, ANNOTATION_NETWORKS, text);
    }
}

static void render_annotations(struct pod_draft *d, yyjson_mut_val *meta)
{
    yyjson_mut_val *annotations = pod_put_obj(d, meta, "annotations");
    char overhead[32];

    snprintf(overhead, sizeof(overhead), "%" PRId64, pod_memory_overhead(d->vmi));
    pod_put_str(d, annotations, ANNOTATION_DOMAIN, d->vmi->meta.name);
    pod_put_str(d, annotations, ANNOTATION_TRANSPORT_UNIX, "true");
    pod_put_str(d, annotations, ANNOTATION_MEMORY_OVERHEAD, overhead);
    pod_put_str(d, annotations, ANNOTATION_EVICT_ONLY, "");
    if (d->r->migration) {
        pod_put_str(d, annotations, ANNOTATION_MIGRATION_JOB_NAME, d->r->migration->meta.name);
    }
    render_networks(d, annotations);
}

static void render_owner(struct pod_draft *d, yyjson_mut_val *meta)
{
    yyjson_mut_val *owner = yyjson_mut_arr_add_obj(d->doc, pod_put_arr(d, meta, "ownerReferences"));

    pod_put_str(d, owner, "apiVersion", "kubevirt.io/v1");
    pod_put_str(d, owner, "kind", "VirtualMachineInstance");
    pod_put_str(d, owner, "name", d->vmi->meta.name);
    pod_put_str(d, owner, "uid", d->vmi->meta.uid);
    yyjson_mut_obj_add_bool(d->doc, owner, "controller", true);
    yyjson_mut_obj_add_bool(d->doc, owner, "blockOwnerDeletion", true);
}

static void render_metadata(struct pod_draft *d, yyjson_mut_val *root)
{
    yyjson_mut_val *meta = pod_put_obj(d, root, "metadata");
    ferry_cleanup_free char *name = pod_name(d->vmi, d->r->migration);

    pod_put_str(d, meta, "name", name);
    pod_put_str(d, meta, "namespace", d->vmi->meta.namespace_);
    render_labels(d, meta);
    render_annotations(d, meta);
    render_owner(d, meta);
}

/* A guest keeps what it was started with, whatever anybody wrote meanwhile: a target pod is like
 * its source. */
bool pod_is_accelerated(const struct pod_request *r)
{
    if (r->source_pod) {
        return wire_accelerator_of_pod(r->source_pod) == ACCELERATOR_KVM;
    }
    enum wire_accelerator given = r->accelerator != ACCELERATOR_NONE
                                      ? r->accelerator
                                      : wire_accelerator_of_vmi(&r->vmi->meta);
    return given == ACCELERATOR_KVM;
}

static yyjson_mut_val *render_container(struct pod_draft *d, yyjson_mut_val *spec)
{
    yyjson_mut_val *c = yyjson_mut_arr_add_obj(d->doc, pod_put_arr(d, spec, "containers"));
    const struct api_meta *m = &d->vmi->meta;
    const char *args[] = {"--namespace", m->namespace_, "--name", m->name, "--uid", m->uid};

    pod_put_str(d, c, "name", "compute");
    pod_put_str(d, c, "image", d->r->settings->launcher_image);
    yyjson_mut_arr_add_str(d->doc, pod_put_arr(d, c, "command"), "ferry-launcher");
    yyjson_mut_val *list = pod_put_arr(d, c, "args");
    for (size_t i = 0; i < FERRY_COUNT(args); i++) {
        yyjson_mut_arr_add_strcpy(d->doc, list, args[i]);
    }
    if (pod_is_accelerated(d->r)) { /* emulation is what a launcher does unless told */
        yyjson_mut_arr_add_str(d->doc, list, "--accelerator");
        yyjson_mut_arr_add_str(d->doc, list, wire_accelerator_text(ACCELERATOR_KVM));
    }
    pod_render_resources(d, c);
    return c;
}

/* The guest's own user, the same on all nodes. A VMI of before there were any has none, until it
 * ends: its pods run as the nodes' common one. */
static void render_user(struct pod_draft *d, yyjson_mut_val *spec)
{
    int64_t user = d->r->user ? d->r->user : d->vmi->has_runtime_user ? d->vmi->runtime_user : 0;

    if (wire_user_is_guest(user)) {
        yyjson_mut_val *context = pod_put_obj(d, spec, "securityContext");

        yyjson_mut_obj_add_int(d->doc, context, "runAsUser", user);
        yyjson_mut_obj_add_int(d->doc, context, "runAsGroup", user);
        yyjson_mut_obj_add_bool(d->doc, context, "runAsNonRoot", true);
    }
}

char *pod_render(const struct pod_request *request)
{
    struct pod_draft d = {.doc = json_doc_new(),
                          .r = request,
                          .vmi = request->vmi,
                          .machine = &request->vmi->machine};
    yyjson_mut_val *root = json_doc_object(d.doc);

    pod_put_str(&d, root, "apiVersion", "v1");
    pod_put_str(&d, root, "kind", "Pod");
    render_metadata(&d, root);
    yyjson_mut_val *spec = pod_put_obj(&d, root, "spec");
    pod_put_str(&d, spec, "restartPolicy", "Never");
    yyjson_mut_obj_add_int(d.doc, spec, "terminationGracePeriodSeconds",
                           d.vmi->grace_s + GRACE_MARGIN_S);
    yyjson_mut_obj_add_bool(d.doc, spec, "automountServiceAccountToken", false);
    render_user(&d, spec);
    yyjson_mut_val *container = render_container(&d, spec);
    pod_render_placement(&d, spec);
    pod_render_volumes(&d, spec, container);
    return json_doc_take(d.doc);
}
