/* Tables for routes, identities and roles, and what the server says of itself. Numbers of cases are
 * items of docs/conformance.md. */
#include "lib/unit.h"

#include "api/json.h"
#include "apiserver/access/auth.h"
#include "apiserver/action/proxy_plan.h"
#include "apiserver/kinds/discovery.h"
#include "apiserver/message/route.h"
#include "base/str.h"

#define KV "/apis/kubevirt.io/v1"

static void routes(void **state)
{
    static const struct {
        const char *method, *path;
        bool watch;
        int code; /* 0: fine */
        enum route_verb verb;
        const char *plural, *ns, *name, *sub;
    } cases[] = {
        {"GET", "/api/v1/pods", false, 0, ROUTE_LIST, "pods", "", "", ""},
        {"GET", "/api/v1/pods/", false, 0, ROUTE_LIST, "pods", "", "", ""},
        {"GET", "/api/v1/pods", true, 0, ROUTE_WATCH, "pods", "", "", ""},
        {"GET", "/api/v1/namespaces/a/pods", false, 0, ROUTE_LIST, "pods", "a", "", ""},
        {"GET", "/api/v1/namespaces/a/pods/b", false, 0, ROUTE_GET, "pods", "a", "b", ""},
        {"GET", "/api/v1/namespaces/a/pods/b", true, 0, ROUTE_WATCH, "pods", "a", "b", ""},
        {"POST", "/api/v1/namespaces/a/pods", false, 0, ROUTE_CREATE, "pods", "a", "", ""},
        {"POST", "/api/v1/namespaces/a/pods", true, 0, ROUTE_CREATE, "pods", "a", "", ""},
        {"POST", "/api/v1/namespaces/a/pods/b/binding", false, 0, ROUTE_CREATE, "pods", "a", "b",
         "binding"},
        {"PUT", "/api/v1/namespaces/a/pods/b/status", false, 0, ROUTE_UPDATE, "pods", "a", "b",
         "status"},
        {"PATCH", KV "/namespaces/a/virtualmachineinstances/b", false, 0, ROUTE_PATCH,
         "virtualmachineinstances", "a", "b", ""},
        {"DELETE", "/api/v1/nodes/n1", false, 0, ROUTE_DELETE, "nodes", "", "n1", ""},
        {"GET", "/api/v1/namespaces", false, 0, ROUTE_LIST, "namespaces", "", "", ""},
        {"GET", "/api/v1/namespaces/x", false, 0, ROUTE_GET, "namespaces", "", "x", ""},
        {"PUT", "/api/v1/namespaces/x/status", false, 0, ROUTE_UPDATE, "namespaces", "", "x",
         "status"},
        {"GET", "/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies", false, 0, ROUTE_LIST,
         "migrationpolicies", "", "", ""},
        {"POST", "/api/v1/pods", false, 405, 0, NULL, "", "", ""},
        {"DELETE", "/api/v1/pods", false, 405, 0, NULL, "", "", ""},
        {"DELETE", "/api/v1/namespaces", false, 405, 0, NULL, "", "", ""},
        {"DELETE", "/api/v1/namespaces/a/pods", false, 0, ROUTE_DELETE_COLLECTION, "pods", "a", "",
         ""},
        {"DELETE", "/api/v1/nodes", false, 0, ROUTE_DELETE_COLLECTION, "nodes", "", "", ""},
        {"POST", "/api/v1/namespaces/a/pods/b/eviction", false, 0, ROUTE_CREATE, "pods", "a", "b",
         "eviction"},
        {"GET", "/api/v1/namespaces/a/pods/b/eviction", false, 405, 0, NULL, "", "", ""},
        {"DELETE", "/api/v1/namespaces/a/pods/b/status", false, 405, 0, NULL, "", "", ""},
        {"GET", "/api/v1/namespaces/a/pods/b/binding", false, 405, 0, NULL, "", "", ""},
        {"OPTIONS", "/api/v1/pods", false, 405, 0, NULL, "", "", ""},
        {"GET", "/api/v1/pods/b", false, 404, 0, NULL, "", "", ""},
        {"GET", "/api/v1/namespaces/a/pods/b/log", false, 404, 0, NULL, "", "", ""},
        {"GET", "/api/v1/namespaces/a/nodes/b", false, 404, 0, NULL, "", "", ""},
        {"GET", "/api/v1/services", false, 404, 0, NULL, "", "", ""},
        {"GET", "/api/v2/pods", false, 404, 0, NULL, "", "", ""},
        {"GET", "/apis/kubevirt.io/v1/pods", false, 404, 0, NULL, "", "", ""},
        {"GET", "/api/v1//pods", false, 404, 0, NULL, "", "", ""},
        {"GET", "/api/v1/namespaces/a/pods/b/status/x", false, 404, 0, NULL, "", "", ""},
        {"GET", "/a/b/c/d/e/f/g/h/i/j/k", false, 404, 0, NULL, "", "", ""},
        {"GET", "", false, 404, 0, NULL, "", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct status st = {0};
        struct route r;
        int rc = route_parse(cases[i].method, cases[i].path, cases[i].watch, &r, &st);

        if (st.code != cases[i].code || (rc < 0) != (cases[i].code != 0)) {
            fail_msg("%s %s: rc %d, code %d %s", cases[i].method, cases[i].path, rc, st.code,
                     st.message);
        }
        if (rc == 0) {
            assert_int_equal(r.verb, cases[i].verb);
            assert_string_equal(r.resource->plural, cases[i].plural);
            assert_string_equal(r.ns, cases[i].ns);
            assert_string_equal(r.name, cases[i].name);
            assert_string_equal(r.subresource, cases[i].sub);
        }
    }
}

static void long_paths(void **state)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct status st = {0};
    struct route r;

    (void)state;
    ferry_buf_puts(&b, "/api/v1/nodes/");
    for (int i = 0; i < 1000; i++) {
        ferry_buf_puts(&b, "a");
    }
    assert_int_equal(route_parse("GET", b.data, false, &r, &st), -1);
    assert_int_equal(st.code, 404);
}

