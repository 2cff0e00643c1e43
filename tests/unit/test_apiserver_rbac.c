/* Kubernetes' rules of rights: rows of (rule, question, answer), what covers what, what selects,
 * and what becomes of the roles that every site has. */
#include "lib/unit.h"

#include "api/json.h"
#include "apiserver/access/auth.h"
#include "apiserver/access/rbac_decide.h"
#include "apiserver/access/rbac_policy.h"
#include "apiserver/access/rbac_view.h"
#include "apiserver/object/person.h"
#include "base/fd.h"

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

#define ASK(v, g, r, s, n)                                                                         \
    {                                                                                              \
        .verb = v, .group = g, .resource = r, .subresource = s, .ns = "a", .name = n               \
    }
#define PATH(v, p)                                                                                 \
    {                                                                                              \
        .verb = v, .path = p                                                                       \
    }

static void rules(void **state)
{
    static const struct {
        const char *rule;
        struct rbac_ask ask;
        bool allowed;
    } cases[] = {
        {"{'verbs':['get'],'apiGroups':[''],'resources':['pods']}", ASK("get", "", "pods", "", "x"),
         true},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['pods']}", ASK("list", "", "pods", "", ""),
         false},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['pods']}",
         ASK("get", "apps", "pods", "", "x"), false},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['pods']}",
         ASK("get", "", "pods", "log", "x"), false},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['pods/log']}",
         ASK("get", "", "pods", "log", "x"), true},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['pods/log']}",
         ASK("get", "", "pods", "", "x"), false},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['pods/log']}",
         ASK("get", "", "pod", "s/log", "x"), false},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['*/log']}",
         ASK("get", "", "pods", "log", "x"), true},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['*/log']}",
         ASK("get", "", "pods", "", "x"), false},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['pods/*']}",
         ASK("get", "", "pods", "log", "x"), false}, /* as Kubernetes has it */
        {"{'verbs':['*'],'apiGroups':['*'],'resources':['*']}",
         ASK("anything", "at.all", "things", "x", "y"), true},
        {"{'verbs':['*'],'apiGroups':['*'],'resources':['*']}", PATH("get", "/metrics"), false},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['pods'],'resourceNames':['x']}",
         ASK("get", "", "pods", "", "x"), true},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['pods'],'resourceNames':['x']}",
         ASK("get", "", "pods", "", "y"), false},
        {"{'verbs':['list'],'apiGroups':[''],'resources':['pods'],'resourceNames':['x']}",
         ASK("list", "", "pods", "", ""), false},
        {"{'verbs':['get'],'apiGroups':[''],'resources':['pods'],'resourceNames':[]}",
         ASK("get", "", "pods", "", "y"), true},
        {"{'verbs':['get'],'nonResourceURLs':['/a','/b/*']}", PATH("get", "/a"), true},
        {"{'verbs':['get'],'nonResourceURLs':['/a','/b/*']}", PATH("get", "/a/x"), false},
        {"{'verbs':['get'],'nonResourceURLs':['/a','/b/*']}", PATH("get", "/b/x/y"), true},
        {"{'verbs':['get'],'nonResourceURLs':['/a','/b/*']}", PATH("get", "/b"), false},
        {"{'verbs':['get'],'nonResourceURLs':['/a','/b/*']}", PATH("post", "/a"), false},
        {"{'verbs':['*'],'nonResourceURLs':['*']}", PATH("post", "/a"), true},
        {"{'verbs':['*'],'nonResourceURLs':['*']}", ASK("get", "", "pods", "", "x"), false},
        {"{'verbs':['*'],'nonResourceURLs':['']}", PATH("get", "/a"), false},
        /* what no schema lets in allows nothing */
        {"{'verbs':'get','apiGroups':[''],'resources':['pods']}", ASK("get", "", "pods", "", "x"),
         false},
        {"{'verbs':[1,null,{}],'apiGroups':[''],'resources':[[]]}", ASK("get", "", "pods", "", "x"),
         false},
        {"{}", ASK("get", "", "pods", "", "x"), false},
        {"[]", PATH("get", "/"), false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = parse(cases[i].rule);

        if (rbac_rule_allows(yyjson_doc_get_root(doc), &cases[i].ask) != cases[i].allowed) {
            fail_msg("row %zu: %s: not %d", i, cases[i].rule, cases[i].allowed);
        }
    }
}

