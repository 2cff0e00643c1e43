#undef __clang_analyzer__ /* the functions themselves are defined here */
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"

static const char *const class_names[] = {
    [FERRY_OK] = "ok",
    [FERRY_RETRY] = "retry",
    [FERRY_CONFLICT] = "conflict",
    [FERRY_NOT_FOUND] = "not-found",
    [FERRY_INVALID] = "invalid",
    [FERRY_DENIED] = "denied",
    [FERRY_CANCELLED] = "cancelled",
    [FERRY_PEER] = "peer",
    [FERRY_FATAL] = "fatal",
};
static_assert(FERRY_COUNT(class_names) == FERRY_CLASS_COUNT, "one name a class");

/* For whoever reads an answer: what a failure without a reason of its own is. */
static const char *const class_reasons[] = {
    [FERRY_OK] = "OK",
    [FERRY_RETRY] = "Unavailable",
    [FERRY_CONFLICT] = "Conflict",
    [FERRY_NOT_FOUND] = "NotFound",
    [FERRY_INVALID] = "Invalid",
    [FERRY_DENIED] = "Denied",
    [FERRY_CANCELLED] = "Cancelled",
    [FERRY_PEER] = "BadPeer",
    [FERRY_FATAL] = "InternalError",
};
static_assert(FERRY_COUNT(class_reasons) == FERRY_CLASS_COUNT, "one reason a class");

const char *ferry_class_name(enum ferry_class cls)
{
    return (unsigned)cls < FERRY_CLASS_COUNT ? class_names[cls] : "unknown";
}

enum ferry_class ferry_class_of_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
    case ENXIO:
        return FERRY_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return FERRY_DENIED;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
        return FERRY_INVALID;
    case EEXIST:
    case EADDRINUSE:
        return FERRY_CONFLICT;
    case EPIPE:
    case ECONNRESET:
    case EPROTO:
        return FERRY_PEER;
    case EAGAIN:
    case EINTR:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EBUSY:
        return FERRY_RETRY;
    default:
        return FERRY_FATAL;
    }
}

__attribute__((format(printf, 5, 0))) static void set(struct ferry_error *err, enum ferry_class cls,
                                                      int sys, const char *reason, const char *fmt,
                                                      va_list ap)
{
    err->cls = cls;
    err->sys = sys;
    err->http = 0;
    err->words = 0;
    snprintf(err->reason, sizeof(err->reason), "%s", reason);
    vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
}

int ferry_fail(struct ferry_error *err, enum ferry_class cls, const char *fmt, ...)
{
    if (err) {
        va_list ap;

        va_start(ap, fmt);
        set(err, cls, 0, "", fmt, ap);
        va_end(ap);
    }
    return -(int)cls;
}

int ferry_fail_reason(struct ferry_error *err, enum ferry_class cls, const char *reason,
                      const char *fmt, ...)
{
    if (err) {
        va_list ap;

        va_start(ap, fmt);
        set(err, cls, 0, reason, fmt, ap);
        va_end(ap);
    }
    return -(int)cls;
}

int ferry_fail_errno(struct ferry_error *err, int errnum, const char *fmt, ...)
{
    enum ferry_class cls = ferry_class_of_errno(errnum);

    if (err) {
        char reason[128];
        va_list ap;

        va_start(ap, fmt);
        set(err, cls, errnum, "", fmt, ap);
        va_end(ap);
        size_t used = strlen(err->msg);
        snprintf(err->msg + used, sizeof(err->msg) - used, ": %s",
                 strerror_r(errnum, reason, sizeof(reason)));
    }
    return -(int)cls;
}

/* Puts text and `between` in front; the length of that. */
__attribute__((format(printf, 3, 0))) static size_t
put_in_front(struct ferry_error *err, const char *between, const char *fmt, va_list ap)
{
    char inner[FERRY_ERROR_TEXT];

    memcpy(inner, err->msg, sizeof(inner));
    vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    size_t used = strlen(err->msg);
    snprintf(err->msg + used, sizeof(err->msg) - used, "%s%s", between, inner);
    return used + strlen(between);
}

/* Words that were cut off with the end of the message are none. */
static void set_words(struct ferry_error *err, size_t at)
{
    err->words = (unsigned short)(at < strlen(err->msg) ? at : 0);
}

int ferry_wrap(struct ferry_error *err, const char *fmt, ...)
{
    if (!err) {
        return -FERRY_FATAL;
    }
    va_list ap;

    va_start(ap, fmt);
    size_t before = put_in_front(err, ": ", fmt, ap);
    va_end(ap);
    if (err->words) {
        set_words(err, err->words + before);
    }
    return -(int)err->cls;
}

int ferry_wrap_about(struct ferry_error *err, const char *fmt, ...)
{
    if (!err) {
        return -FERRY_FATAL;
    }
    va_list ap;

    va_start(ap, fmt);
    set_words(err, put_in_front(err, ": ", fmt, ap));
    va_end(ap);
    return -(int)err->cls;
}

int ferry_prefix(struct ferry_error *err, const char *fmt, ...)
{
    if (!err) {
        return -FERRY_FATAL;
    }
    va_list ap;

    va_start(ap, fmt);
    size_t before = put_in_front(err, "", fmt, ap);
    va_end(ap);
    if (err->words) {
        set_words(err, err->words + before);
    }
    return -(int)err->cls;
}

const char *ferry_error_words(const struct ferry_error *err)
{
    return err->msg + err->words;
}

const char *ferry_error_about(const struct ferry_error *err, size_t *ret_len)
{
    *ret_len = err->words > 2 ? err->words - 2U : 0; /* without ": " */
    return err->msg;
}

const char *ferry_error_reason(const struct ferry_error *err)
{
    return err->reason[0]                           ? err->reason
           : (unsigned)err->cls < FERRY_CLASS_COUNT ? class_reasons[err->cls]
                                                    : "InternalError";
}
