#include "apiserver/serve/audit_policy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "base/count.h"
#include "base/str.h"

static const char *const level_names[] = {
    [AUDIT_NONE] = "None",
    [AUDIT_METADATA] = "Metadata",
    [AUDIT_REQUEST] = "Request",
    [AUDIT_REQUEST_RESPONSE] = "RequestResponse",
};
_Static_assert(FERRY_COUNT(level_names) == AUDIT_LEVEL_COUNT, "one name per level");

const char *audit_level_name(enum audit_level level)
{
    return level_names[level];
}

static enum audit_level level_of(const char *name)
{
    enum audit_level level = AUDIT_NONE;

    while (level < AUDIT_LEVEL_COUNT && !ferry_streq(level_names[level], name)) {
        level++;
    }
    return level;
}

/* ---- the call ----------------------------------------------------------------------------------
 */

/* The next part of a path; false at its end. */
static bool next_part(const char **at, char ret[AUDIT_PART_MAX])
{
    size_t n;

    *at += strspn(*at, "/");
    n = strcspn(*at, "/");
    snprintf(ret, AUDIT_PART_MAX, "%.*s", (int)(n < AUDIT_PART_MAX ? n : AUDIT_PART_MAX - 1), *at);
    *at += n;
    return n > 0;
}

static const char *verb_of(const char *method, bool named, bool watch)
{
    static const struct {
        const char *method, *one, *many;
    } rows[] = {
        {"GET", "get", "list"},       {"HEAD", "get", "list"},
        {"POST", "create", "create"}, {"PUT", "update", "update"},
        {"PATCH", "patch", "patch"},  {"DELETE", "delete", "deletecollection"},
    };

    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        if (ferry_streq(method, rows[i].method)) {
            return watch && i < 2 ? "watch" : named ? rows[i].one : rows[i].many;
        }
    }
    return "";
}

/* "/api/v1/namespaces/NS/pods/NAME/log", "/apis/GROUP/VERSION/nodes" */
static void read_object(const char *at, struct audit_call *ret)
{
    char part[AUDIT_PART_MAX], more[AUDIT_PART_MAX];

    if (!next_part(&at, part)) {
        return;
    }
    if (ferry_streq(part, "namespaces") && next_part(&at, ret->ns)) {
        if (!next_part(&at, part) || ferry_streq(part, "status") || ferry_streq(part, "finalize")) {
            snprintf(ret->plural, sizeof(ret->plural), "namespaces");
            snprintf(ret->subresource, sizeof(ret->subresource), "%s", part);
            memcpy(ret->name, ret->ns, sizeof(ret->name));
            ret->resource = true;
            return;
        }
    }
    ret->resource = true;
    memcpy(ret->plural, part, sizeof(ret->plural));
    (void)(next_part(&at, ret->name) && next_part(&at, ret->subresource));
    if (next_part(&at, more) && ferry_streq(ret->group, "subresources.kubevirt.io")) {
        size_t n = strlen(ret->subresource);

        snprintf(ret->subresource + n, sizeof(ret->subresource) - n, "/%s", more);
    }
}

void audit_call_read(const char *method, const char *path, bool watch, struct audit_call *ret)
{
    const char *at = path;
    char part[AUDIT_PART_MAX];
    size_t i = 0;

    ret->path = path;
    if (next_part(&at, part) && (ferry_streq(part, "api") || ferry_streq(part, "apis"))) {
        bool named = ferry_streq(part, "apis");

        if ((!named || next_part(&at, ret->group)) && next_part(&at, ret->version)) {
            read_object(at, ret);
        }
    }
    if (ret->resource) {
        snprintf(ret->verb, sizeof(ret->verb), "%s", verb_of(method, *ret->name, watch));
        return;
    }
    *ret->group = *ret->version = *ret->ns = '\0';
    for (; method[i] && i + 1 < sizeof(ret->verb); i++) {
        ret->verb[i] = (char)tolower((unsigned char)method[i]);
    }
    ret->verb[i] = '\0';
}

/* ---- does a rule fit? --------------------------------------------------------------------------
 */

static yyjson_val *list_of(const yyjson_val *v, const char *key)
{
    return yyjson_obj_get((yyjson_val *)v, key);
}

static bool is_set(const yyjson_val *v, const char *key)
{
    return yyjson_arr_size(list_of(v, key)) > 0;
}

