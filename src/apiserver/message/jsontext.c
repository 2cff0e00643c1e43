#include "apiserver/message/jsontext.h"

void jsontext_string(struct ferry_buf *b, const char *s)
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
