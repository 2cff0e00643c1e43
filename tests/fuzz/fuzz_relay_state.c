/* The state of a relay, as bytes from who knows where: refused, or whole. */
#include <stdint.h>
#include <stdlib.h>

#include "relay/state/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t now = 1000 * FERRY_NS_PER_S;
    struct ferry_error err;
    struct relay_state s;

    if (relay_state_unpack(data, size, now, &s, &err) < 0) {
        return 0;
    }
    struct pack k = {0};

    relay_state_pack(&s, now, &k);
    if (k.len != size) {
        abort(); /* what was read is not what is there */
    }
    relay_state_done(&s);
    return 0;
}
