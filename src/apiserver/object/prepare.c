#include "apiserver/object/prepare.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/names.h"
#include "api/spec/vmi_defaults.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "apiserver/kinds/crds.h"
#include "apiserver/kinds/schema.h"
#include "apiserver/object/meta_check.h"
#include "apiserver/object/rbac_object.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "json/keys.h"

enum { GENERATED_BASE_MAX = 58, DEFAULT_GRACE_S = 30 };
enum { GRACE_MAX_S = INT32_MAX }; /* some 68 years: a time that still can be written */

#define NAME_RULE                                                                                  \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character"

static void put(yyjson_mut_doc *doc, yyjson_mut_val *obj, const char *key, yyjson_mut_val *value)
{
    yyjson_mut_obj_put(obj, yyjson_mut_str(doc, key), value);
}

static void put_text(yyjson_mut_doc *doc, yyjson_mut_val *obj, const char *key, const char *text)
{
    put(doc, obj, key, yyjson_mut_strcpy(doc, text));
}

static const char *text_of(yyjson_mut_val *obj, const char *key)
{
    const char *s = yyjson_mut_get_str(yyjson_mut_obj_get(obj, key));

    return s ? s : "";
}

static yyjson_mut_val *child(yyjson_mut_doc *doc, yyjson_mut_val *obj, const char *key)
{
    yyjson_mut_val *v = yyjson_mut_obj_get(obj, key);

    if (!yyjson_mut_is_obj(v)) {
        v = yyjson_mut_obj(doc);
        put(doc, obj, key, v);
    }
    return v;
}

/* The object says what it is, or is told. */
static int check_type(const struct api_resource *r, yyjson_mut_doc *doc, struct status *st)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    char version[256];

    snprintf(version, sizeof(version), "%s%s%s", r->group, *r->group ? "/" : "", r->version);
    if (!yyjson_mut_is_obj(root)) {
        return status_fail(st, 400, "the body must be a JSON object");
    }
    const char *kind = text_of(root, "kind"), *got = text_of(root, "apiVersion");
    if (*kind && strcmp(kind, r->kind_name) != 0) {
        return status_fail(st, 400,
                           "the kind of the object (%.100s) does not match the kind on "
                           "the request (%s)",
                           kind, r->kind_name);
    }
    if (*got && strcmp(got, version) != 0) {
        return status_fail(
            st, 400,
            "the API version in the data (%.100s) does not match the expected API version "
            "(%s)",
            got, version);
    }
    put_text(doc, root, "kind", r->kind_name);
    put_text(doc, root, "apiVersion", version);
    yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");
    if (meta && !yyjson_mut_is_obj(meta) && !yyjson_mut_is_null(meta)) {
        return status_fail(st, 400, "metadata: must be an object");
    }
    child(doc, root, "metadata");
    return 0;
}

static int check_namespace(const struct route *route, yyjson_mut_val *meta, struct status *st)
{
    const char *ns = text_of(meta, "namespace");

    if (*ns && strcmp(ns, route->ns) != 0) {
        return status_fail(st, 400,
                           "the namespace of the provided object does not match the "
                           "namespace sent on the request");
    }
    return 0;
}

static int choose_name(struct route *route, yyjson_mut_doc *doc, yyjson_mut_val *meta,
                       const struct prepare_stamp *stamp, struct status *st)
{
    const char *name = text_of(meta, "name"), *base = text_of(meta, "generateName");
    char generated[ROUTE_PART_MAX];

    if (!*name && *base) {
        snprintf(generated, sizeof(generated), "%.*s%s", GENERATED_BASE_MAX, base, stamp->suffix);
        put_text(doc, meta, "name", generated);
        name = text_of(meta, "name");
    }
    if (!*name) {
        return status_invalid(st, route->resource, "", "metadata.name", STATUS_VALUE_REQUIRED,
                              "name or generateName is required");
    }
    snprintf(route->name, sizeof(route->name), "%s", name);
    return 0;
}

static void default_pod(yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    yyjson_mut_val *spec = child(doc, root, "spec");

    if (!yyjson_mut_obj_get(spec, "terminationGracePeriodSeconds")) {
        put(doc, spec, "terminationGracePeriodSeconds", yyjson_mut_int(doc, DEFAULT_GRACE_S));
    }
    put_text(doc, child(doc, root, "status"), "phase", wire_phase_text(PHASE_PENDING));
}