static struct http_peer peer(const char *name, const char *group)
{
    struct http_peer p = {.certificate = true};

    snprintf(p.common_name, sizeof(p.common_name), "%s", name);
    if (group) {
        snprintf(p.groups[0], sizeof(p.groups[0]), "%s", group);
        p.n_groups = 1;
    }
    return p;
}

static void identities(void **state)
{
    static const struct {
        const char *name, *group;
        enum auth_role role;
        const char *node;
    } cases[] = {
        {"ferry-admin", "ferry:admins", AUTH_ADMIN, ""},
        {"ferry-admin", NULL, AUTH_PERSON, ""},
        {"system:ferry-controller", NULL, AUTH_CONTROLLER, ""},
        {"system:node:n1", "system:nodes", AUTH_NODE, "n1"},
        {"system:node:n1", NULL, AUTH_NOBODY, ""},
        {"system:node:", "system:nodes", AUTH_NOBODY, ""},
        {"n1", "system:nodes", AUTH_PERSON, ""},
        {"eve", "ferry:viewers", AUTH_VIEWER, ""},
        {"ferry-relay:n1", NULL, AUTH_NOBODY, ""},
        {"", NULL, AUTH_NOBODY, ""},
    };
    struct auth_who who;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_peer p = peer(cases[i].name, cases[i].group);

        auth_identify(&p, &who);
        if (who.role != cases[i].role || strcmp(who.node, cases[i].node) != 0) {
            fail_msg("'%s' is %s", cases[i].name, auth_role_name(who.role));
        }
    }
    struct http_peer bad = {.tls_error = "expired", .common_name = "ferry-admin"};
    auth_identify(&bad, &who);
    assert_int_equal(who.role, AUTH_ANONYMOUS);
    assert_string_equal(who.user, "system:anonymous");
}

#define LEASES "/apis/coordination.k8s.io/v1/namespaces"

