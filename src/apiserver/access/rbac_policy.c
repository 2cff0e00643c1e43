#include "apiserver/access/rbac_policy.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "apiserver/access/rbac_decide.h"
#include "base/count.h"
#include "base/str.h"

/* ---- what they hold ----------------------------------------------------------------------------
 */

#define READ "get list watch"
#define WRITE "create delete deletecollection patch update"
#define ALL READ " " WRITE
#define CORE "-"
#define SUB "subresources.kubevirt.io"
#define KV "kubevirt.io"
#define GUESTS                                                                                     \
    "virtualmachines virtualmachineinstances virtualmachineinstancepresets "                       \
    "virtualmachineinstancereplicasets"

#define SIZES "instancetype.kubevirt.io"
#define ALL_SIZES                                                                                  \
    "virtualmachineinstancetypes virtualmachineclusterinstancetypes virtualmachinepreferences "    \
    "virtualmachineclusterpreferences"
#define POOLS "pool.kubevirt.io"

/* Words with spaces between them; "-" is the core group. */
struct rule {
    const char *role;
    const char *verbs, *groups, *resources;
    const char *paths; /* of what is no resource, or NULL */
};

static const struct rule rules[] = {
    {"cluster-admin", "*", "*", "*", NULL},
    {"cluster-admin", "*", NULL, NULL, "*"},

    {"system:aggregate-to-admin", "create", "authorization.k8s.io", "localsubjectaccessreviews",
     NULL},
    {"system:aggregate-to-admin", ALL, RBAC_GROUP, "rolebindings roles", NULL},

    {"system:aggregate-to-edit", READ, CORE, "pods/attach pods/exec pods/portforward secrets",
     NULL},
    {"system:aggregate-to-edit", "impersonate", CORE, "serviceaccounts", NULL},
    {"system:aggregate-to-edit", WRITE, CORE, "pods pods/attach pods/exec pods/portforward", NULL},
    {"system:aggregate-to-edit", "create", CORE, "pods/eviction", NULL},
    {"system:aggregate-to-edit", WRITE, CORE,
     "configmaps events persistentvolumeclaims secrets serviceaccounts services", NULL},
    {"system:aggregate-to-edit", "create", CORE, "serviceaccounts/token", NULL},
    {"system:aggregate-to-edit", ALL, "coordination.k8s.io", "leases", NULL},

    {"system:aggregate-to-view", READ, CORE,
     "configmaps persistentvolumeclaims persistentvolumeclaims/status pods serviceaccounts "
     "services services/status",
     NULL},
    {"system:aggregate-to-view", READ, CORE,
     "bindings events limitranges namespaces/status pods/log pods/status resourcequotas "
     "resourcequotas/status",
     NULL},
    {"system:aggregate-to-view", READ, CORE, "namespaces", NULL},
    {"system:aggregate-to-view", READ, "apps", "controllerrevisions", NULL},

    {"system:auth-delegator", "create", "authentication.k8s.io", "tokenreviews", NULL},
    {"system:auth-delegator", "create", "authorization.k8s.io", "subjectaccessreviews", NULL},
    {"system:basic-user", "create", "authorization.k8s.io",
     "selfsubjectaccessreviews selfsubjectrulesreviews", NULL},
    {"system:basic-user", "create", "authentication.k8s.io", "selfsubjectreviews", NULL},
    {"system:discovery", "get", NULL, NULL,
     "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"},
    {"system:public-info-viewer", "get", NULL, NULL, "/healthz /livez /readyz /version /version/"},
    {"system:monitoring", "get", NULL, NULL,
     "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"},

    {"kubevirt.io:default", "get list", SUB, "version", NULL},
    {"kubevirt.io:admin", "get", SUB,
     "virtualmachineinstances/console virtualmachineinstances/vnc "
     "virtualmachineinstances/guestosinfo virtualmachineinstances/filesystemlist "
     "virtualmachineinstances/userlist",
     NULL},
    {"kubevirt.io:admin", "update", SUB,
     "virtualmachineinstances/pause virtualmachineinstances/unpause "
     "virtualmachineinstances/softreboot virtualmachines/start virtualmachines/stop "
     "virtualmachines/restart",
     NULL},
    {"kubevirt.io:admin", ALL, KV, GUESTS, NULL},
    {"kubevirt.io:admin", READ, KV, "virtualmachineinstancemigrations", NULL},
    {"kubevirt.io:admin", ALL, SIZES, ALL_SIZES, NULL},
    {"kubevirt.io:admin", ALL, POOLS, "virtualmachinepools", NULL},
    {"kubevirt.io:admin", READ, "migrations.kubevirt.io", "migrationpolicies", NULL},
    {"kubevirt.io:edit", "get", SUB,
     "virtualmachineinstances/console virtualmachineinstances/vnc "
     "virtualmachineinstances/guestosinfo virtualmachineinstances/filesystemlist "
     "virtualmachineinstances/userlist",
     NULL},
    {"kubevirt.io:edit", "update", SUB,
     "virtualmachineinstances/pause virtualmachineinstances/unpause "
     "virtualmachineinstances/softreboot virtualmachines/start virtualmachines/stop "
     "virtualmachines/restart",
     NULL},
    {"kubevirt.io:edit", READ " create delete patch update", KV, GUESTS, NULL},
    {"kubevirt.io:edit", READ, KV, "virtualmachineinstancemigrations", NULL},
    {"kubevirt.io:edit", READ " create delete patch update", SIZES, ALL_SIZES, NULL},
    {"kubevirt.io:edit", READ " create delete patch update", POOLS, "virtualmachinepools", NULL},
    {"kubevirt.io:edit", "get list", KV, "kubevirts", NULL},
    {"kubevirt.io:edit", READ, "migrations.kubevirt.io", "migrationpolicies", NULL},
    {"kubevirt.io:view", "get", SUB,
     "virtualmachineinstances/guestosinfo virtualmachineinstances/filesystemlist "
     "virtualmachineinstances/userlist",
     NULL},
    {"kubevirt.io:view", READ, KV, GUESTS " virtualmachineinstancemigrations", NULL},
    {"kubevirt.io:view", READ, SIZES, ALL_SIZES, NULL},
    {"kubevirt.io:view", READ, POOLS, "virtualmachinepools", NULL},
    {"kubevirt.io:view", READ, "migrations.kubevirt.io", "migrationpolicies", NULL},
    {"instancetype.kubevirt.io:view", READ, SIZES,
     "virtualmachineclusterinstancetypes virtualmachineclusterpreferences", NULL},
    {"kubevirt.io:migrate", "update", SUB, "virtualmachines/migrate", NULL},
    {"kubevirt.io:migrate", ALL, KV, "virtualmachineinstancemigrations", NULL},
};