/* What is written as text in stringData is kept as base64 in data. */
static void merge_string_data(yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    yyjson_mut_val *texts = yyjson_mut_obj_get(root, "stringData"), *key, *v;
    size_t i, max, n = yyjson_mut_obj_size(texts);
    struct json_keys *data = n ? json_keys_of(child(doc, root, "data"), n) : NULL;

    yyjson_mut_obj_foreach(texts, i, max, key, v)
    {
        size_t len = yyjson_mut_get_len(v);
        ferry_cleanup_free char *out = ferry_xcalloc(1, (len + 2) / 3 * 4 + 1);

        if (yyjson_mut_is_str(v)) {
            EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)yyjson_mut_get_str(v),
                            (int)len);
            json_keys_put(data, yyjson_mut_strcpy(doc, yyjson_mut_get_str(key)),
                          yyjson_mut_strcpy(doc, out));
        }
    }
    if (data) {
        json_keys_done(data);
    }
    yyjson_mut_obj_remove_key(root, "stringData");
}

/* What KubeVirt's webhook adds: the controller's finalizer and the label that tools select by. It
 * spares the controller a write for each. */
static void default_migration(yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    static const char finalizer[] = FINALIZER_MIGRATION;
    yyjson_mut_val *meta = child(doc, root, "metadata");
    yyjson_mut_val *list = yyjson_mut_obj_get(meta, "finalizers"), *v;
    const char *vmi = text_of(child(doc, root, "spec"), "vmiName");
    size_t i, max;

    if (*vmi) {
        put_text(doc, child(doc, meta, "labels"), LABEL_VMI_NAME, vmi);
    }
    if (!yyjson_mut_is_arr(list)) {
        list = yyjson_mut_arr(doc);
        put(doc, meta, "finalizers", list);
    }
    yyjson_mut_arr_foreach(list, i, max, v)
    {
        if (ferry_streq(yyjson_mut_get_str(v), finalizer)) {
            return;
        }
    }
    yyjson_mut_arr_add_str(doc, list, finalizer);
}

static void set_defaults(const struct api_resource *r, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    if (ferry_streq(r->plural, "secrets")) {
        merge_string_data(doc, root);
        if (!*text_of(root, "type")) {
            put_text(doc, root, "type", "Opaque");
        }
    }
    if (rbac_object_is(r)) {
        rbac_object_default(doc);
    } else if (r->kind == API_KIND_POD) {
        default_pod(doc, root);
    } else if (r->kind == API_KIND_MIGRATION) {
        default_migration(doc, root);
    } else if (r->kind == API_KIND_VMI) {
        (void)vmi_defaults(doc, root);
    } else if (ferry_streq(r->plural, "namespaces")) {
        yyjson_mut_val *spec = child(doc, root, "spec");
        yyjson_mut_val *list = yyjson_mut_arr(doc);

        yyjson_mut_arr_add_str(doc, list, "kubernetes");
        put(doc, spec, "finalizers", list);
        put_text(doc, child(doc, root, "status"), "phase", "Active");
        put_text(doc, child(doc, child(doc, root, "metadata"), "labels"), LABEL_NAMESPACE_NAME,
                 text_of(child(doc, root, "metadata"), "name"));
    }
}

int prepare_create(struct route *route, yyjson_mut_doc *doc, const struct prepare_stamp *stamp,
                   yyjson_doc **ret, struct status *st)
{
    const struct api_resource *r = route->resource;
    static const char *const dropped[] = {"managedFields", "selfLink", "deletionTimestamp",
                                          "deletionGracePeriodSeconds", "resourceVersion"};
    char now[FERRY_RFC3339_SIZE];

    if (check_type(r, doc, st) < 0) {
        return -1;
    }
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");
    if (check_namespace(route, meta, st) < 0 || choose_name(route, doc, meta, stamp, st) < 0) {
        return -1;
    }
    if (*text_of(meta, "resourceVersion")) {
        return status_fail(st, 400, "resourceVersion should not be set on objects to be created");
    }
    for (size_t i = 0; i < FERRY_COUNT(dropped); i++) {
        yyjson_mut_obj_remove_key(meta, dropped[i]);
    }
    if (r->namespaced) {
        put_text(doc, meta, "namespace", route->ns);
    } else {
        yyjson_mut_obj_remove_key(meta, "namespace");
    }
    put_text(doc, meta, "uid", stamp->uid);
    put_text(doc, meta, "creationTimestamp", ferry_rfc3339(stamp->now_ms, now));
    if (yyjson_mut_obj_get(root, "spec")) {
        put(doc, meta, "generation", yyjson_mut_int(doc, 1));
    }
    /* A node comes with its status, as kubelets have it; elsewhere status has its own door. */
    if (r->has_status && !r->status_shared && r->kind != API_KIND_NODE) {
        yyjson_mut_obj_remove_key(root, "status");
    }
    set_defaults(r, doc, root);
    schema_complete(crds_any_schema(r), doc);
    return prepare_validate(r, NULL, doc, ret, st);
}

