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

int ferry_fail(struct ferry_error *err, enum ferry_class cls, const char *fmt, ...)
{
    if (err) {
        va_list ap;

        err->cls = cls;
        err->sys = 0;
        err->http = 0;
        va_start(ap, fmt);
        vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
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

        err->cls = cls;
        err->sys = errnum;
        err->http = 0;
        va_start(ap, fmt);
        vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
        va_end(ap);
        size_t used = strlen(err->msg);
        snprintf(err->msg + used, sizeof(err->msg) - used, ": %s",
                 strerror_r(errnum, reason, sizeof(reason)));
    }
    return -(int)cls;
}

int ferry_wrap(struct ferry_error *err, const char *fmt, ...)
{
    if (!err) {
        return -FERRY_FATAL;
    }
    char inner[FERRY_ERROR_TEXT];
    va_list ap;

    memcpy(inner, err->msg, sizeof(inner));
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    size_t used = strlen(err->msg);
    snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", inner);
    return -(int)err->cls;
}