static void subjects(void **state)
{
    static const char *const groups[] = {"team", "system:authenticated"};
    static const struct rbac_user ann = {.name = "ann", .groups = groups, .n_groups = 2};
    static const struct rbac_user bot = {.name = "system:serviceaccount:a:bot"};
    static const struct {
        const char *subject, *ns;
        const struct rbac_user *user;
        bool is;
    } cases[] = {
        {"{'kind':'User','name':'ann'}", "", &ann, true},
        {"{'kind':'User','name':'team'}", "", &ann, false},
        {"{'kind':'Group','name':'team'}", "", &ann, true},
        {"{'kind':'Group','name':'ann'}", "", &ann, false},
        {"{'kind':'ServiceAccount','name':'bot','namespace':'a'}", "", &bot, true},
        {"{'kind':'ServiceAccount','name':'bot'}", "a", &bot, true},
        {"{'kind':'ServiceAccount','name':'bot'}", "b", &bot, false},
        {"{'kind':'ServiceAccount','name':'bot'}", "", &bot, false},
        {"{'kind':'ServiceAccount','name':'','namespace':'a:bot'}", "", &bot, false},
        {"{'kind':'User','name':'system:serviceaccount:a:bot'}", "", &bot, true},
        {"{'kind':'user','name':'ann'}", "", &ann, false},
        {"{'name':'ann'}", "", &ann, false},
        {"{'kind':'User'}", "", &ann, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = parse(cases[i].subject);

        if (rbac_subject_is(yyjson_doc_get_root(doc), cases[i].ns, cases[i].user) != cases[i].is) {
            fail_msg("row %zu: %s", i, cases[i].subject);
        }
    }
}

#define R(v, g, r) "{'verbs':[" v "],'apiGroups':[" g "],'resources':[" r "]}"

static void covers(void **state)
{
    static const struct {
        const char *held, *wanted;
        enum rbac_cover answer;
    } cases[] = {
        {"[" R("'get'", "''", "'pods'") "]", "[" R("'get'", "''", "'pods'") "]", RBAC_COVERED},
        {"[]", "[]", RBAC_COVERED},
        {"[]", "[" R("'get'", "''", "'pods'") "]", RBAC_LACKING},
        {"[" R("'get'", "''", "'pods'") "," R("'list'", "''", "'pods'") "]",
         "[" R("'get','list'", "''", "'pods'") "]", RBAC_COVERED},
        {"[" R("'get'", "''", "'pods'") "," R("'list'", "''", "'secrets'") "]",
         "[" R("'get','list'", "''", "'pods','secrets'") "]", RBAC_LACKING},
        {"[" R("'*'", "'*'", "'*'") "]", "[" R("'get','x'", "'a','b'", "'c','d/e'") "]",
         RBAC_COVERED},
        {"[" R("'get'", "''", "'pods'") "]", "[" R("'*'", "''", "'pods'") "]", RBAC_LACKING},
        {"[" R("'get'", "''", "'*/log'") "]", "[" R("'get'", "''", "'pods/log'") "]", RBAC_COVERED},
        {"[" R("'get'", "''", "'pods/log'") "]", "[" R("'get'", "''", "'*/log'") "]", RBAC_LACKING},
        {"[{'verbs':['get'],'apiGroups':[''],'resources':['pods'],'resourceNames':['a','b']}]",
         "[{'verbs':['get'],'apiGroups':[''],'resources':['pods'],'resourceNames':['a']}]",
         RBAC_COVERED},
        {"[{'verbs':['get'],'apiGroups':[''],'resources':['pods'],'resourceNames':['a']}]",
         "[" R("'get'", "''", "'pods'") "]", RBAC_LACKING},
        {"[{'verbs':['get'],'apiGroups':[''],'resources':['pods'],'resourceNames':['a']},"
         "{'verbs':['get'],'apiGroups':[''],'resources':['pods'],'resourceNames':['b']}]",
         "[{'verbs':['get'],'apiGroups':[''],'resources':['pods'],'resourceNames':['a','b']}]",
         RBAC_COVERED},
        {"[{'verbs':['get'],'nonResourceURLs':['/a/*']}]",
         "[{'verbs':['get'],'nonResourceURLs':['/a/b','/a/*']}]", RBAC_COVERED},
        {"[{'verbs':['get'],'nonResourceURLs':['/a/b']}]",
         "[{'verbs':['get'],'nonResourceURLs':['/a/*']}]", RBAC_LACKING},
        {"[" R("'*'", "'*'", "'*'") "]", "[{'verbs':['get'],'nonResourceURLs':['/a']}]",
         RBAC_LACKING},
        {"[{'verbs':['*'],'nonResourceURLs':['*']}]", "[" R("'get'", "''", "'pods'") "]",
         RBAC_LACKING},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *held = parse(cases[i].held), *wanted = parse(cases[i].wanted);
        cleanup_rbac_rules struct rbac_rules a = {0}, b = {0};
        ferry_cleanup_buf struct ferry_buf text = {0};

        rbac_rules_add(&a, yyjson_doc_get_root(held));
        rbac_rules_add(&b, yyjson_doc_get_root(wanted));
        if (rbac_covers(&a, &b, &text) != cases[i].answer) {
            fail_msg("row %zu: %s and %s: %s", i, cases[i].held, cases[i].wanted,
                     text.data ? text.data : "");
        }
        assert_int_equal(text.len > 0, cases[i].answer == RBAC_LACKING);
    }
}

/* Rules that multiply out to more than can be looked at end in an answer, not in a long wait. */
static void covers_ends(void **state)
{
    ferry_cleanup_buf struct ferry_buf b = {0}, text = {0};
    cleanup_rbac_rules struct rbac_rules held = {0}, wanted = {0};
    static const char *const keys[] = {"verbs", "apiGroups", "resources", "resourceNames"};

    (void)state;
    ferry_buf_puts(&b, "[{");
    for (size_t k = 0; k < COUNT_OF(keys); k++) {
        ferry_buf_printf(&b, "%s\"%s\":[", k ? "," : "", keys[k]);
        for (int i = 0; i < 1000; i++) {
            ferry_buf_printf(&b, "%s\"w%d\"", i ? "," : "", i);
        }
        ferry_buf_puts(&b, "]");
    }
    ferry_buf_puts(&b, "}]");
    api_cleanup_doc yyjson_doc *many = yyjson_read(b.data, b.len, 0);
    api_cleanup_doc yyjson_doc *few = parse("[" R("'*'", "'*'", "'*'") "]");
    api_cleanup_doc yyjson_doc *half = parse("[{'verbs':['*'],'apiGroups':['*'],'resources':['*'],"
                                             "'resourceNames':['w1']}]");
    rbac_rules_add(&wanted, yyjson_doc_get_root(many));
    rbac_rules_add(&held, yyjson_doc_get_root(few));
    assert_int_equal(rbac_covers(&held, &wanted, &text), RBAC_COVERED);
    rbac_rules_done(&held);
    rbac_rules_add(&held, yyjson_doc_get_root(half));
    assert_int_not_equal(rbac_covers(&held, &wanted, &text), RBAC_COVERED);
}

static struct ferry_span label(const void *ctx, const char *key)
{
    return ferry_span_of(api_json_str(ctx, key[0] == 'x' ? "/x" : "/y"));
}

static void selectors(void **state)
{
    static const struct {
        const char *selector, *labels;
        bool fits;
    } cases[] = {
        {"{'matchLabels':{'x':'1'}}", "{'x':'1'}", true},
        {"{'matchLabels':{'x':'1'}}", "{'x':'2'}", false},
        {"{'matchLabels':{'x':'1'}}", "{}", false},
        {"{'matchLabels':{'x':'1','y':'2'}}", "{'x':'1','y':'2'}", true},
        {"{'matchLabels':{'x':'1','y':'2'}}", "{'x':'1'}", false},
        {"{}", "{'x':'1'}", true},
        {"{'matchExpressions':[{'key':'x','operator':'In','values':['1','2']}]}", "{'x':'2'}",
         true},
        {"{'matchExpressions':[{'key':'x','operator':'In','values':['1']}]}", "{}", false},
        {"{'matchExpressions':[{'key':'x','operator':'NotIn','values':['1']}]}", "{}", true},
        {"{'matchExpressions':[{'key':'x','operator':'NotIn','values':['1']}]}", "{'x':'1'}",
         false},
        {"{'matchExpressions':[{'key':'x','operator':'Exists'}]}", "{'x':'1'}", true},
        {"{'matchExpressions':[{'key':'x','operator':'DoesNotExist'}]}", "{'x':'1'}", false},
        {"{'matchExpressions':[{'key':'x','operator':'DoesNotExist'}]}", "{}", true},
        {"{'matchExpressions':[{'key':'x','operator':'Like'}]}", "{'x':'1'}", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *s = parse(cases[i].selector), *l = parse(cases[i].labels);

        if (rbac_selects(yyjson_doc_get_root(s), label, yyjson_doc_get_root(l)) != cases[i].fits) {
            fail_msg("row %zu: %s", i, cases[i].selector);
        }
    }
}

/* ---- the roles that every site has -------------------------------------------------------------
 */

static void policies(void **state)
{
    size_t n = 0;

    (void)state;
    for (size_t i = 0; rbac_policies()[i].plural; i++, n++) {
        api_cleanup_mut_doc yyjson_mut_doc *doc = rbac_policy_make(i);
        yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);

        /* what was just made lacks nothing */
        assert_false(rbac_policy_mend(i, doc));
        yyjson_mut_obj_remove_key(root, "rules");
        yyjson_mut_obj_remove_key(root, "subjects");
        yyjson_mut_obj_remove_key(yyjson_mut_obj_get(root, "metadata"), "labels");
        assert_true(rbac_policy_mend(i, doc));
        assert_false(rbac_policy_mend(i, doc));
        /* unless it says that it is not to be touched */
        yyjson_mut_obj_remove_key(root, "rules");
        yyjson_mut_val *notes =
            yyjson_mut_obj_get(yyjson_mut_obj_get(root, "metadata"), "annotations");
        yyjson_mut_obj_remove_key(notes, "rbac.authorization.kubernetes.io/autoupdate");
        yyjson_mut_obj_add_str(doc, notes, "rbac.authorization.kubernetes.io/autoupdate", "false");
        assert_false(rbac_policy_mend(i, doc));
    }
    assert_true(n > 20);
}

/* What others have added stays, and what says the same in other words is not said twice. */
static void additions_stay(void **state)
{
    (void)state;
    for (size_t i = 0; rbac_policies()[i].plural; i++) {
        if (strcmp(rbac_policies()[i].name, "system:basic-user") != 0 ||
            strcmp(rbac_policies()[i].plural, "clusterroles") != 0) {
            continue;
        }
        api_cleanup_doc yyjson_doc *stored = parse(
            "{'metadata':{'name':'x'},'rules':[{'verbs':['z'],'apiGroups':['x'],'resources':['y']},"
            "{'verbs':['*'],'apiGroups':['authorization.k8s.io'],'resources':['*']}]}");
        api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_copy(stored);

        assert_true(rbac_policy_mend(i, doc));
        assert_int_equal(
            yyjson_mut_arr_size(yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "rules")), 3);
        return;
    }
    fail();
}

