#include "apiserver/request/rights.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/selector.h"
#include "apiserver/object/person.h"
#include "base/count.h"

const struct rbac_view *rights_view(struct request *r)
{
    if (!r->view) {
        r->view = rbac_view_take(r->rbac);
    }
    return r->view;
}

void rights_done(struct request *r)
{
    rbac_view_unref(r->view);
    r->view = NULL;
}

void rights_user_of(const struct auth_who *who, struct rights_user *ret)
{
    for (size_t i = 0; i < who->n_groups; i++) {
        ret->groups[i] = who->groups[i];
    }
    ret->user =
        (struct rbac_user){.name = who->user, .groups = ret->groups, .n_groups = who->n_groups};
}

/* ---- calls on objects --------------------------------------------------------------------------
 */

/* As Kubernetes sees it: a namespace is in itself. */
static struct rbac_ask ask_of(const struct route *route, const char *selected)
{
    bool many = (route->verb == ROUTE_LIST || route->verb == ROUTE_WATCH) && !*route->name;
    bool room = route->resource->kind == API_KIND_NAMESPACE;

    return (struct rbac_ask){.verb = route_verb_name(route->verb),
                             .group = route->resource->group,
                             .resource = route->resource->plural,
                             .subresource = route->subresource,
                             .ns = room && route->verb != ROUTE_CREATE ? route->name : route->ns,
                             .name = many && selected ? selected : route->name};
}

static bool by_bindings(const struct auth_who *who)
{
    return auth_is_person(who) || who->role == AUTH_ANONYMOUS;
}

enum auth_answer rights_answer(const struct rbac_view *v, const struct auth_who *who,
                               const struct route *route, const char *selected,
                               struct rbac_grant *ret)
{
    enum auth_answer answer = auth_check(who, route);
    struct rbac_ask ask = ask_of(route, selected);
    struct rights_user user;

    if (answer != AUTH_NO || !by_bindings(who) ||
        (who->role == AUTH_ANONYMOUS && !route_verb_reads(route->verb))) {
        return answer;
    }
    rights_user_of(who, &user);
    return rbac_view_allows(v, &user.user, &ask, ret) ? AUTH_YES : AUTH_NO;
}

enum auth_answer rights_of(struct request *r, const struct route *route)
{
    struct api_selector *fields = NULL;

    if (!by_bindings(&r->who)) {
        return auth_check(&r->who, route);
    }
    const char *text = http_query(r->x, "fieldSelector");
    if (text && api_selector_parse_fields(text, &fields, NULL) < 0) {
        fields = NULL; /* refused when it is looked at */
    }
    enum auth_answer answer =
        rights_answer(rights_view(r), &r->who, route,
                      fields ? api_selector_equal(fields, "metadata.name") : NULL, NULL);
    api_selector_free(fields);
    return answer;
}

/* ---- all else ----------------------------------------------------------------------------------
 */

static bool holds(struct request *r, const struct rbac_ask *ask)
{
    struct rights_user user;

    if (!by_bindings(&r->who)) {
        return false;
    }
    rights_user_of(&r->who, &user);
    return rbac_view_allows(rights_view(r), &user.user, ask, NULL);
}

bool rights_allow(struct request *r, const struct rbac_ask *ask)
{
    return r->who.role == AUTH_ADMIN || holds(r, ask);
}

int rights_refuse(struct request *r, const struct rbac_ask *ask)
{
    if (r->who.role == AUTH_ANONYMOUS) {
        return status_fail(&r->st, 401, "Unauthorized: no client certificate");
    }
    if (ask->path) {
        return status_fail(&r->st, 403, "forbidden: User \"%s\" cannot %s path \"%.200s\"",
                           r->who.user, ask->verb, ask->path);
    }
    status_fail(&r->st, 403,
                "%s%s%s%s%.250s%s is forbidden: User \"%s\" cannot %s resource \"%s%s%s\" in API "
                "group \"%s\"%s%s%s",
                ask->resource, *ask->group ? "." : "", ask->group, *ask->name ? " \"" : "",
                ask->name, *ask->name ? "\"" : "", r->who.user, ask->verb, ask->resource,
                *ask->subresource ? "/" : "", ask->subresource, ask->group,
                *ask->ns ? " in the namespace \"" : " at the cluster scope", ask->ns,
                *ask->ns ? "\"" : "");
    return -1;
}

int rights_refuse_route(struct request *r)
{
    const struct rbac_ask ask = ask_of(&r->route, NULL);

    rights_refuse(r, &ask);
    r->st.resource = r->route.resource;
    snprintf(r->st.name, sizeof(r->st.name), "%s", r->route.name);
    return -1;
}

int rights_check(struct request *r, const struct rbac_ask *ask)
{
    return rights_allow(r, ask) ? 0 : rights_refuse(r, ask);
}

/* ---- rights that are given away ----------------------------------------------------------------
 */

/* What the garbage collector and deletion need is no gift. */
static bool same_gift(const yyjson_val *old, const yyjson_val *object)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    static const char *const loose[] = {"finalizers", "ownerReferences"};
    yyjson_mut_val *both[] = {yyjson_val_mut_copy(doc, (yyjson_val *)old),
                              yyjson_val_mut_copy(doc, (yyjson_val *)object)};

    for (size_t i = 0; i < 2; i++) {
        yyjson_mut_val *meta = yyjson_mut_obj_get(both[i], "metadata");

        for (size_t k = 0; k < FERRY_COUNT(loose); k++) {
            yyjson_mut_obj_remove_key(meta, loose[k]);
        }
    }
    return old && yyjson_mut_equals(both[0], both[1]);
}

