#include "apiserver/object/edit.h"

#include "api/json.h"
#include "apiserver/object/prepare.h"
#include "base/str.h"
#include "json/doc.h"

int edit_entry(struct store *store, const struct entry *e,
               bool (*edit)(yyjson_mut_doc *doc, const void *ctx), const void *ctx,
               struct ferry_error *err)
{
    store_begin(store);
    cleanup_entry struct entry *now = store_get(store, e->resource, e->ns, e->name);
    api_cleanup_doc yyjson_doc *old = now && entry_is_same(e, now) ? entry_doc(now) : NULL;
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
