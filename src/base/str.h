/* Owned strings and growing buffers. Running out of memory for small control-plane data aborts the
 * process: the API holds the state and a restart goes on. Data whose size a peer chooses goes
 * through ferry_buf_append_capped(). */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

void *ferry_xcalloc(size_t count, size_t size);
void *ferry_xrealloc(void *p, size_t count, size_t size);
char *ferry_strdup(const char *s); /* NULL stays NULL */
char *ferry_strndup(const char *s, size_t n);
char *ferry_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

bool ferry_streq(const char *a, const char *b); /* NULL equals NULL only */
/* NULL or ""; inline so that compilers see what it says about NULL. */
static inline bool ferry_str_empty(const char *s)
{
    return !s || !*s;
}

bool ferry_str_starts(const char *s, const char *prefix);
bool ferry_str_ends(const char *s, const char *suffix);
/* Bytes of the UTF-8 character at `text`, or 0 when there is none that is whole. */
size_t ferry_utf8_len(const char *text);
/* How much of `text` fits into `max` bytes and is whole characters. */
size_t ferry_utf8_fit(const char *text, size_t max);

/* A text inside another: not NUL-terminated. `at` is NULL where there is none. */
struct ferry_span {
    const char *at;
    size_t len;
};
struct ferry_span ferry_span_of(const char *text); /* of NULL: none */
char *ferry_span_dup(struct ferry_span span);      /* NULL of none */
bool ferry_span_is(struct ferry_span span, const char *text);
bool ferry_span_eq(struct ferry_span a, struct ferry_span b); /* none equals none only */
int ferry_span_cmp(struct ferry_span a, struct ferry_span b); /* neither is none */

/* Whole of `s` as a number in [min, max]. */
int ferry_parse_int(const char *s, long long min, long long max, long long *ret,
                    struct ferry_error *err);

struct ferry_buf {
    char *data; /* always NUL-terminated once anything was added */
    size_t len, cap;
};

void ferry_buf_reserve(struct ferry_buf *b, size_t extra);
void ferry_buf_append(struct ferry_buf *b, const void *data, size_t n);
int ferry_buf_append_capped(struct ferry_buf *b, const void *data, size_t n, size_t max,
                            struct ferry_error *err);
void ferry_buf_puts(struct ferry_buf *b, const char *s);
void ferry_buf_printf(struct ferry_buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* `s` as a string of JSON, in quotes. */
void ferry_buf_json(struct ferry_buf *b, const char *s);
void ferry_buf_done(struct ferry_buf *b);
char *ferry_buf_take(struct ferry_buf *b); /* the string, never NULL; `b` is empty after */

#define ferry_cleanup_buf ferry_cleanup(ferry_buf_done)
