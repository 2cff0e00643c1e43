#include "base/printable.h"

#include <string.h>

enum { CHARACTER_MAX = 4, ASCII_END = 0x80 };

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f;
}

/* As many bytes as a character has that begins so; 1 for what cannot begin one. */
static size_t expected_len(unsigned char first)
{
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
}

static unsigned code_of(const char *text, size_t n)
{
    unsigned code = n == 1 ? (unsigned char)*text : (unsigned char)*text & (0x7fU >> n);

    for (size_t i = 1; i < n; i++) {
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    return code;
}

/* Controls; what separates lines and paragraphs; what turns the direction of text. */
static bool is_obeyed(unsigned code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e ||
           code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* One character, or one byte that is none; its length, or 0 when there may be more of it. */
static size_t put_one(const char *data, size_t n, const char *keep, bool more,
                      struct ferry_buf *out)
{
    char text[CHARACTER_MAX + 1] = "";
    unsigned char first = (unsigned char)*data;

    if (first && strchr(keep, first)) {
        ferry_buf_append(out, data, 1);
        return 1;
    }
    if (first == '\r' && strchr(keep, '\n')) {
        if (n > 1 && data[1] == '\n') {
            ferry_buf_append(out, data, 2);
            return 2;
        }
        if (n == 1 && more) {
            return 0;
        }
    }
    memcpy(text, data, n < CHARACTER_MAX ? n : CHARACTER_MAX);
    size_t len = first < ASCII_END ? 1 : ferry_utf8_len(text);
    if (len == 0 && more && n < expected_len(first)) {
        return 0;
    }
    if (len == 0 || is_obeyed(code_of(data, len))) {
        len = len ? len : 1;
        ferry_buf_printf(out, "\\u%04x", len > 1 ? code_of(data, len) : first);
    } else {
        ferry_buf_append(out, data, len);
    }
    return len;
}

size_t ferry_printable(const char *data, size_t n, const char *keep, bool more,
                       struct ferry_buf *out)
{
    size_t at = 0;

    while (at < n) {
        size_t plain = 0;

        while (at + plain < n && is_plain((unsigned char)data[at + plain])) {
            plain++;
        }
        ferry_buf_append(out, data + at, plain);
        at += plain;
        size_t len = at < n ? put_one(data + at, n - at, keep, more, out) : 0;
        if (at < n && len == 0) {
            break;
        }
        at += len;
    }
    return at;
}

char *ferry_printable_dup(const char *text)
{
    struct ferry_buf b = {0};

    if (!text) {
        return NULL;
    }
    ferry_printable(text, strlen(text), "", false, &b);
    return ferry_buf_take(&b);
}

void ferry_buf_one_line(struct ferry_buf *b, size_t from)
{
    ferry_cleanup_free char *text = b->len > from ? ferry_printable_dup(b->data + from) : NULL;

    if (text) {
        b->len = from;
        ferry_buf_puts(b, text);
    }
}
