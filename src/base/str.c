#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void out_of_memory(void)
{
    fputs("out of memory\n", stderr);
    abort();
}

void *ferry_xcalloc(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size ? size : 1);

    if (!p) {
        out_of_memory();
    }
    return p;
}

void *ferry_xrealloc(void *p, size_t count, size_t size)
{
    void *q = reallocarray(p, count ? count : 1, size ? size : 1);

    if (!q) {
        out_of_memory();
    }
    return q;
}

char *ferry_strdup(const char *s)
{
    return s ? ferry_strndup(s, strlen(s)) : NULL;
}

char *ferry_strndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = ferry_xcalloc(len + 1, 1);

    memcpy(copy, s, len);
    return copy;
}

char *ferry_asprintf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0) {
        out_of_memory();
    }
    return s;
}

bool ferry_streq(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

struct ferry_span ferry_span_of(const char *text)
{
    return (struct ferry_span){.at = text, .len = text ? strlen(text) : 0};
}

bool ferry_span_eq(struct ferry_span a, struct ferry_span b)
{
    if (!a.at || !b.at) {
        return a.at == b.at;
    }
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

char *ferry_span_dup(struct ferry_span span)
{
    return span.at ? ferry_strndup(span.at, span.len) : NULL;
}

int ferry_span_cmp(struct ferry_span a, struct ferry_span b)
{
    int c = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);

    return c ? c : (a.len > b.len) - (a.len < b.len);
}

bool ferry_span_is(struct ferry_span span, const char *text)
{
    return ferry_span_eq(span, ferry_span_of(text));
}

bool ferry_str_starts(const char *s, const char *prefix)
{
    return s && strncmp(s, prefix, strlen(prefix)) == 0;
}

bool ferry_str_ends(const char *s, const char *suffix)
{
    if (!s) {
        return false;
    }
    size_t n = strlen(s), m = strlen(suffix);

    return n >= m && strcmp(s + n - m, suffix) == 0;
}

int ferry_parse_int(const char *s, long long min, long long max, long long *ret,
                    struct ferry_error *err)
{
    char *end = NULL;

    errno = 0;
    long long v = s && *s ? strtoll(s, &end, 10) : 0;
    if (!end || *end || errno) {
        return ferry_fail(err, FERRY_INVALID, "'%s' is not a whole number", s ? s : "");
    }
    if (v < min || v > max) {
        return ferry_fail(err, FERRY_INVALID, "%lld is not between %lld and %lld", v, min, max);
    }
    *ret = v;
    return 0;
}

void ferry_buf_reserve(struct ferry_buf *b, size_t extra)
{
    size_t need = b->len + extra + 1;

    if (need <= b->cap) {
        return;
    }
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need) {
        cap *= 2;
    }
    b->data = ferry_xrealloc(b->data, cap, 1);
    b->cap = cap;
    b->data[b->len] = '\0';
}

void ferry_buf_append(struct ferry_buf *b, const void *data, size_t n)
{
    ferry_buf_reserve(b, n);
    if (n) {
        memcpy(b->data + b->len, data, n);
    }
    b->len += n;
    b->data[b->len] = '\0';
}

int ferry_buf_append_capped(struct ferry_buf *b, const void *data, size_t n, size_t max,
                            struct ferry_error *err)
{
    if (n > max || b->len > max - n) {
        return ferry_fail(err, FERRY_INVALID, "more than %zu bytes", max);
    }
    ferry_buf_append(b, data, n);
    return 0;
}

void ferry_buf_puts(struct ferry_buf *b, const char *s)
{
    ferry_buf_append(b, s, strlen(s));
}

void ferry_buf_printf(struct ferry_buf *b, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    ferry_buf_reserve(b, 64);
    size_t room = b->cap - b->len;
    int n = vsnprintf(b->data + b->len, room, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n >= room) {
        ferry_buf_reserve(b, (size_t)n);
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
    }
    b->len += n > 0 ? (size_t)n : 0;
    va_end(again);
}

void ferry_buf_json(struct ferry_buf *b, const char *s)
{
    ferry_buf_puts(b, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c == '"' || c == '\\') {
            ferry_buf_printf(b, "\\%c", c);
        } else if (c < 0x20) {
            ferry_buf_printf(b, "\\u%04x", c);
        } else {
            ferry_buf_append(b, s, 1);
        }
    }
    ferry_buf_puts(b, "\"");
}

void ferry_buf_done(struct ferry_buf *b)
{
    free(b->data);
    *b = (struct ferry_buf){0};
}

char *ferry_buf_take(struct ferry_buf *b)
{
    ferry_buf_reserve(b, 0);
    char *s = b->data;

    *b = (struct ferry_buf){0};
    return s;
}

size_t ferry_utf8_len(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    static const unsigned lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = *s < 0x80             ? 1
               : (*s & 0xe0) == 0xc0 ? 2
               : (*s & 0xf0) == 0xe0 ? 3
               : (*s & 0xf8) == 0xf0 ? 4
                                     : 0;
    unsigned code = n == 1 ? *s : *s & (0x7fU >> n);

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (s[i] & 0x3f);
    }
    bool good = n > 0 && code >= lowest[n] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return good ? n : 0;
}

size_t ferry_utf8_fit(const char *text, size_t max)
{
    size_t n = 0, step;

    while (text[n] && (step = ferry_utf8_len(text + n)) > 0 && n + step <= max) {
        n += step;
    }
    return n;
}
