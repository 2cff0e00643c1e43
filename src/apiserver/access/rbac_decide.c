#include "apiserver/access/rbac_decide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "json/doc.h"

/* Texts compared with texts in one question of cover; some tens of milliseconds. */
enum { COMPARED_MAX = 4 << 20, SINGLE_COST = 64, LACKING_MAX = 160 };

static yyjson_val *list_of(const yyjson_val *rule, const char *key)
{
    return yyjson_obj_get((yyjson_val *)rule, key);
}

static const char *text_of(const yyjson_val *v, const char *key)
{
    const char *text = yyjson_get_str(yyjson_obj_get((yyjson_val *)v, key));

    return text ? text : "";
}

static bool has(const yyjson_val *list, const char *text)
{
    return json_doc_lists(list, text);
}

static bool has_or_all(const yyjson_val *list, const char *text)
{
    return has(list, "*") || has(list, text);
}

/* ---- what a rule allows ------------------------------------------------------------------------
 */

/* "pods", "pods/log", and for "x/scale" also "* /scale", written together. */
static bool names_resource(const char *said, const char *resource, const char *subresource)
{
    size_t n = strlen(resource);

    if (ferry_streq(said, "*")) {
        return true;
    }
    if (!*subresource) {
        return ferry_streq(said, resource);
    }
    if (strncmp(said, "*/", 2) == 0) {
        return ferry_streq(said + 2, subresource);
    }
    return strncmp(said, resource, n) == 0 && said[n] == '/' &&
           ferry_streq(said + n + 1, subresource);
}

static bool fits_resource(const yyjson_val *list, const struct rbac_ask *ask)
{
    yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)list);

    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (yyjson_is_str(v) &&
            names_resource(yyjson_get_str(v), ask->resource, ask->subresource)) {
            return true;
        }
    }
    return false;
}

/* "/apis" is "/apis", "/apis/" and a star behind it all that is below. */
static bool path_fits(const char *said, const char *path)
{
    size_t n = strlen(said);

    if (n && said[n - 1] == '*') {
        return strncmp(said, path, n - 1) == 0;
    }
    return ferry_streq(said, path);
}

static bool fits_path(const yyjson_val *list, const char *path)
{
    yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)list);

    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (yyjson_is_str(v) && path_fits(yyjson_get_str(v), path)) {
            return true;
        }
    }
    return false;
}

bool rbac_rule_allows(const yyjson_val *rule, const struct rbac_ask *ask)
{
    const yyjson_val *names = list_of(rule, "resourceNames");

    if (!has_or_all(list_of(rule, "verbs"), ask->verb)) {
        return false;
    }
    if (ask->path) {
        return fits_path(list_of(rule, "nonResourceURLs"), ask->path);
    }
    return has_or_all(list_of(rule, "apiGroups"), ask->group) &&
           fits_resource(list_of(rule, "resources"), ask) &&
           (yyjson_arr_size((yyjson_val *)names) == 0 || has(names, ask->name));
}

/* ---- whom a binding means ----------------------------------------------------------------------
 */

static bool is_account(const yyjson_val *subject, const char *ns, const char *user)
{
    static const char prefix[] = "system:serviceaccount:";
    const char *own = text_of(subject, "namespace");
    size_t n;

    own = *own ? own : ns;
    n = strlen(own);
    return n && ferry_str_starts(user, prefix) && strncmp(user + strlen(prefix), own, n) == 0 &&
           user[strlen(prefix) + n] == ':' &&
           ferry_streq(user + strlen(prefix) + n + 1, text_of(subject, "name"));
}

bool rbac_subject_is(const yyjson_val *subject, const char *ns, const struct rbac_user *user)
{
    const char *kind = text_of(subject, "kind"), *name = text_of(subject, "name");

    if (!*name) {
        return false;
    }
    if (ferry_streq(kind, "User")) {
        return ferry_streq(user->name, name);
    }
    if (ferry_streq(kind, "ServiceAccount")) {
        return is_account(subject, ns, user->name);
    }
    for (size_t i = 0; ferry_streq(kind, "Group") && i < user->n_groups; i++) {
        if (ferry_streq(user->groups[i], name)) {
            return true;
        }
    }
    return false;
}

/* ---- lists of rules ----------------------------------------------------------------------------
 */

void rbac_rules_add(struct rbac_rules *r, const yyjson_val *list)
{
    if (!yyjson_is_arr((yyjson_val *)list)) {
        return;
    }
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 8;
        r->lists = ferry_xrealloc(r->lists, r->cap, sizeof(const yyjson_val *));
    }
    r->lists[r->n++] = list;
}

