#include "apiserver/request/rbac_keep.h"

#include <pthread.h>
#include <string.h>

#include "api/json.h"
#include "apiserver/access/rbac_policy.h"
#include "apiserver/object/edit.h"
#include "apiserver/object/prepare.h"
#include "apiserver/store/ident.h"
#include "base/clock.h"
#include "base/str.h"

/* Inside the transaction. 1 when nothing is to do. */
static int keep(struct store *store, size_t i, struct ferry_error *err)
{
    const struct rbac_policy *p = &rbac_policies()[i];
    const struct api_resource *r = api_resource_find(RBAC_GROUP, "v1", p->plural);
    cleanup_entry struct entry *e = store_get(store, r, "", p->name);
    api_cleanup_doc yyjson_doc *old = entry_doc(e), *made = NULL;
    char uid[IDENT_UID_SIZE];
    struct prepare_stamp stamp = {.now_ms = ferry_now_unix_ms(), .uid = uid, .suffix = ""};
    struct route route = {.resource = r, .verb = ROUTE_CREATE};
    struct status st;

    if (old) {
        api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_copy(old);

        return rbac_policy_mend(i, doc) ? store_put(store, r, "", p->name, doc, err) : 1;
    }
    api_cleanup_mut_doc yyjson_mut_doc *doc = rbac_policy_make(i);
    ident_uid(uid);
    if (prepare_create(&route, doc, &stamp, &made, &st) < 0) {
        return ferry_fail(err, FERRY_FATAL, "%s", st.message);
    }
    return store_put(store, r, "", p->name, doc, err);
}

int rbac_keep_policies(struct store *store, struct ferry_error *err)
{
    size_t changed = 0;
    int rc = 0;

    store_begin(store);
    for (size_t i = 0; rc >= 0 && rbac_policies()[i].plural; i++) {
        rc = keep(store, i, err);
        changed += rc == 0;
    }
    if (rc < 0) {
        store_abort(store, NULL);
        return ferry_wrap(err, "keeping the built-in roles");
    }
    return changed ? store_commit(store, NULL, err) : store_abort(store, err);
}

/* ---- aggregated roles --------------------------------------------------------------------------
 */

/* ctx: the rules, a JSON array. */
static bool set_rules(yyjson_mut_doc *doc, const void *ctx)
{
    const char *text = ctx;
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    api_cleanup_doc yyjson_doc *rules = yyjson_read(text, strlen(text), 0);
    yyjson_mut_val *now = yyjson_val_mut_copy(doc, yyjson_doc_get_root(rules));

    if (!now || !yyjson_mut_obj_get(root, "aggregationRule") ||
        yyjson_mut_equals(now, yyjson_mut_obj_get(root, "rules"))) {
        return false;
    }
    yyjson_mut_obj_put(root, yyjson_mut_str(doc, "rules"), now);
    return true;
}

int rbac_keep_aggregates(struct store *store, struct rbac *rbac, struct ferry_error *err)
{
    /* Of two that write, the later one has seen what the other saw. */
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    const struct api_resource *r = api_resource_find(RBAC_GROUP, "v1", "clusterroles");
    cleanup_entry_list struct entry_list list = {0};
    int rc = 0;

    pthread_mutex_lock(&turn);
    cleanup_rbac_view struct rbac_view *view = rbac_view_take(rbac);
    store_list(store, r, NULL, &list);
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        ferry_cleanup_free char *rules = rbac_view_aggregate(view, list.items[i]->name);

        rc = rules ? edit_entry(store, list.items[i], set_rules, rules, err) : 0;
    }
    pthread_mutex_unlock(&turn);
    return rc;
}
