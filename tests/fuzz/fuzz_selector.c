/* Label and field selectors from anybody, matched against an object. */
#include "fuzz.h"

#include "api/json.h"
#include "api/kinds_meta.h"
#include "api/selector.h"

static const char object[] =
    "{\"metadata\":{\"name\":\"a\",\"labels\":{\"app\":\"web\",\"x/y\":\"\"}},"
    "\"spec\":{\"nodeName\":\"n1\",\"on\":true,\"n\":7}}";

static struct ferry_span label_of_json(const void *root, const char *key)
{
    yyjson_val *labels = yyjson_ptr_get((yyjson_val *)(uintptr_t)root, "/metadata/labels");

    return ferry_span_of(yyjson_get_str(yyjson_obj_get(labels, key)));
}

static struct ferry_span label_of_map(const void *map, const char *key)
{
    return ferry_span_of(api_map_get(map, key));
}

static struct ferry_span field_of_json(const void *root, const char *path)
{
    static char number[API_SELECTOR_NUMBER];

    return api_selector_field(root, path, number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ferry_cleanup_free char *text = fuzz_text(data, size);
    api_cleanup_doc yyjson_doc *doc = yyjson_read(object, sizeof(object) - 1, 0);
    const yyjson_val *root = yyjson_doc_get_root(doc);
    const struct api_pair pairs[] = {{"app", "web"}, {"x/y", ""}};
    const struct api_map labels = {.items = pairs, .n = 2};
    api_cleanup_selector struct api_selector *by_label = NULL, *by_field = NULL;
    struct ferry_error err;

    if (api_selector_parse_labels(text, &by_label, &err) == 0) {
        bool matches = api_selector_matches(by_label, label_of_map, &labels);

        must(matches == api_selector_matches(by_label, label_of_json, root));
        must(matches || !api_selector_empty(by_label));
        for (size_t i = 0; i < api_selector_count(by_label); i++) {
            must(api_selector_key(by_label, i) != NULL);
            api_selector_equal(by_label, api_selector_key(by_label, i));
        }
    }
    if (api_selector_parse_fields(text, &by_field, &err) == 0) {
        api_selector_matches(by_field, field_of_json, root);
    }
    return 0;
}