static void roles(void **state)
{
    static const struct {
        const char *who, *group, *method, *path;
        enum auth_answer answer;
    } cases[] = {
        {"a", "ferry:admins", "DELETE", "/api/v1/nodes/n1", AUTH_YES},
        {"a", "ferry:admins", "GET", "/api/v1/secrets", AUTH_YES},

        {"system:ferry-controller", NULL, "GET", "/api/v1/secrets", AUTH_NO},
        {"system:ferry-controller", NULL, "GET", "/api/v1/pods", AUTH_YES},
        {"system:ferry-controller", NULL, "POST", "/api/v1/namespaces/d/pods", AUTH_YES},
        {"system:ferry-controller", NULL, "POST", "/api/v1/namespaces/d/pods/p/binding", AUTH_YES},
        {"system:ferry-controller", NULL, "DELETE", "/api/v1/namespaces/d/pods/p", AUTH_YES},
        {"system:ferry-controller", NULL, "PATCH",
         KV "/namespaces/d/virtualmachineinstancemigrations/m/status", AUTH_YES},
        {"system:ferry-controller", NULL, "PATCH", KV "/namespaces/d/virtualmachineinstances/v",
         AUTH_YES},
        {"system:ferry-controller", NULL, "PATCH", "/api/v1/nodes/n/status", AUTH_YES},
        {"system:ferry-controller", NULL, "DELETE", "/api/v1/nodes/n", AUTH_NO},
        {"system:ferry-controller", NULL, "PUT",
         "/apis/coordination.k8s.io/v1/namespaces/d/leases/c", AUTH_YES},
        {"system:ferry-controller", NULL, "POST", "/api/v1/namespaces/d/events", AUTH_YES},
        {"system:ferry-controller", NULL, "POST", "/api/v1/namespaces", AUTH_NO},
        {"system:ferry-controller", NULL, "POST", "/api/v1/namespaces/d/secrets", AUTH_NO},
        {"system:ferry-controller", NULL, "PATCH", KV "/namespaces/d/kubevirts/k", AUTH_NO},

        {"system:node:n1", "system:nodes", "GET", "/api/v1/pods", AUTH_YES},
        {"system:node:n1", "system:nodes", "GET", "/api/v1/nodes/n2", AUTH_YES},
        {"system:node:n1", "system:nodes", "GET", "/api/v1/secrets", AUTH_NO},
        /* those that its pods name, one by one */
        {"system:node:n1", "system:nodes", "GET", "/api/v1/namespaces/d/secrets/s", AUTH_IF_OWN},
        {"system:node:n1", "system:nodes", "GET", "/api/v1/namespaces/d/secrets", AUTH_NO},
        {"system:node:n1", "system:nodes", "PUT", "/api/v1/namespaces/d/secrets/s", AUTH_NO},
        {"system:node:n1", "system:nodes", "GET", "/api/v1/namespaces/d/configmaps/c", AUTH_IF_OWN},
        {"system:node:n1", "system:nodes", "GET", "/api/v1/configmaps", AUTH_NO},
        {"system:node:n1", "system:nodes", "DELETE", "/api/v1/namespaces/d/configmaps/c", AUTH_NO},
        {"eve", "ferry:viewers", "GET", "/api/v1/namespaces/d/secrets/s", AUTH_NO},
        {"system:node:n1", "system:nodes", "PATCH", "/api/v1/nodes/n1", AUTH_IF_OWN},
        {"system:node:n1", "system:nodes", "PATCH", "/api/v1/nodes/n1/status", AUTH_IF_OWN},
        {"system:node:n1", "system:nodes", "PATCH", "/api/v1/namespaces/d/pods/p", AUTH_NO},
        {"system:node:n1", "system:nodes", "PUT",
         "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/n1", AUTH_NO},
        {"system:node:n1", "system:nodes", "PATCH", "/api/v1/nodes/n2/status", AUTH_NO},
        {"system:node:n1", "system:nodes", "DELETE", "/api/v1/nodes/n1", AUTH_NO},
        {"system:node:n1", "system:nodes", "PUT",
         "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1", AUTH_YES},
        {"system:node:n1", "system:nodes", "PUT",
         "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2", AUTH_NO},
        {"system:node:n1", "system:nodes", "PATCH", "/api/v1/namespaces/d/pods/p/status",
         AUTH_IF_OWN},
        {"system:node:n1", "system:nodes", "DELETE", "/api/v1/namespaces/d/pods/p", AUTH_IF_OWN},
        {"system:node:n1", "system:nodes", "POST", "/api/v1/namespaces/d/pods", AUTH_NO},
        {"system:node:n1", "system:nodes", "POST", "/api/v1/namespaces/d/pods/p/binding", AUTH_NO},
        {"system:node:n1", "system:nodes", "PATCH", KV "/namespaces/d/virtualmachineinstances/v",
         AUTH_IF_OWN},
        {"system:node:n1", "system:nodes", "POST", KV "/namespaces/d/virtualmachineinstances",
         AUTH_NO},
        {"system:node:n1", "system:nodes", "DELETE", KV "/namespaces/d/virtualmachineinstances/v",
         AUTH_NO},
        {"system:node:n1", "system:nodes", "PATCH",
         KV "/namespaces/d/virtualmachineinstancemigrations/m", AUTH_NO},
        {"system:node:n1", "system:nodes", "POST", "/api/v1/namespaces/d/events", AUTH_YES},

        {"system:node:n1", "system:nodes", "DELETE",
         LEASES "/kube-system/leases/ferry-address-10.1.1.5", AUTH_IF_OWN},
        {"system:node:n1", "system:nodes", "PUT",
         LEASES "/kube-system/leases/ferry-address-10.1.1.5", AUTH_NO},
        {"system:node:n1", "system:nodes", "PATCH",
         LEASES "/kube-system/leases/ferry-address-10.1.1.5", AUTH_NO},
        {"system:node:n1", "system:nodes", "DELETE", LEASES "/d/leases/ferry-address-10.1.1.5",
         AUTH_NO},
        {"system:node:n1", "system:nodes", "DELETE", LEASES "/kube-system/leases/ferry-controller",
         AUTH_NO},
        {"system:node:n1", "system:nodes", "DELETE", LEASES "/kube-system/leases", AUTH_NO},
        /* its name is in the body */
        {"system:node:n1", "system:nodes", "POST", LEASES "/kube-system/leases", AUTH_IF_OWN},
        {"system:node:n1", "system:nodes", "POST", LEASES "/d/leases", AUTH_NO},

        {"eve", "ferry:viewers", "GET", "/api/v1/pods", AUTH_YES},
        {"eve", "ferry:viewers", "GET", "/api/v1/secrets", AUTH_NO},
        {"eve", "ferry:viewers", "POST", "/api/v1/namespaces/d/pods", AUTH_NO},
        {"eve", "ferry:viewers", "DELETE", "/api/v1/namespaces/d/pods/p", AUTH_NO},

        {"ferry-relay:n1", NULL, "GET", "/api/v1/pods", AUTH_NO},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_peer p = peer(cases[i].who, cases[i].group);
        struct status st = {0};
        struct auth_who who;
        struct route r;

        auth_identify(&p, &who);
        assert_int_equal(route_parse(cases[i].method, cases[i].path, false, &r, &st), 0);
        if (auth_check(&who, &r) != cases[i].answer) {
            fail_msg("%s %s %s: %d", cases[i].who, cases[i].method, cases[i].path,
                     auth_check(&who, &r));
        }
    }
}

