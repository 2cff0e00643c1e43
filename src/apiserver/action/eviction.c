#include "apiserver/action/eviction.h"

#include <stdio.h>
#include <string.h>

#include "api/admit.h"
#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "apiserver/object/prepare.h"
#include "apiserver/request/finish.h"
#include "apiserver/request/remove.h"
#include "base/clock.h"
#include "json/doc.h"

/* ---- the call ----------------------------------------------------------------------------------
 */

static struct entry *vmi_of(struct request *r, const yyjson_val *pod)
{
    const char *name = api_admit_vmi_of_pod(pod);

    return name ? store_get(r->store, api_resource_of_kind(API_KIND_VMI), r->route.ns, name) : NULL;
}

/* spec.configuration.evictionStrategy of the KubeVirt object; owned by the caller, or NULL. */
static char *cluster_strategy(struct request *r)
{
    cleanup_entry_list struct entry_list list = {0};

    store_list(r->store, api_resource_find("kubevirt.io", "v1", "kubevirts"), NULL, &list);
    if (!list.n) {
        return NULL;
    }
    api_cleanup_doc yyjson_doc *doc = entry_doc(list.items[0]);
    return ferry_strdup(
        api_json_str(yyjson_doc_get_root(doc), "/spec/configuration/evictionStrategy"));
}

static void mark(yyjson_mut_doc *doc, const char *node, const yyjson_val *eviction)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");
    yyjson_mut_val *annotations = yyjson_mut_obj_get(meta, "annotations");

    yyjson_mut_obj_put(yyjson_mut_obj_get(root, "status"),
                       yyjson_mut_str(doc, "evacuationNodeName"), yyjson_mut_strcpy(doc, node));
    if (!api_admit_by_descheduler(eviction)) {
        return;
    }
    if (!annotations) {
        annotations = yyjson_mut_obj_add_obj(doc, meta, "annotations");
    }
    yyjson_mut_obj_put(annotations, yyjson_mut_str(doc, ANNOTATION_EVICTION_SOURCE),
                       yyjson_mut_str(doc, "descheduler"));
}

/* Ends the transaction. */
static int mark_vmi(struct request *r, const struct entry *e, yyjson_doc *old, const char *node,
                    const yyjson_val *eviction, bool dry_run, const char *why)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_copy(old);
    struct ferry_error err;

    mark(doc, node, eviction);
    if (dry_run) {
        if (finish_unchanged(r, 0, 0, NULL) < 0) {
            return -1;
        }
    } else if (store_put(r->store, e->resource, e->ns, e->name, doc, &err) < 0) {
        return finish_unchanged(r, finish_failed(r, &err), 0, NULL);
    } else if (store_commit(r->store, NULL, &err) < 0) {
        return finish_failed(r, &err);
    }
    return status_fail(&r->st, 429, "%s", why);
}

/* Ends the transaction. */
static int delete_pod(struct request *r, const struct entry *e, yyjson_doc *old,
                      const yyjson_val *eviction, bool dry_run)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_copy(old);
    int64_t grace = api_json_int(eviction, "/deleteOptions/gracePeriodSeconds", -1);
    struct ferry_error err;
    enum prepare_delete_result what = prepare_delete(
        e->resource, doc, &(struct prepare_deletion){.has_grace = grace >= 0, .grace_s = grace},
        ferry_now_unix_ms());

    if (dry_run || what == PREPARE_NOTHING) {
        return finish_unchanged(r, 0, 0, NULL);
    }
    int rc = what == PREPARE_REMOVE ? store_remove(r->store, e, doc, &err)
                                    : store_put(r->store, e->resource, e->ns, e->name, doc, &err);
    if (rc < 0) {
        store_abort(r->store, NULL);
    } else {
        rc = store_commit(r->store, NULL, &err);
    }
    return rc < 0 ? finish_failed(r, &err) : 0;
}

/* Whoever evicts may say which pod it looked at. */
static int check_meant(struct request *r, const yyjson_val *pod, const yyjson_val *eviction)
{
    const struct remove_precondition p = {
        .uid = api_json_str(eviction, "/deleteOptions/preconditions/uid"),
        .version = api_json_str(eviction, "/deleteOptions/preconditions/resourceVersion")};

    return remove_check_precondition(r, &p, pod);
}

/* Ends the transaction. */
static int evict(struct request *r, const yyjson_val *eviction, bool dry_run)
{
    cleanup_entry struct entry *e =
        store_get(r->store, r->route.resource, r->route.ns, r->route.name);
    char why[FERRY_ERROR_TEXT] = "";

    if (!e) {
        status_not_found(&r->st, r->route.resource, r->route.name);
        return finish_unchanged(r, -1, 0, NULL);
    }
    api_cleanup_doc yyjson_doc *pod = entry_doc(e);
    if (check_meant(r, yyjson_doc_get_root(pod), eviction) < 0) {
        return finish_unchanged(r, -1, 0, NULL);
    }
    cleanup_entry struct entry *owner = vmi_of(r, yyjson_doc_get_root(pod));
    api_cleanup_doc yyjson_doc *vmi = entry_doc(owner);
    ferry_cleanup_free char *strategy = cluster_strategy(r);
    switch (api_admit_eviction(yyjson_doc_get_root(pod), yyjson_doc_get_root(vmi), strategy, why,
                               sizeof(why))) {
    case API_EVICTION_ALLOW:
        return delete_pod(r, e, pod, eviction, dry_run);
    case API_EVICTION_MARK:
        return mark_vmi(r, owner, vmi, api_json_str(yyjson_doc_get_root(pod), "/spec/nodeName"),
                        eviction, dry_run, why);
    case API_EVICTION_DENY:
        break;
    }
    return finish_unchanged(r, status_fail(&r->st, 429, "%s", why), 0, NULL);
}

int eviction_serve(struct request *r)
{
    api_cleanup_doc yyjson_doc *body = NULL;
    bool dry_run;

    if (request_dry_run(r, &dry_run) < 0 || request_body(r, &body) < 0) {
        return -1;
    }
    const yyjson_val *eviction = yyjson_doc_get_root(body);
    const char *kind = api_json_str(eviction, "/kind");
    if (kind && !ferry_streq(kind, "Eviction")) {
        return status_fail(&r->st, 400, "the body must be an Eviction");
    }
    if (!ferry_streq(api_json_str(eviction, "/metadata/name"), r->route.name)) {
        return status_fail(&r->st, 400, "name in URL does not match name in Eviction object");
    }
    if (request_dry_run_of(r, yyjson_ptr_get((yyjson_val *)eviction, "/deleteOptions"), &dry_run) <
        0) {
        return -1;
    }
    store_begin(r->store);
    if (evict(r, eviction, dry_run) < 0) {
        return -1;
    }
    request_answer_status(r, &(struct status){.code = 201});
    return 0;
}