/* ---- updates -----------------------------------------------------------------------------------
 */

static void copy_from(yyjson_mut_doc *doc, yyjson_mut_val *into, yyjson_val *from, const char *key)
{
    yyjson_val *v = yyjson_obj_get(from, key);

    if (v) {
        put(doc, into, key, yyjson_val_mut_copy(doc, v));
    } else {
        yyjson_mut_obj_remove_key(into, key);
    }
}

static int check_identity(const struct route *route, yyjson_val *old_meta, yyjson_mut_val *meta,
                          struct status *st)
{
    const char *name = text_of(meta, "name"), *uid = text_of(meta, "uid");
    const char *version = text_of(meta, "resourceVersion");

    if (*name && strcmp(name, route->name) != 0) {
        return status_fail(st, 400,
                           "the name of the object (%.100s) does not match the name on "
                           "the URL (%s)",
                           name, route->name);
    }
    if (check_namespace(route, meta, st) < 0) {
        return -1;
    }
    if (*uid && !ferry_streq(uid, api_json_str(old_meta, "/uid"))) {
        return status_conflict(st, route->resource, route->name,
                               "the UID in the request is not the object's UID");
    }
    if (*version && strcmp(version, "0") != 0 &&
        !ferry_streq(version, api_json_str(old_meta, "/resourceVersion"))) {
        return status_conflict(st, route->resource, route->name,
                               "the object has been modified; please apply your changes to the "
                               "latest version and try again");
    }
    return 0;
}

static int check_finalizers(const struct route *route, yyjson_val *old_meta, yyjson_mut_val *meta,
                            struct status *st)
{
    yyjson_val *old = yyjson_obj_get(old_meta, "finalizers");
    size_t i, max;
    yyjson_mut_val *v;

    if (!yyjson_obj_get(old_meta, "deletionTimestamp")) {
        return 0;
    }
    yyjson_mut_arr_foreach(yyjson_mut_obj_get(meta, "finalizers"), i, max, v)
    {
        if (yyjson_mut_is_str(v) && !json_doc_lists(old, yyjson_mut_get_str(v))) {
            return status_invalid(st, route->resource, route->name, "metadata.finalizers",
                                  STATUS_VALUE_FORBIDDEN,
                                  "no new finalizers can be added if the object is "
                                  "being deleted, found new finalizer '%.100s'",
                                  yyjson_mut_get_str(v));
        }
    }
    return 0;
}

/* Through "status" only the status changes; of core kinds labels and annotations too, as
 * Kubernetes has it. */
static void keep_all_but_status(const struct api_resource *r, yyjson_val *old, yyjson_mut_doc *doc)
{
    yyjson_mut_val *asked = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *root = yyjson_val_mut_copy(doc, old);
    yyjson_mut_val *status = yyjson_mut_obj_get(asked, "status");
    static const char *const marks[] = {"labels", "annotations"};

    if (status) {
        put(doc, root, "status", yyjson_mut_val_mut_copy(doc, status));
    } else {
        yyjson_mut_obj_remove_key(root, "status");
    }
    for (size_t i = 0; !*r->group && i < 2; i++) {
        yyjson_mut_val *v = yyjson_mut_obj_get(yyjson_mut_obj_get(asked, "metadata"), marks[i]);
        yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");

        if (v) {
            put(doc, meta, marks[i], yyjson_mut_val_mut_copy(doc, v));
        } else {
            yyjson_mut_obj_remove_key(meta, marks[i]);
        }
    }
    yyjson_mut_doc_set_root(doc, root);
}

