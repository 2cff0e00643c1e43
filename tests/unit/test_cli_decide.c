/* Tables for what the command line concludes from objects and from its surroundings. */
#include "lib/unit.h"

#include <stdlib.h>

#include "api/object.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/output.h"
#include "cli/session/session.h"
#include "cli/verbs/completion.h"
#include "cli/verbs/drain_plan.h"
#include "cli/verbs/manifest.h"
#include "cli/verbs/preflight.h"
#include "cli/verbs/verbs.h"
#include "cli/views/moveline.h"
#include "cli/views/outcome.h"

static struct api_object *object(enum api_kind kind, const char *json)
{
    struct api_object *o = NULL;
    struct ferry_error err = {0};

    if (api_object_parse(kind, json, strlen(json), &o, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    return o;
}

#define META(extra) "\"metadata\":{\"name\":\"m\",\"uid\":\"u1\"" extra "}"
#define DELETED ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""

static void what_became_of_a_move(void **state)
{
    static const struct {
        const char *migration;
        bool gone;
        const char *vmi; /* or NULL */
        enum outcome outcome;
        const char *reason; /* when it failed */
    } cases[] = {
        {"{" META("") "}", false, NULL, OUTCOME_GOING, NULL},
        {"{" META("") ",\"status\":{\"phase\":\"Running\"}}", false, NULL, OUTCOME_GOING, NULL},
        {"{" META(DELETED) ",\"status\":{\"phase\":\"Running\"}}", false, NULL, OUTCOME_GOING,
         NULL},
        {"{" META("") ",\"status\":{\"phase\":\"Succeeded\"}}", false, NULL, OUTCOME_SUCCEEDED,
         NULL},
        {"{" META(DELETED) ",\"status\":{\"phase\":\"Succeeded\"}}", true, NULL, OUTCOME_SUCCEEDED,
         NULL},
        {"{" META("") ",\"status\":{\"phase\":\"Failed\"}}", false, NULL, OUTCOME_FAILED,
         "no reason was given"},
        {"{" META(
             "") ",\"status\":{\"phase\":\"Failed\",\"migrationState\":{\"migrationUid\":\"u1\","
                 "\"failureReason\":\"mine\"}}}",
         false, NULL, OUTCOME_FAILED, "mine"},
        {"{" META("") ",\"status\":{\"phase\":\"Failed\"}}", false,
         "{" META("") ",\"status\":{\"migrationState\":{\"migrationUid\":\"u1\",\"failureReason\":"
                      "\"the VM's\"}}}",
         OUTCOME_FAILED, "the VM's"},
        /* the VM's state tells of another move */
        {"{" META("") ",\"status\":{\"phase\":\"Failed\"}}", false,
         "{" META("") ",\"status\":{\"migrationState\":{\"migrationUid\":\"u0\",\"abortRequested\":"
                      "true,\"failureReason\":\"old\"}}}",
         OUTCOME_FAILED, "no reason was given"},
        {"{" META(
             "") ",\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"X\",\"status\":"
                 "\"True\",\"message\":\"by condition\"}]}}",
         false, NULL, OUTCOME_FAILED, "by condition"},
        {"{" META("") ",\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":"
                      "\"migrationAbortRequested\",\"status\":\"True\"}]}}",
         false, NULL, OUTCOME_CANCELLED, NULL},
        {"{" META(DELETED) ",\"status\":{\"phase\":\"Failed\"}}", false, NULL, OUTCOME_CANCELLED,
         NULL},
        {"{" META("") ",\"status\":{\"phase\":\"Failed\"}}", false,
         "{" META("") ",\"status\":{\"migrationState\":{\"migrationUid\":\"u1\","
                      "\"abortRequested\":true,\"abortStatus\":\"Succeeded\"}}}",
         OUTCOME_CANCELLED, NULL},
        /* its own monitor gave it up: nobody asked for that */
        {"{" META("") ",\"status\":{\"phase\":\"Failed\"}}", false,
         "{" META("") ",\"status\":{\"migrationState\":{\"migrationUid\":\"u1\",\"abortStatus\":"
                      "\"Succeeded\",\"failureReason\":\"NotConverging: too fast\"}}}",
         OUTCOME_FAILED, "NotConverging: too fast"},
        /* gone before its last phase was seen */
        {"{" META(DELETED) ",\"status\":{\"phase\":\"Running\"}}", true, NULL, OUTCOME_CANCELLED,
         NULL},
        {"{" META(DELETED) ",\"status\":{\"phase\":\"Running\"}}", true,
         "{" META(
             "") ",\"status\":{\"migrationState\":{\"migrationUid\":\"u1\",\"completed\":true}}}",
         OUTCOME_SUCCEEDED, NULL},
        {"{" META(DELETED) ",\"status\":{\"phase\":\"Running\"}}", true,
         "{" META("") ",\"status\":{\"migrationState\":{\"migrationUid\":\"u1\",\"completed\":true,"
                      "\"failed\":true}}}",
         OUTCOME_CANCELLED, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *m = object(API_KIND_MIGRATION, cases[i].migration);
        api_cleanup_object struct api_object *v =
            cases[i].vmi ? object(API_KIND_VMI, cases[i].vmi) : NULL;
        const struct api_vmi *vmi = v ? &v->u.vmi : NULL;
        enum outcome got = outcome_of(&m->u.migration, cases[i].gone, vmi);

        if (got != cases[i].outcome) {
            fail_msg("case %zu: outcome %d, not %d", i, got, cases[i].outcome);
        }
        if (cases[i].reason) {
            assert_string_equal(outcome_reason(&m->u.migration, vmi), cases[i].reason);
        }
    }
}

#define STATE(uid, from, to)                                                                       \
    "\"migrationState\":{\"migrationUid\":\"" uid "\",\"sourceNode\":\"" from                      \
    "\",\"targetNode\":\"" to "\",\"completed\":true}"
#define MOVED(state)                                                                               \
    "{" META("") ",\"spec\":{\"vmiName\":\"vm\"},\"status\":{\"phase\":\"Succeeded\"" state "}}"

/* A VM that has moved on since tells nothing of an earlier move. */
static void where_it_moved(void **state)
{
    static const struct {
        const char *migration, *vmi, *seen_on, *line;
    } cases[] = {
        {MOVED("," STATE("u1", "node1", "node2")),
         "{" META("") ",\"status\":{\"nodeName\":\"node2\"," STATE("u1", "node1", "node2") "}}",
         NULL, "vm moved from node1 to node2"},
        {MOVED("," STATE("u1", "node1", "node2")),
         "{" META("") ",\"status\":{\"nodeName\":\"node1\"," STATE("u2", "node2", "node1") "}}",
         NULL, "vm moved from node1 to node2"},
        {MOVED("," STATE("u1", "node1", "node2")), NULL, NULL, "vm moved from node1 to node2"},
        {MOVED(""),
         "{" META("") ",\"status\":{\"nodeName\":\"node2\"," STATE("u1", "node1", "node2") "}}",
         NULL, "vm moved from node1 to node2"},
        {MOVED(""), NULL, "node1", "vm moved from node1 to ?"},
        {MOVED(""), "{" META("") ",\"status\":{\"nodeName\":\"node1\"}}", NULL,
         "vm moved from ? to ?"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *m = object(API_KIND_MIGRATION, cases[i].migration);
        api_cleanup_object struct api_object *v =
            cases[i].vmi ? object(API_KIND_VMI, cases[i].vmi) : NULL;
        ferry_cleanup_buf struct ferry_buf line = {0};

        moveline_end(&m->u.migration, v ? &v->u.vmi : NULL, cases[i].seen_on, OUTCOME_SUCCEEDED,
                     &line);
        if (!ferry_streq(line.data, cases[i].line)) {
            fail_msg("case %zu: %s", i, line.data);
        }
    }
}

#define WAITS(phase, reason)                                                                       \
    "{" META(",\"annotations\":{\"ferry.io/queue\":\"{\\\"reason\\\":\\\"" reason                  \
             "\\\",\\\"message\\\":\\\"so\\\"}\"}") ",\"status\":{\"phase\":\"" phase "\"}}"

/* A wait that the phase has left behind is not told. */
static void what_a_move_waits_for(void **state)
{
    static const struct {
        const char *migration, *line;
    } cases[] = {
        {WAITS("", "ClusterLimit"), "Pending  waits: so"},
        {WAITS("Pending", "ClusterLimit"), "Pending  waits: so"},
        {WAITS("Scheduling", "Unschedulable"), "Scheduling  waits: so"},
        {WAITS("PreparingTarget", "Unschedulable"), "PreparingTarget"},
        {WAITS("PreparingTarget", "TargetPreparing"), "PreparingTarget  waits: so"},
        {WAITS("TargetReady", "TargetPreparing"), "TargetReady"},
        {WAITS("TargetReady", "SourceBusy"), "TargetReady  waits: so"},
        {WAITS("Running", "TargetPreparing"), "Running"},
        {WAITS("Running", "PathAway"), "Running  waits: so"},
        {"{" META("") ",\"status\":{\"phase\":\"Running\"}}", "Running"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *m = object(API_KIND_MIGRATION, cases[i].migration);
        ferry_cleanup_buf struct ferry_buf line = {0};

        moveline_put(&m->u.migration, NULL, 0, &line);
        if (!ferry_streq(line.data, cases[i].line)) {
            fail_msg("case %zu: %s", i, line.data);
        }
    }
}

#define NODE(name, ready, extra)                                                                   \
    "{\"metadata\":{\"name\":\"" name "\"}" extra ",\"status\":{\"conditions\":[{\"type\":"        \
    "\"Ready\",\"status\":\"" ready "\"}]}}"
#define VM(phase, extra)                                                                           \
    "{\"metadata\":{\"name\":\"demo\"},\"status\":{\"phase\":\"" phase "\",\"nodeName\":"          \
    "\"node1\"" extra "}}"

static void before_a_move(void **state)
{
    static const struct {
        const char *vm;
        const char *nodes[3];  /* NULL first = not known */
        const char *to, *says; /* NULL = may move */
    } cases[] = {
        {VM("Running", ""), {NODE("node1", "True", ""), NODE("node2", "True", "")}, NULL, NULL},
        {VM("Running", ""), {NODE("node1", "True", ""), NODE("node2", "True", "")}, "node2", NULL},
        {VM("Running", ""), {NULL}, NULL, NULL},
        {VM("Running", ""), {NULL}, "node9", NULL},
        {VM("Running", ""), {NODE("node1", "True", "")}, NULL, "there is no node that demo could"},
        {VM("Running", ""),
         {NODE("node1", "True", ""), NODE("node2", "False", "")},
         NULL,
         "there is no node that demo could"},
        {VM("Running", ""),
         {NODE("node1", "True", ""), NODE("node2", "True", ",\"spec\":{\"unschedulable\":true}")},
         NULL,
         "there is no node that demo could"},
        {VM("Running", ""), {NODE("node1", "True", "")}, "node2", "there is no node 'node2'"},
        {VM("Running", ""), {NODE("node1", "True", "")}, "node1", "demo is on node1 already"},
        {VM("Running", ""), {NULL}, "node1", "demo is on node1 already"},
        {VM("Running", ""),
         {NODE("node1", "True", ""), NODE("node2", "Unknown", "")},
         "node2",
         "node node2 takes no virtual machines: it is not ready"},
        {VM("Running", ""),
         {NODE("node1", "True", ""), NODE("node2", "True", ",\"spec\":{\"unschedulable\":true}")},
         "node2",
         "node node2 takes no virtual machines: it is cordoned"},
        {VM("Scheduling", ""),
         {NULL},
         NULL,
         "demo is Scheduling; only a running virtual machine can be moved: it is still starting"},
        {"{\"metadata\":{\"name\":\"demo\"}}",
         {NULL},
         NULL,
         "demo is Pending; only a running virtual machine can be moved: it is still starting"},
        {VM("Succeeded", ""), {NULL}, NULL, "'ferry vm start demo' starts it"},
        {VM("Running", ",\"conditions\":[{\"type\":\"LiveMigratable\",\"status\":\"False\","
                       "\"reason\":\"DisksNotLiveMigratable\",\"message\":\"disk x is local\"}]"),
         {NULL},
         NULL,
         "demo cannot be moved: disk x is local"},
        {"{\"metadata\":{\"name\":\"demo\"" DELETED "},\"status\":{\"phase\":\"Running\"}}",
         {NULL},
         NULL,
         "demo is being deleted"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *vm = object(API_KIND_VMI, cases[i].vm);
        struct api_object *nodes[3];
        struct ferry_error err = {0};
        size_t n = 0;

        while (n < 3 && cases[i].nodes[n]) {
            nodes[n] = object(API_KIND_NODE, cases[i].nodes[n]);
            n++;
        }
        int rc = preflight_check(&vm->u.vmi, n ? nodes : NULL, n, cases[i].to, &err);
        if ((rc == 0) != !cases[i].says || (cases[i].says && !strstr(err.msg, cases[i].says))) {
            fail_msg("case %zu: %d, '%s'", i, rc, err.msg);
        }
        while (n-- > 0) {
            api_object_unref(nodes[n]);
        }
    }
}

#define ON(name, node, phase, more)                                                                \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\"},\"status\":{\"phase\":\"" phase    \
    "\",\"nodeName\":\"" node "\"" more "}}"
#define MOVE(vm, ns, phase) ENDED(vm, ns, phase, "")
#define ENDED(vm, ns, phase, more)                                                                 \
    "{\"metadata\":{\"name\":\"m\",\"namespace\":\"" ns "\"},\"spec\":{\"vmiName\":\"" vm          \
    "\"},\"status\":{\"phase\":\"" phase "\"" more "}}"

static void emptying_a_node(void **state)
{
    static const struct {
        const char *vm, *move, *node2; /* readiness of the other node */
        int what;                      /* -1 = not concerned */
        const char *why;
    } cases[] = {
        {ON("a", "node1", "Running", ""), NULL, "True", DRAIN_MOVES, ""},
        {ON("a", "node2", "Running", ""), NULL, "True", -1, ""},
        {ON("a", "node1", "Succeeded", ""), NULL, "True", -1, ""},
        {ON("a", "node1", "Running", ""), MOVE("a", "ns", "Running"), "True", DRAIN_MOVING, ""},
        {ON("a", "node1", "Running", ""), MOVE("a", "ns", ""), "True", DRAIN_MOVING, ""},
        {ON("a", "node1", "Running", ""), MOVE("a", "ns", "Succeeded"), "True", DRAIN_MOVES, ""},
        {ON("a", "node1", "Running", ""),
         ENDED("a", "ns", "Failed", ",\"migrationState\":{\"failureReason\":\"Stuck: no bytes\"}"),
         "True", DRAIN_MOVES, "its last move failed: Stuck: no bytes"},
        {ON("a", "node1", "Running", ""),
         ENDED("a", "ns", "Failed", ",\"migrationState\":{\"abortRequested\":true}"), "True",
         DRAIN_MOVES, "its last move was cancelled"},
        {ON("a", "node1", "Running", ""), MOVE("a", "other", "Running"), "True", DRAIN_MOVES, ""},
        {ON("a", "node1", "Running", ""), MOVE("b", "ns", "Running"), "True", DRAIN_MOVES, ""},
        {ON("a", "node1", "Running", ""), NULL, "False", DRAIN_STAYS, "there is no node"},
        {ON("a", "node1", "Scheduled", ""), NULL, "True", DRAIN_STAYS, "a is Scheduled"},
        {ON("a", "node1", "Running",
            ",\"conditions\":[{\"type\":\"LiveMigratable\",\"status\":"
            "\"False\",\"message\":\"disk x is local\"}]"),
         NULL, "True", DRAIN_STAYS, "disk x is local"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *vm = object(API_KIND_VMI, cases[i].vm);
        api_cleanup_object struct api_object *move =
            cases[i].move ? object(API_KIND_MIGRATION, cases[i].move) : NULL;
        api_cleanup_object struct api_object *n1 =
            object(API_KIND_NODE, NODE("node1", "True", ",\"spec\":{\"unschedulable\":true}"));
        api_cleanup_object struct api_object *n2 =
            object(API_KIND_NODE, ferry_streq(cases[i].node2, "True") ? NODE("node2", "True", "")
                                                                      : NODE("node2", "False", ""));
        struct api_object *nodes[] = {n1, n2};
        struct drain_item item = {0};
        size_t n = drain_plan("node1", &vm, 1, &move, move ? 1 : 0, nodes, 2, &item);

        if (n != (cases[i].what >= 0) || (n && (int)item.what != cases[i].what) ||
            !(cases[i].why[0] ? strstr(item.why, cases[i].why) != NULL : !item.why[0])) {
            fail_msg("case %zu: %zu, %d, '%s'", i, n, item.what, item.why);
        }
    }
}

static void policies_and_evacuations(void **state)
{
    struct manifest_policy p = {
        .name = "fast",
        .vm_labels = {{"app=db", "tier=1"}, 2},
        .namespace_labels = {{"env="}, 1},
        .post_copy = true,
        .bandwidth = "64Mi",
        .completion_timeout_s = 0,
        .max_downtime_ms = -1,
    };
    ferry_cleanup_free char *json = NULL, *evacuation = manifest_evacuation("vm", "node1");
    struct ferry_error err = {0};

    (void)state;
    assert_int_equal(manifest_policy(&p, &json, &err), 0);
    assert_string_equal(
        json, "{\"apiVersion\":\"migrations.kubevirt.io/v1alpha1\",\"kind\":\"MigrationPolicy\","
              "\"metadata\":{\"name\":\"fast\"},\"spec\":{\"selectors\":{"
              "\"virtualMachineInstanceSelector\":{\"app\":\"db\",\"tier\":\"1\"},"
              "\"namespaceSelector\":{\"env\":\"\"}},\"allowPostCopy\":true,"
              "\"bandwidthPerMigration\":\"64Mi\",\"completionTimeoutPerGiB\":0}}");
    assert_non_null(strstr(evacuation, "\"kubevirt.io/evacuationMigration\":\"node1\""));
    p.vm_labels.items[1] = "=x";
    free(json);
    json = NULL;
    assert_int_equal(manifest_policy(&p, &json, &err), -FERRY_INVALID);
    assert_non_null(strstr(err.msg, "--vm-label: '=x' is not KEY=VALUE"));
    p.vm_labels.n = 0;
    static const struct {
        const char *bandwidth, *says; /* NULL = taken */
    } limits[] = {
        {"0", NULL}, /* no limit */
        {"1Mi", NULL},
        {"1M", NULL},
        {"64",
         "--bandwidth: 64 is 64 B in a second, and hardly a move would end; did you mean 64Mi?"},
        {"500m",
         "--bandwidth: 500m is 1 B in a second, and hardly a move would end; did you mean 500M?"},
        {"999k", "--bandwidth: 999k is 975.6 KiB in a second"},
        {"-1Gi", "--bandwidth: -1Gi is less than nothing"},
        {"much", "--bandwidth: 'much' is not a quantity (like 500M or 1.5Gi)"},
    };
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        ferry_cleanup_free char *made = NULL;

        p.bandwidth = limits[i].bandwidth;
        int rc = manifest_policy(&p, &made, &err);
        if (rc != (limits[i].says ? -FERRY_INVALID : 0) ||
            (limits[i].says && !strstr(err.msg, limits[i].says))) {
            fail_msg("limit %zu: %d, '%s'", i, rc, err.msg);
        }
    }
    p.name = "Bad";
    assert_int_equal(manifest_policy(&p, &json, &err), -FERRY_INVALID);
}

/* Every verb that is not hidden is completed, and none that is. */
static void completion_knows_the_verbs(void **state)
{
    ferry_cleanup_buf struct ferry_buf bash = {0}, zsh = {0};

    (void)state;
    completion_bash(cli_verbs, &bash);
    completion_zsh(cli_verbs, &zsh);
    for (const struct cli_verb *v = cli_verbs; v->name; v++) {
        ferry_cleanup_free char *word = ferry_asprintf(" %s", v->name);

        assert_int_equal(!strstr(bash.data, word), v->hidden);
        assert_int_equal(!strstr(zsh.data, word), v->hidden);
    }
    assert_non_null(strstr(bash.data, "'policy delete') kinds='policies'"));
}

static const char *existing;
static bool exists(const char *path)
{
    return existing && strstr(existing, path);
}

static void which_kubeconfig(void **state)
{
    static const struct {
        const char *option, *environment, *home, *existing, *want; /* want NULL = error */
    } cases[] = {
        {"/o", "/e", "/h", "/o /e /site /h/.kube/config", "/o"},
        {"/o", NULL, NULL, NULL, "/o"}, /* asked for: its absence is to be told */
        {NULL, "/e", "/h", "/e /site /h/.kube/config", "/e"},
        {NULL, "/e", "/h", "/site", "/e"},
        {NULL, "/e1:/e2", "/h", "/e2 /site", "/e2"},
        {NULL, "/e1:/e2", "/h", "/site", "/e1"},
        {NULL, ":", "/h", "/site", "/site"},
        {NULL, "", "/h", "/site /h/.kube/config", "/site"},
        {NULL, NULL, "/h", "/h/.kube/config", "/h/.kube/config"},
        {NULL, NULL, "/h", NULL, NULL},
        {NULL, NULL, NULL, "/h/.kube/config", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err = {0};

        existing = cases[i].existing;
        ferry_cleanup_free char *got =
            session_pick(&(struct session_places){.option = cases[i].option,
                                                  .environment = cases[i].environment,
                                                  .site = "/site",
                                                  .home = cases[i].home},
                         exists, &err);
        if (!ferry_streq(got, cases[i].want)) {
            fail_msg("case %zu: %s", i, got ? got : err.msg);
        }
    }
}

static void errors_say_what_to_do(void **state)
{
    struct ferry_error err;

    (void)state;
    ferry_fail(&err, FERRY_RETRY, "talking to x: refused");
    assert_int_equal(session_explain(&err), -FERRY_RETRY);
    assert_non_null(strstr(err.msg, "talking to x: refused; does the API server run?"));
    ferry_fail(&err, FERRY_DENIED, "forbidden");
    err.http = 403;
    assert_int_equal(session_explain(&err), -FERRY_DENIED);
    assert_non_null(strstr(err.msg, "forbidden; the kubeconfig's user may not do this"));
    /* no server said so: the connection never came about */
    ferry_fail(&err, FERRY_DENIED, "talking to x: SSL certificate problem");
    assert_int_equal(session_explain(&err), -FERRY_DENIED);
    assert_non_null(strstr(err.msg, "SSL certificate problem; the certificates of kubeconfig and "
                                    "server do not fit"));
    assert_null(strstr(err.msg, "may not"));
    ferry_fail(&err, FERRY_NOT_FOUND, "nothing");
    err.http = 404;
    assert_int_equal(session_explain(&err), -FERRY_NOT_FOUND);
    assert_string_equal(err.msg, "nothing");
    assert_int_equal(err.http, 404);
}

static void yaml(void **state)
{
    static const struct {
        const char *json, *yaml;
    } cases[] = {
        {"{}", "{}\n"},
        {"[]", "[]\n"},
        {"\"a\"", "a\n"},
        {"{\"a\":1,\"b\":\"x\",\"c\":null,\"d\":true}", "a: 1\nb: x\nc: null\nd: true\n"},
        {"{\"a\":\"yes\",\"b\":\"1\",\"c\":\"\",\"d\":\"a: b\",\"e\":\"NULL\"}",
         "a: \"yes\"\nb: \"1\"\nc: \"\"\nd: \"a: b\"\ne: \"NULL\"\n"},
        {"{\"a\":{\"b\":{\"c\":[]}},\"d\":{}}", "a:\n  b:\n    c: []\nd: {}\n"},
        {"{\"items\":[{\"a\":1,\"b\":[1,2]},{\"c\":{\"d\":2}}]}",
         "items:\n- a: 1\n  b:\n  - 1\n  - 2\n- c:\n    d: 2\n"},
        {"[[1,2],[3]]", "- - 1\n  - 2\n- - 3\n"},
        {"{\"kubernetes.io/host name\":\"line\\nline\"}",
         "\"kubernetes.io/host name\": \"line\\nline\"\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_buf struct ferry_buf b = {0};
        yyjson_doc *doc = yyjson_read(cases[i].json, strlen(cases[i].json), 0);

        output_yaml(yyjson_doc_get_root(doc), &b);
        yyjson_doc_free(doc);
        assert_string_equal(b.data, cases[i].yaml);
    }
}

static void lists_for_programs(void **state)
{
    api_cleanup_object struct api_object *vm =
        object(API_KIND_VMI, "{\"metadata\":{\"name\":\"demo\"},\"own\":1}");
    ferry_cleanup_buf struct ferry_buf names = {0}, text = {0};
    enum output_format format;
    struct ferry_error err;

    (void)state;
    output_objects(&vm, 1, OUTPUT_NAME, &names);
    assert_string_equal(names.data, "virtualmachineinstance.kubevirt.io/demo\n");
    output_objects(&vm, 1, OUTPUT_YAML, &text);
    assert_string_equal(
        text.data, "apiVersion: v1\nkind: List\nitems:\n- metadata:\n    name: demo\n  own: 1\n");
    assert_int_equal(output_parse("wide", &format, &err), 0);
    assert_int_equal(format, OUTPUT_WIDE);
    assert_int_equal(output_parse("xml", &format, &err), -FERRY_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_became_of_a_move),
        cmocka_unit_test(where_it_moved),
        cmocka_unit_test(what_a_move_waits_for),
        cmocka_unit_test(before_a_move),
        cmocka_unit_test(emptying_a_node),
        cmocka_unit_test(policies_and_evacuations),
        cmocka_unit_test(completion_knows_the_verbs),
        cmocka_unit_test(which_kubeconfig),
        cmocka_unit_test(errors_say_what_to_do),
        cmocka_unit_test(yaml),
        cmocka_unit_test(lists_for_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