void rbac_rules_done(struct rbac_rules *r)
{
    free(r->lists);
    *r = (struct rbac_rules){0};
}

/* ---- who holds rules holds others --------------------------------------------------------------
 */

struct cover {
    const struct rbac_rules *held;
    size_t compared;
};

/* All that is said in `wanted` is said in `held`, or everything is. Two lists that are not there
 * cover each other. */
static bool lists_all(struct cover *c, const yyjson_val *held, const yyjson_val *wanted)
{
    yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)wanted);

    c->compared += 1 + yyjson_arr_size((yyjson_val *)held) * yyjson_arr_size((yyjson_val *)wanted);
    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (!yyjson_is_str(v) || !has_or_all(held, yyjson_get_str(v))) {
            return false;
        }
    }
    return true;
}

static bool covers_resource(const yyjson_val *held, const char *wanted)
{
    const char *slash = strchr(wanted, '/');

    if (has_or_all(held, wanted)) {
        return true;
    }
    ferry_cleanup_free char *every = slash ? ferry_asprintf("*%s", slash) : NULL;
    return every && has(held, every);
}

static bool resources_all(struct cover *c, const yyjson_val *held, const yyjson_val *wanted)
{
    yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)wanted);

    c->compared += 1 + yyjson_arr_size((yyjson_val *)held) * yyjson_arr_size((yyjson_val *)wanted);
    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (!yyjson_is_str(v) || !covers_resource(held, yyjson_get_str(v))) {
            return false;
        }
    }
    return true;
}

static bool paths_all(struct cover *c, const yyjson_val *held, const yyjson_val *wanted)
{
    yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)wanted);

    c->compared += 1 + yyjson_arr_size((yyjson_val *)held) * yyjson_arr_size((yyjson_val *)wanted);
    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (!yyjson_is_str(v) || !fits_path(held, yyjson_get_str(v))) {
            return false;
        }
    }
    return true;
}

/* Names: none means all of them. */
static bool names_all(struct cover *c, const yyjson_val *held, const yyjson_val *wanted)
{
    yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)wanted);

    if (yyjson_arr_size((yyjson_val *)held) == 0) {
        return true;
    }
    if (yyjson_arr_size((yyjson_val *)wanted) == 0) {
        return false;
    }
    c->compared += yyjson_arr_size((yyjson_val *)held) * yyjson_arr_size((yyjson_val *)wanted);
    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (!yyjson_is_str(v) || !has(held, yyjson_get_str(v))) {
            return false;
        }
    }
    return true;
}

static bool rule_covers(struct cover *c, const yyjson_val *held, const yyjson_val *wanted)
{
    return lists_all(c, list_of(held, "verbs"), list_of(wanted, "verbs")) &&
           lists_all(c, list_of(held, "apiGroups"), list_of(wanted, "apiGroups")) &&
           resources_all(c, list_of(held, "resources"), list_of(wanted, "resources")) &&
           names_all(c, list_of(held, "resourceNames"), list_of(wanted, "resourceNames")) &&
           paths_all(c, list_of(held, "nonResourceURLs"), list_of(wanted, "nonResourceURLs"));
}

static bool one_covers(struct cover *c, const yyjson_val *wanted)
{
    for (size_t i = 0; i < c->held->n && c->compared < COMPARED_MAX; i++) {
        yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)c->held->lists[i]);

        for (yyjson_val *rule; (rule = yyjson_arr_iter_next(&it));) {
            if (rule_covers(c, rule, wanted)) {
                return true;
            }
        }
    }
    return false;
}

/* What one rule says at once, taken apart: several held rules may cover it together. */
static const char *const parts[] = {"verbs", "apiGroups", "resources", "resourceNames",
                                    "nonResourceURLs"};
enum { PARTS = FERRY_COUNT(parts) };

/* One verb, group, resource and name of a rule, as a rule. */
static yyjson_doc *single(const char *const words[PARTS])
{
    json_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *rule = json_doc_object(doc);

    for (size_t i = 0; i < PARTS; i++) {
        if (words[i]) {
            yyjson_mut_arr_add_str(doc, yyjson_mut_obj_add_arr(doc, rule, parts[i]), words[i]);
        }
    }
    return yyjson_mut_doc_imut_copy(doc, NULL);
}

