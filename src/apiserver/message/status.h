/* Refusals in Kubernetes' words: the "Status" object. By value, set once, nothing to free. */
#pragma once

#include "api/object.h"
#include "base/error.h"

struct status {
    int code;           /* HTTP; 0 = nothing wrong */
    const char *reason; /* "NotFound", static */
    char message[FERRY_ERROR_TEXT + 256];
    /* details, each may be empty */
    const struct api_resource *resource;
    char name[256];
    char field[128], why[FERRY_ERROR_TEXT]; /* the one cause, when a field is to blame */
    const char *cause; /* a reason of wire_error.h, static, or NULL: what programs act upon */
};

/* All return -1, so that `return status_...(st, ...)` reads well. */
int status_fail(struct status *st, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int status_not_found(struct status *st, const struct api_resource *r, const char *name);
int status_exists(struct status *st, const struct api_resource *r, const char *name);
int status_conflict(struct status *st, const struct api_resource *r, const char *name,
                    const char *why);
/* 422: `Kind.group "name" is invalid: field: why` */
int status_invalid(struct status *st, const struct api_resource *r, const char *name,
                   const char *field, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
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
