#include "apiserver/object/edit.h"

#include "api/json.h"
#include "apiserver/object/prepare.h"
#include "base/str.h"
#include "json/doc.h"

bool edit_same_object(const struct entry *a, const struct entry *b)
{
    api_cleanup_doc yyjson_doc *x = yyjson_read(a->json, a->json_len, 0);
    api_cleanup_doc yyjson_doc *y = yyjson_read(b->json, b->json_len, 0);

    return ferry_streq(api_json_str(yyjson_doc_get_root(x), "/metadata/uid"),
                       api_json_str(yyjson_doc_get_root(y), "/metadata/uid"));
}

int edit_entry(struct store *store, const struct entry *e,
               bool (*edit)(yyjson_mut_doc *doc, const void *ctx), const void *ctx,
               struct ferry_error *err)
{
    store_begin(store);
    cleanup_entry struct entry *now = store_get(store, e->resource, e->ns, e->name);
    api_cleanup_doc yyjson_doc *old =
        now && edit_same_object(e, now) ? yyjson_read(now->json, now->json_len, 0) : NULL;
    api_cleanup_mut_doc yyjson_mut_doc *doc = old ? json_doc_copy(old) : NULL;
    if (!doc || !edit(doc, ctx)) {
        return store_abort(store, err);
    }
    int rc = prepare_is_gone(e->resource, yyjson_mut_doc_get_root(doc))
                 ? store_remove(store, now, doc, err)
                 : store_put(store, e->resource, e->ns, e->name, doc, err);
    if (rc < 0) {
        store_abort(store, NULL);
        return rc;
    }
    return store_commit(store, NULL, err);
}
