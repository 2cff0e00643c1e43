/* Audit: how a call is read off its path, what a policy says of it, what is no policy, and files
 * that rotate. */
#include "lib/unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "api/json.h"
#include "apiserver/serve/audit_log.h"
#include "apiserver/serve/audit_policy.h"
#include "base/fd.h"
#include "base/str.h"

static yyjson_doc *parse(const char *text)
{
    ferry_cleanup_free char *json = ferry_strdup(text);

    for (char *c = json; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    if (!doc) {
        fail_msg("not JSON: %s", text);
    }
    return doc;
}

static void calls(void **state)
{
    static const struct {
        const char *method, *path;
        bool watch;
        const char *verb, *group, *plural, *subresource, *ns, *name;
    } cases[] = {
        {"GET", "/api/v1/pods", false, "list", "", "pods", "", "", ""},
        {"GET", "/api/v1/pods", true, "watch", "", "pods", "", "", ""},
        {"GET", "/api/v1/namespaces/a/pods/x", false, "get", "", "pods", "", "a", "x"},
        {"GET", "/api/v1/namespaces/a/pods/x/log", false, "get", "", "pods", "log", "a", "x"},
        {"POST", "/api/v1/namespaces/a/pods", false, "create", "", "pods", "", "a", ""},
        {"DELETE", "/api/v1/namespaces/a/pods", false, "deletecollection", "", "pods", "", "a", ""},
        {"DELETE", "/api/v1/nodes/n", false, "delete", "", "nodes", "", "", "n"},
        {"GET", "/api/v1/namespaces", false, "list", "", "namespaces", "", "", ""},
        {"GET", "/api/v1/namespaces/a", false, "get", "", "namespaces", "", "a", "a"},
        {"PATCH", "/api/v1/namespaces/a/status", false, "patch", "", "namespaces", "status", "a",
         "a"},
        {"PUT", "/apis/kubevirt.io/v1/namespaces/a/virtualmachines/x", false, "update",
         "kubevirt.io", "virtualmachines", "", "a", "x"},
        {"PUT", "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachines/x/evacuate/cancel",
         false, "update", "subresources.kubevirt.io", "virtualmachines", "evacuate/cancel", "a",
         "x"},
        {"GET", "/api/v1/nodes/n/proxy/v1/console/a/b", false, "get", "", "nodes", "proxy", "",
         "n"},
        {"GET", "/apis", false, "get", "", "", "", "", ""},
        {"GET", "/apis/kubevirt.io/v1", false, "get", "", "", "", "", ""},
        {"POST", "/ferry/v1/join", false, "post", "", "", "", "", ""},
        {"GET", "/", false, "get", "", "", "", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct audit_call c = {0};

        audit_call_read(cases[i].method, cases[i].path, cases[i].watch, &c);
        assert_string_equal(c.verb, cases[i].verb);
        assert_string_equal(c.group, cases[i].group);
        assert_string_equal(c.plural, cases[i].plural);
        assert_string_equal(c.subresource, cases[i].subresource);
        assert_string_equal(c.ns, cases[i].ns);
        assert_string_equal(c.name, cases[i].name);
        assert_int_equal(c.resource, *cases[i].plural != 0);
    }
}

/* The first rule that fits decides. */
#define POLICY                                                                                     \
    "{'rules':["                                                                                   \
    "{'level':'None','users':['quiet']},"                                                          \
    "{'level':'None','userGroups':['system:nodes'],'verbs':['get','list','watch']},"               \
    "{'level':'Request','resources':[{'group':'','resources':['pods/*']}],'namespaces':['a']},"    \
    "{'level':'RequestResponse','resources':[{'group':'','resources':['pods','secrets',"           \
    "'configmaps'],'resourceNames':['x']}]},"                                                      \
    "{'level':'RequestResponse','resources':[{'group':'','resources':['secrets','*/proxy']}]},"    \
    "{'level':'Metadata','resources':[{'group':'kubevirt.io'}]},"                                  \
    "{'level':'None','nonResourceURLs':['/healthz','/api*']},"                                     \
    "{'level':'Metadata','verbs':['delete']},"                                                     \
    "{'level':'None'}]}"

static void levels(void **state)
{
    static const struct {
        const char *user, *group, *method, *path;
        enum audit_level level;
    } cases[] = {
        {"quiet", "", "DELETE", "/api/v1/namespaces/a/pods/x", AUDIT_NONE},
        {"n", "system:nodes", "GET", "/api/v1/namespaces/a/pods/x", AUDIT_NONE},
        {"n", "system:nodes", "DELETE", "/api/v1/namespaces/b/configmaps/y", AUDIT_METADATA},
        {"ann", "", "GET", "/api/v1/namespaces/a/pods/y", AUDIT_REQUEST},
        {"ann", "", "GET", "/api/v1/namespaces/a/pods/y/log", AUDIT_REQUEST},
        {"ann", "", "GET", "/api/v1/namespaces/b/pods/y/log", AUDIT_NONE},
        {"ann", "", "GET", "/api/v1/namespaces/b/pods/x", AUDIT_REQUEST_RESPONSE},
        {"ann", "", "GET", "/api/v1/namespaces/b/configmaps/x", AUDIT_REQUEST_RESPONSE},
        {"ann", "", "GET", "/api/v1/namespaces/b/configmaps/y", AUDIT_NONE},
        /* of Secrets, consoles and joining never more than that */
        {"ann", "", "GET", "/api/v1/namespaces/b/secrets/x", AUDIT_METADATA},
        {"ann", "", "POST", "/api/v1/namespaces/b/secrets", AUDIT_METADATA},
        {"ann", "", "GET", "/api/v1/nodes/n/proxy/v1/console/a/b", AUDIT_METADATA},
        {"ann", "", "GET", "/apis/kubevirt.io/v1/virtualmachines", AUDIT_METADATA},
        {"ann", "", "GET", "/healthz", AUDIT_NONE},
        {"ann", "", "DELETE", "/apis/x", AUDIT_NONE},
        {"ann", "", "DELETE", "/ferry", AUDIT_METADATA},
        {"ann", "", "GET", "/ferry", AUDIT_NONE},
    };

    (void)state;
    api_cleanup_doc yyjson_doc *policy = parse(POLICY);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *groups[] = {cases[i].group};
        struct audit_call c = {.user = cases[i].user, .groups = groups, .n_groups = 1};

        audit_call_read(cases[i].method, cases[i].path, false, &c);
        enum audit_level level = audit_policy_level(yyjson_doc_get_root(policy), &c);
        if (level != cases[i].level) {
            fail_msg("row %zu: %s %s: %s", i, cases[i].method, cases[i].path,
                     audit_level_name(level));
        }
    }
}

static void without_a_policy(void **state)
{
    static const struct {
        const char *method, *path;
        int code;
        enum audit_level level;
    } cases[] = {
        {"GET", "/api/v1/pods", 200, AUDIT_NONE},
        {"GET", "/api/v1/pods", 403, AUDIT_METADATA},
        {"GET", "/api/v1/pods", 401, AUDIT_METADATA},
        {"GET", "/api/v1/secrets", 200, AUDIT_METADATA},
        {"GET", "/api/v1/namespaces/a/secrets/x", 404, AUDIT_METADATA},
        {"POST", "/api/v1/namespaces/a/pods", 201, AUDIT_METADATA},
        {"DELETE", "/api/v1/nodes/n", 404, AUDIT_METADATA},
        {"GET", "/api/v1/nodes/n/proxy/metrics", 200, AUDIT_METADATA},
        {"GET", "/metrics", 200, AUDIT_NONE},
        {"HEAD", "/metrics", 200, AUDIT_NONE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct audit_call c = {.user = "x"};

        audit_call_read(cases[i].method, cases[i].path, false, &c);
        assert_int_equal(audit_default_level(&c, cases[i].code), cases[i].level);
    }
}

#define IS "'apiVersion':'audit.k8s.io/v1','kind':'Policy'"
static void no_policies(void **state)
{
    static const struct {
        const char *text, *why; /* NULL = it is one */
    } cases[] = {
        {"{" IS ",'rules':[{'level':'Metadata'}]}", NULL},
        {"{" IS ",'omitStages':['RequestReceived'],'rules':[{'level':'None','verbs':['get']}]}",
         NULL},
        {"{'kind':'Policy','apiVersion':'audit.k8s.io/v2','rules':[]}", "not a Policy"},
        {"{" IS "}", "rules"},
        {"{" IS ",'rules':[]}", "rules"},
        {"{" IS ",'rules':[{}]}", "rules[0].level"},
        {"{" IS ",'rules':[{'level':'None'},{'level':'Everything'}]}", "rules[1].level"},
        {"{" IS ",'rules':[{'level':'None','user':['x']}]}", "rules[0].user: there is no such"},
        {"{" IS ",'rules':[{'level':'None','users':'x'}]}", "rules[0].users: must be a list"},
        {"{" IS ",'rules':[{'level':'None','users':[1]}]}", "rules[0].users: must be texts"},
        {"{" IS ",'rules':[{'level':'None','resources':['pods']}]}", "rules[0].resources"},
        {"{" IS ",'rules':[{'level':'None','resources':[{'groups':['x']}]}]}", "groups"},
        {"{" IS ",'rules':[{'level':'None','resources':[{}],'nonResourceURLs':['/']}]}", "both"},
        {"{" IS ",'rule':[],'rules':[{'level':'None'}]}", "policy.rule:"},
        {"{" IS ",'rules':['x']}", "rules[0]"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = parse(cases[i].text);
        struct ferry_error err = {0};
        int rc = audit_policy_check(yyjson_doc_get_root(doc), &err);

        if ((rc == 0) != !cases[i].why || (rc < 0 && !strstr(err.msg, cases[i].why))) {
            fail_msg("row %zu: %s: %s", i, cases[i].text, err.msg);
        }
    }
}

static char dir[] = "/tmp/ferry-audit-XXXXXX";

static void is_file(const char *name, const char *text)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", dir, name);
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct ferry_error err = {0};
    struct stat st;

    if (!text) {
        assert_int_equal(stat(path, &st), -1);
        return;
    }
    assert_int_equal(ferry_read_file(path, 4096, &b, &err), 0);
    assert_string_equal(b.data ? b.data : "", text);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void rotation(void **state)
{
    struct ferry_error err = {0};
    struct audit_log *l = NULL;

    (void)state;
    assert_non_null(mkdtemp(dir));
    ferry_cleanup_free char *path = ferry_asprintf("%s/log", dir);
    ferry_cleanup_free char *link = ferry_asprintf("%s/link", dir);
    assert_int_equal(ferry_write_file(path, "old\n", 4, 0644, &err), 0);
    assert_int_equal(audit_log_open(path, 10, 2, &l, &err), 0);
    audit_log_write(l, "one\n", 4);
    is_file("log", "old\none\n"); /* and closed to others from now on */
    audit_log_write(l, "two\n", 4);
    is_file("log.1", "old\none\n");
    is_file("log", "two\n");
    audit_log_write(l, "a line that is longer than a file\n", 34);
    is_file("log", "a line that is longer than a file\n");
    audit_log_write(l, "four\n", 5);
    is_file("log", "four\n");
    is_file("log.1", "a line that is longer than a file\n");
    is_file("log.2", "two\n");
    is_file("log.3", NULL);
    audit_log_close(l);
    assert_int_equal(symlink(path, link), 0);
    assert_int_not_equal(audit_log_open(link, 10, 2, &l, &err), 0);
    assert_int_not_equal(audit_log_open(dir, 10, 2, &l, &err), 0);
    ferry_remove_tree(dir, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),
        cmocka_unit_test(levels),
        cmocka_unit_test(without_a_policy),
        cmocka_unit_test(no_policies),
        cmocka_unit_test(rotation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
