#include "apiserver/action/self_review.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "apiserver/request/rights.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

enum review {
    REVIEW_ACCESS,
    REVIEW_RULES,
    REVIEW_WHO,
    REVIEW_SUBJECT,
    REVIEW_LOCAL, /* its path has a namespace */
    REVIEW_COUNT
};

static const struct {
    const char *path, *api_version, *kind;
} reviews[] = {
    [REVIEW_ACCESS] = {"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                       "authorization.k8s.io/v1", "SelfSubjectAccessReview"},
    [REVIEW_RULES] = {"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                      "authorization.k8s.io/v1", "SelfSubjectRulesReview"},
    [REVIEW_WHO] = {"/apis/authentication.k8s.io/v1/selfsubjectreviews", "authentication.k8s.io/v1",
                    "SelfSubjectReview"},
    [REVIEW_SUBJECT] = {"/apis/authorization.k8s.io/v1/subjectaccessreviews",
                        "authorization.k8s.io/v1", "SubjectAccessReview"},
    [REVIEW_LOCAL] = {"/apis/authorization.k8s.io/v1/namespaces/", "authorization.k8s.io/v1",
                      "LocalSubjectAccessReview"},
};
_Static_assert(FERRY_COUNT(reviews) == REVIEW_COUNT, "one row per review");

/* Paths that are no objects: who gets them. */
static const struct {
    const char *path;
    bool anybody; /* else: whoever has a role */
} plain_paths[] = {
    {"/healthz", true},  {"/readyz", true},     {"/livez", true},    {"/version", true},
    {"/api", false},     {"/api/*", false},     {"/apis", false},    {"/apis/*", false},
    {"/openapi", false}, {"/openapi/*", false}, {"/metrics", false},
};
enum { PLAIN_PATHS = FERRY_COUNT(plain_paths) };

static bool has_role(const struct auth_who *who)
{
    return who->role != AUTH_ANONYMOUS && who->role != AUTH_NOBODY && who->role != AUTH_PERSON;
}

/* ---- may I? ------------------------------------------------------------------------------------
 */

static struct self_review_answer yes(const char *why)
{
    struct self_review_answer a = {.allowed = true};

    snprintf(a.why, sizeof(a.why), "%s", why);
    return a;
}

static struct self_review_answer no(const char *why)
{
    struct self_review_answer a = {.allowed = false};

    snprintf(a.why, sizeof(a.why), "%s", why);
    return a;
}

/* By bindings, in Kubernetes' words. */
static struct self_review_answer by_bindings(const struct rbac_view *view,
                                             const struct auth_who *who, const struct rbac_ask *ask)
{
    struct self_review_answer a = {.allowed = false};
    struct rights_user user;
    struct rbac_grant g;

    rights_user_of(who, &user);
    if (!rbac_view_allows(view, &user.user, ask, &g)) {
        return no("no binding gives it");
    }
    a.allowed = true;
    snprintf(a.why, sizeof(a.why), "RBAC: allowed by %s \"%s%s%s\" of %s \"%s\"", g.kind, g.name,
             *g.ns ? "/" : "", g.ns, g.role_kind, g.role);
    return a;
}

static const char *text_at(const yyjson_val *v, const char *pointer)
{
    const char *text = api_json_str(v, pointer);

    return text ? text : "";
}

static const struct api_resource *find_resource(const char *group, const char *version,
                                                const char *plural)
{
    bool any = !*version || ferry_streq(version, "*");

    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        if (ferry_streq(r->group, group) && ferry_streq(r->plural, plural) &&
            (any || ferry_streq(r->version, version))) {
            return r;
        }
    }
    return NULL;
}

/* The node's own API has its rules in proxy_plan.c; which path is meant is not in the question. */
static struct self_review_answer may_proxy(const struct auth_who *who, const struct route *route)
{
    bool reads = route->verb == ROUTE_GET;
    bool others = who->role == AUTH_NODE && !ferry_streq(who->node, route->name);

    return reads && has_role(who) && !others
               ? yes("only what shows the state of the node: health, metrics, paths, checks, "
                     "records")
               : no("no rule of the role allows it");
}

static struct self_review_answer by_role(const struct auth_who *who, const yyjson_val *asked)
{
    const char *sub = text_at(asked, "/subresource");
    struct route route = {
        .resource = find_resource(text_at(asked, "/group"), text_at(asked, "/version"),
                                  text_at(asked, "/resource")),
        .verb = route_verb_of(text_at(asked, "/verb")),
    };

    if (who->role == AUTH_ADMIN) {
        return yes("the role admin may do everything");
    }
    bool proxy =
        route.resource && route.resource->kind == API_KIND_NODE && ferry_streq(sub, "proxy");
    if (!route.resource || (!proxy && !route_knows_subresource(route.resource, sub))) {
        return no("no rule of the role is about it, or it is not served here");
    }
    if (route.verb == ROUTE_VERB_COUNT) {
        return no("not a verb of this API");
    }
    snprintf(route.ns, sizeof(route.ns), "%s", text_at(asked, "/namespace"));
    snprintf(route.name, sizeof(route.name), "%s", text_at(asked, "/name"));
    snprintf(route.subresource, sizeof(route.subresource), "%s", sub);
    if (proxy) {
        return may_proxy(who, &route);
    }
    if (route.verb == ROUTE_CREATE && !*route.name) {
        memcpy(route.name, who->node, sizeof(route.name)); /* as the call itself is judged */
    }
    switch (auth_check(who, &route)) {
    case AUTH_YES:
        return yes("the role allows it");
    case AUTH_IF_OWN:
        if (route_verb_reads(route.verb)) {
            return no("only what pods on the node have as a volume");
        }
        return yes("only what is on the node, on its way to it or leaving it");
    case AUTH_NO:
        break;
    }
    return no("no rule of the role allows it");
}

static struct self_review_answer may_resource(const struct rbac_view *view,
                                              const struct auth_who *who, const yyjson_val *asked)
{
    const struct rbac_ask ask = {.verb = text_at(asked, "/verb"),
                                 .group = text_at(asked, "/group"),
                                 .resource = text_at(asked, "/resource"),
                                 .subresource = text_at(asked, "/subresource"),
                                 .ns = text_at(asked, "/namespace"),
                                 .name = text_at(asked, "/name")};
    struct self_review_answer a = by_role(who, asked);

    return a.allowed || !auth_is_person(who) ? a : by_bindings(view, who, &ask);
}

static bool path_fits(const char *pattern, const char *path)
{
    size_t n = strlen(pattern);

    return pattern[n - 1] == '*' ? strncmp(pattern, path, n - 1) == 0 : ferry_streq(pattern, path);
}

static struct self_review_answer may_path(const struct rbac_view *view, const struct auth_who *who,
                                          const yyjson_val *asked)
{
    const char *path = text_at(asked, "/path");
    const struct rbac_ask ask = {.verb = text_at(asked, "/verb"), .path = path};

    if (who->role == AUTH_ADMIN) {
        return yes("the role admin may do everything");
    }
    for (size_t i = 0; i < PLAIN_PATHS; i++) {
        if (path_fits(plain_paths[i].path, path) && ferry_streq(text_at(asked, "/verb"), "get") &&
            (plain_paths[i].anybody || has_role(who))) {
            return yes(plain_paths[i].anybody ? "everybody may" : "whoever has a role may");
        }
    }
    return auth_is_person(who) ? by_bindings(view, who, &ask) : no("no rule of the role allows it");
}

struct self_review_answer self_review_access(const struct rbac_view *view,
                                             const struct auth_who *who, const yyjson_val *spec)
{
    yyjson_val *resource = yyjson_obj_get((yyjson_val *)spec, "resourceAttributes");
    yyjson_val *path = yyjson_obj_get((yyjson_val *)spec, "nonResourceAttributes");

    return resource ? may_resource(view, who, resource) : may_path(view, who, path);
}

/* ---- what may I? -------------------------------------------------------------------------------
 */

static void put_verbs(struct ferry_buf *b, const struct auth_rule *rule)
{
    const struct {
        unsigned bit;
        const char *names;
    } words[] = {
        {AUTH_READ, "\"get\",\"list\",\"watch\""},
        {AUTH_CREATE, "\"create\""},
        {AUTH_CHANGE, "\"update\",\"patch\""},
        {AUTH_DELETE,
         rule->answer == AUTH_IF_OWN ? "\"delete\"" : "\"delete\",\"deletecollection\""},
    };
    bool first = true;

    ferry_buf_puts(b, "\"verbs\":[");
    for (size_t i = 0; i < FERRY_COUNT(words); i++) {
        if (rule->verbs & words[i].bit) {
            ferry_buf_printf(b, "%s%s", first ? "" : ",", words[i].names);
            first = false;
        }
    }
    ferry_buf_puts(b, "]");
}

/* One kind of one row. "" as subresource is the object alone, "*" all of it. */
static void put_rule(struct ferry_buf *b, const struct auth_rule *rule,
                     const struct api_resource *r, const struct auth_who *who, bool *first)
{
    ferry_buf_puts(b, *first ? "{" : ",{");
    put_verbs(b, rule);
    ferry_buf_printf(b, ",\"apiGroups\":[\"%s\"],\"resources\":[", r->group);
    if (ferry_streq(rule->subresource, "*")) {
        ferry_buf_printf(b, "\"%s\",\"%s/*\"]", r->plural, r->plural);
    } else {
        ferry_buf_printf(b, "\"%s%s%s\"]", r->plural, *rule->subresource ? "/" : "",
                         rule->subresource);
    }
    if (rule->named_as_node) {
        ferry_buf_puts(b, ",\"resourceNames\":[");
        ferry_buf_json(b, who->node);
        ferry_buf_puts(b, "]");
    }
    ferry_buf_puts(b, "}");
    *first = false;
}

/* What a node reads because its pods need it is no right to the kind. */
static bool hangs_on_pods(const struct auth_rule *rule)
{
    return rule->answer == AUTH_IF_OWN && rule->verbs == AUTH_READ;
}

/* An earlier row of the role decides about this kind: one for all does not reach it. */
static bool is_decided(const struct auth_rule *rules, size_t i, const struct api_resource *r)
{
    for (size_t k = 0; k < i; k++) {
        if (rules[k].role == rules[i].role && ferry_streq(rules[k].plural, r->plural) &&
            rules[k].verbs == rules[i].verbs) {
            return true;
        }
    }
    return false;
}

static void put_resource_rules(struct ferry_buf *b, const struct auth_who *who, bool *first)
{
    size_t n;
    const struct auth_rule *rules = auth_rules(&n);

    if (who->role == AUTH_ADMIN) {
        ferry_buf_puts(b, "{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]}");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        bool all = ferry_streq(rules[i].plural, "*");

        for (const struct api_resource *r = api_resources();
             rules[i].role == who->role && r->plural; r++) {
            if (all ? !ferry_streq(r->plural, "secrets") && !is_decided(rules, i, r)
                    : ferry_streq(r->plural, rules[i].plural) && !hangs_on_pods(&rules[i])) {
                put_rule(b, &rules[i], r, who, first);
            }
        }
    }
}

/* Rules of bindings, as they stand there: those with paths, or those without. */
static void put_bound(struct ferry_buf *b, const struct rbac_rules *held, bool paths, bool *first)
{
    for (size_t i = 0; i < held->n; i++) {
        yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)held->lists[i]);

        for (yyjson_val *rule; (rule = yyjson_arr_iter_next(&it));) {
            bool of_paths = yyjson_arr_size(yyjson_obj_get(rule, "nonResourceURLs")) > 0;
            ferry_cleanup_free char *text =
                of_paths == paths ? json_doc_val_text(rule, 0, NULL) : NULL;

            if (text) {
                ferry_buf_printf(b, "%s%s", *first ? "" : ",", text);
                *first = false;
            }
        }
    }
}

