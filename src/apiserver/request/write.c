/* Theory of operation. Every write is one store transaction: read what is there, decide with the
 * pure functions (prepare, auth, admission), write, commit. The transaction excludes other writers,
 * so what was read is still true when it is written; a client's own expectation is the
 * resourceVersion, uid or JSON Patch test that it sends. */
#include "apiserver/request/write.h"

#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/patch.h"
#include "apiserver/kinds/crds.h"
#include "apiserver/kinds/schema.h"
#include "apiserver/object/admission.h"
#include "apiserver/object/person.h"
#include "apiserver/object/prepare.h"
#include "apiserver/request/finish.h"
#include "apiserver/request/node_guard.h"
#include "apiserver/request/quota.h"
#include "apiserver/request/rights.h"
#include "apiserver/store/ident.h"
#include "base/clock.h"
#include "base/count.h"
#include "json/doc.h"

enum { GENERATE_TRIES = 8, APPLY_TRIES = 8 };

/* ---- what admission looks at -------------------------------------------------------------------
 */

struct view {
    struct admission_view v;
    struct api_object *vmi;
    struct api_object **migrations;
    size_t n;
    yyjson_doc *kubevirt, *named[MATCHER_COUNT];
};

static void view_done(struct view *view)
{
    api_object_unref(view->vmi);
    for (size_t i = 0; i < view->n; i++) {
        api_object_unref(view->migrations[i]);
    }
    free(view->migrations);
    yyjson_doc_free(view->kubevirt);
    for (size_t i = 0; i < MATCHER_COUNT; i++) {
        yyjson_doc_free(view->named[i]);
    }
}
#define cleanup_view ferry_cleanup(view_done)

/* Those of one VMI. */
static void view_migrations(struct store *store, const struct api_resource *resource,
                            const char *ns, const char *vmi, struct view *view)
{
    cleanup_entry_list struct entry_list list = {0};

    store_find(store, resource, ns, vmi, &list);
    view->migrations = ferry_xcalloc(list.n + 1, sizeof(struct api_object *));
    for (size_t i = 0; i < list.n; i++) {
        if (entry_object(list.items[i], API_KIND_MIGRATION, &view->migrations[view->n], NULL) ==
            0) {
            view->n++;
        }
    }
}

/* Of the first KubeVirt object that lists any; on its own writes of the one that is written. */
static void view_gates(const struct request *r, const yyjson_val *object, struct view *view)
{
    static const char pointer[] = "/spec/configuration/developerConfiguration/featureGates";
    cleanup_entry_list struct entry_list list = {0};

    if (ferry_streq(r->route.resource->plural, "kubevirts")) {
        view->v.gates = yyjson_ptr_get((yyjson_val *)object, pointer);
        return;
    }
    if (!ferry_streq(r->route.resource->plural, "migrationpolicies")) {
        return;
    }
    store_list(r->store, api_resource_find("kubevirt.io", "v1", "kubevirts"), NULL, &list);
    for (size_t i = 0; i < list.n && !view->v.gates; i++) {
        yyjson_doc_free(view->kubevirt);
        view->kubevirt = entry_doc(list.items[i]);
        view->v.gates = yyjson_ptr_get(yyjson_doc_get_root(view->kubevirt), pointer);
    }
}

/* The instance type and the preference of a VirtualMachine, as it has or would get them. */
static void view_named(const struct request *r, const yyjson_val *object, struct view *view)
{
    const struct api_resource *revisions = api_resource_find("apps", "v1", "controllerrevisions");

    for (enum matcher_of of = 0; r->route.resource->kind == API_KIND_VM && of < MATCHER_COUNT;
         of++) {
        struct matcher m;

        if (!matcher_read(object, of, &m) || !m.resource || ferry_str_empty(m.name)) {
            continue;
        }
        const struct api_resource *kind = m.revision ? revisions : m.resource;
        cleanup_entry struct entry *e = store_get(
            r->store, kind, kind->namespaced ? r->route.ns : "", m.revision ? m.revision : m.name);

        view->named[of] = entry_doc(e);
        view->v.named[of] = yyjson_doc_get_root(view->named[of]);
    }
}

