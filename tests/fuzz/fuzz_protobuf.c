/* Kubernetes' protobuf bodies from anybody; what comes out must be JSON that our parser takes. */
#include "fuzz.h"

#include "api/json.h"
#include "api/object.h"
#include "apiserver/message/protobuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = NULL;
    struct ferry_error err;

    if (protobuf_parse(data, size, &doc, &err) == 0) {
        size_t len = 0;
        ferry_cleanup_free char *text = yyjson_mut_write(doc, 0, &len);
        api_cleanup_doc yyjson_doc *again = NULL;

        must(text && api_json_parse(text, len, &again, &err) == 0);
    }
    return 0;
}
