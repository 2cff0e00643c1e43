/* Who holds which rules, by the roles and bindings that are stored: a snapshot that is parsed once
 * and made anew when one of these objects has changed. A binding that was answered is in the next
 * snapshot. Any thread, but not inside a transaction, which sees what is not on disk yet. */
#pragma once

#include "apiserver/access/rbac_decide.h"
#include "apiserver/store/store.h"
#include "base/cleanup.h"

struct rbac;
struct rbac *rbac_new(struct store *store);
void rbac_free(struct rbac *r); /* takes NULL */

struct rbac_view;
/* A reference to what holds now. */
struct rbac_view *rbac_view_take(struct rbac *r);
void rbac_view_unref(struct rbac_view *v); /* takes NULL */
FERRY_DEFINE_CLEANUP(struct rbac_view *, rbac_view_unref)
#define cleanup_rbac_view ferry_cleanup(rbac_view_unrefp)

/* By which binding; texts live as long as the view. */
struct rbac_grant {
    const char *kind, *ns, *name; /* of the binding; ns is "" */
    const char *role_kind, *role;
};
/* `ret` may be NULL; by no view nobody holds anything. */
bool rbac_view_allows(const struct rbac_view *v, const struct rbac_user *user,
                      const struct rbac_ask *ask, struct rbac_grant *ret);
/* All rules that the user holds in a namespace, "" = of the cluster; as long as the view. */
void rbac_view_rules(const struct rbac_view *v, const struct rbac_user *user, const char *ns,
                     struct rbac_rules *ret);
/* The rules of a role, "Role" of the namespace or "ClusterRole"; false when there is none. */
bool rbac_view_role(const struct rbac_view *v, const char *kind, const char *ns, const char *name,
                    struct rbac_rules *ret);

/* What the rules of an aggregated ClusterRole are to be, as JSON; NULL when it is not one or is not
 * there. Owned by the caller. */
char *rbac_view_aggregate(const struct rbac_view *v, const char *name);