static void view_fill(const struct request *r, const yyjson_val *object, struct view *view)
{
    view->v.role = r->who.role;
    view_gates(r, object, view);
    view_named(r, object, view);
    if (r->route.resource->kind == API_KIND_MIGRATION) {
        const char *vmi = api_json_str(object, "/spec/vmiName");
        cleanup_entry struct entry *e =
            vmi ? store_get(r->store, api_resource_of_kind(API_KIND_VMI), r->route.ns, vmi) : NULL;

        if (e) {
            entry_object(e, API_KIND_VMI, &view->vmi, NULL);
        }
        if (vmi) {
            view_migrations(r->store, r->route.resource, r->route.ns, vmi, view);
        }
    }
    view->v.vmi = view->vmi;
    view->v.migrations = view->migrations;
    view->v.n_migrations = view->n;
}

static int check_namespace(struct request *r)
{
    const struct api_resource *namespaces = api_resource_find("", "v1", "namespaces");

    if (!r->route.resource->namespaced) {
        return 0;
    }
    cleanup_entry struct entry *e = store_get(r->store, namespaces, "", r->route.ns);
    if (!e) {
        return status_not_found(&r->st, namespaces, r->route.ns);
    }
    if (e->ending) {
        return status_forbidden(&r->st, r->route.resource, r->route.name,
                                "unable to create new content in namespace %s because it is being "
                                "terminated",
                                r->route.ns);
    }
    return 0;
}

/* fieldValidation: what is told of fields that the kind does not have, which are dropped. */
static int check_unknown(struct request *r, yyjson_mut_doc *doc)
{
    const char *mode = http_query(r->x, "fieldValidation");
    ferry_cleanup_buf struct ferry_buf unknown = {0};

    if (ferry_streq(mode, "Ignore")) {
        return 0;
    }
    schema_unknown(crds_any_schema(r->route.resource), yyjson_mut_doc_get_root(doc), &unknown);
    if (unknown.len && ferry_streq(mode, "Strict")) {
        return status_fail(&r->st, 400,
                           "%s in version \"%s\" cannot be handled as a %s: strict "
                           "decoding error: %.300s",
                           r->route.resource->kind_name, r->route.resource->version,
                           r->route.resource->kind_name, unknown.data);
    }
    if (unknown.len) {
        request_warn(r, unknown.data);
    }
    return 0;
}

static void warn(void *ctx, const char *text)
{
    request_warn(ctx, text);
}

/* ---- create ------------------------------------------------------------------------------------
 */

/* Inside the transaction. */
static int admit_new(struct request *r, const yyjson_val *object)
{
    cleanup_view struct view view = {0};

    if (check_namespace(r) < 0 || node_guard_new(r, object) < 0 ||
        rights_check_person(r, NULL, object) < 0) {
        return -1;
    }
    view_fill(r, object, &view);
    if (admission_create(r->route.resource, object, &view.v, &r->st) < 0 ||
        rights_check_given(r, NULL, object) < 0) {
        return -1;
    }
    return quota_admit(r, NULL, object);
}

/* A node's certificate lets it make what bears its name or is its own: known only now. */
static int check_new(struct request *r, const yyjson_val *object)
{
    enum auth_answer answer = auth_is_person(&r->who) ? r->auth : auth_check(&r->who, &r->route);

    if (answer == AUTH_YES ||
        (answer == AUTH_IF_OWN && auth_owns(&r->who, r->route.resource, object))) {
        return 0;
    }
    return status_forbidden(&r->st, r->route.resource, r->route.name,
                            "User \"%s\" cannot create this object", r->who.user);
}

/* Ends the transaction. `object` is what `doc` says. */
static int create_in_transaction(struct request *r, const yyjson_val *object, yyjson_mut_doc *doc,
                                 bool dry_run, int code)
{
    struct ferry_error err;
    int rc = admit_new(r, object);

    if (rc == 0 && !dry_run &&
        store_put(r->store, r->route.resource, r->route.ns, r->route.name, doc, &err) < 0) {
        rc = finish_failed(r, &err);
    }
    if (rc < 0 || dry_run) {
        return finish_unchanged(r, rc, code, doc);
    }
    return finish_commit(r, code);
}

static bool name_is_taken(struct request *r)
{
    cleanup_entry struct entry *e =
        store_get(r->store, r->route.resource, r->route.ns, r->route.name);

    return e != NULL;
}