void self_review_rules(const struct rbac_view *view, const struct auth_who *who, const char *ns,
                       struct ferry_buf *ret)
{
    cleanup_rbac_rules struct rbac_rules held = {0};
    struct rights_user user;
    bool first = true;

    if (auth_is_person(who)) {
        rights_user_of(who, &user);
        rbac_view_rules(view, &user.user, ns, &held);
    }
    ferry_buf_puts(ret, "{\"resourceRules\":[");
    put_resource_rules(ret, who, &first);
    put_bound(ret, &held, false, &first);
    first = true;
    ferry_buf_puts(ret, "],\"nonResourceRules\":[");
    if (who->role == AUTH_ADMIN) {
        ferry_buf_puts(ret, "{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}");
    }
    for (size_t i = 0; i < PLAIN_PATHS && who->role != AUTH_ADMIN; i++) {
        if (plain_paths[i].anybody || has_role(who)) {
            ferry_buf_printf(ret, "%s{\"verbs\":[\"get\"],\"nonResourceURLs\":[\"%s\"]}",
                             first ? "" : ",", plain_paths[i].path);
            first = false;
        }
    }
    put_bound(ret, &held, true, &first);
    ferry_buf_puts(ret, "],\"incomplete\":false}");
}

/* ---- who am I? ---------------------------------------------------------------------------------
 */

