#include "apiserver/action/bind.h"

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "apiserver/request/finish.h"
#include "apiserver/request/remove.h"
#include "base/clock.h"
#include "json/doc.h"

static void set_scheduled(yyjson_mut_doc *doc)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *status = yyjson_mut_obj_get(root, "status");
    yyjson_mut_val *list, *c;
    char now[FERRY_RFC3339_SIZE];
    size_t i, max;

    if (!yyjson_mut_is_obj(status)) {
        status = yyjson_mut_obj_add_obj(doc, root, "status");
    }
    list = yyjson_mut_obj_get(status, "conditions");
    if (!yyjson_mut_is_arr(list)) {
        list = yyjson_mut_obj_add_arr(doc, status, "conditions");
    }
    yyjson_mut_arr_foreach(list, i, max, c)
    {
        if (ferry_streq(yyjson_mut_get_str(yyjson_mut_obj_get(c, "type")),
                        CONDITION_POD_SCHEDULED)) {
            yyjson_mut_arr_remove(list, i);
            break;
        }
    }
    c = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_str(doc, c, "type", CONDITION_POD_SCHEDULED);
    yyjson_mut_obj_add_str(doc, c, "status", "True");
    yyjson_mut_obj_add_strcpy(doc, c, "lastTransitionTime",
                              ferry_rfc3339(ferry_now_unix_ms(), now));
}

/* Whoever binds says which pod it looked at: one that took its name later is not it. */
static int check_meant(struct request *r, const yyjson_val *pod, const yyjson_val *binding)
{
    const struct remove_precondition p = {.uid = api_json_str(binding, "/metadata/uid"),
                                          .version =
                                              api_json_str(binding, "/metadata/resourceVersion")};

    return remove_check_precondition(r, &p, pod);
}

/* Ends the transaction. */
static int bind_in_transaction(struct request *r, const char *node, const yyjson_val *binding,
                               bool dry_run)
{
    cleanup_entry struct entry *e =
        store_get(r->store, r->route.resource, r->route.ns, r->route.name);
    api_cleanup_doc yyjson_doc *old = entry_doc(e);
    api_cleanup_mut_doc yyjson_mut_doc *doc = old ? json_doc_copy(old) : NULL;
    yyjson_mut_val *spec = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "spec");
    const char *at = yyjson_mut_get_str(yyjson_mut_obj_get(spec, "nodeName"));
    struct ferry_error err;

    if (!spec) {
        status_not_found(&r->st, r->route.resource, r->route.name);
        return finish_unchanged(r, -1, 0, NULL);
    }
    if (check_meant(r, yyjson_doc_get_root(old), binding) < 0) {
        return finish_unchanged(r, -1, 0, NULL);
    }
    if (!ferry_str_empty(at)) {
        ferry_fail(&err, FERRY_CONFLICT, "pod %s is already assigned to node \"%s\"", r->route.name,
                   at);
        status_conflict(&r->st, r->route.resource, r->route.name, err.msg);
        return finish_unchanged(r, -1, 0, NULL);
    }
    if (api_json_str(yyjson_doc_get_root(old), "/metadata/deletionTimestamp")) {
        status_conflict(&r->st, r->route.resource, r->route.name,
                        "the pod is being deleted, cannot be assigned to a host");
        return finish_unchanged(r, -1, 0, NULL);
    }
    yyjson_mut_obj_put(spec, yyjson_mut_str(doc, "nodeName"), yyjson_mut_strcpy(doc, node));
    set_scheduled(doc);
    if (dry_run || store_put(r->store, e->resource, e->ns, e->name, doc, &err) < 0) {
        return finish_unchanged(r, dry_run ? 0 : finish_failed(r, &err), 0, NULL);
    }
    return store_commit(r->store, NULL, &err) < 0 ? finish_failed(r, &err) : 0;
}

int bind_serve(struct request *r)
{
    api_cleanup_doc yyjson_doc *body = NULL;
    bool dry_run;

    if (request_dry_run(r, &dry_run) < 0 || request_body(r, &body) < 0) {
        return -1;
    }
    const yyjson_val *binding = yyjson_doc_get_root(body);
    const char *node = api_json_str(binding, "/target/name");
    const char *name = api_json_str(binding, "/metadata/name");
    if (!ferry_streq(name, r->route.name)) {
        return status_fail(&r->st, 400, "name in URL does not match name in Binding object");
    }
    if (ferry_str_empty(node)) {
        return status_fail(&r->st, 400, "target.name: Required value");
    }
    store_begin(r->store);
    if (bind_in_transaction(r, node, binding, dry_run) < 0) {
        return -1;
    }
    request_answer_status(r, &(struct status){.code = 201});
    return 0;
}