int write_create_document(struct request *r, const yyjson_mut_doc *given, bool dry_run, int code)
{
    char uid[IDENT_UID_SIZE], suffix[IDENT_SUFFIX_SIZE];
    bool generated = yyjson_mut_ptr_get(yyjson_mut_doc_get_root((yyjson_mut_doc *)given),
                                        "/metadata/name") == NULL;

    for (int i = 0;; i++) {
        api_cleanup_mut_doc yyjson_mut_doc *doc =
            yyjson_mut_doc_mut_copy((yyjson_mut_doc *)given, NULL);
        api_cleanup_doc yyjson_doc *made = NULL;
        struct prepare_stamp stamp = {.now_ms = ferry_now_unix_ms(), .uid = uid, .suffix = suffix};

        ident_uid(uid);
        ident_suffix(suffix);
        if (auth_is_person(&r->who)) {
            person_keep_status(r->route.resource, NULL, doc);
        }
        if (prepare_create(&r->route, doc, &stamp, &made, &r->st) < 0 ||
            check_new(r, yyjson_doc_get_root(made)) < 0) {
            return -1;
        }
        store_begin(r->store);
        if (!name_is_taken(r)) {
            admission_warn(r->route.resource, NULL, yyjson_doc_get_root(made), warn, r);
            return create_in_transaction(r, yyjson_doc_get_root(made), doc, dry_run, code);
        }
        status_exists(&r->st, r->route.resource, r->route.name);
        (void)finish_unchanged(r, -1, 0, NULL);
        if (!generated || i == GENERATE_TRIES) {
            return -1;
        }
    }
}

/* As Kubernetes has it: a custom kind must say what it is, the others are known by the address. */
static int check_named(struct request *r, yyjson_val *root)
{
    static const char *const fields[] = {"kind", "apiVersion"};

    for (size_t i = 0; i < 2 && crds_schema(r->route.resource); i++) {
        if (ferry_str_empty(yyjson_get_str(yyjson_obj_get(root, fields[i])))) {
            return status_fail(&r->st, 400,
                               "the object provided is unrecognized (must be of type %s): '%s' is "
                               "missing",
                               r->route.resource->kind_name, fields[i]);
        }
    }
    return 0;
}

int write_create(struct request *r)
{
    api_cleanup_doc yyjson_doc *body = NULL;
    bool dry_run;

    if (request_dry_run(r, &dry_run) < 0 || request_body(r, &body) < 0 ||
        check_named(r, yyjson_doc_get_root(body)) < 0) {
        return -1;
    }
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_copy(body);
    return check_unknown(r, doc) < 0 ? -1 : write_create_document(r, doc, dry_run, 201);
}

/* ---- update and patch --------------------------------------------------------------------------
 */

static bool is_custom(const struct api_resource *r)
{
    return strchr(r->group, '.') && !ferry_str_ends(r->group, ".k8s.io");
}

static int admit_change(struct request *r, const yyjson_val *old, const yyjson_val *object)
{
    cleanup_view struct view view = {.v = {.role = r->who.role}};

    if (finish_check_own(r, old, object) < 0 || node_guard_change(r, old, object) < 0) {
        return -1;
    }
    if (*r->route.subresource) {
        return 0;
    }
    view_gates(r, object, &view);
    view_named(r, object, &view);
    if (rights_check_person(r, old, object) < 0 ||
        admission_update(r->route.resource, old, object, &view.v, &r->st) < 0 ||
        rights_check_given(r, old, object) < 0 || quota_admit(r, old, object) < 0) {
        return -1;
    }
    admission_warn(r->route.resource, old, object, warn, r);
    return 0;
}

/* Stores what became of `e`, or removes it when nothing holds it any more. */
static int put_change(struct request *r, const struct entry *e, yyjson_mut_doc *doc)
{
    struct ferry_error err;
    bool gone = prepare_is_gone(r->route.resource, yyjson_mut_doc_get_root(doc));
    int rc = gone ? store_remove(r->store, e, doc, &err)
                  : store_put(r->store, e->resource, e->ns, e->name, doc, &err);

    return rc < 0 ? finish_failed(r, &err) : 0;
}