static bool none_or_has(const yyjson_val *v, const char *key, const char *text)
{
    return !is_set(v, key) || json_doc_lists(list_of(v, key), text);
}

static bool fits_groups(const yyjson_val *rule, const struct audit_call *c)
{
    for (size_t i = 0; i < c->n_groups; i++) {
        if (json_doc_lists(list_of(rule, "userGroups"), c->groups[i])) {
            return true;
        }
    }
    return !is_set(rule, "userGroups");
}

/* "pods", "pods/log", "pods/" and a star for it with all below, a star and "/log", a star. */
static bool names(const char *said, const struct audit_call *c)
{
    const char *slash = strchr(said, '/');
    size_t n = slash ? (size_t)(slash - said) : strlen(said);
    bool any = n == 1 && *said == '*';

    if (!slash) {
        return any || (!*c->subresource && ferry_streq(said, c->plural));
    }
    if (!any && (strlen(c->plural) != n || strncmp(said, c->plural, n) != 0)) {
        return false;
    }
    return *c->subresource ? ferry_streq(slash + 1, "*") || ferry_streq(slash + 1, c->subresource)
                           : !any && ferry_streq(slash + 1, "*");
}

static bool fits_kind(const yyjson_val *kind, const struct audit_call *c)
{
    const char *group = api_json_str(kind, "/group");
    yyjson_arr_iter it = yyjson_arr_iter_with(list_of(kind, "resources"));

    if (!ferry_streq(group ? group : "", c->group) ||
        !none_or_has(kind, "resourceNames", c->name)) {
        return false;
    }
    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (names(yyjson_get_str(v), c)) {
            return true;
        }
    }
    return !is_set(kind, "resources");
}

static bool fits_object(const yyjson_val *rule, const struct audit_call *c)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(list_of(rule, "resources"));

    if (!c->resource || !none_or_has(rule, "namespaces", c->ns)) {
        return false;
    }
    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (fits_kind(v, c)) {
            return true;
        }
    }
    return !is_set(rule, "resources");
}

static bool fits_path(const yyjson_val *rule, const struct audit_call *c)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(list_of(rule, "nonResourceURLs"));

    for (yyjson_val *v; !c->resource && (v = yyjson_arr_iter_next(&it));) {
        const char *said = yyjson_get_str(v);
        size_t n = strlen(said);

        if (n && said[n - 1] == '*' ? strncmp(said, c->path, n - 1) == 0
                                    : ferry_streq(said, c->path)) {
            return true;
        }
    }
    return false;
}

static bool fits(const yyjson_val *rule, const struct audit_call *c)
{
    if (!none_or_has(rule, "users", c->user) || !fits_groups(rule, c) ||
        !none_or_has(rule, "verbs", c->verb)) {
        return false;
    }
    if (is_set(rule, "resources") || is_set(rule, "namespaces")) {
        return fits_object(rule, c);
    }
    return !is_set(rule, "nonResourceURLs") || fits_path(rule, c);
}

static bool is_secret(const struct audit_call *c)
{
    return c->resource && !*c->group && ferry_streq(c->plural, "secrets");
}

/* What is said on a console, and what whoever joins shows, is nobody's to read later. */
static bool is_private(const struct audit_call *c)
{
    return is_secret(c) || ferry_streq(c->subresource, "proxy") ||
           ferry_streq(c->subresource, "token") || ferry_str_starts(c->path, "/ferry/v1/");
}

enum audit_level audit_policy_level(const yyjson_val *policy, const struct audit_call *call)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(list_of(policy, "rules"));

    for (yyjson_val *rule; (rule = yyjson_arr_iter_next(&it));) {
        if (fits(rule, call)) {
            enum audit_level level = level_of(api_json_str(rule, "/level"));

            return level > AUDIT_METADATA && is_private(call) ? AUDIT_METADATA : level;
        }
    }
    return AUDIT_NONE;
}

enum audit_level audit_default_level(const struct audit_call *call, int code)
{
    bool reads = ferry_streq(call->verb, "get") || ferry_streq(call->verb, "head") ||
                 ferry_streq(call->verb, "list") || ferry_streq(call->verb, "watch");

    return !reads || code == 401 || code == 403 || is_secret(call) ||
                   ferry_streq(call->subresource, "proxy")
               ? AUDIT_METADATA
               : AUDIT_NONE;
}

