/* What a node says of its part in a move (docs/contracts/node-api.md), decoded. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { WHY_CHECKS = 32, WHY_NO_CHANNEL = -1 };
struct why_check {
    char name[24];
    int channel; /* WHY_NO_CHANNEL when it is about none */
    bool ok;
    char message[256];
};
struct why_report {
    char error[256]; /* the node did not answer: why; "" when it did */
    struct why_check checks[WHY_CHECKS];
    size_t n;
};

/* Checks that are not understood are left out: newer nodes may make more. */
int why_report_parse(const char *json, size_t len, struct why_report *ret, struct ferry_error *err);

/* The first check of that name that is not ok, or NULL. */
const struct why_check *why_report_fault(const struct why_report *r, const char *name);
/* Any check of that name, or NULL. */
const struct why_check *why_report_find(const struct why_report *r, const char *name);