/* Ends the transaction. `doc` is the object as it shall be. */
static int finish_change(struct request *r, const struct entry *e, yyjson_val *old,
                         yyjson_mut_doc *doc, bool dry_run)
{
    api_cleanup_doc yyjson_doc *made = NULL;

    if (auth_is_person(&r->who)) {
        person_keep_status(r->route.resource, old, doc);
    }
    int rc = check_unknown(r, doc) < 0 || prepare_update(&r->route, old, doc, &made, &r->st) < 0
                 ? -1
                 : admit_change(r, old, yyjson_doc_get_root(made));
    /* No change, no new version: writers that repeat themselves wake nobody. */
    bool same = rc == 0 && yyjson_equals(old, yyjson_doc_get_root(made));

    if (rc == 0 && !dry_run && !same) {
        rc = put_change(r, e, doc);
    }
    if (rc < 0 || dry_run || same) {
        return finish_unchanged(r, rc, 200, doc);
    }
    return finish_commit(r, 200);
}

/* `make` turns the current object into the wanted one. */
static int change_object(struct request *r, bool dry_run,
                         int (*make)(struct request *r, yyjson_mut_doc *doc, void *ctx), void *ctx)
{
    cleanup_entry struct entry *e = NULL;
    api_cleanup_doc yyjson_doc *old = NULL;
    api_cleanup_mut_doc yyjson_mut_doc *doc = NULL;

    if (finish_begin(r, &e, &old, &doc) < 0) {
        return finish_unchanged(r, -1, 0, NULL);
    }
    if (ferry_streq(http_query(r->x, "fieldValidation"), "Strict")) {
        /* What is there from before the kind lost a field is not this client's mistake. */
        schema_complete(crds_any_schema(r->route.resource), doc);
    }
    if (make(r, doc, ctx) < 0) {
        return finish_unchanged(r, -1, 0, NULL);
    }
    return finish_change(r, e, yyjson_doc_get_root(old), doc, dry_run);
}

/* Kinds that Kubernetes never replaces blindly. */
static bool needs_version(const struct api_resource *r)
{
    return is_custom(r) || ferry_streq(r->group, "coordination.k8s.io");
}

static int replace_whole(struct request *r, yyjson_mut_doc *doc, void *ctx)
{
    yyjson_val *wanted = ctx;

    if (ferry_str_empty(api_json_str(wanted, "/metadata/name"))) {
        return status_fail(&r->st, 400, "metadata.name: name must be provided");
    }
    if (needs_version(r->route.resource) &&
        ferry_str_empty(api_json_str(wanted, "/metadata/resourceVersion"))) {
        return status_invalid(&r->st, r->route.resource, r->route.name, "metadata.resourceVersion",
                              STATUS_VALUE_INVALID, "0: must be specified for an update");
    }
    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, wanted));
    return 0;
}

int write_update(struct request *r)
{
    api_cleanup_doc yyjson_doc *wanted = NULL;
    bool dry_run;

    if (request_dry_run(r, &dry_run) < 0 || request_body(r, &wanted) < 0) {
        return -1;
    }
    return change_object(r, dry_run, replace_whole, yyjson_doc_get_root(wanted));
}

struct patch_work {
    int (*apply)(yyjson_mut_doc *doc, const yyjson_val *patch, struct ferry_error *err);
    yyjson_val *patch;
};

static int patch_object(struct request *r, yyjson_mut_doc *doc, void *ctx)
{
    const struct patch_work *work = ctx;
    struct ferry_error err;
    int rc = work->apply(doc, work->patch, &err);

    if (rc == 0) {
        return 0;
    }
    if (rc == -FERRY_CONFLICT || rc == -FERRY_NOT_FOUND) {
        /* what Kubernetes answers to a test that does not hold */
        return status_fail(&r->st, 422,
                           "the server rejected our request due to an error in our request: %s",
                           err.msg);
    }
    return status_of_error(&r->st, &err);
}

