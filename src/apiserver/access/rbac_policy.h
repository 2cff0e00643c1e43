/* The roles and bindings that every site has: Kubernetes' for people, and KubeVirt's. Made at the
 * start, and brought back to what they must hold; what was added to them stays. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

struct rbac_policy {
    const char *plural; /* "clusterroles" or "clusterrolebindings" */
    const char *name;
};
/* Ends with a NULL plural. */
const struct rbac_policy *rbac_policies(void);
/* The i-th as it is made new: kind, name, labels, annotations, rules or subjects. */
yyjson_mut_doc *rbac_policy_make(size_t i);
/* `doc` is what is stored by that name. False: it holds all that it must, or says that it is not to
 * be kept (annotation autoupdate: "false"), or is a binding to another role. */
bool rbac_policy_mend(size_t i, yyjson_mut_doc *doc);
