/* Refusals in Kubernetes' words: the "Status" object. By value, set once, nothing to free. */
#pragma once

#include "api/object.h"
#include "base/error.h"

/* What is wrong with a field, as Kubernetes tells it: a word in front of the message, and the
 * reason of the cause. */
enum status_value {
    STATUS_VALUE_INVALID,
    STATUS_VALUE_REQUIRED,
    STATUS_VALUE_UNSUPPORTED,
    STATUS_VALUE_DUPLICATE,
    STATUS_VALUE_FORBIDDEN,
    STATUS_VALUE_TOO_LONG,
    STATUS_VALUE_TOO_MANY,
    STATUS_VALUE_COUNT
};

enum { STATUS_FIELD = 160, STATUS_MORE_CAUSES = 7 };

struct status_cause {
    char field[STATUS_FIELD], why[FERRY_ERROR_TEXT];
    const char *reason; /* "FieldValueInvalid", static */
};

struct status {
    int code;           /* HTTP; 0 = nothing wrong */
    const char *reason; /* "NotFound", static */
    char message[4 * FERRY_ERROR_TEXT];
    /* details, each may be empty */
    const struct api_resource *resource;
    char name[256];
    /* the one cause, when a field is to blame */
    char field[STATUS_FIELD], why[FERRY_ERROR_TEXT];
    enum status_value value;
    /* further fields that are to blame */
    struct status_cause more[STATUS_MORE_CAUSES];
    size_t n_more;
    const char *cause; /* a reason of wire_error.h, static, or NULL: what programs act upon */
};

/* All return -1, so that `return status_...(st, ...)` reads well. */
int status_fail(struct status *st, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int status_not_found(struct status *st, const struct api_resource *r, const char *name);
int status_exists(struct status *st, const struct api_resource *r, const char *name);
int status_conflict(struct status *st, const struct api_resource *r, const char *name,
                    const char *why);
/* 422: `Kind.group "name" is invalid: field: Forbidden: why`; an empty `why` leaves the word. */
int status_invalid(struct status *st, const struct api_resource *r, const char *name,
                   const char *field, enum status_value value, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* After status_invalid(): one more field is to blame. What does not fit is left out. */
void status_invalid_more(struct status *st, const char *field, enum status_value value,
                         const char *why);
int status_forbidden(struct status *st, const struct api_resource *r, const char *name,
                     const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* From an error of the layers below. */
int status_of_error(struct status *st, const struct ferry_error *err);

/* The reason that goes with a code. */
const char *status_reason(int code);
/* JSON, owned by the caller. */
char *status_text(const struct status *st);
/* "virtualmachineinstances.kubevirt.io" */
void status_resource_name(const struct api_resource *r, char *buf, size_t size);
