#include "apiserver/access/deny.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "apiserver/store/ident.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

#define NAME_PREFIX "ferry-denied."
static const char home[] = "kube-system";
/* In place of a generation: nothing is good. One of an older version has neither. */
static const char nobody[] = "none";

static const struct api_resource *config_maps(void)
{
    return api_resource_find("", "v1", "configmaps");
}

static char *name_for(const char *node)
{
    return ferry_asprintf(NAME_PREFIX "%s", node);
}

/* ---- the record --------------------------------------------------------------------------------
 */

/* What a record says; the strings live as long as `doc`. */
static struct tls_denial read_record(yyjson_doc *doc)
{
    const yyjson_val *root = yyjson_doc_get_root(doc);
    const char *generation = api_json_str(root, "/data/generation");
    const char *removed = api_json_str(root, "/data/removed");
    struct tls_denial d = {.node = api_json_str(root, "/data/node")};
    int64_t removed_ms = 0;

    if (generation) {
        d.generation = ferry_streq(generation, nobody) ? NULL : generation;
    } else if (removed && api_time_parse(removed, &removed_ms, NULL) == 0) {
        d.before_s = removed_ms / 1000;
    }
    return d;
}

static int write_record(struct store *store, const char *node, const char *removed,
                        const char *generation, const char *joined, struct ferry_error *err)
{
    ferry_cleanup_free char *name = name_for(node);
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);
    char uid[IDENT_UID_SIZE];

    ident_uid(uid);
    yyjson_mut_obj_add_str(doc, root, "apiVersion", "v1");
    yyjson_mut_obj_add_str(doc, root, "kind", "ConfigMap");
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_obj_add_str(doc, meta, "name", name);
    yyjson_mut_obj_add_str(doc, meta, "namespace", home);
    yyjson_mut_obj_add_str(doc, meta, "uid", uid);
    yyjson_mut_obj_add_str(doc, meta, "creationTimestamp", removed);
    yyjson_mut_val *data = yyjson_mut_obj_add_obj(doc, root, "data");
    yyjson_mut_obj_add_str(doc, data, "node", node);
    yyjson_mut_obj_add_str(doc, data, "removed", removed);
    yyjson_mut_obj_add_str(doc, data, "generation", generation);
    if (joined) {
        yyjson_mut_obj_add_str(doc, data, "joined", joined);
    }
    return store_put(store, config_maps(), home, name, doc, err);
}

int deny_removed(struct store *store, const struct entry *e, struct ferry_error *err)
{
    char now[FERRY_RFC3339_SIZE];

    if (e->resource->kind != API_KIND_NODE) {
        return 0;
    }
    return write_record(store, e->name, ferry_rfc3339(ferry_now_unix_ms(), now), nobody, NULL, err);
}

int deny_lift(struct store *store, const char *node, char generation[TLS_GENERATION_SIZE],
              struct ferry_error *err)
{
    ferry_cleanup_free char *name = name_for(node);
    cleanup_entry struct entry *e = store_get(store, config_maps(), home, name);
    api_cleanup_doc yyjson_doc *doc = entry_doc(e);
    const struct tls_denial was = read_record(doc);
    char uid[IDENT_UID_SIZE], now[FERRY_RFC3339_SIZE];

    generation[0] = '\0';
    if (!e) {
        return 0;
    }
    if (was.generation) { /* it has joined since: another join adds to what it has */
        snprintf(generation, TLS_GENERATION_SIZE, "%s", was.generation);
        return 0;
    }
    const char *removed = api_json_str(yyjson_doc_get_root(doc), "/data/removed");
    ident_uid(uid);
    snprintf(generation, TLS_GENERATION_SIZE, "%s", uid);
    ferry_rfc3339(ferry_now_unix_ms(), now);
    return write_record(store, node, removed ? removed : now, generation, now, err);
}

/* ---- asking ------------------------------------------------------------------------------------
 */

bool deny_check_node(struct store *store, const char *node, const char *generation, int64_t begin_s)
{
    ferry_cleanup_free char *name = name_for(node);
    cleanup_entry struct entry *e = store_get(store, config_maps(), home, name);

    if (!e) {
        return false;
    }
    api_cleanup_doc yyjson_doc *doc = entry_doc(e);
    const struct tls_denial d = read_record(doc);
    return tls_denial_hits(&d, generation, begin_s);
}

bool deny_check(struct store *store, const struct http_peer *peer)
{
    static const char *const prefixes[] = {"system:node:", "ferry-relay:"};

    for (size_t i = 0; i < FERRY_COUNT(prefixes); i++) {
        if (ferry_str_starts(peer->common_name, prefixes[i])) {
            return deny_check_node(store, peer->common_name + strlen(prefixes[i]), peer->generation,
                                   peer->not_before);
        }
    }
    return false;
}

void deny_list(struct store *store, struct ferry_buf *out)
{
    cleanup_entry_list struct entry_list all = {0};
    api_cleanup_mut_doc yyjson_mut_doc *answer = json_doc_new();
    yyjson_mut_val *nodes = yyjson_mut_obj_add_arr(answer, json_doc_object(answer), "nodes");

    store_list(store, config_maps(), home, &all);
    for (size_t i = 0; i < all.n; i++) {
        if (!ferry_str_starts(all.items[i]->name, NAME_PREFIX)) {
            continue;
        }
        api_cleanup_doc yyjson_doc *doc = entry_doc(all.items[i]);
        const struct tls_denial d = read_record(doc);
        yyjson_mut_val *row = yyjson_mut_arr_add_obj(answer, nodes);

        yyjson_mut_obj_add_strcpy(answer, row, "node", all.items[i]->name + strlen(NAME_PREFIX));
        if (d.generation) {
            yyjson_mut_obj_add_strcpy(answer, row, "generation", d.generation);
        }
        if (d.before_s) {
            yyjson_mut_obj_add_int(answer, row, "before", d.before_s);
        }
    }
    ferry_cleanup_free char *text = json_doc_text(answer, 0, NULL);
    ferry_buf_puts(out, text);
}
