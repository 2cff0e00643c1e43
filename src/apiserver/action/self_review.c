#include "apiserver/action/self_review.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

enum review { REVIEW_ACCESS, REVIEW_RULES, REVIEW_WHO, REVIEW_COUNT };

static const struct {
    const char *path, *api_version, *kind;
} reviews[] = {
    [REVIEW_ACCESS] = {"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                       "authorization.k8s.io/v1", "SelfSubjectAccessReview"},
    [REVIEW_RULES] = {"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                      "authorization.k8s.io/v1", "SelfSubjectRulesReview"},
    [REVIEW_WHO] = {"/apis/authentication.k8s.io/v1/selfsubjectreviews", "authentication.k8s.io/v1",
                    "SelfSubjectReview"},
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
    return who->role != AUTH_ANONYMOUS && who->role != AUTH_NOBODY;
}

/* ---- may I? ------------------------------------------------------------------------------------
 */

static struct self_review_answer yes(const char *why)
{
    return (struct self_review_answer){.allowed = true, .why = why};
}

static struct self_review_answer no(const char *why)
{
    return (struct self_review_answer){.why = why};
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

static struct self_review_answer may_resource(const struct auth_who *who, const yyjson_val *asked)
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

static bool path_fits(const char *pattern, const char *path)
{
    size_t n = strlen(pattern);

    return pattern[n - 1] == '*' ? strncmp(pattern, path, n - 1) == 0 : ferry_streq(pattern, path);
}

static struct self_review_answer may_path(const struct auth_who *who, const yyjson_val *asked)
{
    const char *path = text_at(asked, "/path");

    if (who->role == AUTH_ADMIN) {
        return yes("the role admin may do everything");
    }
    for (size_t i = 0; i < PLAIN_PATHS; i++) {
        if (path_fits(plain_paths[i].path, path) && ferry_streq(text_at(asked, "/verb"), "get") &&
            (plain_paths[i].anybody || has_role(who))) {
            return yes(plain_paths[i].anybody ? "everybody may" : "whoever has a role may");
        }
    }
    return no("no rule of the role allows it");
}

struct self_review_answer self_review_access(const struct auth_who *who, const yyjson_val *spec)
{
    yyjson_val *resource = yyjson_obj_get((yyjson_val *)spec, "resourceAttributes");
    yyjson_val *path = yyjson_obj_get((yyjson_val *)spec, "nonResourceAttributes");

    return resource ? may_resource(who, resource) : may_path(who, path);
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

static void put_resource_rules(struct ferry_buf *b, const struct auth_who *who)
{
    size_t n;
    const struct auth_rule *rules = auth_rules(&n);
    bool first = true;

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
                put_rule(b, &rules[i], r, who, &first);
            }
        }
    }
}

void self_review_rules(const struct auth_who *who, struct ferry_buf *ret)
{
    bool first = true;

    ferry_buf_puts(ret, "{\"resourceRules\":[");
    put_resource_rules(ret, who);
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
    ferry_buf_puts(ret, "],\"incomplete\":false}");
}

/* ---- who am I? ---------------------------------------------------------------------------------
 */

/* The group that a token stands for. */
static const char *group_of(enum auth_role role)
{
    return role == AUTH_ADMIN    ? "ferry:admins"
           : role == AUTH_VIEWER ? "ferry:viewers"
           : role == AUTH_NODE   ? "system:nodes"
                                 : NULL;
}

static void put_groups(struct ferry_buf *b, const struct auth_who *who,
                       const struct http_peer *peer)
{
    for (size_t i = 0; peer->certificate && i < peer->n_groups; i++) {
        ferry_buf_json(b, peer->groups[i]);
        ferry_buf_puts(b, ",");
    }
    if (!peer->certificate && group_of(who->role)) {
        ferry_buf_printf(b, "\"%s\",", group_of(who->role));
    }
    ferry_buf_puts(b, "\"system:authenticated\"");
}

static void put_who(struct ferry_buf *b, const struct auth_who *who, const struct http_peer *peer)
{
    ferry_buf_puts(b, "{\"userInfo\":{\"username\":");
    ferry_buf_json(b, who->user);
    ferry_buf_puts(b, ",\"groups\":[");
    put_groups(b, who, peer);
    ferry_buf_printf(b, "],\"extra\":{\"" EXTRA_ROLE "\":[\"%s\"]}}}", auth_role_name(who->role));
}

/* ---- the calls ---------------------------------------------------------------------------------
 */

static enum review review_of(const char *path)
{
    enum review i = 0;

    while (i < REVIEW_COUNT && !ferry_streq(reviews[i].path, path)) {
        i++;
    }
    return i;
}

bool self_review_is_path(const char *path)
{
    return review_of(path) < REVIEW_COUNT;
}

static int check_asked(struct request *r, enum review what, const yyjson_val *root)
{
    const char *kind = api_json_str(root, "/kind"), *version = api_json_str(root, "/apiVersion");

    if (!yyjson_is_obj((yyjson_val *)root) || (kind && !ferry_streq(kind, reviews[what].kind)) ||
        (version && !ferry_streq(version, reviews[what].api_version))) {
        return status_fail(&r->st, 400, "the body must be a %s of %s", reviews[what].kind,
                           reviews[what].api_version);
    }
    if (what == REVIEW_ACCESS &&
        !yyjson_ptr_get((yyjson_val *)root, "/spec/resourceAttributes") ==
            !yyjson_ptr_get((yyjson_val *)root, "/spec/nonResourceAttributes")) {
        return status_fail(&r->st, 422,
                           "spec: Invalid value: exactly one of resourceAttributes and "
                           "nonResourceAttributes must be specified");
    }
    return 0;
}

static void put_status(struct ferry_buf *b, const struct request *r, enum review what,
                       const yyjson_val *spec)
{
    if (what == REVIEW_ACCESS) {
        struct self_review_answer answer = self_review_access(&r->who, spec);

        ferry_buf_printf(b, "{\"allowed\":%s,\"reason\":\"%s\"}", answer.allowed ? "true" : "false",
                         answer.why);
    } else if (what == REVIEW_RULES) {
        self_review_rules(&r->who, b);
    } else {
        put_who(b, &r->who, http_peer(r->x));
    }
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
    if (request_body(r, &body) < 0) {
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
    put_status(&b, r, what, spec);
    ferry_buf_puts(&b, "}");
    r->code = 201;
    http_answer(r->x, 201, "application/json", b.data, b.len);
    return 0;
}
