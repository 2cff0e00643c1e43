#include "control/pod_render.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/object.h"
#include "base/str.h"
#include "control/names.h"

#define MIB (INT64_C(1) << 20)

enum {
    SUFFIX = 5,
    GRACE_MARGIN_S = 15,      /* for the launcher after the guest's own time */
    CPU_MILLI_PER_VCPU = 100, /* KubeVirt's allocation ratio of 10 */
    OVERHEAD_BASE_MIB = 128,  /* launcher, libvirtd, QEMU without its guest */
    OVERHEAD_VCPU_MIB = 8,
    PAGE_TABLE_SHARE = 512,
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
    return ferry_asprintf("virt-launcher-%s-%s", vmi->meta.name, suffix);
}

int64_t pod_memory_overhead(const struct api_vmi *vmi)
{
    return OVERHEAD_BASE_MIB * MIB + OVERHEAD_VCPU_MIB * MIB * vmi->vcpus +
           vmi->memory_bytes / PAGE_TABLE_SHARE;
}

/* ---- pieces ----------------------------------------------------------------------------------
 */

struct render {
    yyjson_mut_doc *doc;
    const struct api_vmi *vmi;
    const struct api_migration *migration; /* or NULL */
    const struct pod_settings *settings;
};

static yyjson_mut_val *put_obj(struct render *r, yyjson_mut_val *to, const char *key)
{
    return yyjson_mut_obj_add_obj(r->doc, to, key);
}

static yyjson_mut_val *put_arr(struct render *r, yyjson_mut_val *to, const char *key)
{
    return yyjson_mut_obj_add_arr(r->doc, to, key);
}

static void put_str(struct render *r, yyjson_mut_val *to, const char *key, const char *value)
{
    yyjson_mut_obj_put(to, yyjson_mut_strcpy(r->doc, key), yyjson_mut_strcpy(r->doc, value));
}

static void render_labels(struct render *r, yyjson_mut_val *meta)
{
    yyjson_mut_val *labels = put_obj(r, meta, "labels");
    const struct api_map *own = &r->vmi->meta.labels;

    for (size_t i = 0; i < own->n; i++) {
        if (!ferry_str_starts(own->items[i].key, "kubevirt.io/")) {
            put_str(r, labels, own->items[i].key, own->items[i].value);
        }
    }
    put_str(r, labels, LABEL_APP, LABEL_APP_LAUNCHER);
    put_str(r, labels, LABEL_CREATED_BY, r->vmi->meta.uid);
    put_str(r, labels, LABEL_VM_NAME, r->vmi->meta.name);
    if (r->migration) {
        put_str(r, labels, LABEL_MIGRATION_JOB_UID, r->migration->meta.uid);
    }
}

static void render_annotations(struct render *r, yyjson_mut_val *meta)
{
    yyjson_mut_val *annotations = put_obj(r, meta, "annotations");
    char overhead[32];

    snprintf(overhead, sizeof(overhead), "%" PRId64, pod_memory_overhead(r->vmi));
    put_str(r, annotations, ANNOTATION_DOMAIN, r->vmi->meta.name);
    put_str(r, annotations, ANNOTATION_TRANSPORT_UNIX, "true");
    put_str(r, annotations, ANNOTATION_MEMORY_OVERHEAD, overhead);
    if (r->migration) {
        put_str(r, annotations, ANNOTATION_MIGRATION_JOB_NAME, r->migration->meta.name);
    }
}

static void render_owner(struct render *r, yyjson_mut_val *meta)
{
    yyjson_mut_val *owner = yyjson_mut_arr_add_obj(r->doc, put_arr(r, meta, "ownerReferences"));

    put_str(r, owner, "apiVersion", "kubevirt.io/v1");
    put_str(r, owner, "kind", "VirtualMachineInstance");
    put_str(r, owner, "name", r->vmi->meta.name);
    put_str(r, owner, "uid", r->vmi->meta.uid);
    yyjson_mut_obj_add_bool(r->doc, owner, "controller", true);
    yyjson_mut_obj_add_bool(r->doc, owner, "blockOwnerDeletion", true);
}

static void render_metadata(struct render *r, yyjson_mut_val *root)
{
    yyjson_mut_val *meta = put_obj(r, root, "metadata");
    ferry_cleanup_free char *name = pod_name(r->vmi, r->migration);

    put_str(r, meta, "name", name);
    put_str(r, meta, "namespace", r->vmi->meta.namespace_);
    render_labels(r, meta);
    render_annotations(r, meta);
    render_owner(r, meta);
}

/* What the VMI asks for explicitly, or a share per vCPU. */
static int64_t cpu_request(const struct api_vmi *vmi)
{
    yyjson_val *v = yyjson_ptr_get((yyjson_val *)vmi->spec, "/domain/resources/requests/cpu");
    int64_t milli = 0;

    if (v && api_quantity_val(v, 1000, &milli, NULL) == 0 && milli > 0) {
        return milli;
    }
    return vmi->vcpus * CPU_MILLI_PER_VCPU;
}

