/* YAML from anybody; what comes out must be JSON that our own parser takes. */
#include <stdint.h>
#include <stdlib.h>

#include "api/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int each(void *ctx, const char *json, size_t len, struct ferry_error *err)
{
    yyjson_doc *doc = NULL;

    (void)ctx;
    if (api_json_parse(json, len, &doc, err) < 0) {
        abort();
    }
    yyjson_doc_free(doc);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ferry_error err;

    api_yaml_each((const char *)data, size, each, NULL, &err);
    return 0;
}
