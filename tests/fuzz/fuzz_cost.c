/* Theory of operation. What libFuzzer and corpus_main.c call is here: it runs the target's own
 * function (which the build gives another name) and looks at what that took. Work and memory must
 * grow with the input and no faster, or whoever sends a little keeps a program busy with it. The
 * bounds are wide, since inputs are small and machines differ: what they catch is a walk over
 * everything for each byte, or a length that was believed. What takes inputs that can be made of
 * any length is measured more closely, in tests/unit/test_cost.c.
 *
 * Memory is counted where the address sanitizer is, which tells of every allocation. */
#include "fuzz_cost.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#undef LLVMFuzzerTestOneInput

enum {
    FREE_BYTES = 4096, /* of input: what anything costs, however small it is */
    MOST_BYTES = 512,  /* for each byte of input */
    MOST_NS = 20000,
    TRIES = 3, /* the best of them counts: other work on the machine only adds */
};

/* Of <sanitizer/allocator_interface.h>; not there without a sanitizer. */
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
                                              void (*)(const volatile void *))
    __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *) __attribute__((weak));

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static atomic_int_fast64_t live, peak;
static struct fuzz_cost worst;

static void on_malloc(const volatile void *p, size_t size)
{
    int64_t now = atomic_fetch_add(&live, (int64_t)size) + (int64_t)size;

    (void)p;
    if (now > atomic_load(&peak)) {
        atomic_store(&peak, now);
    }
}

static void on_free(const volatile void *p)
{
    if (p) {
        atomic_fetch_sub(&live, (int64_t)__sanitizer_get_allocated_size(p));
    }
}

static void watch_memory(void)
{
    static bool watched;

    if (!watched && __sanitizer_install_malloc_and_free_hooks) {
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    }
    watched = true;
}

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct fuzz_cost run(const uint8_t *data, size_t size)
{
    int64_t per = (int64_t)size + FREE_BYTES, begin = cpu_ns(), before = atomic_load(&live);

    atomic_store(&peak, before);
    fuzz_target(data, size);
    return (struct fuzz_cost){.ns = (cpu_ns() - begin) / per,
                              .bytes = (atomic_load(&peak) - before) / per};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    watch_memory();
    struct fuzz_cost cost = run(data, size);

    for (int try = 1; cost.ns > MOST_NS && try < TRIES; try++) {
        struct fuzz_cost again = run(data, size);

        cost.ns = again.ns < cost.ns ? again.ns : cost.ns;
    }
    if (cost.ns > MOST_NS || cost.bytes > MOST_BYTES) {
        fprintf(stderr,
                "%zu bytes of input cost %" PRId64 " ns and %" PRId64 " bytes of memory each\n",
                size, cost.ns, cost.bytes);
        abort();
    }
    worst.ns = cost.ns > worst.ns ? cost.ns : worst.ns;
    worst.bytes = cost.bytes > worst.bytes ? cost.bytes : worst.bytes;
    return 0;
}

struct fuzz_cost fuzz_cost_worst(void)
{
    return worst;
}
