#include "apiserver/request/remove.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "apiserver/access/deny.h"
#include "apiserver/object/prepare.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/finish.h"
#include "apiserver/request/read.h"
#include "base/clock.h"
#include "json/doc.h"

struct delete_options {
    struct prepare_deletion how;
    char uid[64], version[32]; /* preconditions, or "" */
    bool dry_run;
};

static int parse_propagation(struct request *r, const char *policy, struct delete_options *ret)
{
    if (!policy || ferry_streq(policy, "Background")) {
        return 0;
    }
    if (ferry_streq(policy, "Foreground")) {
        ret->how.finalizer = "foregroundDeletion";
    } else if (ferry_streq(policy, "Orphan")) {
        ret->how.finalizer = "orphan";
    } else {
        return status_fail(&r->st, 422,
                           "propagationPolicy: Unsupported value: \"%.100s\": supported values: "
                           "\"Foreground\", \"Background\", \"Orphan\"",
                           policy);
    }
    return 0;
}

static int parse_delete_options(struct request *r, struct delete_options *ret)
{
    api_cleanup_doc yyjson_doc *body = NULL;
    const char *grace = http_query(r->x, "gracePeriodSeconds");
    long long seconds;
    size_t len = 0;

    http_body(r->x, &len);
    if (request_dry_run(r, &ret->dry_run) < 0 || (len && request_body(r, &body) < 0)) {
        return -1;
    }
    if (grace) {
        if (ferry_parse_int(grace, 0, INT32_MAX, &seconds, NULL) < 0) {
            return status_fail(&r->st, 400, "gracePeriodSeconds: must be a number of seconds");
        }
        ret->how = (struct prepare_deletion){.has_grace = true, .grace_s = seconds};
    }
    if (parse_propagation(r, http_query(r->x, "propagationPolicy"), ret) < 0) {
        return -1;
    }
    if (!body) {
        return 0;
    }
    yyjson_val *root = yyjson_doc_get_root(body);
    int64_t n = api_json_int(root, "/gracePeriodSeconds", -1);
    if (n >= 0) {
        ret->how.has_grace = true;
        ret->how.grace_s = n;
    }
    if (parse_propagation(r, api_json_str(root, "/propagationPolicy"), ret) < 0) {
        return -1;
    }
    const char *uid = api_json_str(root, "/preconditions/uid");
    const char *version = api_json_str(root, "/preconditions/resourceVersion");
    snprintf(ret->uid, sizeof(ret->uid), "%s", uid ? uid : "");
    snprintf(ret->version, sizeof(ret->version), "%s", version ? version : "");
    return request_dry_run_of(r, root, &ret->dry_run);
}

int remove_check_precondition(struct request *r, const struct remove_precondition *p,
                              const yyjson_val *old)
{
    if (!ferry_str_empty(p->uid) && !ferry_streq(p->uid, api_json_str(old, "/metadata/uid"))) {
        return status_conflict(&r->st, r->route.resource, r->route.name,
                               "the UID in the precondition is not the object's UID");
    }
    if (!ferry_str_empty(p->version) &&
        !ferry_streq(p->version, api_json_str(old, "/metadata/resourceVersion"))) {
        return status_conflict(&r->st, r->route.resource, r->route.name,
                               "the resourceVersion in the precondition is not the object's");
    }
    return 0;
}

static int check_preconditions(struct request *r, const struct delete_options *o,
                               const yyjson_val *old)
{
    const struct remove_precondition p = {.uid = o->uid, .version = o->version};

    if (remove_check_precondition(r, &p, old) < 0) {
        return -1;
    }
    if (ferry_streq(r->route.resource->plural, "namespaces") &&
        (ferry_streq(r->route.name, "default") || ferry_streq(r->route.name, "kube-system"))) {
        return status_forbidden(&r->st, r->route.resource, r->route.name,
                                "this namespace may not be deleted");
    }
    return finish_check_own(r, old, NULL);
}

static void answer_deleted(struct request *r, const char *uid)
{
    struct ferry_buf b = {0};

    r->code = 200;
    ferry_buf_printf(&b,
                     "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                     "\"Success\",\"details\":{\"name\":\"%s\",\"group\":\"%s\",\"kind\":\"%s\","
                     "\"uid\":\"%s\"}}",
                     r->route.name, r->route.resource->group, r->route.resource->plural,
                     uid ? uid : "");
    http_answer_json(r->x, 200, b.data);
    ferry_buf_done(&b);
}

/* Inside the transaction. A node is out from the moment it is deleted: were it only when its last
 * finalizer goes, a node that puts one on itself would stay. */
static int stage_deletion(struct store *store, const struct entry *e, yyjson_mut_doc *doc,
                          enum prepare_delete_result what, struct ferry_error *err)
{
    int rc = deny_removed(store, e, err);

