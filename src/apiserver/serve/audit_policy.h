/* Which calls are written down, and how much of each: a Policy of audit.k8s.io/v1, as
 * kube-apiserver has it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "base/error.h"

enum audit_level {
    AUDIT_NONE,
    AUDIT_METADATA,         /* who, what, when, and how it ended */
    AUDIT_REQUEST,          /* ... and what was sent */
    AUDIT_REQUEST_RESPONSE, /* ... and what was answered */
    AUDIT_LEVEL_COUNT
};
const char *audit_level_name(enum audit_level level);

enum { AUDIT_PART_MAX = 256 };

/* One call, as Kubernetes reads it off its method and path. */
struct audit_call {
    const char *user;
    const char *const *groups;
    size_t n_groups;
    const char *path;
    char verb[24]; /* "list"; "post" */
    bool resource; /* what follows is set */
    char group[AUDIT_PART_MAX], version[AUDIT_PART_MAX];
    char plural[AUDIT_PART_MAX], subresource[AUDIT_PART_MAX];
    char ns[AUDIT_PART_MAX], name[AUDIT_PART_MAX];
};
/* Fills in what follows from method and path (percent-decoded). */
void audit_call_read(const char *method, const char *path, bool watch, struct audit_call *ret);

/* Refuses what is no Policy, and fields and words that it does not know, naming them. */
int audit_policy_check(const yyjson_val *policy, struct ferry_error *err);
/* The first rule that fits decides; none is AUDIT_NONE. Of Secrets and tokens never more than
 * AUDIT_METADATA. `policy` was checked. */
enum audit_level audit_policy_level(const yyjson_val *policy, const struct audit_call *call);
/* Without a policy: what is changed or refused, and reads of Secrets. */
enum audit_level audit_default_level(const struct audit_call *call, int code);
