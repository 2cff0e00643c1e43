/* Bodies of the relay's PUT calls, as target and as source. What is accepted must equal itself. */
#include <stdint.h>
#include <stdlib.h>

#include "base/str.h"
#include "relay/common/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* As the HTTP server hands it over: ended by a NUL that is not counted. */
    ferry_cleanup_free char *text = malloc(size + 1);

    for (size_t i = 0; i < size; i++) {
        text[i] = (char)data[i];
    }
    text[size] = '\0';
    for (int role = RELAY_TARGET; role <= RELAY_SOURCE; role++) {
        ferry_cleanup(relay_spec_freep) struct relay_spec *s = NULL;
        struct ferry_error err;

        if (relay_spec_parse((enum relay_role)role, "key", text, size, &s, &err) == 0 &&
            (s->n_channels == 0 || relay_spec_decide(s, s, true) != RELAY_KEEP)) {
            abort();
        }
    }
    return 0;
}
