#include "apiserver/request/finish.h"

#include "json/doc.h"

int finish_begin(struct request *r, struct entry **ret_entry, yyjson_doc **ret_old,
                 yyjson_mut_doc **ret_copy)
{
    store_begin(r->store);
    *ret_entry = store_get(r->store, r->route.resource, r->route.ns, r->route.name);
    if (!*ret_entry) {
        return status_not_found(&r->st, r->route.resource, r->route.name);
    }
    *ret_old = entry_doc(*ret_entry);
    *ret_copy = json_doc_copy(*ret_old);
    return *ret_copy ? 0 : status_fail(&r->st, 500, "the stored object cannot be read");
}

int finish_failed(struct request *r, const struct ferry_error *err)
{
    return status_fail(&r->st, err->cls == FERRY_RETRY ? 507 : 500, "storing the object: %s",
                       err->msg);
}

int finish_unchanged(struct request *r, int rc, int code, yyjson_mut_doc *doc)
{
    struct ferry_error err;

    if (store_abort(r->store, &err) < 0) {
        return finish_failed(r, &err);
    }
    if (rc == 0 && doc) {
        request_answer_document(r, code, doc);
    }
    return rc;
}

int finish_commit(struct request *r, int code)
{
    cleanup_entry struct entry *e = NULL;
    struct ferry_error err;

    if (store_commit(r->store, &e, &err) < 0) {
        return finish_failed(r, &err);
    }
    request_answer_entry(r, code, e);
    return 0;
}

int finish_check_own(struct request *r, const yyjson_val *old, const yyjson_val *object)
{
    if (r->auth == AUTH_YES) {
        return 0;
    }
    if (!auth_owns(&r->who, r->route.resource, old)) {
        return status_forbidden(&r->st, r->route.resource, r->route.name,
                                "User \"%s\" may only change what is on its own node", r->who.user);
    }
    char what[AUTH_TEXT];
    if (object && auth_overstepped(&r->who, r->route.resource, old, object, what)) {
        return status_forbidden(&r->st, r->route.resource, r->route.name,
                                "User \"%s\" may not change %s", r->who.user, what);
    }
    return 0;
}
