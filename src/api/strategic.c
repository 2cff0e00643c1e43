/* Strategic merge patch. A merge patch, except that some lists are merged item by item: by a key
 * field, or as a set of plain values. Which ones is a property of the Kubernetes types; the table
 * has the lists of the kinds that Ferry serves. */
#include <string.h>

#include "api/json.h"
#include "api/patch.h"
#include "base/count.h"
#include "base/str.h"

struct merge_list {
    const char *field;
    const char *key; /* "" = a set of plain values */
};

static const struct merge_list merge_lists[] = {
    {"conditions", "type"},
    {"containers", "name"},
    {"initContainers", "name"},
    {"ephemeralContainers", "name"},
    {"volumes", "name"},
    {"volumeMounts", "mountPath"},
    {"env", "name"},
    {"ports", "containerPort"},
    {"addresses", "type"},
    {"ownerReferences", "uid"},
    {"imagePullSecrets", "name"},
    {"hostAliases", "ip"},
    {"topologySpreadConstraints", "topologyKey"},
    {"secrets", "name"},
    {"podIPs", "ip"},
    {"finalizers", ""},
    {"podCIDRs", ""},
};

static const struct merge_list *merge_list_of(const char *field)
{
    for (size_t i = 0; i < FERRY_COUNT(merge_lists); i++) {
        if (strcmp(field, merge_lists[i].field) == 0) {
            return &merge_lists[i];
        }
    }
    return NULL;
}

/* Items compared with items and keys with keys, in all of a patch: each is looked for by walking.
 */
enum { MAX_COMPARED = 16 << 20 };

struct merger {
    yyjson_mut_doc *doc;
    size_t compared;
    struct ferry_error *err;
};

/* `n` items or keys are going to be looked for among `old`, which may grow by as many. */
static int count_compared(struct merger *m, const char *field, size_t n, size_t old)
{
    m->compared += n * (n + old);
    return m->compared <= MAX_COMPARED
               ? 0
               : ferry_fail(m->err, FERRY_INVALID, "%.100s: too many items to merge", field);
}

static int merge_object(struct merger *m, yyjson_mut_val *into, yyjson_val *patch, size_t depth);

static yyjson_mut_val *item_with(yyjson_mut_val *list, const char *key, yyjson_mut_val *want)
{
    size_t i, max;
    yyjson_mut_val *item;

    yyjson_mut_arr_foreach(list, i, max, item)
    {
        yyjson_mut_val *v = *key ? yyjson_mut_obj_get(item, key) : item;

        if (v && yyjson_mut_equals(v, want)) {
            return item;
        }
    }
    return NULL;
}

static void drop_item(yyjson_mut_val *list, const yyjson_mut_val *gone)
{
    yyjson_mut_arr_iter it = yyjson_mut_arr_iter_with(list);
    yyjson_mut_val *item;

    while ((item = yyjson_mut_arr_iter_next(&it))) {
        if (item == gone) {
            yyjson_mut_arr_iter_remove(&it);
        }
    }
}

static bool has_directive(yyjson_val *item, const char *what)
{
    return ferry_streq(yyjson_get_str(yyjson_obj_get(item, "$patch")), what);
}

/* {"$patch": "replace"} anywhere in a list makes it the whole new list. */
static bool replaces(yyjson_val *patch)
{
    size_t i, max;
    yyjson_val *item;

    yyjson_arr_foreach(patch, i, max, item)
    {
        if (has_directive(item, "replace")) {
            return true;
        }
    }
    return false;
}

static int merge_item(struct merger *m, yyjson_mut_val *list, const struct merge_list *how,
                      yyjson_val *item, size_t depth)
{
    yyjson_val *id = *how->key ? yyjson_obj_get(item, how->key) : item;

    if (!id) {
        return ferry_fail(m->err, FERRY_INVALID, "%s: an item of the patch has no '%s'", how->field,
                          how->key);
    }
    yyjson_mut_val *old = item_with(list, how->key, yyjson_val_mut_copy(m->doc, id));
    if (*how->key && has_directive(item, "delete")) {
        drop_item(list, old);
        return 0;
    }
    if (!*how->key) {
        if (!old) {
            yyjson_mut_arr_append(list, yyjson_val_mut_copy(m->doc, item));
        }
        return 0;
    }
    if (!old) {
        old = yyjson_mut_arr_add_obj(m->doc, list);
    }
    return merge_object(m, old, item, depth - 1);
}

