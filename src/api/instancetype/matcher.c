#include "api/instancetype/matcher.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

#define GROUP "instancetype.kubevirt.io"
#define VERSION "v1beta1"

static const struct {
    const char *pointer, *field, *status, *what;
    const char *plural, *cluster_plural;
} kinds[] = {
    [MATCHER_INSTANCETYPE] = {"/spec/instancetype", "spec.instancetype", "/status/instancetypeRef",
                              "InstancetypeMatcher", "virtualmachineinstancetypes",
                              "virtualmachineclusterinstancetypes"},
    [MATCHER_PREFERENCE] = {"/spec/preference", "spec.preference", "/status/preferenceRef",
                            "PreferenceMatcher", "virtualmachinepreferences",
                            "virtualmachineclusterpreferences"},
};

static yyjson_val *at(const yyjson_val *v, const char *pointer)
{
    return yyjson_ptr_get((yyjson_val *)v, pointer);
}

const char *matcher_status_path(enum matcher_of of)
{
    return kinds[of].status;
}

/* KubeVirt takes the kind, the plural, and any case. */
static bool is_called(const char *kind, const struct api_resource *r)
{
    return strcasecmp(kind, r->singular) == 0 || strcasecmp(kind, r->plural) == 0;
}

static const struct api_resource *resource_of(enum matcher_of of, const char *kind)
{
    const struct api_resource *own = api_resource_find(GROUP, VERSION, kinds[of].plural);
    const struct api_resource *cluster =
        api_resource_find(GROUP, VERSION, kinds[of].cluster_plural);

    if (ferry_str_empty(kind) || is_called(kind, cluster)) {
        return cluster;
    }
    return is_called(kind, own) ? own : NULL;
}

bool matcher_read(const yyjson_val *vm, enum matcher_of of, struct matcher *ret)
{
    yyjson_val *given = at(vm, kinds[of].pointer), *had = at(vm, kinds[of].status);

    *ret = (struct matcher){.of = of};
    if (!yyjson_is_obj(given)) {
        return false;
    }
    ret->name = api_json_str(given, "/name");
    ret->resource = resource_of(of, api_json_str(given, "/kind"));
    ret->revision = api_json_str(given, "/revisionName");
    ret->asked = !ferry_str_empty(ret->revision);
    bool same = ferry_streq(api_json_str(had, "/name"), ret->name) && ret->resource &&
                resource_of(of, api_json_str(had, "/kind")) == ret->resource;
    const char *kept = same ? api_json_str(had, "/controllerRevisionRef/name") : NULL;
    if (!ret->asked) {
        ret->revision = ferry_str_empty(kept) ? NULL : kept;
    }
    ret->recorded = ret->revision && ferry_streq(kept, ret->revision);
    return true;
}

/* ---- what a VM may say -------------------------------------------------------------------------
 */

static int wrong(const char *field, const char *below, struct ferry_error *err, const char *why)
{
    (void)ferry_fail(err, FERRY_INVALID, "%s", why);
    return ferry_wrap_about(err, "%s%s", field, below);
}

/* Where a name came with a revision, another name needs another one. */
static int check_change(enum matcher_of of, const yyjson_val *given, const yyjson_val *had,
                        struct ferry_error *err)
{
    const char *revision = api_json_str(had, "/revisionName");

    if (!ferry_str_empty(revision) && given &&
        ferry_streq(revision, api_json_str(given, "/revisionName")) &&
        !ferry_streq(api_json_str(had, "/name"), api_json_str(given, "/name"))) {
        return wrong(kinds[of].field, ".revisionName", err,
                     "the Matcher Name has been updated without updating the RevisionName");
    }
    return 0;
}

static int check_one(enum matcher_of of, const yyjson_val *given, struct ferry_error *err)
{
    const char *kind = api_json_str(given, "/kind");

    /* What a volume says of its guest is refused by the table of fields. */
    if (ferry_str_empty(api_json_str(given, "/name")) &&
        ferry_str_empty(api_json_str(given, "/inferFromVolume"))) {
        ferry_cleanup_free char *why = ferry_asprintf(
            "Either Name or InferFromVolume should be provided within the %s", kinds[of].what);

        return wrong(kinds[of].field, "", err, why);
    }
    if (!resource_of(of, kind)) {
        ferry_cleanup_free char *why =
            ferry_asprintf("got unexpected kind in %s: %.100s", kinds[of].what, kind);

        return wrong(kinds[of].field, ".kind", err, why);
    }
    return 0;
}

