#include "apiserver/request/finish.h"

#include "api/json.h"
#include "json/doc.h"

int finish_failed(struct request *r, const struct ferry_error *err)
{
    return status_fail(&r->st, err->cls == FERRY_RETRY ? 507 : 500, "storing the object: %s",
                       err->msg);
}

void finish_with_document(struct request *r, int code, yyjson_mut_doc *doc)
{
    size_t len = 0;
    ferry_cleanup_free char *json = json_doc_text(doc, 0, &len);

    request_answer_object(r, code, json ? json : "{}", json ? len : 2);
}

int finish_unchanged(struct request *r, int rc, int code, yyjson_mut_doc *doc)
{
    struct ferry_error err;

    if (store_abort(r->store, &err) < 0) {
        return finish_failed(r, &err);
    }
    if (rc == 0 && doc) {
        finish_with_document(r, code, doc);
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
    request_answer_object(r, code, e->json, e->json_len);
    return 0;
}

int finish_check_own(struct request *r, const yyjson_val *old, yyjson_mut_doc *doc)
{
    if (r->auth == AUTH_YES) {
        return 0;
    }
    if (!auth_owns(&r->who, r->route.resource, old)) {
        return status_forbidden(&r->st, r->route.resource, r->route.name,
                                "User \"%s\" may only change what is on its own node", r->who.user);
    }
    api_cleanup_doc yyjson_doc *changed = doc ? yyjson_mut_doc_imut_copy(doc, NULL) : NULL;
    const char *what =
        doc ? auth_overstepped(r->route.resource, old, yyjson_doc_get_root(changed)) : NULL;
    if (what) {
        return status_forbidden(&r->st, r->route.resource, r->route.name,
                                "User \"%s\" may not change %s", r->who.user, what);
    }
    return 0;
}