/* `adds_to`, `gathers`: of LABEL_AGGREGATE. `group` is bound to the role by a ClusterRoleBinding
 * of its name. */
static const struct {
    const char *name, *adds_to, *gathers, *groups;
} roles[] = {
    {"cluster-admin", NULL, NULL, "system:masters"},
    {"admin", NULL, "admin", NULL},
    {"edit", "admin", "edit", NULL},
    {"view", "edit", "view", NULL},
    {"system:aggregate-to-admin", "admin", NULL, NULL},
    {"system:aggregate-to-edit", "edit", NULL, NULL},
    {"system:aggregate-to-view", "view", NULL, NULL},
    {"system:auth-delegator", NULL, NULL, NULL},
    {"system:basic-user", NULL, NULL, "system:authenticated"},
    {"system:discovery", NULL, NULL, "system:authenticated"},
    {"system:public-info-viewer", NULL, NULL, "system:authenticated system:unauthenticated"},
    {"system:monitoring", NULL, NULL, "system:monitoring"},
    {"kubevirt.io:default", NULL, NULL, "system:authenticated"},
    {"kubevirt.io:admin", "admin", NULL, NULL},
    {"kubevirt.io:edit", "edit", NULL, NULL},
    {"kubevirt.io:view", "view", NULL, NULL},
    {"kubevirt.io:migrate", NULL, NULL, NULL},
    {"instancetype.kubevirt.io:view", NULL, NULL, "system:authenticated"},
};