/* ---- over a store ------------------------------------------------------------------------------
 */

static char dir[] = "/tmp/ferry-rbac-XXXXXX";

static void put(struct store *s, const char *plural, const char *ns, const char *name,
                const char *text)
{
    const struct api_resource *r = api_resource_find(RBAC_GROUP, "v1", plural);
    api_cleanup_doc yyjson_doc *doc = parse(text);
    api_cleanup_mut_doc yyjson_mut_doc *m = json_doc_copy(doc);
    struct ferry_error err = {0};

    store_begin(s);
    if (store_put(s, r, ns, name, m, &err) < 0 || store_commit(s, NULL, &err) < 0) {
        fail_msg("%s", err.msg);
    }
}

static bool may(struct rbac *r, const char *verb, const char *ns)
{
    cleanup_rbac_view struct rbac_view *v = rbac_view_take(r);
    const struct rbac_user ann = {.name = "ann"};
    const struct rbac_ask ask = {
        .verb = verb, .group = "", .resource = "pods", .subresource = "", .ns = ns, .name = "x"};

    return rbac_view_allows(v, &ann, &ask, NULL);
}

#define SELECTS(l) "'aggregationRule':{'clusterRoleSelectors':[{'matchLabels':{'" l "':'y'}}]}"
#define LABELS(n, l) "'metadata':{'name':'" n "','labels':{'" l "':'y'}}"