static bool same(yyjson_mut_doc *doc, yyjson_val *old, yyjson_mut_val *new)
{
    if (!old || !new) {
        return !old && !new;
    }
    return yyjson_mut_equals(yyjson_val_mut_copy(doc, old), new);
}

void prepare_generation(const yyjson_val *old, yyjson_mut_doc *doc)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);

    if (!same(doc, yyjson_obj_get((yyjson_val *)old, "spec"), yyjson_mut_obj_get(root, "spec"))) {
        put(doc, yyjson_mut_obj_get(root, "metadata"), "generation",
            yyjson_mut_int(doc, api_json_int(old, "/metadata/generation", 0) + 1));
    }
}

int prepare_update(const struct route *route, const yyjson_val *old_, yyjson_mut_doc *doc,
                   yyjson_doc **ret, struct status *st)
{
    static const char *const kept[] = {"name",
                                       "namespace",
                                       "uid",
                                       "creationTimestamp",
                                       "deletionTimestamp",
                                       "deletionGracePeriodSeconds",
                                       "generateName",
                                       "generation",
                                       "resourceVersion"};
    const struct api_resource *r = route->resource;
    yyjson_val *old = (yyjson_val *)old_, *old_meta = yyjson_obj_get(old, "metadata");

    if (check_type(r, doc, st) < 0) {
        return -1;
    }
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");
    if (check_identity(route, old_meta, meta, st) < 0 ||
        check_finalizers(route, old_meta, meta, st) < 0) {
        return -1;
    }
    for (size_t i = 0; i < FERRY_COUNT(kept); i++) {
        copy_from(doc, meta, old_meta, kept[i]);
    }
    yyjson_mut_obj_remove_key(meta, "managedFields");
    if (ferry_streq(route->subresource, "status")) {
        keep_all_but_status(r, old, doc);
    } else if (r->has_status && !r->status_shared) {
        copy_from(doc, root, old, "status");
    }
    if (ferry_streq(r->plural, "secrets")) {
        merge_string_data(doc, root);
    }
    if (rbac_object_is(r)) {
        rbac_object_default(doc);
    }
    schema_complete(crds_any_schema(r), doc);
    prepare_generation(old, doc);
    return prepare_validate(r, old, doc, ret, st);
}

/* ---- validation --------------------------------------------------------------------------------
 */

static int wrong_field(const struct api_resource *r, const char *name,
                       const struct ferry_error *err, struct status *st)
{
    size_t len;
    const char *about = ferry_error_about(err, &len);
    ferry_cleanup_free char *field = ferry_strndup(about, len);

    return status_invalid(st, r, name, field, STATUS_VALUE_INVALID, "%s", ferry_error_words(err));
}

static bool name_is_good(const struct api_resource *r, const char *name)
{
    if (rbac_object_is(r)) {
        return rbac_object_name_is_good(name);
    }
    return r->kind == API_KIND_NAMESPACE ? api_name_is_dns_label(name)
                                         : api_name_is_dns_subdomain(name);
}

int prepare_validate(const struct api_resource *r, const yyjson_val *old, yyjson_mut_doc *doc,
                     yyjson_doc **ret, struct status *st)
{
    api_cleanup_doc yyjson_doc *copy = yyjson_mut_doc_imut_copy(doc, NULL);
    api_cleanup_object struct api_object *o = NULL;
    struct ferry_error err = {0};
    const char *name =
        text_of(yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "metadata"), "name");

    if (!copy) {
        return status_fail(st, 500, "out of memory");
    }
    if (schema_validate(crds_any_schema(r), r, name, yyjson_mut_doc_get_root(doc), old, st) < 0) {
        return -1;
    }
    if (api_object_from_val(r->kind, yyjson_doc_get_root(copy), &o, &err) < 0) {
        return wrong_field(r, name, &err, st);
    }
    if (!name_is_good(r, name)) {
        return status_invalid(st, r, name, "metadata.name", STATUS_VALUE_INVALID, "\"%.100s\": %s",
                              name, NAME_RULE);
    }
    if (meta_check(r, o->meta, st) < 0) {
        return -1;
    }
    *ret = ferry_take_ptr(copy);
    return 0;
}

/* ---- deletion ----------------------------------------------------------------------------------
 */

