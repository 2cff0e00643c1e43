/* JSON from anybody, decoded as each kind in turn (the first byte chooses). */
#include <stdint.h>

#include "api/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ferry_error err;

    if (size == 0) {
        return 0;
    }
    api_cleanup_object struct api_object *o = NULL;
    enum api_kind kind = (enum api_kind)(data[0] % API_KIND_COUNT);

    if (api_object_parse(kind, (const char *)data + 1, size - 1, &o, &err) == 0) {
        api_map_get(&o->meta->labels, "kubevirt.io/nodeName");
    }
    return 0;
}