static void views(void **state)
{
    ferry_cleanup_free char *path = NULL;
    struct ferry_error err = {0};
    struct store *s = NULL;

    (void)state;
    assert_non_null(mkdtemp(dir));
    path = ferry_asprintf("%s/api.db", dir);
    assert_int_equal(store_open(path, &s, &err), 0);
    struct rbac *r = rbac_new(s);
    assert_false(may(r, "get", "a"));
    put(s, "rolebindings", "a", "b",
        "{'metadata':{'name':'b'},'roleRef':{'kind':'ClusterRole','name':'top'},"
        "'subjects':[{'kind':'User','name':'ann'}]}");
    assert_false(may(r, "get", "a")); /* there is no such role yet */
    /* two that gather each other, and one that both get at the end */
    put(s, "clusterroles", "", "top", "{" LABELS("top", "m") "," SELECTS("t") "}");
    put(s, "clusterroles", "", "mid", "{" LABELS("mid", "t") "," SELECTS("m") "}");
    assert_false(may(r, "get", "a"));
    put(s, "clusterroles", "", "leaf",
        "{" LABELS("leaf", "m") ",'rules':[" R("'get'", "''", "'pods'") "]}");
    assert_true(may(r, "get", "a"));
    assert_false(may(r, "get", "b"));
    assert_false(may(r, "get", ""));
    assert_false(may(r, "delete", "a"));
    {
        cleanup_rbac_view struct rbac_view *v = rbac_view_take(r);
        ferry_cleanup_free char *top = rbac_view_aggregate(v, "top");
        ferry_cleanup_free char *leaf = rbac_view_aggregate(v, "leaf");

        assert_string_equal(
            top, "[{\"verbs\":[\"get\"],\"apiGroups\":[\"\"],\"resources\":[\"pods\"]}]");
        assert_null(leaf);
    }
    put(s, "clusterroles", "", "leaf",
        "{" LABELS("leaf", "m") ",'rules':[" R("'delete'", "''", "'pods'") "]}");
    assert_false(may(r, "get", "a"));
    assert_true(may(r, "delete", "a"));
    put(s, "clusterrolebindings", "", "all",
        "{'metadata':{'name':'all'},'roleRef':{'kind':'ClusterRole','name':'leaf'},"
        "'subjects':[{'kind':'User','name':'ann'}]}");
    assert_true(may(r, "delete", "b"));
    assert_true(may(r, "delete", ""));
    /* a Role of that name is another one, and of its namespace alone */
    put(s, "roles", "b", "top",
        "{'metadata':{'name':'top'},'rules':[" R("'list'", "''", "'pods'") "]}");
    put(s, "rolebindings", "c", "x",
        "{'metadata':{'name':'x'},'roleRef':{'kind':'Role','name':'top'},"
        "'subjects':[{'kind':'User','name':'ann'}]}");
    assert_false(may(r, "list", "c"));
    assert_false(may(r, "list", "b"));
    rbac_free(r);
    store_close(s);
    ferry_remove_tree(dir, NULL);
}