static const struct rbac_policy policies[] = {
    {"clusterroles", "cluster-admin"},
    {"clusterroles", "admin"},
    {"clusterroles", "edit"},
    {"clusterroles", "view"},
    {"clusterroles", "system:aggregate-to-admin"},
    {"clusterroles", "system:aggregate-to-edit"},
    {"clusterroles", "system:aggregate-to-view"},
    {"clusterroles", "system:auth-delegator"},
    {"clusterroles", "system:basic-user"},
    {"clusterroles", "system:discovery"},
    {"clusterroles", "system:public-info-viewer"},
    {"clusterroles", "system:monitoring"},
    {"clusterroles", "kubevirt.io:default"},
    {"clusterroles", "kubevirt.io:admin"},
    {"clusterroles", "kubevirt.io:edit"},
    {"clusterroles", "kubevirt.io:view"},
    {"clusterroles", "kubevirt.io:migrate"},
    {"clusterroles", "instancetype.kubevirt.io:view"},
    {"clusterrolebindings", "cluster-admin"},
    {"clusterrolebindings", "system:basic-user"},
    {"clusterrolebindings", "system:discovery"},
    {"clusterrolebindings", "system:public-info-viewer"},
    {"clusterrolebindings", "system:monitoring"},
    {"clusterrolebindings", "kubevirt.io:default"},
    {"clusterrolebindings", "instancetype.kubevirt.io:view"},
    {.plural = NULL},
};

const struct rbac_policy *rbac_policies(void)
{
    return policies;
}

/* ---- as objects --------------------------------------------------------------------------------
 */

static void put_words(yyjson_mut_doc *doc, yyjson_mut_val *obj, const char *key, const char *words)
{
    yyjson_mut_val *list;

    if (!words) {
        return;
    }
    list = yyjson_mut_obj_add_arr(doc, obj, key);
    while (*words) {
        size_t n = strcspn(words, " ");
        bool core = n == 1 && *words == '-';

        yyjson_mut_arr_add_strncpy(doc, list, words, core ? 0 : n);
        words += n + (words[n] == ' ');
    }
}

static void put_rules(yyjson_mut_doc *doc, yyjson_mut_val *list, const char *role)
{
    for (size_t i = 0; i < FERRY_COUNT(rules); i++) {
        if (ferry_streq(rules[i].role, role)) {
            yyjson_mut_val *rule = yyjson_mut_arr_add_obj(doc, list);

            put_words(doc, rule, "verbs", rules[i].verbs);
            put_words(doc, rule, "apiGroups", rules[i].groups);
            put_words(doc, rule, "resources", rules[i].resources);
            put_words(doc, rule, "nonResourceURLs", rules[i].paths);
        }
    }
}

static size_t role_named(const char *name)
{
    size_t i = 0;

    while (!ferry_streq(roles[i].name, name)) {
        i++;
    }
    return i;
}

static void put_meta(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct rbac_policy *p,
                     const char *adds_to)
{
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_val *labels, *annotations;

    yyjson_mut_obj_add_str(doc, meta, "name", p->name);
    labels = yyjson_mut_obj_add_obj(doc, meta, "labels");
    yyjson_mut_obj_add_str(doc, labels, LABEL_BOOTSTRAPPING, "rbac-defaults");
    if (adds_to) {
        ferry_cleanup_free char *key = ferry_asprintf(LABEL_AGGREGATE "%s", adds_to);

        yyjson_mut_obj_add(labels, yyjson_mut_strcpy(doc, key), yyjson_mut_str(doc, "true"));
    }
    annotations = yyjson_mut_obj_add_obj(doc, meta, "annotations");
    yyjson_mut_obj_add_str(doc, annotations, ANNOTATION_AUTOUPDATE, "true");
}

