#undef __clang_analyzer__ /* the function itself is defined here */
#include "tls/sslerr.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

int sslerr_fail(struct ferry_error *err, enum ferry_class cls, const char *fmt, ...)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = NULL;
    char text[FERRY_ERROR_TEXT];
    va_list ap;

    if (code != 0) {
        reason =
            ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
    }
    ERR_clear_error();
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return ferry_fail(err, cls, "%s%s%s", text, reason ? ": " : "", reason ? reason : "");
}
