/* What inputs of a fuzz target cost, for each byte of them and of a few thousand beside. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct fuzz_cost {
    int64_t ns, bytes; /* CPU time; memory at its peak */
};

/* The target's LLVMFuzzerTestOneInput, as the build names it. */
int fuzz_target(const uint8_t *data, size_t size);
/* The worst of all that ran. */
struct fuzz_cost fuzz_cost_worst(void);
