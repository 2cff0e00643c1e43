#include "apiserver/access/deny.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "apiserver/store/ident.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "tls/pki.h"
#include "json/doc.h"

static const char home[] = "kube-system";

static const struct api_resource *config_maps(void)
{
    return api_resource_find("", "v1", "configmaps");
}

static char *name_for(const char *node)
{
    return ferry_asprintf("ferry-denied.%s", node);
}

int deny_removed(struct store *store, const struct entry *e, struct ferry_error *err)
{
    if (e->resource->kind != API_KIND_NODE) {
        return 0;
    }
    ferry_cleanup_free char *name = name_for(e->name);
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    char uid[IDENT_UID_SIZE], now[FERRY_RFC3339_SIZE];

    ident_uid(uid);
    ferry_rfc3339(ferry_now_unix_ms(), now);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "apiVersion", "v1");
    yyjson_mut_obj_add_str(doc, root, "kind", "ConfigMap");
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_obj_add_str(doc, meta, "name", name);
    yyjson_mut_obj_add_str(doc, meta, "namespace", home);
    yyjson_mut_obj_add_str(doc, meta, "uid", uid);
    yyjson_mut_obj_add_str(doc, meta, "creationTimestamp", now);
    yyjson_mut_val *data = yyjson_mut_obj_add_obj(doc, root, "data");
    yyjson_mut_obj_add_str(doc, data, "node", e->name);
    yyjson_mut_obj_add_str(doc, data, "removed", now);
    return store_put(store, config_maps(), home, name, doc, err);
}

bool deny_check(struct store *store, const struct http_peer *peer)
{
    static const char *const prefixes[] = {"system:node:", "ferry-relay:"};

    for (size_t i = 0; i < FERRY_COUNT(prefixes); i++) {
        if (!ferry_str_starts(peer->common_name, prefixes[i])) {
            continue;
        }
        ferry_cleanup_free char *name = name_for(peer->common_name + strlen(prefixes[i]));
        cleanup_entry struct entry *e = store_get(store, config_maps(), home, name);
        api_cleanup_doc yyjson_doc *doc = entry_doc(e);
        const char *text = api_json_str(yyjson_doc_get_root(doc), "/data/removed");
        int64_t removed_ms = 0;

        if (text && api_time_parse(text, &removed_ms, NULL) == 0 &&
            peer->not_before + PKI_BACKDATE_S <= removed_ms / 1000) {
            return true;
        }
    }
    return false;
}