static void put_role(yyjson_mut_doc *doc, yyjson_mut_val *root, size_t role)
{
    yyjson_mut_val *list = yyjson_mut_arr(doc);

    if (roles[role].gathers) {
        ferry_cleanup_free char *key = ferry_asprintf(LABEL_AGGREGATE "%s", roles[role].gathers);
        yyjson_mut_val *aggregation = yyjson_mut_obj_add_obj(doc, root, "aggregationRule");
        yyjson_mut_val *all = yyjson_mut_obj_add_arr(doc, aggregation, "clusterRoleSelectors");
        yyjson_mut_val *labels =
            yyjson_mut_obj_add_obj(doc, yyjson_mut_arr_add_obj(doc, all), "matchLabels");

        yyjson_mut_obj_add(labels, yyjson_mut_strcpy(doc, key), yyjson_mut_str(doc, "true"));
    }
    put_rules(doc, list, roles[role].name);
    yyjson_mut_obj_add_val(doc, root, "rules", list);
}

static void put_binding(yyjson_mut_doc *doc, yyjson_mut_val *root, size_t role)
{
    yyjson_mut_val *ref = yyjson_mut_obj_add_obj(doc, root, "roleRef");
    yyjson_mut_val *subjects = yyjson_mut_obj_add_arr(doc, root, "subjects");
    const char *at = roles[role].groups;

    yyjson_mut_obj_add_str(doc, ref, "apiGroup", RBAC_GROUP);
    yyjson_mut_obj_add_str(doc, ref, "kind", "ClusterRole");
    yyjson_mut_obj_add_str(doc, ref, "name", roles[role].name);
    while (*at) {
        size_t n = strcspn(at, " ");
        yyjson_mut_val *subject = yyjson_mut_arr_add_obj(doc, subjects);

        yyjson_mut_obj_add_str(doc, subject, "kind", "Group");
        yyjson_mut_obj_add_str(doc, subject, "apiGroup", RBAC_GROUP);
        yyjson_mut_obj_add_strncpy(doc, subject, "name", at, n);
        at += n + (at[n] == ' ');
    }
}

yyjson_mut_doc *rbac_policy_make(size_t i)
{
    const struct rbac_policy *p = &policies[i];
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);
    size_t role = role_named(p->name);
    bool binding = ferry_streq(p->plural, "clusterrolebindings");

    yyjson_mut_obj_add_str(doc, root, "apiVersion", RBAC_GROUP "/v1");
    yyjson_mut_obj_add_str(doc, root, "kind", binding ? "ClusterRoleBinding" : "ClusterRole");
    put_meta(doc, root, p, binding ? NULL : roles[role].adds_to);
    if (binding) {
        put_binding(doc, root, role);
    } else {
        put_role(doc, root, role);
    }
    return doc;
}

/* ---- brought back ------------------------------------------------------------------------------
 */

/* Keys of `wanted` that `has` lacks, or has with another value. */
static bool add_keys(yyjson_mut_doc *doc, yyjson_mut_val *parent, const char *name,
                     yyjson_mut_val *wanted)
{
    yyjson_mut_val *has = yyjson_mut_obj_get(parent, name), *key, *v;
    bool changed = false;
    size_t i, max;

    if (!yyjson_mut_is_obj(has)) {
        has = yyjson_mut_obj(doc);
        yyjson_mut_obj_put(parent, yyjson_mut_strcpy(doc, name), has);
    }
    yyjson_mut_obj_foreach(wanted, i, max, key, v)
    {
        if (!yyjson_mut_equals(
                v, yyjson_mut_obj_getn(has, yyjson_mut_get_str(key), yyjson_mut_get_len(key)))) {
            yyjson_mut_obj_put(has, yyjson_mut_val_mut_copy(doc, key),
                               yyjson_mut_val_mut_copy(doc, v));
            changed = true;
        }
    }
    return changed;
}

