/* JSON Patch and merge patch. JSON Patch is applied here operation by operation instead of by
 * yyjson_patch(), because "copy" doubles a value each time: what copies add is counted. */
#include "api/patch.h"

#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "json/keys.h"

struct job {
    yyjson_mut_doc *doc;
    size_t index, copied;
    const char *path, *from;
    yyjson_val *value;
    struct ferry_error *err;
};

static int fail(const struct job *j, enum ferry_class cls, const char *what)
{
    return ferry_fail(j->err, cls, "operation %zu at '%.200s': %s", j->index,
                      j->path ? j->path : "?", what);
}

static yyjson_mut_val *find(const struct job *j, const char *pointer)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(j->doc);

    return *pointer ? yyjson_mut_ptr_get(root, pointer) : root;
}

static size_t parent_len(const char *pointer)
{
    return (size_t)(strrchr(pointer, '/') - pointer);
}

static int insert(struct job *j, yyjson_mut_val *value)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(j->doc);

    if (!*j->path) {
        yyjson_mut_doc_set_root(j->doc, value);
        return 0;
    }
    /* yyjson would give an object the key a second time. */
    yyjson_mut_val *parent = yyjson_mut_ptr_getn(root, j->path, parent_len(j->path));
    if (yyjson_mut_is_obj(parent) && yyjson_mut_ptr_replace(root, j->path, value)) {
        return 0;
    }
    if (!yyjson_mut_ptr_addx(root, j->path, strlen(j->path), value, j->doc, false, NULL, NULL)) {
        return fail(j, FERRY_NOT_FOUND, "there is no such place");
    }
    return 0;
}

static int take(struct job *j, const char *pointer, yyjson_mut_val **ret)
{
    if (!*pointer) {
        return fail(j, FERRY_INVALID, "the whole object cannot be removed");
    }
    *ret = yyjson_mut_ptr_remove(yyjson_mut_doc_get_root(j->doc), pointer);
    return *ret ? 0 : fail(j, FERRY_NOT_FOUND, "there is nothing to remove");
}

static int op_add(struct job *j)
{
    return insert(j, yyjson_val_mut_copy(j->doc, j->value));
}

static int op_remove(struct job *j)
{
    yyjson_mut_val *gone;

    return take(j, j->path, &gone);
}

static int op_replace(struct job *j)
{
    yyjson_mut_val *value = yyjson_val_mut_copy(j->doc, j->value);

    if (!*j->path) {
        yyjson_mut_doc_set_root(j->doc, value);
        return 0;
    }
    if (!yyjson_mut_ptr_replace(yyjson_mut_doc_get_root(j->doc), j->path, value)) {
        return fail(j, FERRY_NOT_FOUND, "there is nothing to replace");
    }
    return 0;
}

static int op_test(struct job *j)
{
    yyjson_mut_val *at = find(j, j->path);
    yyjson_mut_val *want = yyjson_val_mut_copy(j->doc, j->value);

    /* An absent field equals null, as Kubernetes has it. */
    if (at ? yyjson_mut_equals(at, want) : yyjson_mut_is_null(want)) {
        return 0;
    }
    return fail(j, FERRY_CONFLICT, "test failed");
}

static bool is_inside(const char *path, const char *parent)
{
    size_t n = strlen(parent);

    return strncmp(path, parent, n) == 0 && path[n] == '/';
}

static int op_move(struct job *j)
{
    yyjson_mut_val *value;

    if (is_inside(j->path, j->from)) {
        return fail(j, FERRY_INVALID, "cannot move a value into itself");
    }
    if (strcmp(j->path, j->from) == 0) {
        return find(j, j->from) ? 0 : fail(j, FERRY_NOT_FOUND, "there is nothing to move");
    }
    int rc = take(j, j->from, &value);
    return rc < 0 ? rc : insert(j, value);
}

static size_t count_values(yyjson_mut_val *v)
{
    size_t i, max, n = 1;
    yyjson_mut_val *key, *item;

    if (yyjson_mut_is_arr(v)) {
        yyjson_mut_arr_foreach(v, i, max, item)
        {
            n += count_values(item);
        }
    } else if (yyjson_mut_is_obj(v)) {
        yyjson_mut_obj_foreach(v, i, max, key, item)
        {
            n += 1 + count_values(item);
        }
    }
    return n;
}