static bool has_finalizers(yyjson_mut_val *root)
{
    yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");

    return yyjson_mut_arr_size(yyjson_mut_obj_get(meta, "finalizers")) > 0;
}

static int64_t int_of(yyjson_mut_val *obj, const char *key, int64_t absent)
{
    yyjson_mut_val *v = yyjson_mut_obj_get(obj, key);

    return yyjson_mut_is_int(v) ? yyjson_mut_get_sint(v) : absent;
}

bool prepare_is_gone(const struct api_resource *r, yyjson_mut_val *root)
{
    yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");

    if (!yyjson_mut_obj_get(meta, "deletionTimestamp") || has_finalizers(root)) {
        return false;
    }
    /* A namespace goes when it is empty: the collector sees to that. */
    if (ferry_streq(r->plural, "namespaces")) {
        return yyjson_mut_arr_size(
                   yyjson_mut_obj_get(yyjson_mut_obj_get(root, "spec"), "finalizers")) == 0;
    }
    return int_of(meta, "deletionGracePeriodSeconds", 0) == 0;
}

/* How long a pod may take to end; 0 when nobody runs it. */
static int64_t pod_grace(yyjson_mut_val *root, const struct prepare_deletion *how)
{
    yyjson_mut_val *spec = yyjson_mut_obj_get(root, "spec");
    const char *phase = text_of(yyjson_mut_obj_get(root, "status"), "phase");

    if (!*text_of(spec, "nodeName") || wire_phase_is_over(phase)) {
        return 0;
    }
    int64_t grace = how->has_grace ? how->grace_s
                                   : int_of(spec, "terminationGracePeriodSeconds", DEFAULT_GRACE_S);
    grace = grace < GRACE_MAX_S ? grace : GRACE_MAX_S;
    return grace < 0 ? 1 : grace;
}

static void mark(yyjson_mut_doc *doc, int64_t grace_s, int64_t now_ms)
{
    yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "metadata");
    char when[FERRY_RFC3339_SIZE];

    if (!yyjson_mut_obj_get(meta, "deletionTimestamp") && int_of(meta, "generation", 0) > 0) {
        put(doc, meta, "generation", yyjson_mut_int(doc, int_of(meta, "generation", 0) + 1));
    }
    put_text(doc, meta, "deletionTimestamp", ferry_rfc3339(now_ms + grace_s * 1000, when));
    put(doc, meta, "deletionGracePeriodSeconds", yyjson_mut_int(doc, grace_s));
}

/* False: it is there already. */
static bool add_finalizer(yyjson_mut_doc *doc, yyjson_mut_val *meta, const char *name)
{
    yyjson_mut_val *list = yyjson_mut_obj_get(meta, "finalizers"), *v;
    size_t i, max;

    yyjson_mut_arr_foreach(list, i, max, v)
    {
        if (ferry_streq(yyjson_mut_get_str(v), name)) {
            return false;
        }
    }
    if (!yyjson_mut_is_arr(list)) {
        list = yyjson_mut_arr(doc);
        put(doc, meta, "finalizers", list);
    }
    return yyjson_mut_arr_add_strcpy(doc, list, name);
}

enum prepare_delete_result prepare_delete(const struct api_resource *r, yyjson_mut_doc *doc,
                                          const struct prepare_deletion *how, int64_t now_ms)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");
    bool marked = yyjson_mut_obj_get(meta, "deletionTimestamp") != NULL;
    int64_t before = int_of(meta, "deletionGracePeriodSeconds", 0);
    int64_t grace = r->kind == API_KIND_POD ? pod_grace(root, how) : 0;

    /* A second request may shorten, and choose what becomes of what it owns while something else
     * still holds it. */
    bool held = how->finalizer && (!marked || has_finalizers(root)) &&
                add_finalizer(doc, meta, how->finalizer);

    if (marked && grace >= before && !(grace == 0 && before == 0) && !held) {
        return PREPARE_NOTHING;
    }
    if (!marked || grace < before) {
        mark(doc, grace, now_ms);
    }
    if (ferry_streq(r->plural, "namespaces")) {
        put_text(doc, child(doc, root, "status"), "phase", "Terminating");
    }
    if (prepare_is_gone(r, root)) {
        return PREPARE_REMOVE;
    }
    return marked && grace >= before && !held ? PREPARE_NOTHING : PREPARE_STORE;
}