static void put_who(struct ferry_buf *b, const struct auth_who *who)
{
    ferry_buf_puts(b, "{\"userInfo\":{\"username\":");
    ferry_buf_json(b, who->user);
    ferry_buf_puts(b, ",\"groups\":[");
    for (size_t i = 0; i < who->n_groups; i++) {
        ferry_buf_puts(b, i ? "," : "");
        ferry_buf_json(b, who->groups[i]);
    }
    ferry_buf_printf(b, "],\"extra\":{\"" EXTRA_ROLE "\":[\"%s\"]}}}", auth_role_name(who->role));
}

/* ---- the calls ---------------------------------------------------------------------------------
 */

/* The namespace of ".../namespaces/NAMESPACE/localsubjectaccessreviews", or false. */
static bool local_of(const char *path, char ns[ROUTE_PART_MAX])
{
    const char *rest = path + strlen(reviews[REVIEW_LOCAL].path);
    size_t n;

    if (!ferry_str_starts(path, reviews[REVIEW_LOCAL].path)) {
        return false;
    }
    n = strcspn(rest, "/");
    snprintf(ns, ROUTE_PART_MAX, "%.*s", (int)(n < ROUTE_PART_MAX ? n : 0), rest);
    return *ns && ferry_streq(rest + n, "/localsubjectaccessreviews");
}