static int merge_list(struct merger *m, yyjson_mut_val *into, const char *field, yyjson_val *patch,
                      size_t depth)
{
    const struct merge_list *how = merge_list_of(field);
    yyjson_mut_val *list = yyjson_mut_obj_get(into, field);
    size_t i, max;
    yyjson_val *item;

    if (!how || !yyjson_mut_is_arr(list) || replaces(patch)) {
        list = yyjson_mut_arr(m->doc);
        yyjson_mut_obj_put(into, yyjson_mut_strcpy(m->doc, field), list);
    }
    if (how && count_compared(m, field, yyjson_arr_size(patch), yyjson_mut_arr_size(list)) < 0) {
        return -FERRY_INVALID;
    }
    yyjson_arr_foreach(patch, i, max, item)
    {
        if (has_directive(item, "replace")) {
            continue;
        }
        if (!how) {
            yyjson_mut_arr_append(list, yyjson_val_mut_copy(m->doc, item));
            continue;
        }
        int rc = merge_item(m, list, how, item, depth - 1);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int delete_values(struct merger *m, yyjson_mut_val *into, const char *field,
                         yyjson_val *gone)
{
    yyjson_mut_val *list = yyjson_mut_obj_get(into, field);
    size_t i, max;
    yyjson_val *item;

    if (count_compared(m, field, yyjson_arr_size(gone), yyjson_mut_arr_size(list)) < 0) {
        return -FERRY_INVALID;
    }
    yyjson_arr_foreach(gone, i, max, item)
    {
        drop_item(list, item_with(list, "", yyjson_val_mut_copy(m->doc, item)));
    }
    return 0;
}

static void retain_keys(yyjson_mut_val *into, yyjson_val *keep)
{
    yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(into);
    yyjson_mut_val *key;

    while ((key = yyjson_mut_obj_iter_next(&it))) {
        size_t i, max;
        bool found = false;
        yyjson_val *k;

        yyjson_arr_foreach(keep, i, max, k)
        {
            found = found || ferry_streq(yyjson_get_str(k), yyjson_mut_get_str(key));
        }
        if (!found) {
            yyjson_mut_obj_iter_remove(&it);
        }
    }
}

static int merge_field(struct merger *m, yyjson_mut_val *into, const char *field, yyjson_val *patch,
                       size_t depth)
{
    static const char delete_prefix[] = "$deleteFromPrimitiveList/";

    if (*field == '$') {
        return ferry_str_starts(field, delete_prefix)
                   ? delete_values(m, into, field + strlen(delete_prefix), patch)
                   : 0;
    }
    if (yyjson_is_null(patch)) {
        yyjson_mut_obj_remove_key(into, field);
        return 0;
    }
    if (yyjson_is_arr(patch)) {
        return merge_list(m, into, field, patch, depth);
    }
    if (!yyjson_is_obj(patch)) {
        yyjson_mut_obj_put(into, yyjson_mut_strcpy(m->doc, field),
                           yyjson_val_mut_copy(m->doc, patch));
        return 0;
    }
    yyjson_mut_val *child = yyjson_mut_obj_get(into, field);
    if (!yyjson_mut_is_obj(child)) {
        child = yyjson_mut_obj(m->doc);
        yyjson_mut_obj_put(into, yyjson_mut_strcpy(m->doc, field), child);
    }
    return merge_object(m, child, patch, depth - 1);
}

static int merge_object(struct merger *m, yyjson_mut_val *into, yyjson_val *patch, size_t depth)
{
    size_t i, max;
    yyjson_val *key, *item;

    if (depth == 0) {
        return ferry_fail(m->err, FERRY_INVALID, "the patch is nested too deeply");
    }
    if (has_directive(patch, "replace") || has_directive(patch, "delete")) {
        yyjson_mut_obj_clear(into);
    }
    if (has_directive(patch, "delete")) {
        return 0;
    }
    yyjson_val *retain = yyjson_obj_get(patch, "$retainKeys");
    size_t wanted = yyjson_obj_size(patch) + yyjson_arr_size(retain);

    if (count_compared(m, "the patch", wanted, yyjson_mut_obj_size(into)) < 0) {
        return -FERRY_INVALID;
    }
    if (retain) {
        retain_keys(into, retain);
    }
    yyjson_obj_foreach(patch, i, max, key, item)
    {
        int rc = merge_field(m, into, yyjson_get_str(key), item, depth);

        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int api_patch_apply_strategic(yyjson_mut_doc *doc, const yyjson_val *patch, struct ferry_error *err)
{
    struct merger m = {.doc = doc, .err = err};

    if (!yyjson_is_obj((yyjson_val *)patch)) {
        return ferry_fail(err, FERRY_INVALID, "a strategic merge patch must be a JSON object");
    }
    return merge_object(&m, yyjson_mut_doc_get_root(doc), (yyjson_val *)patch,
                        (size_t)2 * API_JSON_DEPTH);
}
