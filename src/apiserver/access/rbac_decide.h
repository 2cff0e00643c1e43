/* Kubernetes' rules of rights: what a rule of a Role allows, whom a subject of a binding means, and
 * whether rules that are held cover others that are to be given away. Pure, over the rules and
 * subjects as they stand in the objects. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "base/str.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

struct rbac_user {
    const char *name;
    const char *const *groups;
    size_t n_groups;
};

/* What is asked for: a resource or, when `path` is set, a path that is none. */
struct rbac_ask {
    const char *verb;
    const char *group, *resource, *subresource; /* "" = the core group, no subresource */
    const char *ns, *name; /* "" = of the cluster or all namespaces; not named */
    const char *path;      /* or NULL */
};

bool rbac_rule_allows(const yyjson_val *rule, const struct rbac_ask *ask);
/* `ns`: of the binding, "" for a ClusterRoleBinding. */
bool rbac_subject_is(const yyjson_val *subject, const char *ns, const struct rbac_user *user);

/* Rules, as the lists in which they stand. */
struct rbac_rules {
    const yyjson_val **lists; /* each an array of rules */
    size_t n, cap;
};
void rbac_rules_add(struct rbac_rules *r, const yyjson_val *list);
void rbac_rules_done(struct rbac_rules *r);
#define cleanup_rbac_rules ferry_cleanup(rbac_rules_done)

enum rbac_cover { RBAC_COVERED, RBAC_LACKING, RBAC_TOO_MANY };
/* Does whoever holds `held` hold each rule of `wanted`? What is lacking is told in `ret_lacking`,
 * the first of it. More than can be compared in a moment is RBAC_TOO_MANY. */
enum rbac_cover rbac_covers(const struct rbac_rules *held, const struct rbac_rules *wanted,
                            struct ferry_buf *ret_lacking);

/* A LabelSelector fits the labels of which `label` tells the value, none when it is not there. */
bool rbac_selects(const yyjson_val *selector,
                  struct ferry_span (*label)(const void *ctx, const char *key), const void *ctx);