static void render_container(struct render *r, yyjson_mut_val *spec)
{
    yyjson_mut_val *c = yyjson_mut_arr_add_obj(r->doc, put_arr(r, spec, "containers"));
    const struct api_meta *m = &r->vmi->meta;
    const char *args[] = {"--namespace", m->namespace_, "--name", m->name, "--uid", m->uid};
    char cpu[32], memory[32];

    put_str(r, c, "name", "compute");
    put_str(r, c, "image", r->settings->launcher_image);
    yyjson_mut_arr_add_str(r->doc, put_arr(r, c, "command"), "ferry-launcher");
    yyjson_mut_val *list = put_arr(r, c, "args");
    for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
        yyjson_mut_arr_add_strcpy(r->doc, list, args[i]);
    }
    snprintf(cpu, sizeof(cpu), "%" PRId64 "m", cpu_request(r->vmi));
    snprintf(memory, sizeof(memory), "%" PRId64,
             r->vmi->memory_bytes + pod_memory_overhead(r->vmi));
    yyjson_mut_val *requests = put_obj(r, put_obj(r, c, "resources"), "requests");
    put_str(r, requests, "cpu", cpu);
    put_str(r, requests, "memory", memory);
}

static void render_node_selector(struct render *r, yyjson_mut_val *spec)
{
    const struct api_map *own = &r->vmi->node_selector;
    yyjson_mut_val *selector = put_obj(r, spec, "nodeSelector");

    if (r->migration) {
        const struct api_map *added = &r->migration->added_node_selector;

        for (size_t i = 0; i < added->n; i++) {
            put_str(r, selector, added->items[i].key, added->items[i].value);
        }
    }
    /* The VMI's own keys win: a migration can only narrow. */
    for (size_t i = 0; i < own->n; i++) {
        put_str(r, selector, own->items[i].key, own->items[i].value);
    }
}

/* The VMI's affinity, and for a target: no node that has a pod of this VMI. */
static void render_affinity(struct render *r, yyjson_mut_val *spec)
{
    yyjson_val *own = yyjson_obj_get((yyjson_val *)r->vmi->spec, "affinity");
    yyjson_mut_val *affinity =
        yyjson_is_obj(own) ? yyjson_val_mut_copy(r->doc, own) : yyjson_mut_obj(r->doc);
    const char *required = "requiredDuringSchedulingIgnoredDuringExecution";

    if (r->migration) {
        yyjson_mut_val *anti = yyjson_mut_obj_get(affinity, "podAntiAffinity");

        if (!yyjson_mut_is_obj(anti)) {
            yyjson_mut_obj_remove_key(affinity, "podAntiAffinity");
            anti = put_obj(r, affinity, "podAntiAffinity");
        }
        yyjson_mut_val *terms = yyjson_mut_obj_get(anti, required);
        if (!yyjson_mut_is_arr(terms)) {
            yyjson_mut_obj_remove_key(anti, required);
            terms = put_arr(r, anti, required);
        }
        yyjson_mut_val *term = yyjson_mut_arr_add_obj(r->doc, terms);
        yyjson_mut_val *labels = put_obj(r, put_obj(r, term, "labelSelector"), "matchLabels");
        put_str(r, labels, LABEL_CREATED_BY, r->vmi->meta.uid);
        put_str(r, term, "topologyKey", LABEL_HOSTNAME);
    }
    if (yyjson_mut_obj_size(affinity) > 0) {
        yyjson_mut_obj_add_val(r->doc, spec, "affinity", affinity);
    }
}

char *pod_render(const struct api_vmi *vmi, const struct api_migration *migration,
                 const struct pod_settings *settings)
{
    struct render r = {
        .doc = yyjson_mut_doc_new(NULL), .vmi = vmi, .migration = migration, .settings = settings};
    yyjson_mut_val *root = yyjson_mut_obj(r.doc);

    yyjson_mut_doc_set_root(r.doc, root);
    put_str(&r, root, "apiVersion", "v1");
    put_str(&r, root, "kind", "Pod");
    render_metadata(&r, root);
    yyjson_mut_val *spec = put_obj(&r, root, "spec");
    put_str(&r, spec, "restartPolicy", "Never");
    yyjson_mut_obj_add_int(r.doc, spec, "terminationGracePeriodSeconds",
                           vmi->grace_s + GRACE_MARGIN_S);
    yyjson_mut_obj_add_bool(r.doc, spec, "automountServiceAccountToken", false);
    render_container(&r, spec);
    render_node_selector(&r, spec);
    render_affinity(&r, spec);
    char *json = yyjson_mut_write(r.doc, 0, NULL);
    yyjson_mut_doc_free(r.doc);
    if (!json) {
        abort(); /* out of memory */
    }
    return json;
}
