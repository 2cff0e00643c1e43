#include "apiserver/object/rbac_object.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/names.h"
#include "apiserver/access/rbac_decide.h"
#include "base/str.h"

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:@+="
enum { NAME_MAX_LEN = 253, FIELD_SIZE = 128 };

bool rbac_object_is(const struct api_resource *r)
{
    return ferry_streq(r->group, RBAC_GROUP);
}

bool rbac_object_name_is_good(const char *name)
{
    return *name && strlen(name) <= NAME_MAX_LEN && strspn(name, NAME_CHARS) == strlen(name) &&
           !ferry_streq(name, ".") && !ferry_streq(name, "..");
}

/* ---- what is filled in -------------------------------------------------------------------------
 */

static void default_group(yyjson_mut_doc *doc, yyjson_mut_val *obj)
{
    const char *group = yyjson_mut_get_str(yyjson_mut_obj_get(obj, "apiGroup"));
    const char *kind = yyjson_mut_get_str(yyjson_mut_obj_get(obj, "kind"));

    if (yyjson_mut_is_obj(obj) && ferry_str_empty(group) && !ferry_streq(kind, "ServiceAccount")) {
        yyjson_mut_obj_put(obj, yyjson_mut_str(doc, "apiGroup"), yyjson_mut_str(doc, RBAC_GROUP));
    }
}

void rbac_object_default(yyjson_mut_doc *doc)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc), *v;
    size_t i, max;

    default_group(doc, yyjson_mut_obj_get(root, "roleRef"));
    yyjson_mut_arr_foreach(yyjson_mut_obj_get(root, "subjects"), i, max, v)
    {
        default_group(doc, v);
    }
}

/* ---- roles -------------------------------------------------------------------------------------
 */

struct check {
    const struct api_resource *resource;
    const char *name;
    struct status *st;
};

static int wrong(const struct check *c, const char *list, size_t i, const char *field,
                 enum status_value value, const char *why)
{
    char where[FIELD_SIZE];

    snprintf(where, sizeof(where), "%s[%zu].%s", list, i, field);
    return status_invalid(c->st, c->resource, c->name, where, value, "%s", why);
}

static size_t count(const yyjson_val *rule, const char *key)
{
    return yyjson_arr_size(yyjson_obj_get((yyjson_val *)rule, key));
}

static int check_rule(const struct check *c, size_t i, const yyjson_val *rule)
{
    if (!count(rule, "verbs")) {
        return wrong(c, "rules", i, "verbs", STATUS_VALUE_REQUIRED,
                     "verbs must contain at least one value");
    }
    if (count(rule, "nonResourceURLs")) {
        if (c->resource->namespaced) {
            return wrong(c, "rules", i, "nonResourceURLs", STATUS_VALUE_INVALID,
                         "namespaced rules cannot apply to non-resource URLs");
        }
        return count(rule, "apiGroups") + count(rule, "resources") + count(rule, "resourceNames")
                   ? wrong(c, "rules", i, "nonResourceURLs", STATUS_VALUE_INVALID,
                           "rules cannot apply to both regular resources and non-resource URLs")
                   : 0;
    }
    if (!count(rule, "apiGroups")) {
        return wrong(c, "rules", i, "apiGroups", STATUS_VALUE_REQUIRED,
                     "resource rules must supply at least one api group");
    }
    return count(rule, "resources") ? 0
                                    : wrong(c, "rules", i, "resources", STATUS_VALUE_REQUIRED,
                                            "resource rules must supply at least one resource");
}

static int check_role(const struct check *c, const yyjson_val *object)
{
    yyjson_val *aggregation = yyjson_obj_get((yyjson_val *)object, "aggregationRule"), *rule;
    size_t i, max;

    yyjson_arr_foreach(yyjson_obj_get((yyjson_val *)object, "rules"), i, max, rule)
    {
        if (check_rule(c, i, rule) < 0) {
            return -1;
        }
    }
    if (yyjson_is_obj(aggregation) && !count(aggregation, "clusterRoleSelectors")) {
        return status_invalid(c->st, c->resource, c->name, "aggregationRule.clusterRoleSelectors",
                              STATUS_VALUE_REQUIRED,
                              "at least one clusterRoleSelector required if aggregationRule is "
                              "non-nil");
    }
    return 0;
}

/* ---- bindings ----------------------------------------------------------------------------------
 */

