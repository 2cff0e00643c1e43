/* OpenSSL's error queue as a struct ferry_error. */
#pragma once

#include "base/error.h"

/* As ferry_fail, with ": " and the reason of the newest entry of this thread's OpenSSL error queue
 * appended; empties the queue. Entries name formats and algorithms, never key material. */
int sslerr_fail(struct ferry_error *err, enum ferry_class cls, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), nonnull(3)));

#ifdef __clang_analyzer__
#define sslerr_fail(err, ...) (sslerr_fail(err, __VA_ARGS__), -1)
#endif
