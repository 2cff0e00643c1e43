/* Objects from anybody against the custom resource definitions that are served; the first byte
 * chooses the kind. What was completed has nothing unknown in it, and completing it again changes
 * nothing. */
#include "fuzz.h"

#include "api/json.h"
#include "apiserver/kinds/crds.h"
#include "apiserver/kinds/schema.h"
#include "apiserver/message/status.h"
#include "apiserver/object/prepare.h"
#include "base/count.h"

static const enum api_kind kinds[] = {API_KIND_VMI, API_KIND_MIGRATION, API_KIND_VM,
                                      API_KIND_KUBEVIRT, API_KIND_POLICY};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool loaded;
    api_cleanup_doc yyjson_doc *in = NULL;

    if (!loaded) {
        must(crds_load(CRDS_DIR, NULL) == 0);
        loaded = true;
    }
    if (size < 1 || api_json_parse((const char *)data + 1, size - 1, &in, NULL) < 0 ||
        !yyjson_is_obj(yyjson_doc_get_root(in))) {
        return 0;
    }
    const struct api_resource *r = api_resource_of_kind(kinds[data[0] % (FERRY_COUNT(kinds))]);
    const yyjson_val *schema = crds_schema(r);
    api_cleanup_mut_doc yyjson_mut_doc *doc = yyjson_doc_mut_copy(in, NULL);
    ferry_cleanup_buf struct ferry_buf before = {0}, after = {0};
    struct status st = {0};

    must(schema != NULL);
    schema_unknown(schema, yyjson_mut_doc_get_root(doc), &before);
    schema_complete(schema, doc);
    schema_unknown(schema, yyjson_mut_doc_get_root(doc), &after);
    must(after.len == 0);
    ferry_cleanup_free char *once = yyjson_mut_write(doc, 0, NULL);
    api_cleanup_doc yyjson_doc *kept = yyjson_mut_doc_imut_copy(doc, NULL);
    schema_complete(schema, doc);
    ferry_cleanup_free char *twice = yyjson_mut_write(doc, 0, NULL);
    must(once && twice && strcmp(once, twice) == 0);
    schema_validate(schema, r, "x", yyjson_mut_doc_get_root(doc), NULL, &st);
    st = (struct status){0};
    must(schema_validate(schema, r, "x", yyjson_mut_doc_get_root(doc), yyjson_doc_get_root(kept),
                         &st) == 0); /* it was so before */
    api_cleanup_doc yyjson_doc *view = NULL;
    must((prepare_validate(r, NULL, doc, &view, &st) == 0) == (view != NULL));
    return 0;
}