static const char *text_of(const yyjson_val *v, const char *key)
{
    const char *text = yyjson_get_str(yyjson_obj_get((yyjson_val *)v, key));

    return text ? text : "";
}

static int check_ref(const struct check *c, const yyjson_val *ref)
{
    const char *kind = text_of(ref, "kind");
    bool known =
        ferry_streq(kind, "ClusterRole") || (c->resource->namespaced && ferry_streq(kind, "Role"));

    if (!ferry_streq(text_of(ref, "apiGroup"), RBAC_GROUP)) {
        return status_invalid(
            c->st, c->resource, c->name, "roleRef.apiGroup", STATUS_VALUE_UNSUPPORTED,
            "\"%.100s\": supported values: \"" RBAC_GROUP "\"", text_of(ref, "apiGroup"));
    }
    if (!known) {
        return status_invalid(c->st, c->resource, c->name, "roleRef.kind", STATUS_VALUE_UNSUPPORTED,
                              "\"%.100s\": supported values: %s", kind,
                              c->resource->namespaced ? "\"ClusterRole\", \"Role\""
                                                      : "\"ClusterRole\"");
    }
    if (!*text_of(ref, "name")) {
        return status_invalid(c->st, c->resource, c->name, "roleRef.name", STATUS_VALUE_REQUIRED,
                              "%s", "");
    }
    return rbac_object_name_is_good(text_of(ref, "name"))
               ? 0
               : status_invalid(c->st, c->resource, c->name, "roleRef.name", STATUS_VALUE_INVALID,
                                "\"%.100s\"", text_of(ref, "name"));
}

static int check_account(const struct check *c, size_t i, const yyjson_val *subject)
{
    if (!api_name_is_dns_subdomain(text_of(subject, "name"))) {
        return wrong(c, "subjects", i, "name", STATUS_VALUE_INVALID,
                     "not the name of a service account");
    }
    if (*text_of(subject, "apiGroup")) {
        return wrong(c, "subjects", i, "apiGroup", STATUS_VALUE_UNSUPPORTED,
                     "supported values: \"\"");
    }
    return c->resource->namespaced || *text_of(subject, "namespace")
               ? 0
               : wrong(c, "subjects", i, "namespace", STATUS_VALUE_REQUIRED, "");
}

static int check_subject(const struct check *c, size_t i, const yyjson_val *subject)
{
    const char *kind = text_of(subject, "kind");

    if (!*text_of(subject, "name")) {
        return wrong(c, "subjects", i, "name", STATUS_VALUE_REQUIRED, "");
    }
    if (ferry_streq(kind, "ServiceAccount")) {
        return check_account(c, i, subject);
    }
    if (!ferry_streq(kind, "User") && !ferry_streq(kind, "Group")) {
        return wrong(c, "subjects", i, "kind", STATUS_VALUE_UNSUPPORTED,
                     "supported values: \"Group\", \"ServiceAccount\", \"User\"");
    }
    return ferry_streq(text_of(subject, "apiGroup"), RBAC_GROUP)
               ? 0
               : wrong(c, "subjects", i, "apiGroup", STATUS_VALUE_UNSUPPORTED,
                       "supported values: \"" RBAC_GROUP "\"");
}

static int check_binding(const struct check *c, const yyjson_val *old, const yyjson_val *object)
{
    yyjson_val *ref = yyjson_obj_get((yyjson_val *)object, "roleRef"), *subject;
    size_t i, max;

    if (check_ref(c, ref) < 0) {
        return -1;
    }
    if (old && !yyjson_equals(ref, yyjson_obj_get((yyjson_val *)old, "roleRef"))) {
        return status_invalid(c->st, c->resource, c->name, "roleRef", STATUS_VALUE_INVALID,
                              "cannot change roleRef");
    }
    yyjson_arr_foreach(yyjson_obj_get((yyjson_val *)object, "subjects"), i, max, subject)
    {
        if (check_subject(c, i, subject) < 0) {
            return -1;
        }
    }
    return 0;
}

int rbac_object_check(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                      struct status *st)
{
    const char *name = api_json_str(object, "/metadata/name");
    const struct check c = {.resource = r, .name = name ? name : "", .st = st};

    return ferry_str_ends(r->plural, "bindings") ? check_binding(&c, old, object)
                                                 : check_role(&c, object);
}
