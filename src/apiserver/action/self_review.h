/* What a client may, and who the server takes it for: SelfSubjectAccessReview, ...RulesReview and
 * SelfSubjectReview, which `kubectl auth can-i` and `whoami` ask; and the reviews of others.
 * Answered from the table of roles (auth.h) and the bindings (rbac_view.h), so that the answer and
 * what then happens are one. */
#pragma once

#include "apiserver/access/auth.h"
#include "apiserver/request/request.h"
#include "base/str.h"

bool self_review_is_path(const char *path);
/* About oneself for everybody whose certificate or token is good, also without a role; about others
 * for those who may create these reviews. */
int self_review_serve(struct request *r);

struct self_review_answer {
    bool allowed;
    char why[FERRY_ERROR_TEXT];
};
/* Pure: `spec` of a SelfSubjectAccessReview. `view` is asked about persons alone. */
struct self_review_answer self_review_access(const struct rbac_view *view,
                                             const struct auth_who *who, const yyjson_val *spec);
/* Pure: `status` of a SelfSubjectRulesReview. */
void self_review_rules(const struct rbac_view *view, const struct auth_who *who, const char *ns,
                       struct ferry_buf *ret);