/* Items of `wanted` that are not in the list. */
static bool add_items(yyjson_mut_doc *doc, yyjson_mut_val *parent, const char *name,
                      yyjson_mut_val *wanted)
{
    yyjson_mut_val *has = yyjson_mut_obj_get(parent, name), *v, *w;
    bool changed = false;
    size_t i, max, k, n;

    if (!yyjson_mut_is_arr(has)) {
        has = yyjson_mut_arr(doc);
        yyjson_mut_obj_put(parent, yyjson_mut_strcpy(doc, name), has);
    }
    yyjson_mut_arr_foreach(wanted, i, max, w)
    {
        bool found = false;

        yyjson_mut_arr_foreach(has, k, n, v)
        {
            found = found || yyjson_mut_equals(v, w);
        }
        if (!found) {
            yyjson_mut_arr_append(has, yyjson_mut_val_mut_copy(doc, w));
            changed = true;
        }
    }
    return changed;
}

/* A rule that others cover together is not missing, however they are written. */
static bool add_rules(yyjson_mut_doc *doc, yyjson_mut_val *root, yyjson_mut_val *wanted)
{
    api_cleanup_doc yyjson_doc *has = yyjson_mut_val_imut_copy(root, NULL);
    yyjson_mut_val *lacking = yyjson_mut_arr(doc), *w;
    cleanup_rbac_rules struct rbac_rules held = {0};
    size_t i, max;

    rbac_rules_add(&held, yyjson_obj_get(yyjson_doc_get_root(has), "rules"));
    yyjson_mut_arr_foreach(wanted, i, max, w)
    {
        yyjson_mut_val *one = yyjson_mut_arr(doc);
        cleanup_rbac_rules struct rbac_rules asked = {0};
        ferry_cleanup_buf struct ferry_buf text = {0};

        yyjson_mut_arr_append(one, yyjson_mut_val_mut_copy(doc, w));
        api_cleanup_doc yyjson_doc *copy = yyjson_mut_val_imut_copy(one, NULL);
        rbac_rules_add(&asked, yyjson_doc_get_root(copy));
        if (rbac_covers(&held, &asked, &text) != RBAC_COVERED) {
            yyjson_mut_arr_append(lacking, yyjson_mut_val_mut_copy(doc, w));
        }
    }
    return yyjson_mut_arr_size(lacking) > 0 && add_items(doc, root, "rules", lacking);
}

bool rbac_policy_mend(size_t i, yyjson_mut_doc *doc)
{
    api_cleanup_mut_doc yyjson_mut_doc *wanted = rbac_policy_make(i);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc), *want = yyjson_mut_doc_get_root(wanted);
    yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");
    yyjson_mut_val *want_meta = yyjson_mut_obj_get(want, "metadata");
    yyjson_mut_val *annotations = yyjson_mut_obj_get(meta, "annotations");
    yyjson_mut_val *ref = yyjson_mut_obj_get(want, "roleRef");
    bool changed = false;

    if (ferry_streq(yyjson_mut_get_str(yyjson_mut_obj_get(annotations, ANNOTATION_AUTOUPDATE)),
                    "false") ||
        (ref && !yyjson_mut_equals(ref, yyjson_mut_obj_get(root, "roleRef")))) {
        return false;
    }
    changed |= add_keys(doc, meta, "labels", yyjson_mut_obj_get(want_meta, "labels"));
    changed |= add_keys(doc, meta, "annotations", yyjson_mut_obj_get(want_meta, "annotations"));
    if (ref) {
        return add_items(doc, root, "subjects", yyjson_mut_obj_get(want, "subjects")) || changed;
    }
    yyjson_mut_val *rule = yyjson_mut_obj_get(want, "aggregationRule");
    if (rule) {
        yyjson_mut_val *own = yyjson_mut_obj_get(root, "aggregationRule");

        if (!yyjson_mut_is_obj(own)) {
            own = yyjson_mut_obj(doc);
            yyjson_mut_obj_put(root, yyjson_mut_str(doc, "aggregationRule"), own);
        }
        return add_items(doc, own, "clusterRoleSelectors",
                         yyjson_mut_obj_get(rule, "clusterRoleSelectors")) ||
               changed;
    }
    return add_rules(doc, root, yyjson_mut_obj_get(want, "rules")) || changed;
}
