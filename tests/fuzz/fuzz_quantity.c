/* Quantities and times from anybody. */
#include <stdint.h>

#include "api/object.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ferry_cleanup_free char *text = ferry_strndup((const char *)data, size);
    int64_t value;

    api_quantity(text, 1, &value, NULL);
    api_quantity(text, 1000, &value, NULL);
    api_time_parse(text, &value, NULL);
    return 0;
}