    if (rc < 0) {
        return rc;
    }
    return what == PREPARE_REMOVE ? store_remove(store, e, doc, err)
                                  : store_put(store, e->resource, e->ns, e->name, doc, err);
}

/* Ends the transaction. */
static int delete_in_transaction(struct request *r, const struct entry *e, const yyjson_val *old,
                                 yyjson_mut_doc *doc, const struct delete_options *o)
{
    struct ferry_error err;
    enum prepare_delete_result what =
        prepare_delete(r->route.resource, doc, &o->how, ferry_now_unix_ms());

    if (o->dry_run || what == PREPARE_NOTHING) {
        return finish_unchanged(r, 0, 200, doc);
    }
    if (stage_deletion(r->store, e, doc, what, &err) < 0) {
        return finish_unchanged(r, finish_failed(r, &err), 0, NULL);
    }
    if (what == PREPARE_STORE) {
        return finish_commit(r, 200);
    }
    if (store_commit(r->store, NULL, &err) < 0) {
        return finish_failed(r, &err);
    }
    answer_deleted(r, api_json_str(old, "/metadata/uid"));
    return 0;
}

int remove_serve(struct request *r)
{
    struct delete_options o = {0};

    if (parse_delete_options(r, &o) < 0) {
        return -1;
    }
    cleanup_entry struct entry *e = NULL;
    api_cleanup_doc yyjson_doc *old = NULL;
    api_cleanup_mut_doc yyjson_mut_doc *doc = NULL;
    if (finish_begin(r, &e, &old, &doc) < 0 ||
        check_preconditions(r, &o, yyjson_doc_get_root(old)) < 0) {
        return finish_unchanged(r, -1, 0, NULL);
    }
    return delete_in_transaction(r, e, yyjson_doc_get_root(old), doc, &o);
}

/* Inside the transaction. */
static int remove_in_collection(struct request *r, const struct entry *e,
                                const struct delete_options *o, size_t *changed)
{
    api_cleanup_doc yyjson_doc *old = entry_doc(e);
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_copy(old);
    enum prepare_delete_result what =
        prepare_delete(e->resource, doc, &o->how, ferry_now_unix_ms());
    struct ferry_error err;

    if (what == PREPARE_NOTHING || o->dry_run) {
        return 0;
    }
    (*changed)++;
    return stage_deletion(r->store, e, doc, what, &err) < 0 ? finish_failed(r, &err) : 0;
}

int remove_serve_collection(struct request *r)
{
    cleanup_entry_list struct entry_list list = {0};
    cleanup_filter struct filter filter = {0};
    struct delete_options o = {0};
    size_t changed = 0, n = 0;
    struct ferry_error err;
    int rc = 0;

    if (parse_delete_options(r, &o) < 0 ||
        filter_parse(r->route.resource, r->route.ns, NULL, http_query(r->x, "labelSelector"),
                     http_query(r->x, "fieldSelector"), &filter, &r->st) < 0) {
        return -1;
    }
    store_begin(r->store);
    store_list(r->store, r->route.resource, *r->route.ns ? r->route.ns : NULL, &list);
    for (size_t i = 0; i < list.n; i++) {
        if (rc == 0 && filter_matches(&filter, list.items[i])) {
            rc = remove_in_collection(r, list.items[i], &o, &changed);
            list.items[n++] = list.items[i];
        } else {
            entry_unref(list.items[i]);
        }
    }
    list.n = n;
    if (rc < 0 || !changed) {
        rc = finish_unchanged(r, rc, 0, NULL);
    } else if (store_commit(r->store, NULL, &err) < 0) {
        rc = finish_failed(r, &err);
    }
    if (rc == 0) {
        read_answer_list(r, &list, "", 0);
    }
    return rc;
}

int remove_entry(struct store *store, const struct entry *e, bool unchanged,
                 struct ferry_error *err)
{
    store_begin(store);
    cleanup_entry struct entry *now = store_get(store, e->resource, e->ns, e->name);
    if (!now || !entry_is_same(e, now)) {
        return store_abort(store, err);
    }
    if (unchanged && now->version != e->version) {
        store_abort(store, NULL);
        return 1;
    }
    api_cleanup_doc yyjson_doc *old = entry_doc(now);
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_copy(old);
    enum prepare_delete_result what =
        prepare_delete(e->resource, doc, &(struct prepare_deletion){0}, ferry_now_unix_ms());
    if (what == PREPARE_NOTHING) {
        return store_abort(store, err);
    }
    int rc = stage_deletion(store, now, doc, what, err);
    if (rc < 0) {
        store_abort(store, NULL);
        return rc;
    }
    return store_commit(store, NULL, err);
}
