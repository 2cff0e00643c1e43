/* What kubectl auth can-i is told: rows of (who, question) and the answer, from the table of roles.
 */
#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "apiserver/action/self_review.h"

static const struct auth_who admin = {.role = AUTH_ADMIN, .user = "ferry-admin"};
static const struct auth_who controller = {.role = AUTH_CONTROLLER};
static const struct auth_who node = {.role = AUTH_NODE, .user = "system:node:n1", .node = "n1"};
static const struct auth_who viewer = {.role = AUTH_VIEWER};
static const struct auth_who relay = {.role = AUTH_NOBODY};

#define OBJECT(verb, group, resource, rest)                                                        \
    "{\"resourceAttributes\":{\"verb\":\"" verb "\",\"group\":\"" group                            \
    "\",\"resource\":\"" resource "\"" rest "}}"
#define CORE(verb, resource) OBJECT(verb, "", resource, "")
#define VMI(verb, rest) OBJECT(verb, "kubevirt.io", "virtualmachineinstances", rest)
#define NAME(n) ",\"name\":\"" n "\""
#define SUB(s) ",\"subresource\":\"" s "\""
#define PATH(verb, p) "{\"nonResourceAttributes\":{\"verb\":\"" verb "\",\"path\":\"" p "\"}}"

static void access_rows(void **state)
{
    static const struct {
        const struct auth_who *who;
        const char *spec;
        bool allowed;
    } cases[] = {
        {&admin, OBJECT("*", "*", "*", ""), true},
        {&admin, CORE("get", "foos"), true},
        {&admin, PATH("get", "/ferry/v1/backup"), true},
        {&controller, VMI("create", ""), true},
        {&controller, OBJECT("get", "", "secrets", ""), false},
        {&controller, OBJECT("create", "", "pods", SUB("binding")), true},
        {&controller, OBJECT("create", "", "pods", SUB("exec")), false},
        {&controller, OBJECT("patch", "kubevirt.io", "kubevirts", ""), false},
        {&controller, OBJECT("patch", "kubevirt.io", "kubevirts", SUB("status")), true},
        {&controller, OBJECT("*", "kubevirt.io", "virtualmachineinstances", ""), false},
        {&node, VMI("patch", ""), true}, /* of its own */
        {&node, VMI("patch", ",\"version\":\"v1\""), true},
        {&node, VMI("patch", ",\"version\":\"*\""), true},
        {&node, VMI("patch", ",\"version\":\"v2\""), false},
        {&node, VMI("delete", ""), false},
        {&node, CORE("delete", "pods"), true},
        {&node, CORE("deletecollection", "pods"), false},
        {&node, OBJECT("patch", "", "nodes", NAME("n1")), true},
        {&node, OBJECT("patch", "", "nodes", NAME("n2")), false},
        {&node, CORE("patch", "nodes"), false}, /* not any of them */
        {&node, CORE("create", "nodes"), true}, /* its own: the name comes with the body */
        {&node, OBJECT("get", "", "nodes", SUB("proxy") NAME("n1")), true},
        {&node, OBJECT("get", "", "nodes", SUB("proxy") NAME("n2")), false},
        {&node, CORE("get", "secrets"), false}, /* it hangs on its pods */
        {&node, OBJECT("get", "", "configmaps", NAME("c")), false},
        {&node, CORE("list", "configmaps"), false},
        {&node, CORE("list", "pods"), true},
        {&viewer, CORE("list", "pods"), true},
        {&viewer, CORE("fly", "pods"), false},
        {&viewer, CORE("list", "secrets"), false},
        {&viewer, CORE("get", "virtualmachineinstances"), false}, /* of another group */
        {&viewer, OBJECT("get", "", "*", ""), false},             /* not secrets, so not all */
        {&viewer, OBJECT("get", "", "nodes", SUB("proxy")), true},
        {&viewer, OBJECT("create", "", "nodes", SUB("proxy")), false},
        {&viewer, OBJECT("update", "subresources.kubevirt.io", "virtualmachines", SUB("migrate")),
         false},
        {&viewer, PATH("get", "/metrics"), true},
        {&viewer, PATH("get", "/apis/kubevirt.io"), true},
        {&viewer, PATH("post", "/metrics"), false},
        {&viewer, PATH("get", "/ferry/v1/backup"), false},
        {&relay, CORE("get", "pods"), false},
        {&relay, OBJECT("get", "", "nodes", SUB("proxy")), false},
        {&relay, PATH("get", "/healthz"), true},
        {&relay, PATH("get", "/healthzz"), false},
        {&relay, PATH("get", "/metrics"), false},
        {&relay, "{}", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(cases[i].spec, strlen(cases[i].spec), 0);
        struct self_review_answer a =
            self_review_access(NULL, cases[i].who, yyjson_doc_get_root(doc));

        if (a.allowed != cases[i].allowed || !*a.why) {
            fail_msg("%s: %s: %s", auth_role_name(cases[i].who->role), cases[i].spec, a.why);
        }
    }
}

/* The rules that are listed allow a verb on a resource. */
static bool lists(const yyjson_val *rules, const char *verb, const char *group, const char *what)
{
    yyjson_val *rule;
    size_t i, max;

    yyjson_arr_foreach(yyjson_obj_get((yyjson_val *)rules, "resourceRules"), i, max, rule)
    {
        static const char *const keys[] = {"verbs", "apiGroups", "resources"};
        const char *const wanted[] = {verb, group, what};
        bool fits = true;

        for (size_t k = 0; k < 3; k++) {
            yyjson_val *v;
            size_t j, n;
            bool found = false;

            yyjson_arr_foreach(yyjson_obj_get(rule, keys[k]), j, n, v)
            {
                found = found || yyjson_equals_str(v, wanted[k]) || yyjson_equals_str(v, "*");
            }
            fits = fits && found;
        }
        if (fits) {
            return true;
        }
    }
    return false;
}

static void rule_lists(void **state)
{
    static const struct {
        const struct auth_who *who;
        const char *verb, *group, *what;
        bool listed;
    } cases[] = {
        {&admin, "delete", "anything", "at-all", true},
        {&controller, "patch", "", "pods", true},
        {&controller, "create", "", "pods/*", true},
        {&controller, "get", "", "secrets", false},
        {&controller, "deletecollection", "", "pods", true},
        {&node, "delete", "", "pods", true},
        {&node, "deletecollection", "", "pods", false},
        {&node, "patch", "", "pods/status", true},
        {&node, "patch", "kubevirt.io", "virtualmachineinstances", true},
        {&node, "create", "kubevirt.io", "virtualmachineinstances", false},
        {&node, "get", "", "secrets", false},
        {&node, "get", "", "configmaps", false},
        {&node, "list", "", "persistentvolumeclaims", true},
        {&viewer, "get", "", "configmaps", true},
        {&viewer, "watch", "migrations.kubevirt.io", "migrationpolicies", true},
        {&viewer, "create", "migrations.kubevirt.io", "migrationpolicies", false},
        {&relay, "get", "", "nodes", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_buf struct ferry_buf b = {0};

        self_review_rules(NULL, cases[i].who, "", &b);
        api_cleanup_doc yyjson_doc *doc = yyjson_read(b.data, b.len, 0);
        assert_non_null(doc);
        if (lists(yyjson_doc_get_root(doc), cases[i].verb, cases[i].group, cases[i].what) !=
            cases[i].listed) {
            fail_msg("%s: %s %s.%s: %s", auth_role_name(cases[i].who->role), cases[i].verb,
                     cases[i].what, cases[i].group, b.data);
        }
    }
}

/* A node's rows about what bears its name say that name, and only those do. */
static void named_rules(void **state)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    size_t i, max, named = 0;
    yyjson_val *rule;

    (void)state;
    self_review_rules(NULL, &node, "", &b);
    api_cleanup_doc yyjson_doc *doc = yyjson_read(b.data, b.len, 0);
    yyjson_arr_foreach(yyjson_ptr_get(yyjson_doc_get_root(doc), "/resourceRules"), i, max, rule)
    {
        yyjson_val *names = yyjson_obj_get(rule, "resourceNames");
        const char *of = yyjson_get_str(yyjson_ptr_get(rule, "/resources/0"));
        bool reads = yyjson_equals_str(yyjson_ptr_get(rule, "/verbs/0"), "get");
        bool deletes = yyjson_equals_str(yyjson_ptr_get(rule, "/verbs/1"), "delete");
        bool claims = deletes && strcmp(of, "leases") == 0; /* which ones, only their names tell */
        bool own = !reads && !claims && (strcmp(of, "nodes") == 0 || strcmp(of, "leases") == 0);

        assert_int_equal(names != NULL, own);
        if (names) {
            assert_string_equal(yyjson_get_str(yyjson_arr_get_first(names)), "n1");
            named++;
        }
    }
    assert_int_equal(named, 3); /* creating and changing nodes are two rows */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(access_rows),
        cmocka_unit_test(rule_lists),
        cmocka_unit_test(named_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
