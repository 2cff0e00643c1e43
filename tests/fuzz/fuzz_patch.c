/* Patches from anybody: {"object": ..., "patch": ...}; the first byte says which sort. What comes
 * out must be JSON that holds no key twice, and a merge patch applied again changes nothing. */
#include "fuzz.h"

#include "api/json.h"
#include "api/object.h"
#include "api/patch.h"

enum { DEEP = 1000 };

static int apply(uint8_t sort, yyjson_mut_doc *doc, const yyjson_val *patch)
{
    switch (sort % 3) {
    case 0:
        return api_patch_apply_json(doc, patch, NULL);
    case 1:
        return api_patch_apply_merge(doc, patch, NULL);
    default:
        return api_patch_apply_strategic(doc, patch, NULL);
    }
}

static char *written(yyjson_mut_doc *doc, size_t *len)
{
    char *text = yyjson_mut_write(doc, 0, len);
    api_cleanup_doc yyjson_doc *again = text ? yyjson_read(text, *len, 0) : NULL;

    must(again && api_json_check(yyjson_doc_get_root(again), DEEP, NULL) == 0);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    api_cleanup_doc yyjson_doc *in = NULL;

    if (size < 1 || api_json_parse((const char *)data + 1, size - 1, &in, NULL) < 0) {
        return 0;
    }
    yyjson_val *object = yyjson_obj_get(yyjson_doc_get_root(in), "object");
    yyjson_val *patch = yyjson_obj_get(yyjson_doc_get_root(in), "patch");
    if (!object || !patch) {
        return 0;
    }
    api_cleanup_mut_doc yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, object));
    if (apply(data[0], doc, patch) < 0) {
        return 0;
    }
    size_t len = 0, len_again = 0;
    ferry_cleanup_free char *once = written(doc, &len);
    if (data[0] % 3 == 1) {
        must(apply(data[0], doc, patch) == 0);
        ferry_cleanup_free char *twice = written(doc, &len_again);
        must(len == len_again && memcmp(once, twice, len) == 0);
    }
    return 0;
}
