/* Scope-bound ownership. A cleanup variable is initialised where it is declared; ownership leaves
 * only through ferry_take_ptr() or ferry_take_fd(). */
#pragma once

#include <stdlib.h>

#define ferry_cleanup(fn) __attribute__((cleanup(fn)))

static inline void ferry_freep(void *p)
{
    free(*(void **)p);
}

void ferry_closep(int *fd);

#define ferry_cleanup_free ferry_cleanup(ferry_freep)
#define ferry_cleanup_fd ferry_cleanup(ferry_closep)

#define ferry_take_ptr(p)                                                                          \
    ({                                                                                             \
        typeof(p) *_pp = &(p);                                                                     \
        typeof(p) _v = *_pp;                                                                       \
        *_pp = NULL;                                                                               \
        _v;                                                                                        \
    })

static inline int ferry_take_fd(int *fd)
{
    int v = *fd;

    *fd = -1;
    return v;
}

/* Defines `void NAMEp(TYPE *p)` for use as a cleanup of a variable of type TYPE. */
#define FERRY_DEFINE_CLEANUP(type, fn)                                                             \
    static inline void fn##p(type *p)                                                              \
    {                                                                                              \
        if (*p) {                                                                                  \
            fn(*p);                                                                                \
        }                                                                                          \
    }