static void proxy_paths(void **state)
{
    static const struct {
        const char *path, *node, *rest;
        int code; /* 0: fine; -1: not the proxy's */
    } cases[] = {
        {"/api/v1/nodes/n1/proxy/healthz", "n1", "/healthz", 0},
        {"/api/v1/nodes/n1/proxy", "n1", "/", 0},
        {"/api/v1/nodes/n1/proxy/", "n1", "/", 0},
        {"/api/v1/nodes/n1/proxy/v1/console/a/b", "n1", "/v1/console/a/b", 0},
        {"/api/v1/nodes/n1.example.org/proxy/metrics", "n1.example.org", "/metrics", 0},
        {"/api/v1/nodes/n1:9100/proxy/healthz", "", "", 400},
        {"/api/v1/nodes/https:n1:/proxy/healthz", "", "", 400},
        {"/api/v1/nodes/n1/proxy/v1/records/../console/a/b", "", "", 400},
        {"/api/v1/nodes/n1/proxy/v1/./checks", "", "", 400},
        {"/api/v1/nodes/n1/proxy//healthz", "", "", 400},
        {"/api/v1/nodes/N_1/proxy/healthz", "", "", 404},
        {"/api/v1/nodes//proxy/healthz", "", "", 404},
        {"/api/v1/nodes/n1/proxyx", NULL, NULL, -1},
        {"/api/v1/nodes/n1", NULL, NULL, -1},
        {"/api/v1/nodes/n1/status", NULL, NULL, -1},
        {"/api/v1/namespaces/d/pods/p/proxy", NULL, NULL, -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct status st = {0};
        struct proxy_call c = {0};

        if (proxy_is_path(cases[i].path) != (cases[i].code >= 0)) {
            fail_msg("%s", cases[i].path);
        }
        if (cases[i].code < 0) {
            continue;
        }
        (void)proxy_parse(cases[i].path, &c, &st);
        if (st.code != cases[i].code || (!st.code && (strcmp(c.node, cases[i].node) != 0 ||
                                                      strcmp(c.rest, cases[i].rest) != 0))) {
            fail_msg("%s: %d '%s' '%s'", cases[i].path, st.code, c.node, c.rest);
        }
    }
    ferry_cleanup_free char *encoded = proxy_encode("/v1/a b?c#d%/\xc3\xa9");
    assert_string_equal(encoded, "/v1/a%20b%3Fc%23d%25/%C3%A9");
}

static void proxy_rights(void **state)
{
    static const struct {
        const char *who, *group, *node, *rest;
        bool allowed;
    } cases[] = {
        {"a", "ferry:admins", "n1", "/v1/console/d/vm", true},
        {"a", "ferry:admins", "n1", "/v1/anything", true},
        {"eve", "ferry:viewers", "n1", "/healthz", true},
        {"eve", "ferry:viewers", "n1", "/metrics", true},
        {"eve", "ferry:viewers", "n1", "/v1/paths", true},
        {"eve", "ferry:viewers", "n1", "/v1/checks/u", true},
        {"eve", "ferry:viewers", "n1", "/v1/records/u", true},
        {"eve", "ferry:viewers", "n1", "/v1/console/d/vm", false},
        {"eve", "ferry:viewers", "n1", "/v1/new", false},
        {"eve", "ferry:viewers", "n1", "/", false},
        {"system:ferry-controller", NULL, "n1", "/v1/checks/u", true},
        {"system:ferry-controller", NULL, "n1", "/v1/console/d/vm", false},
        {"system:node:n1", "system:nodes", "n1", "/v1/records/u", true},
        {"system:node:n1", "system:nodes", "n2", "/v1/records/u", false},
        {"system:node:n1", "system:nodes", "n2", "/healthz", false},
        {"ferry-relay:n1", NULL, "n1", "/healthz", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_peer p = peer(cases[i].who, cases[i].group);
        struct proxy_call c = {0};
        struct auth_who who;

        auth_identify(&p, &who);
        snprintf(c.node, sizeof(c.node), "%s", cases[i].node);
        snprintf(c.rest, sizeof(c.rest), "%s", cases[i].rest);
        if (proxy_allowed(&who, &c, false) != cases[i].allowed) {
            fail_msg("%s %s%s", cases[i].who, cases[i].node, cases[i].rest);
        }
        /* Whoever is not an administrator has nothing to tell a node. */
        assert_int_equal(proxy_allowed(&who, &c, true), who.role == AUTH_ADMIN);
    }
}

static void proxy_places(void **state)
{
#define ADDRESS(a)                                                                                 \
    "\"addresses\":[{\"type\":\"Hostname\",\"address\":\"h\"},"                                    \
    "{\"type\":\"InternalIP\",\"address\":\"" a "\"}]"
#define PORT(p) "\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":" p "}}"
    static const struct {
        const char *node, *dial;
        int code;
    } cases[] = {
        {"{\"status\":{" ADDRESS("10.0.0.7") "," PORT("4711") "}}", "10.0.0.7:4711", 0},
        {"{\"status\":{" ADDRESS("fd00::7") "," PORT("4711") "}}", "[fd00::7]:4711", 0},
        {"{\"status\":{" ADDRESS("evil.example") "," PORT("4711") "}}", "", 502},
        {"{\"status\":{" ADDRESS("10.0.0.7") "}}", "", 503},
        {"{\"status\":{" ADDRESS("10.0.0.7") "," PORT("0") "}}", "", 503},
        {"{\"status\":{" ADDRESS("10.0.0.7") "," PORT("65536") "}}", "", 503},
        {"{\"status\":{" ADDRESS("10.0.0.7") "," PORT("\"80\"") "}}", "", 503},
        {"{\"status\":{" PORT("4711") "}}", "", 503},
        {"{}", "", 503},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(cases[i].node, strlen(cases[i].node), 0);
        char dial[PROXY_DIAL_MAX] = "";
        struct status st = {0};

        assert_non_null(doc);
        (void)proxy_dial(yyjson_doc_get_root(doc), "n1", dial, &st);
        if (st.code != cases[i].code || strcmp(dial, cases[i].dial) != 0) {
            fail_msg("%s: %d '%s'", cases[i].node, st.code, dial);
        }
    }
}

static void ownership(void **state)
{
    static const struct {
        enum api_kind kind;
        const char *object;
        bool own;
    } cases[] = {
        {API_KIND_POD, "{\"spec\":{\"nodeName\":\"n1\"}}", true},
        {API_KIND_POD, "{\"spec\":{\"nodeName\":\"n2\"}}", false},
        {API_KIND_POD, "{\"spec\":{}}", false},
        {API_KIND_VMI, "{\"status\":{\"nodeName\":\"n1\"}}", true},
        {API_KIND_VMI, "{\"status\":{\"nodeName\":\"n2\"}}", false},
        {API_KIND_VMI,
         "{\"status\":{\"nodeName\":\"n2\",\"migrationState\":{\"targetNode\":\"n1\"}}}", true},
        {API_KIND_VMI,
         "{\"status\":{\"nodeName\":\"n2\",\"migrationState\":{\"sourceNode\":\"n1\"}}}", true},
        {API_KIND_VMI,
         "{\"status\":{\"nodeName\":\"n2\",\"migrationState\":{\"sourceNode\":\"n1\","
         "\"completed\":true}}}",
         false},
        {API_KIND_VMI,
         "{\"status\":{\"nodeName\":\"n2\",\"migrationState\":{\"targetNode\":\"n1\","
         "\"completed\":true}}}",
         false},
        {API_KIND_MIGRATION, "{\"status\":{\"nodeName\":\"n1\"}}", false},
        {API_KIND_NODE, "{\"metadata\":{\"name\":\"n1\"}}", true},
        {API_KIND_NODE, "{\"metadata\":{\"name\":\"n2\"}}", false},
    };
    struct auth_who who = {.role = AUTH_NODE, .node = "n1"};
    struct auth_who nobody = {.role = AUTH_NODE};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(cases[i].object, strlen(cases[i].object), 0);
        const struct api_resource *r = api_resource_of_kind(cases[i].kind);

        if (auth_owns(&who, r, yyjson_doc_get_root(doc)) != cases[i].own) {
            fail_msg("%s", cases[i].object);
        }
        assert_false(auth_owns(&nobody, r, yyjson_doc_get_root(doc)));
    }
    assert_false(auth_owns(&who, api_resource_of_kind(API_KIND_POD), NULL));
}

#define BOUND(node, phase, volumes)                                                                \
    "{\"spec\":{\"nodeName\":\"" node "\",\"volumes\":[" volumes                                   \
    "]},\"status\":{\"phase\":\"" phase "\"}}"

static void what_pods_need(void **state)
{
    static const struct {
        enum api_kind kind;
        const char *pod;
        bool needed;
    } cases[] = {
        {API_KIND_SECRET, BOUND("n1", "Pending", "{\"secret\":{\"secretName\":\"x\"}}"), true},
        {API_KIND_SECRET,
         BOUND("n1", "Running", "{\"emptyDir\":{}},{\"secret\":{\"secretName\":\"x\"}}"), true},
        {API_KIND_SECRET, BOUND("n2", "Pending", "{\"secret\":{\"secretName\":\"x\"}}"), false},
        {API_KIND_SECRET, BOUND("", "Pending", "{\"secret\":{\"secretName\":\"x\"}}"), false},
        {API_KIND_SECRET, BOUND("n1", "Succeeded", "{\"secret\":{\"secretName\":\"x\"}}"), false},
        {API_KIND_SECRET, BOUND("n1", "Failed", "{\"secret\":{\"secretName\":\"x\"}}"), false},
        {API_KIND_SECRET, BOUND("n1", "Pending", "{\"secret\":{\"secretName\":\"xy\"}}"), false},
        {API_KIND_SECRET, BOUND("n1", "Pending", "{\"configMap\":{\"name\":\"x\"}}"), false},
        {API_KIND_SECRET, BOUND("n1", "Pending", "{\"name\":\"x\",\"emptyDir\":{}}"), false},
        {API_KIND_SECRET, BOUND("n1", "Pending", ""), false},
        {API_KIND_SECRET, "{}", false},
        {API_KIND_CONFIG_MAP, BOUND("n1", "Pending", "{\"configMap\":{\"name\":\"x\"}}"), true},
        {API_KIND_CONFIG_MAP, BOUND("n1", "Pending", "{\"secret\":{\"secretName\":\"x\"}}"), false},
    };
    struct auth_who who = {.role = AUTH_NODE, .node = "n1"};
    struct auth_who nobody = {.role = AUTH_NODE};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(cases[i].pod, strlen(cases[i].pod), 0);
        const struct api_resource *r = api_resource_of_kind(cases[i].kind);

        if (auth_needs(&who, r, "x", yyjson_doc_get_root(doc)) != cases[i].needed) {
            fail_msg("%s", cases[i].pod);
        }
        assert_false(auth_needs(&nobody, r, "x", yyjson_doc_get_root(doc)));
    }
}

