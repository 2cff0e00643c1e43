/* What the caller may: by the table of roles (auth.h) and, for persons, by the bindings that are
 * stored (rbac_view.h). */
#pragma once

#include "apiserver/access/rbac_view.h"
#include "apiserver/request/request.h"

/* What bindings give, the same as long as the call lasts. Not for the first time inside a
 * transaction. */
const struct rbac_view *rights_view(struct request *r);
void rights_done(struct request *r);

/* `who` as bindings know them; borrowed from `who`. */
struct rights_user {
    struct rbac_user user;
    const char *groups[AUTH_GROUPS_MAX];
};
void rights_user_of(const struct auth_who *who, struct rights_user *ret);

/* May somebody do this call? `selected`: the name that the field selector of a list or watch asks
 * for, or NULL. `ret` (may be NULL) is by which binding. */
enum auth_answer rights_answer(const struct rbac_view *v, const struct auth_who *who,
                               const struct route *route, const char *selected,
                               struct rbac_grant *ret);
/* The same of the caller, by the request's own selector. */
enum auth_answer rights_of(struct request *r, const struct route *route);
/* By bindings, for what is no call on objects; admins may everything. */
bool rights_allow(struct request *r, const struct rbac_ask *ask);
/* 403 in kube-apiserver's words; to who has shown nothing, 401. */
int rights_refuse(struct request *r, const struct rbac_ask *ask);
int rights_check(struct request *r, const struct rbac_ask *ask);
/* The call itself is refused. */
int rights_refuse_route(struct request *r);

/* An object of RBAC is made or changed (`old`, or NULL): whoever gives rights away must hold them,
 * or be allowed to escalate or bind. */
int rights_check_given(struct request *r, const yyjson_val *old, const yyjson_val *object);
/* The rules for what persons write (person.h). */
int rights_check_person(struct request *r, const yyjson_val *old, const yyjson_val *object);