static enum review review_of(const char *path)
{
    char ns[ROUTE_PART_MAX];
    enum review i = 0;

    if (local_of(path, ns)) {
        return REVIEW_LOCAL;
    }
    while (i < REVIEW_LOCAL && !ferry_streq(reviews[i].path, path)) {
        i++;
    }
    return i < REVIEW_LOCAL ? i : REVIEW_COUNT;
}

bool self_review_is_path(const char *path)
{
    return review_of(path) < REVIEW_COUNT;
}

static bool asks_access(enum review what)
{
    return what == REVIEW_ACCESS || what == REVIEW_SUBJECT || what == REVIEW_LOCAL;
}

static int check_asked(struct request *r, enum review what, const yyjson_val *root)
{
    const char *kind = api_json_str(root, "/kind"), *version = api_json_str(root, "/apiVersion");

    if (!yyjson_is_obj((yyjson_val *)root) || (kind && !ferry_streq(kind, reviews[what].kind)) ||
        (version && !ferry_streq(version, reviews[what].api_version))) {
        return status_fail(&r->st, 400, "the body must be a %s of %s", reviews[what].kind,
                           reviews[what].api_version);
    }
    if (asks_access(what) &&
        !yyjson_ptr_get((yyjson_val *)root, "/spec/resourceAttributes") ==
            !yyjson_ptr_get((yyjson_val *)root, "/spec/nonResourceAttributes")) {
        return status_fail(&r->st, 422,
                           "spec: Invalid value: exactly one of resourceAttributes and "
                           "nonResourceAttributes must be specified");
    }
    return 0;
}

static void put_access(struct ferry_buf *b, struct request *r, const struct auth_who *who,
                       const yyjson_val *spec)
{
    struct self_review_answer answer = self_review_access(rights_view(r), who, spec);

    ferry_buf_printf(b, "{\"allowed\":%s,\"reason\":", answer.allowed ? "true" : "false");
    ferry_buf_json(b, answer.why);
    ferry_buf_puts(b, "}");
}

/* The one whom a SubjectAccessReview is about: as a certificate with that name and these
 * organisations would be met, in no group but them. */
