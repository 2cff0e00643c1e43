/* Objects for tables of cases: a base and a merge patch on it, written with ' for ". */
#pragma once

#include "lib/unit.h"

#include <yyjson.h>

#include "api/object.h"
#include "api/patch.h"
#include "base/str.h"

static inline char *unquote(const char *text)
{
    char *json = ferry_strdup(text);

    for (char *c = json; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return json;
}

/* `merge` NULL = the base as it is. */
static inline struct api_object *make_object(enum api_kind kind, const char *base,
                                             const char *merge)
{
    ferry_cleanup_free char *base_json = unquote(base);
    ferry_cleanup_free char *merge_json = unquote(merge ? merge : "{}");
    yyjson_doc *b = yyjson_read(base_json, strlen(base_json), 0);
    yyjson_doc *m = yyjson_read(merge_json, strlen(merge_json), 0);
    struct ferry_error err = {0};
    struct api_object *o = NULL;

    if (!b || !m) {
        fail_msg("not JSON: %s", b ? merge_json : base_json);
    }
    yyjson_mut_doc *doc = yyjson_doc_mut_copy(b, NULL);
    if (api_patch_apply_merge(doc, yyjson_doc_get_root(m), &err) < 0) {
        fail_msg("%s: %s", merge_json, err.msg);
    }
    size_t len = 0;
    ferry_cleanup_free char *text = yyjson_mut_write(doc, 0, &len);
    if (api_object_parse(kind, text, len, &o, &err) < 0) {
        fail_msg("%s: %s", text, err.msg);
    }
    yyjson_mut_doc_free(doc);
    yyjson_doc_free(b);
    yyjson_doc_free(m);
    return o;
}

/* The object after a JSON patch, with the next resourceVersion; fails the test when the patch does
 * not apply and `may_fail` is false, else returns NULL. */
static inline struct api_object *patched_object(const struct api_object *o, const char *patch,
                                                bool may_fail)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_doc *p = yyjson_read(patch, strlen(patch), 0);
    struct ferry_error err = {0};
    struct api_object *ret = NULL;

    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, (yyjson_val *)o->root));
    if (api_patch_apply_json(doc, yyjson_doc_get_root(p), &err) < 0) {
        if (!may_fail) {
            fail_msg("%s: %s", patch, err.msg);
        }
    } else {
        ferry_cleanup_free char *next = ferry_asprintf("%d", atoi(o->meta->resource_version) + 1);
        yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "metadata");
        size_t len = 0;

        yyjson_mut_obj_put(meta, yyjson_mut_str(doc, "resourceVersion"),
                           yyjson_mut_strcpy(doc, next));
        ferry_cleanup_free char *text = yyjson_mut_write(doc, 0, &len);
        if (api_object_parse(o->kind, text, len, &ret, &err) < 0) {
            fail_msg("after %s: %s", patch, err.msg);
        }
    }
    yyjson_mut_doc_free(doc);
    yyjson_doc_free(p);
    return ret;
}