static int create_applied(struct request *r, bool dry_run, yyjson_val *given)
{
    if (*r->route.subresource) {
        return status_not_found(&r->st, r->route.resource, r->route.name);
    }
    api_cleanup_mut_doc yyjson_mut_doc *body = json_doc_new();
    yyjson_mut_doc_set_root(body, yyjson_val_mut_copy(body, given));
    yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(body), "metadata");
    if (!yyjson_mut_is_obj(meta)) {
        return status_fail(&r->st, 400, "metadata: must be an object");
    }
    const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(meta, "name"));
    if (name && !ferry_streq(name, r->route.name)) {
        return status_fail(&r->st, 400, "metadata.name does not match the name on the URL (%s)",
                           r->route.name);
    }
    yyjson_mut_obj_put(meta, yyjson_mut_str(body, "name"), yyjson_mut_strcpy(body, r->route.name));
    r->route.verb = ROUTE_CREATE;
    if (check_unknown(r, body) < 0) {
        return -1;
    }
    if (rights_of(r, &r->route) == AUTH_NO) {
        return status_forbidden(&r->st, r->route.resource, r->route.name,
                                "User \"%s\" cannot create this object", r->who.user);
    }
    return write_create_document(r, body, dry_run, 201);
}

/* Server-side apply, as create-or-merge: who manages which field is not tracked. */
static int apply_or_create(struct request *r, bool dry_run, struct patch_work *work)
{
    if (ferry_str_empty(api_json_str(work->patch, "/kind")) ||
        ferry_str_empty(api_json_str(work->patch, "/apiVersion"))) {
        return status_fail(&r->st, 400, "apiVersion and kind must be set in what is applied");
    }
    for (int i = 0;; i++) {
        cleanup_entry struct entry *e =
            store_get(r->store, r->route.resource, r->route.ns, r->route.name);
        int rc = e ? change_object(r, dry_run, patch_object, work)
                   : create_applied(r, dry_run, work->patch);

        /* It may come or go in between: then it is the other one that is meant. */
        if (rc == 0 || i == APPLY_TRIES || r->st.code != (e ? 404 : 409)) {
            return rc;
        }
        r->route.verb = ROUTE_PATCH;
    }
}

int write_patch(struct request *r)
{
    static const struct {
        const char *type;
        int (*apply)(yyjson_mut_doc *, const yyjson_val *, struct ferry_error *);
        bool creates;
    } kinds[] = {
        {"application/json-patch+json", api_patch_apply_json, false},
        {"application/merge-patch+json", api_patch_apply_merge, false},
        {"application/strategic-merge-patch+json", api_patch_apply_strategic, false},
        {"application/apply-patch+yaml", api_patch_apply_merge, true},
    };
    const char *type = http_header(r->x, "Content-Type");
    api_cleanup_doc yyjson_doc *body = NULL;
    bool dry_run;

    for (size_t i = 0; type && i < FERRY_COUNT(kinds); i++) {
        /* Which lists are merged by key is known of core kinds alone. */
        if (!ferry_str_starts(type, kinds[i].type) ||
            (kinds[i].apply == api_patch_apply_strategic && is_custom(r->route.resource))) {
            continue;
        }
        if (request_dry_run(r, &dry_run) < 0 || request_body(r, &body) < 0) {
            return -1;
        }
        struct patch_work work = {.apply = kinds[i].apply, .patch = yyjson_doc_get_root(body)};

        return kinds[i].creates ? apply_or_create(r, dry_run, &work)
                                : change_object(r, dry_run, patch_object, &work);
    }
    return status_fail(&r->st, 415,
                       "the body of the request was in an unknown format (%.100s); accepted are "
                       "json-patch+json, merge-patch+json, for core kinds "
                       "strategic-merge-patch+json, and apply-patch+yaml",
                       type ? type : "none given");
}

int write_ensure(struct store *store, const struct api_resource *resource, const char *name,
                 struct ferry_error *err)
{
    cleanup_entry struct entry *e = store_get(store, resource, "", name);
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    struct route route = {.resource = resource, .verb = ROUTE_CREATE};
    char uid[IDENT_UID_SIZE];
    struct prepare_stamp stamp = {.now_ms = ferry_now_unix_ms(), .uid = uid, .suffix = ""};
    api_cleanup_doc yyjson_doc *made = NULL;
    struct status st;

    if (e) {
        return 0;
    }
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, yyjson_mut_obj_add_obj(doc, root, "metadata"), "name", name);
    ident_uid(uid);
    if (prepare_create(&route, doc, &stamp, &made, &st) < 0) {
        return ferry_fail(err, FERRY_FATAL, "%s", st.message);
    }
    store_begin(store);
    int rc = store_put(store, resource, "", name, doc, err);
    if (rc < 0) {
        store_abort(store, NULL);
        return rc;
    }
    return store_commit(store, NULL, err);
}