static int read_subject(struct request *r, const yyjson_val *spec, struct auth_who *ret)
{
    yyjson_val *groups = yyjson_obj_get((yyjson_val *)spec, "groups"), *v;
    struct http_peer peer = {.certificate = true};
    size_t i, max;

    snprintf(peer.common_name, sizeof(peer.common_name), "%s", text_at(spec, "/user"));
    yyjson_arr_foreach(groups, i, max, v)
    {
        const char *name = yyjson_get_str(v);

        if (i >= HTTP_GROUPS_MAX || !name || strlen(name) >= HTTP_NAME_MAX) {
            return status_fail(&r->st, 422, "spec.groups: Too many: at most %d, of %d bytes",
                               HTTP_GROUPS_MAX, HTTP_NAME_MAX - 1);
        }
        snprintf(peer.groups[peer.n_groups++], HTTP_NAME_MAX, "%s", name);
    }
    if (!*peer.common_name && !peer.n_groups) {
        return status_fail(&r->st, 422,
                           "spec.user: Invalid value: at least one of user or group must be "
                           "specified");
    }
    if (!*peer.common_name) {
        snprintf(peer.common_name, sizeof(peer.common_name), "-"); /* known by its groups alone */
    }
    auth_identify(&peer, ret);
    ret->n_groups = peer.n_groups;
    return 0;
}

static int put_subject(struct ferry_buf *b, struct request *r, const yyjson_val *spec)
{
    struct auth_who who;
    char ns[ROUTE_PART_MAX] = "";

    if (local_of(http_path(r->x), ns) &&
        !ferry_streq(text_at(spec, "/resourceAttributes/namespace"), ns)) {
        return status_fail(&r->st, 422,
                           "spec.resourceAttributes.namespace: Invalid value: must match the "
                           "namespace of the review");
    }
    if (read_subject(r, spec, &who) < 0) {
        return -1;
    }
    put_access(b, r, &who, spec);
    return 0;
}

static int put_status(struct ferry_buf *b, struct request *r, enum review what,
                      const yyjson_val *spec)
{
    if (what == REVIEW_SUBJECT || what == REVIEW_LOCAL) {
        return put_subject(b, r, spec);
    }
    if (what == REVIEW_ACCESS) {
        put_access(b, r, &r->who, spec);
    } else if (what == REVIEW_RULES) {
        self_review_rules(rights_view(r), &r->who, text_at(spec, "/namespace"), b);
    } else {
        put_who(b, &r->who);
    }
    return 0;
}

/* What others may is told to those who may ask. */
static int check_may_ask(struct request *r, enum review what)
{
    char ns[ROUTE_PART_MAX] = "";

    if (what != REVIEW_SUBJECT && what != REVIEW_LOCAL) {
        return 0;
    }
    (void)local_of(http_path(r->x), ns);
    return rights_check(r, &(struct rbac_ask){.verb = "create",
                                              .group = "authorization.k8s.io",
                                              .resource = what == REVIEW_LOCAL
                                                              ? "localsubjectaccessreviews"
                                                              : "subjectaccessreviews",
                                              .subresource = "",
                                              .ns = ns,
                                              .name = ""});
}

int self_review_serve(struct request *r)
{
    enum review what = review_of(http_path(r->x));
    api_cleanup_doc yyjson_doc *body = NULL;
    ferry_cleanup_buf struct ferry_buf b = {0};
    char now[FERRY_RFC3339_SIZE];

    if (!ferry_streq(http_method(r->x), "POST")) {
        return status_fail(&r->st, 405, "the server does not allow this method here");
    }
    if (check_may_ask(r, what) < 0 || request_body(r, &body) < 0) {
        return -1;
    }
    const yyjson_val *root = yyjson_doc_get_root(body);
    if (check_asked(r, what, root) < 0) {
        return -1;
    }
    yyjson_val *spec = yyjson_obj_get((yyjson_val *)root, "spec");
    ferry_cleanup_free char *text = spec ? json_doc_val_text(spec, 0, NULL) : NULL;
    ferry_buf_printf(&b,
                     "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"creationTimestamp\":"
                     "\"%s\"},",
                     reviews[what].kind, reviews[what].api_version,
                     ferry_rfc3339(ferry_now_unix_ms(), now));
    if (text) {
        ferry_buf_printf(&b, "\"spec\":%s,", text);
    }
    ferry_buf_puts(&b, "\"status\":");
    if (put_status(&b, r, what, spec) < 0) {
        return -1;
    }
    ferry_buf_puts(&b, "}");
    r->code = 201;
    http_answer(r->x, 201, "application/json", b.data, b.len);
    return 0;
}