static int check_held(struct request *r, const struct rbac_rules *given)
{
    cleanup_rbac_rules struct rbac_rules held = {0};
    ferry_cleanup_buf struct ferry_buf lacking = {0};
    struct rights_user user;

    rights_user_of(&r->who, &user);
    rbac_view_rules(rights_view(r), &user.user, r->route.ns, &held);
    switch (rbac_covers(&held, given, &lacking)) {
    case RBAC_COVERED:
        return 0;
    case RBAC_TOO_MANY:
        return status_forbidden(&r->st, r->route.resource, r->route.name,
                                "too many rules to be compared with those of user \"%.60s\"",
                                r->who.user);
    case RBAC_LACKING:
        break;
    }
    return status_forbidden(&r->st, r->route.resource, r->route.name,
                            "user \"%.60s\" is attempting to grant RBAC permissions not currently "
                            "held:\n%s",
                            r->who.user, lacking.data ? lacking.data : "");
}

static bool may_escalate(struct request *r)
{
    return holds(r, &(struct rbac_ask){.verb = "escalate",
                                       .group = RBAC_GROUP,
                                       .resource = r->route.resource->plural,
                                       .subresource = "",
                                       .ns = r->route.ns,
                                       .name = r->route.name});
}

/* An aggregated role may gather anything. */
static int check_aggregation(struct request *r, const yyjson_val *old, const yyjson_val *object)
{
    static const char all[] = "[{\"apiGroups\":[\"*\"],\"resources\":[\"*\"],\"verbs\":[\"*\"]},"
                              "{\"nonResourceURLs\":[\"*\"],\"verbs\":[\"*\"]}]";
    cleanup_rbac_rules struct rbac_rules everything = {0};

    if (!yyjson_obj_get((yyjson_val *)old, "aggregationRule") &&
        !yyjson_obj_get((yyjson_val *)object, "aggregationRule")) {
        return 0;
    }
    api_cleanup_doc yyjson_doc *doc = yyjson_read(all, strlen(all), 0);
    rbac_rules_add(&everything, yyjson_doc_get_root(doc));
    return check_held(r, &everything) == 0
               ? 0
               : status_forbidden(&r->st, r->route.resource, r->route.name,
                                  "must have cluster-admin privileges to use the aggregationRule");
}

static int check_role(struct request *r, const yyjson_val *old, const yyjson_val *object)
{
    cleanup_rbac_rules struct rbac_rules given = {0};

    if (may_escalate(r)) {
        return 0;
    }
    rbac_rules_add(&given, yyjson_obj_get((yyjson_val *)object, "rules"));
    return check_held(r, &given) < 0 ? -1 : check_aggregation(r, old, object);
}

static int check_binding(struct request *r, const yyjson_val *object)
{
    cleanup_rbac_rules struct rbac_rules given = {0};
    const char *kind = api_json_str(object, "/roleRef/kind");
    const char *name = api_json_str(object, "/roleRef/name");
    bool cluster = ferry_streq(kind, "ClusterRole");
    const struct rbac_ask bind = {.verb = "bind",
                                  .group = RBAC_GROUP,
                                  .resource = cluster ? "clusterroles" : "roles",
                                  .subresource = "",
                                  .ns = r->route.ns,
                                  .name = name ? name : ""};

    if (holds(r, &bind)) {
        return 0;
    }
    if (!name || !rbac_view_role(rights_view(r), kind, r->route.ns, name, &given)) {
        return status_not_found(&r->st, api_resource_find(RBAC_GROUP, "v1", bind.resource),
                                name ? name : "");
    }
    return check_held(r, &given);
}

int rights_check_given(struct request *r, const yyjson_val *old, const yyjson_val *object)
{
    if (!auth_is_person(&r->who) || !ferry_streq(r->route.resource->group, RBAC_GROUP) ||
        same_gift(old, object)) {
        return 0;
    }
    return ferry_str_ends(r->route.resource->plural, "bindings") ? check_binding(r, object)
                                                                 : check_role(r, old, object);
}

/* ---- persons -----------------------------------------------------------------------------------
 */

static bool may_attach(void *ctx, const char *ns, const char *name)
{
    return holds(ctx, &(struct rbac_ask){.verb = "get",
                                         .group = "k8s.cni.cncf.io",
                                         .resource = "network-attachment-definitions",
                                         .subresource = "",
                                         .ns = ns,
                                         .name = name});
}

int rights_check_person(struct request *r, const yyjson_val *old, const yyjson_val *object)
{
    static const struct rbac_ask everything = {
        .verb = "*", .group = "*", .resource = "*", .subresource = "", .ns = "", .name = ""};
    static const struct rbac_ask volumes = {.verb = "create",
                                            .group = "",
                                            .resource = "persistentvolumes",
                                            .subresource = "",
                                            .ns = "",
                                            .name = ""};

    if (!auth_is_person(&r->who) || !person_cares(r->route.resource) || holds(r, &everything)) {
        return 0;
    }
    return person_check(r->route.resource, old, object,
                        &(struct person_rights){
                            .host_paths = holds(r, &volumes), .may_attach = may_attach, .ctx = r},
                        &r->st);
}