static int op_copy(struct job *j)
{
    yyjson_mut_val *value = find(j, j->from);

    if (!value) {
        return fail(j, FERRY_NOT_FOUND, "there is nothing to copy");
    }
    j->copied += count_values(value);
    if (j->copied > API_PATCH_MAX_COPIED) {
        return fail(j, FERRY_INVALID, "the patch copies too much");
    }
    return insert(j, yyjson_mut_val_mut_copy(j->doc, value));
}

static const struct {
    const char *name;
    bool value, from;
    int (*apply)(struct job *j);
} operations[] = {
    {"add", true, false, op_add},         {"remove", false, false, op_remove},
    {"replace", true, false, op_replace}, {"test", true, false, op_test},
    {"move", false, true, op_move},       {"copy", false, true, op_copy},
};

static bool is_pointer(const char *s)
{
    return s && (!*s || *s == '/');
}

static int apply_one(struct job *j, yyjson_val *op)
{
    const char *name = yyjson_get_str(yyjson_obj_get(op, "op"));

    j->path = yyjson_get_str(yyjson_obj_get(op, "path"));
    j->from = yyjson_get_str(yyjson_obj_get(op, "from"));
    j->value = yyjson_obj_get(op, "value");
    if (!is_pointer(j->path)) {
        return fail(j, FERRY_INVALID, "'path' must be a JSON pointer");
    }
    for (size_t i = 0; name && i < FERRY_COUNT(operations); i++) {
        if (strcmp(name, operations[i].name) != 0) {
            continue;
        }
        if (operations[i].value && !j->value) {
            return fail(j, FERRY_INVALID, "'value' is missing");
        }
        if (operations[i].from && !is_pointer(j->from)) {
            return fail(j, FERRY_INVALID, "'from' must be a JSON pointer");
        }
        return operations[i].apply(j);
    }
    return fail(j, FERRY_INVALID, "'op' must be add, remove, replace, test, move or copy");
}

int api_patch_apply_json(yyjson_mut_doc *doc, const yyjson_val *patch, struct ferry_error *err)
{
    struct job j = {.doc = doc, .err = err};
    yyjson_val *op;
    size_t i, max;

    if (!yyjson_is_arr((yyjson_val *)patch)) {
        return ferry_fail(err, FERRY_INVALID, "a JSON patch must be a list of operations");
    }
    if (yyjson_arr_size((yyjson_val *)patch) > API_PATCH_MAX_OPERATIONS) {
        return ferry_fail(err, FERRY_INVALID, "more than %d operations in a JSON patch",
                          API_PATCH_MAX_OPERATIONS);
    }
    yyjson_arr_foreach((yyjson_val *)patch, i, max, op)
    {
        j.index = i;
        int rc = apply_one(&j, op);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* RFC 7386: an object is merged into what is there, null takes away, all else replaces. */
static yyjson_mut_val *merged(yyjson_mut_doc *doc, yyjson_mut_val *old, yyjson_val *patch)
{
    yyjson_val *key, *value;
    size_t i, max;

    if (!yyjson_is_obj(patch)) {
        return yyjson_val_mut_copy(doc, patch);
    }
    yyjson_mut_val *into = yyjson_mut_is_obj(old) ? old : yyjson_mut_obj(doc);
    struct json_keys *keys = json_keys_of(into, yyjson_obj_size(patch));

    yyjson_obj_foreach(patch, i, max, key, value)
    {
        yyjson_mut_val *was = json_keys_get(keys, yyjson_get_str(key), yyjson_get_len(key));

        json_keys_put(keys, yyjson_val_mut_copy(doc, key),
                      yyjson_is_null(value) ? NULL : merged(doc, was, value));
    }
    json_keys_done(keys);
    return into;
}

int api_patch_apply_merge(yyjson_mut_doc *doc, const yyjson_val *patch, struct ferry_error *err)
{
    if (!yyjson_is_obj((yyjson_val *)patch)) {
        return ferry_fail(err, FERRY_INVALID, "a merge patch must be a JSON object");
    }
    yyjson_mut_doc_set_root(doc, merged(doc, yyjson_mut_doc_get_root(doc), (yyjson_val *)patch));
    return 0;
}