/* ---- is it a policy? ---------------------------------------------------------------------------
 */

static int check_texts(const yyjson_val *list, const char *where, struct ferry_error *err)
{
    yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)list);

    if (list && !yyjson_is_arr((yyjson_val *)list)) {
        return ferry_fail(err, FERRY_INVALID, "%s: must be a list", where);
    }
    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (!yyjson_is_str(v)) {
            return ferry_fail(err, FERRY_INVALID, "%s: must be texts", where);
        }
    }
    return 0;
}

/* Lists of texts, by name; `others` are looked at elsewhere. */
static int check_members(const yyjson_val *obj, const char *where, const char *const *texts,
                         const char *const *others, struct ferry_error *err)
{
    yyjson_val *key, *v;
    size_t i, max;

    if (!yyjson_is_obj((yyjson_val *)obj)) {
        return ferry_fail(err, FERRY_INVALID, "%s: must be an object", where);
    }
    yyjson_obj_foreach((yyjson_val *)obj, i, max, key, v)
    {
        const char *name = yyjson_get_str(key);
        bool known = false, is_text = false;
        ferry_cleanup_free char *field = ferry_asprintf("%s.%.60s", where, name);

        for (size_t k = 0; others[k]; k++) {
            known = known || ferry_streq(others[k], name);
        }
        for (size_t k = 0; texts[k]; k++) {
            is_text = is_text || ferry_streq(texts[k], name);
        }
        if (!known && !is_text) {
            return ferry_fail(err, FERRY_INVALID, "%s: there is no such field", field);
        }
        if (is_text && check_texts(v, field, err) < 0) {
            return -FERRY_INVALID;
        }
    }
    return 0;
}

static int check_rule(const yyjson_val *rule, const char *where, struct ferry_error *err)
{
    static const char *const texts[] = {"users",           "userGroups", "verbs", "namespaces",
                                        "nonResourceURLs", "omitStages", NULL};
    static const char *const others[] = {"level", "resources", "omitManagedFields", NULL};
    static const char *const kind_texts[] = {"resources", "resourceNames", NULL};
    static const char *const kind_others[] = {"group", NULL};
    yyjson_arr_iter it = yyjson_arr_iter_with(list_of(rule, "resources"));
    const char *level = api_json_str(rule, "/level");
    ferry_cleanup_free char *inside = ferry_asprintf("%s.resources", where);
    int rc = check_members(rule, where, texts, others, err);

    for (yyjson_val *v; rc == 0 && (v = yyjson_arr_iter_next(&it));) {
        rc = check_members(v, inside, kind_texts, kind_others, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (level_of(level) == AUDIT_LEVEL_COUNT) {
        return ferry_fail(err, FERRY_INVALID,
                          "%s.level: '%.60s' is not None, Metadata, Request or RequestResponse",
                          where, level ? level : "");
    }
    if (is_set(rule, "nonResourceURLs") &&
        (is_set(rule, "resources") || is_set(rule, "namespaces"))) {
        return ferry_fail(err, FERRY_INVALID,
                          "%s: rules cannot apply to both regular resources and non-resource URLs",
                          where);
    }
    return 0;
}

int audit_policy_check(const yyjson_val *policy, struct ferry_error *err)
{
    static const char *const texts[] = {"omitStages", NULL};
    static const char *const others[] = {"apiVersion",        "kind", "metadata", "rules",
                                         "omitManagedFields", NULL};
    size_t i, max;
    yyjson_val *rule;

    if (!ferry_streq(api_json_str(policy, "/kind"), "Policy") ||
        !ferry_streq(api_json_str(policy, "/apiVersion"), "audit.k8s.io/v1")) {
        return ferry_fail(err, FERRY_INVALID, "not a Policy of audit.k8s.io/v1");
    }
    int rc = check_members(policy, "policy", texts, others, err);
    if (rc == 0 && !is_set(policy, "rules")) {
        return ferry_fail(err, FERRY_INVALID, "policy.rules: must have at least one");
    }
    yyjson_arr_foreach(list_of(policy, "rules"), i, max, rule)
    {
        ferry_cleanup_free char *where = ferry_asprintf("rules[%zu]", i);

        rc = rc < 0 ? rc : check_rule(rule, where, err);
    }
    return rc;
}