/* ---- who is a person ---------------------------------------------------------------------------
 */

static void identities(void **state)
{
    static const struct {
        const char *name, *group;
        enum auth_role role;
    } cases[] = {
        {"ann", "team", AUTH_PERSON},
        {"ann", "", AUTH_PERSON},
        {"ann", "system:masters", AUTH_ADMIN},
        {"ann", "ferry:viewers", AUTH_VIEWER},
        {"ann", "ferry:admins", AUTH_ADMIN},
        {"ann", "system:nodes", AUTH_PERSON},
        {"system:serviceaccount:a:b", "", AUTH_PERSON},
        {"ferry-relay:n1", "", AUTH_NOBODY},
        {"ferry-relay:n1", "system:masters", AUTH_NOBODY},
        {"system:node:n1", "", AUTH_NOBODY},
        {"system:node:n1", "system:nodes", AUTH_NODE},
        {"system:node:", "system:nodes", AUTH_NOBODY},
        {"system:ferry-apiserver", "", AUTH_NOBODY},
        {"system:anonymous", "", AUTH_NOBODY},
        {"", "team", AUTH_NOBODY},
        {"system:ferry-controller", "", AUTH_CONTROLLER},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_peer peer = {.certificate = true, .n_groups = *cases[i].group != 0};
        struct auth_who who;

        snprintf(peer.common_name, sizeof(peer.common_name), "%s", cases[i].name);
        snprintf(peer.groups[0], sizeof(peer.groups[0]), "%s", cases[i].group);
        auth_identify(&peer, &who);
        if (who.role != cases[i].role) {
            fail_msg("%s of %s: %s", cases[i].name, cases[i].group, auth_role_name(who.role));
        }
        assert_string_equal(who.groups[who.n_groups - 1], "system:authenticated");
    }
}

