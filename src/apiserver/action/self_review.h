/* What a client may, and who the server takes it for: SelfSubjectAccessReview, ...RulesReview and
 * SelfSubjectReview, which `kubectl auth can-i` and `whoami` ask. Answered from the table of roles
 * (auth.h), so that the answer and what then happens are one. */
#pragma once

#include "apiserver/access/auth.h"
#include "apiserver/request/request.h"
#include "base/str.h"

bool self_review_is_path(const char *path);
/* For everybody whose certificate or token is good, also without a role. */
int self_review_serve(struct request *r);

struct self_review_answer {
    bool allowed;
    const char *why; /* static */
};
/* Pure: `spec` of a SelfSubjectAccessReview. */
struct self_review_answer self_review_access(const struct auth_who *who, const yyjson_val *spec);
/* Pure: `status` of a SelfSubjectRulesReview. */
void self_review_rules(const struct auth_who *who, struct ferry_buf *ret);