static void what_nodes_may_not_touch(void **state)
{
    static const struct {
        enum api_kind kind;
        const char *before, *after, *what;
    } cases[] = {
        {API_KIND_VMI, "{\"status\":{\"nodeName\":\"n1\"}}",
         "{\"status\":{\"nodeName\":\"n1\",\"phase\":\"Running\"}}", NULL},
        {API_KIND_VMI, "{}", "{\"status\":{\"evacuationNodeName\":\"n1\"}}",
         "status.evacuationNodeName: no node writes that"},
        {API_KIND_VMI, "{}", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}",
         "the label a: no node writes that"},
        {API_KIND_VMI, "{}", "{\"metadata\":{\"finalizers\":[]}}", NULL},
        {API_KIND_VMI, "{\"spec\":{\"a\":1}}", "{\"spec\":{\"a\":2}}", "the spec"},
        {API_KIND_VMI, "{\"spec\":{\"a\":1}}", "{}", "the spec"},
        {API_KIND_VMI, "{\"metadata\":{\"finalizers\":[\"x\"]}}", "{}", "the finalizers"},
        {API_KIND_VMI, "{}", "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"x\"}]}}",
         "the owners"},
        {API_KIND_POD, "{}", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", "the labels"},
        {API_KIND_POD, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", "{}", "the labels"},
        {API_KIND_POD, "{}", "{\"metadata\":{\"annotations\":{\"a\":\"b\"}}}", NULL},
        {API_KIND_NODE, "{\"spec\":{\"unschedulable\":true}}", "{\"spec\":{}}", "the spec"},
        {API_KIND_NODE, "{\"spec\":{}}", "{}", NULL},
        {API_KIND_NODE, "{}", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", NULL},
    };

    const struct auth_who who = {.role = AUTH_NODE, .node = "n1"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *a = yyjson_read(cases[i].before, strlen(cases[i].before), 0);
        api_cleanup_doc yyjson_doc *b = yyjson_read(cases[i].after, strlen(cases[i].after), 0);
        char what[AUTH_TEXT];
        bool refused = auth_overstepped(&who, api_resource_of_kind(cases[i].kind),
                                        yyjson_doc_get_root(a), yyjson_doc_get_root(b), what);

        if (!ferry_streq(refused ? what : NULL, cases[i].what)) {
            fail_msg("%s to %s: %s", cases[i].before, cases[i].after, refused ? what : "nothing");
        }
    }
}

static void discovery_is_json(void **state)
{
    static const char *const known[] = {
        "/api",
        "/apis",
        "/api/v1",
        "/apis/kubevirt.io",
        "/apis/kubevirt.io/v1",
        "/apis/kubevirt.io/v1/",
        "/apis/migrations.kubevirt.io/v1alpha1",
        "/apis/coordination.k8s.io/v1",
        "/apis/apps/v1",
        "/apis/instancetype.kubevirt.io/v1beta1",
        "/apis/pool.kubevirt.io",
        "/apis/pool.kubevirt.io/v1alpha1",
        "/openapi/v3/apis/pool.kubevirt.io/v1beta1",
        "/openapi/v3",
        "/openapi/v3/api/v1",
        "/openapi/v3/apis/kubevirt.io/v1",
        "/version",
    };
    static const char *const unknown[] = {"/",
                                          "",
                                          "/api/v2",
                                          "/apis/batch/v1",
                                          "/apis/kubevirt.io/v2",
                                          "/openapi/v2",
                                          "/openapi/v3/apis/batch/v1",
                                          "/metrics"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        ferry_cleanup_free char *text = discovery_answer(known[i]);
        api_cleanup_doc yyjson_doc *doc = NULL;
        struct ferry_error err = {0};

        if (!text || api_json_parse(text, strlen(text), &doc, &err) < 0) {
            fail_msg("%s: %s %s", known[i], err.msg, text ? text : "nothing");
        }
    }
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        assert_null(discovery_answer(unknown[i]));
    }
}

/* Each group once, with all its versions. */
static void groups(void **state)
{
    ferry_cleanup_free char *text = discovery_answer("/apis");
    api_cleanup_doc yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    yyjson_val *list = yyjson_obj_get(yyjson_doc_get_root(doc), "groups"), *g, *other;
    size_t i, k, max, n, pools = 0;

    (void)state;
    yyjson_arr_foreach(list, i, max, g)
    {
        const char *name = api_json_str(g, "/name");

        yyjson_arr_foreach(list, k, n, other)
        {
            assert_true(i == k || !ferry_streq(name, api_json_str(other, "/name")));
        }
        if (ferry_streq(name, "pool.kubevirt.io")) {
            pools = yyjson_arr_size(yyjson_obj_get(g, "versions"));
            assert_string_equal(api_json_str(g, "/preferredVersion/version"), "v1beta1");
            assert_string_equal(api_json_str(g, "/versions/1/groupVersion"),
                                "pool.kubevirt.io/v1alpha1");
        }
    }
    assert_int_equal(pools, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes),
        cmocka_unit_test(long_paths),
        cmocka_unit_test(identities),
        cmocka_unit_test(roles),
        cmocka_unit_test(ownership),
        cmocka_unit_test(what_pods_need),
        cmocka_unit_test(what_nodes_may_not_touch),
        cmocka_unit_test(discovery_is_json),
        cmocka_unit_test(groups),
        cmocka_unit_test(proxy_paths),
        cmocka_unit_test(proxy_rights),
        cmocka_unit_test(proxy_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