/* ---- what persons may not put into objects -----------------------------------------------------
 */

static bool attach(void *ctx, const char *ns, const char *name)
{
    (void)ctx;
    return strcmp(ns, "shared") == 0 && strcmp(name, "lan") == 0;
}

#define VMI(spec) "{'metadata':{'name':'v','namespace':'a'},'spec':{" spec "}}"
#define MARKED(m) "{'metadata':{'name':'v','namespace':'a'," m "},'spec':{}}"

static void persons(void **state)
{
    static const struct {
        enum api_kind kind;
        const char *old, *object;
        bool host_paths, allowed;
    } cases[] = {
        {API_KIND_POD, NULL, "{'metadata':{'name':'p'}}", true, false},
        {API_KIND_VMI, NULL, VMI(""), false, true},
        {API_KIND_VMI, NULL, VMI("'volumes':[{'hostDisk':{'path':'/x'}}]"), false, false},
        {API_KIND_VMI, NULL, VMI("'volumes':[{'hostDisk':{}}]"), false, false},
        {API_KIND_VMI, NULL, VMI("'volumes':[{'hostDisk':{'path':'/x'}}]"), true, true},
        {API_KIND_VMI, VMI("'volumes':[{'hostDisk':{'path':'/x'}}]"),
         VMI("'volumes':[{'hostDisk':{'path':'/x'}}]"), false, true},
        {API_KIND_VMI, VMI("'volumes':[{'hostDisk':{'path':'/x'}}]"),
         VMI("'volumes':[{'hostDisk':{'path':'/y'}}]"), false, false},
        {API_KIND_VMI, NULL, VMI("'volumes':[{'persistentVolumeClaim':{'claimName':'c'}}]"), false,
         true},
        {API_KIND_VMI, NULL, VMI("'networks':[{'multus':{'networkName':'lan'}}]"), false, true},
        {API_KIND_VMI, NULL, VMI("'networks':[{'multus':{'networkName':'a/lan'}}]"), false, true},
        {API_KIND_VMI, NULL, VMI("'networks':[{'multus':{'networkName':'b/lan'}}]"), false, false},
        {API_KIND_VMI, NULL, VMI("'networks':[{'multus':{'networkName':'shared/lan'}}]"), false,
         true},
        {API_KIND_VMI, NULL, VMI("'networks':[{'multus':{'networkName':'/lan'}}]"), false, false},
        {API_KIND_VM, NULL,
         VMI("'template':{'spec':{'networks':[{'multus':{'networkName':'b/lan'}}]}}"), false,
         false},
        {API_KIND_VM, NULL, VMI("'template':{'spec':{'volumes':[{'hostDisk':{'path':'/x'}}]}}"),
         false, false},
        {API_KIND_VM, VMI("'template':{'spec':{'networks':[{'multus':{'networkName':'b/lan'}}]}}"),
         VMI("'template':{'spec':{'networks':[{'multus':{'networkName':'b/lan'}}]}}"), false, true},
        {API_KIND_VM, NULL,
         VMI("'template':{'metadata':{'annotations':{'ferry.io/addresses':'{}'}}}"), false, false},
        {API_KIND_VM, NULL, VMI("'template':{'metadata':{'labels':{'kubevirt.io/vm':'v'}}}"), false,
         true},
        {API_KIND_VMI, NULL, MARKED("'labels':{'kubevirt.io/nodeName':'n'}"), false, false},
        {API_KIND_VMI, MARKED("'labels':{'kubevirt.io/nodeName':'n'}"),
         MARKED("'labels':{'kubevirt.io/nodeName':'n','x':'y'}"), false, true},
        {API_KIND_VMI, MARKED("'labels':{'kubevirt.io/nodeName':'n'}"),
         MARKED("'labels':{'kubevirt.io/nodeName':'m'}"), false, false},
        {API_KIND_VMI, MARKED("'labels':{'kubevirt.io/nodeName':'n'}"), MARKED("'labels':{}"),
         false, false},
        {API_KIND_VMI, NULL, MARKED("'annotations':{'ferry.io/progress':'{}'}"), false, false},
        {API_KIND_VMI, NULL, MARKED("'annotations':{'ferry.io/qcow2':'d'}"), false, true},
        {API_KIND_VMI, NULL, MARKED("'annotations':{'example.org/x':'d'}"), false, true},
        {API_KIND_MIGRATION, NULL, MARKED("'annotations':{'ferry.io/queue':'{}'}"), false, false},
        {API_KIND_MIGRATION, NULL, MARKED("'annotations':{'kubevirt.io/evacuationMigration':'n'}"),
         false, false},
        {API_KIND_MIGRATION, NULL, MARKED("'labels':{'a':'b'}"), false, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *old = cases[i].old ? parse(cases[i].old) : NULL;
        api_cleanup_doc yyjson_doc *now = parse(cases[i].object);
        struct person_rights rights = {.host_paths = cases[i].host_paths, .may_attach = attach};
        struct status st = {0};
        int rc = person_check(api_resource_of_kind(cases[i].kind), yyjson_doc_get_root(old),
                              yyjson_doc_get_root(now), &rights, &st);

        if ((rc == 0) != cases[i].allowed || (rc < 0 && st.code != 403)) {
            fail_msg("row %zu: %s: %s", i, cases[i].object, st.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules),          cmocka_unit_test(subjects),  cmocka_unit_test(covers),
        cmocka_unit_test(covers_ends),    cmocka_unit_test(selectors), cmocka_unit_test(policies),
        cmocka_unit_test(additions_stay), cmocka_unit_test(views),     cmocka_unit_test(identities),
        cmocka_unit_test(persons),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