int matcher_check(const yyjson_val *vm, const yyjson_val *old, struct ferry_error *err)
{
    for (enum matcher_of of = 0; of < MATCHER_COUNT; of++) {
        const yyjson_val *given = at(vm, kinds[of].pointer);

        if (!yyjson_is_obj((yyjson_val *)given)) {
            continue;
        }
        int rc = check_change(of, given, at(old, kinds[of].pointer), err);
        rc = rc < 0 ? rc : check_one(of, given, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- revisions ---------------------------------------------------------------------------------
 */

const yyjson_val *matcher_spec(const struct matcher *m, const yyjson_val *object)
{
    const yyjson_val *inner = at(object, "/data");
    const char *kind = api_json_str(inner, "/kind");

    if (!inner) {
        return at(object, "/spec");
    }
    if (ferry_str_empty(kind) || !resource_of(m->of, kind) ||
        !ferry_str_starts(api_json_str(inner, "/apiVersion"), GROUP "/")) {
        return NULL;
    }
    return at(inner, "/spec");
}

char *matcher_revision_name(const yyjson_val *vm, const struct matcher *m, const yyjson_val *object)
{
    return ferry_asprintf("%s-%s-%s-%s-%" PRId64, api_json_str(vm, "/metadata/name"), m->name,
                          VERSION, api_json_str(object, "/metadata/uid"),
                          api_json_int(object, "/metadata/generation", 0));
}

static void put(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key, const char *value)
{
    yyjson_mut_obj_add_strcpy(doc, to, key, value ? value : "");
}

static void put_owner(yyjson_mut_doc *doc, yyjson_mut_val *meta, const yyjson_val *vm)
{
    yyjson_mut_val *owner =
        yyjson_mut_arr_add_obj(doc, yyjson_mut_obj_add_arr(doc, meta, "ownerReferences"));

    put(doc, owner, "apiVersion", "kubevirt.io/v1");
    put(doc, owner, "kind", "VirtualMachine");
    put(doc, owner, "name", api_json_str(vm, "/metadata/name"));
    put(doc, owner, "uid", api_json_str(vm, "/metadata/uid"));
    yyjson_mut_obj_add_bool(doc, owner, "controller", true);
    yyjson_mut_obj_add_bool(doc, owner, "blockOwnerDeletion", true);
}

/* The object without what says nothing of the machine. */
static void put_data(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct matcher *m,
                     const yyjson_val *object)
{
    static const char *const kept[] = {"name",       "namespace",        "uid", "resourceVersion",
                                       "generation", "creationTimestamp"};
    yyjson_mut_val *data = yyjson_mut_obj_add_obj(doc, root, "data");

    put(doc, data, "apiVersion", GROUP "/" VERSION);
    put(doc, data, "kind", m->resource->kind_name);
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, data, "metadata");
    for (size_t i = 0; i < FERRY_COUNT(kept); i++) {
        yyjson_val *v = yyjson_obj_get(at(object, "/metadata"), kept[i]);

        if (v) {
            yyjson_mut_obj_add_val(doc, meta, kept[i], yyjson_val_mut_copy(doc, v));
        }
    }
    yyjson_mut_obj_add_val(doc, data, "spec", yyjson_val_mut_copy(doc, at(object, "/spec")));
}

char *matcher_revision(const yyjson_val *vm, const struct matcher *m, const yyjson_val *object)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);
    ferry_cleanup_free char *name = matcher_revision_name(vm, m, object);
    ferry_cleanup_free char *generation =
        ferry_asprintf("%" PRId64, api_json_int(object, "/metadata/generation", 0));

    put(doc, root, "apiVersion", "apps/v1");
    put(doc, root, "kind", "ControllerRevision");
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "metadata");
    put(doc, meta, "name", name);
    put(doc, meta, "namespace", api_json_str(vm, "/metadata/namespace"));
    yyjson_mut_val *labels = yyjson_mut_obj_add_obj(doc, meta, "labels");
    put(doc, labels, LABEL_OBJECT_GENERATION, generation);
    put(doc, labels, LABEL_OBJECT_KIND, m->resource->kind_name);
    put(doc, labels, LABEL_OBJECT_NAME, m->name);
    put(doc, labels, LABEL_OBJECT_UID, api_json_str(object, "/metadata/uid"));
    put(doc, labels, LABEL_OBJECT_VERSION, VERSION);
    put_owner(doc, meta, vm);
    put_data(doc, root, m, object);
    yyjson_mut_obj_add_int(doc, root, "revision", 0);
    return json_doc_take(doc);
}

char *matcher_status(const struct matcher *m, const char *revision)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);

    put(doc, root, "name", m->name);
    put(doc, root, "kind", m->resource->kind_name);
    put(doc, yyjson_mut_obj_add_obj(doc, root, "controllerRevisionRef"), "name", revision);
    return json_doc_take(doc);
}
