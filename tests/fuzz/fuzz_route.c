/* "METHOD PATH" of a call to the API server from anybody. */
#include "fuzz.h"

#include "apiserver/message/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ferry_cleanup_free char *text = fuzz_text(data, size);
    char *path = strchr(text, ' ');

    if (!path) {
        return 0;
    }
    *path++ = '\0';
    for (int watch = 0; watch < 2; watch++) {
        struct route r = {0};
        struct status st = {0};

        route_is_object_path(path);
        if (route_parse(text, path, watch, &r, &st) == 0) {
            must(r.resource && r.verb < ROUTE_VERB_COUNT && route_verb_name(r.verb));
        }
    }
    return 0;
}