static void tell(const char *const words[PARTS], struct ferry_buf *ret)
{
    static const char *const names[PARTS] = {"Verbs", "APIGroups", "Resources", "ResourceNames",
                                             "NonResourceURLs"};
    bool first = true;

    ferry_buf_puts(ret, "{");
    for (size_t i = 0; i < PARTS; i++) {
        if (words[i]) {
            ferry_buf_printf(ret, "%s%s:[\"%.60s\"]", first ? "" : ", ", names[i], words[i]);
            first = false;
        }
    }
    ferry_buf_puts(ret, "}");
}

/* Goes through all combinations, part by part. */
static enum rbac_cover each_covered(struct cover *c, const yyjson_val *wanted,
                                    const char *words[PARTS], size_t part, struct ferry_buf *ret)
{
    const yyjson_val *list = part < PARTS ? list_of(wanted, parts[part]) : NULL;
    yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)list);
    enum rbac_cover all = RBAC_COVERED;

    if (part == PARTS) {
        json_cleanup_doc yyjson_doc *doc = single(words);
        bool covered = one_covers(c, yyjson_doc_get_root(doc));

        c->compared += SINGLE_COST;
        if (c->compared >= COMPARED_MAX) {
            return RBAC_TOO_MANY;
        }
        if (!covered && ret->len < LACKING_MAX) {
            ferry_buf_puts(ret, ret->len ? "\n" : "");
            tell(words, ret);
        }
        return covered ? RBAC_COVERED : RBAC_LACKING;
    }
    if (yyjson_arr_size((yyjson_val *)list) == 0) {
        words[part] = NULL;
        return each_covered(c, wanted, words, part + 1, ret);
    }
    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        words[part] = yyjson_get_str(v);
        enum rbac_cover one = each_covered(c, wanted, words, part + 1, ret);

        /* What is lacking is told until the text is full. */
        if (one == RBAC_TOO_MANY || (one == RBAC_LACKING && ret->len >= LACKING_MAX)) {
            return one;
        }
        all = one == RBAC_LACKING ? one : all;
    }
    return all;
}

enum rbac_cover rbac_covers(const struct rbac_rules *held, const struct rbac_rules *wanted,
                            struct ferry_buf *ret_lacking)
{
    struct cover c = {.held = held};
    enum rbac_cover all = RBAC_COVERED;

    for (size_t i = 0; i < wanted->n; i++) {
        yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)wanted->lists[i]);

        for (yyjson_val *rule; (rule = yyjson_arr_iter_next(&it));) {
            const char *words[PARTS] = {0};

            if (one_covers(&c, rule)) {
                continue;
            }
            enum rbac_cover one = each_covered(&c, rule, words, 0, ret_lacking);
            if (one == RBAC_TOO_MANY) {
                return one;
            }
            all = one == RBAC_LACKING ? one : all;
        }
    }
    return all;
}

/* ---- selectors ---------------------------------------------------------------------------------
 */

static bool holds(const yyjson_val *expression, struct ferry_span value)
{
    const char *op = text_of(expression, "operator");
    yyjson_arr_iter it = yyjson_arr_iter_with(yyjson_obj_get((yyjson_val *)expression, "values"));
    bool in = false;

    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        in = in || (value.at && yyjson_is_str(v) && ferry_span_is(value, yyjson_get_str(v)));
    }
    if (ferry_streq(op, "In")) {
        return in;
    }
    if (ferry_streq(op, "NotIn")) {
        return !in;
    }
    return ferry_streq(op, "Exists")         ? value.at != NULL
           : ferry_streq(op, "DoesNotExist") ? value.at == NULL
                                             : false;
}

bool rbac_selects(const yyjson_val *selector,
                  struct ferry_span (*label)(const void *ctx, const char *key), const void *ctx)
{
    yyjson_val *labels = yyjson_obj_get((yyjson_val *)selector, "matchLabels"), *key, *v;
    yyjson_val *list = yyjson_obj_get((yyjson_val *)selector, "matchExpressions");
    size_t i, max;

    yyjson_obj_foreach(labels, i, max, key, v)
    {
        if (!yyjson_is_str(v) ||
            !ferry_span_is(label(ctx, yyjson_get_str(key)), yyjson_get_str(v))) {
            return false;
        }
    }
    yyjson_arr_foreach(list, i, max, v)
    {
        if (!holds(v, label(ctx, text_of(v, "key")))) {
            return false;
        }
    }
    return yyjson_is_obj((yyjson_val *)selector);
}
