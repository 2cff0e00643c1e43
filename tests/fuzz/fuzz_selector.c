/* Label and field selectors from anybody, matched against an object. */
#include "fuzz.h"

#include "api/json.h"
#include "api/selector.h"

static const char object[] =
    "{\"metadata\":{\"name\":\"a\",\"labels\":{\"app\":\"web\",\"x/y\":\"\"}},"
    "\"spec\":{\"nodeName\":\"n1\",\"on\":true,\"n\":7}}";

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
        must(api_selector_matches_labels(by_label, &labels) ==
             api_selector_matches_labels_of(by_label, root));
        must(!api_selector_empty(by_label) || api_selector_matches_labels(by_label, &labels));
        for (size_t i = 0; i < api_selector_count(by_label); i++) {
            must(api_selector_key(by_label, i) != NULL);
            api_selector_equal(by_label, api_selector_key(by_label, i));
        }
    }
    if (api_selector_parse_fields(text, &by_field, &err) == 0) {
        api_selector_matches_fields(by_field, root);
    }
    return 0;
}
