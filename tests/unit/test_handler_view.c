/* Tables: roles, launchers' words, what can be moved, what a node says about itself. */
#include "handler_case.h"

#include "handler/move/node_role.h"
#include "handler/node/node_report.h"

#define MOVE(more)                                                                                 \
    "\"migrationState\":{\"migrationUid\":\"move\",\"sourceNode\":\"a\",\"targetNode\":\"b\"" more \
    "}"
#define COMING "\"labels\":{\"kubevirt.io/migrationTargetNodeName\":\"b\"}"

static void roles(void **state)
{
    static const struct {
        const char *name, *meta, *status, *node;
        enum node_role role;
    } cases[] = {
        {"nowhere yet", NULL, NULL, "a", NODE_ROLE_NONE},
        {"lives here", NULL, "\"nodeName\":\"a\"", "a", NODE_ROLE_OWNER},
        {"lives elsewhere", NULL, "\"nodeName\":\"a\"", "b", NODE_ROLE_NONE},
        {"leaves", COMING, "\"nodeName\":\"a\"," MOVE(""), "a", NODE_ROLE_SOURCE},
        {"comes", COMING, "\"nodeName\":\"a\"," MOVE(""), "b", NODE_ROLE_TARGET},
        {"handed off, label not yet there", NULL, "\"nodeName\":\"a\"," MOVE(""), "b",
         NODE_ROLE_NONE},
        {"third node", COMING, "\"nodeName\":\"a\"," MOVE(""), "c", NODE_ROLE_NONE},
        {"arrived, not completed: target", COMING, "\"nodeName\":\"b\"," MOVE(""), "b",
         NODE_ROLE_TARGET},
        {"arrived, not completed: source", COMING, "\"nodeName\":\"b\"," MOVE(""), "a",
         NODE_ROLE_SOURCE},
        {"completed: source", COMING, "\"nodeName\":\"b\"," MOVE(",\"completed\":true"), "a",
         NODE_ROLE_NONE},
        {"moved on since: source", COMING, "\"nodeName\":\"c\"," MOVE(""), "a", NODE_ROLE_NONE},
        {"completed, not cleaned up", COMING, "\"nodeName\":\"b\"," MOVE(",\"completed\":true"),
         "b", NODE_ROLE_TARGET},
        {"completed and clean", NULL, "\"nodeName\":\"b\"," MOVE(",\"completed\":true"), "b",
         NODE_ROLE_OWNER},
        {"failed: source", COMING,
         "\"nodeName\":\"a\"," MOVE(",\"completed\":true,\"failed\":true"), "a", NODE_ROLE_OWNER},
        {"failed: target cleans up", COMING,
         "\"nodeName\":\"a\"," MOVE(",\"completed\":true,\"failed\":true"), "b", NODE_ROLE_TARGET},
        {"failed and clean", NULL,
         "\"nodeName\":\"a\"," MOVE(",\"completed\":true,\"failed\":true"), "b", NODE_ROLE_NONE},
        {"label of an older move", COMING,
         "\"nodeName\":\"a\",\"migrationState\":{\"migrationUid\":\"m\",\"sourceNode\":\"a\","
         "\"targetNode\":\"c\"}",
         "b", NODE_ROLE_NONE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(cases[i].meta, NULL, cases[i].status);

        print_message("  %s\n", cases[i].name);
        assert_string_equal(node_role_name(node_role_of(&o->u.vmi, cases[i].node)),
                            node_role_name(cases[i].role));
    }
}

static void launcher_words(void **state)
{
    static const struct {
        const char *json;
        const char *error; /* NULL = fine */
        enum outcome_source source;
        bool active;
    } cases[] = {
        {DOMAIN("running", "booted"), NULL, OUTCOME_SOURCE_ACTIVE, true},
        {DOMAIN("paused", "user"), NULL, OUTCOME_SOURCE_ACTIVE, true},
        {DOMAIN("paused", "io-error"), NULL, OUTCOME_SOURCE_ACTIVE, false},
        {DOMAIN("paused", "migration"), NULL, OUTCOME_SOURCE_STOPPED, false},
        {DOMAIN("paused", "postcopy"), NULL, OUTCOME_SOURCE_POSTCOPY, false},
        {DOMAIN("paused", "postcopy-failed"), NULL, OUTCOME_SOURCE_POSTCOPY, false},
        {DOMAIN("none", ""), NULL, OUTCOME_SOURCE_GONE, false},
        {DOMAIN("shutoff", "migrated"), NULL, OUTCOME_SOURCE_GONE, false},
        {"{\"domain\":{\"state\":\"none\"}}", NULL, OUTCOME_SOURCE_GONE, false},
        {"{\"domain\":{\"state\":\"none\"},\"migration\":null}", NULL, OUTCOME_SOURCE_GONE, false},
        {MIGRATION("running", "", "source", "running", ",\"startTimestamp\":\"\""), NULL,
         OUTCOME_SOURCE_ACTIVE, true},
        {"", "launcher status", 0, false},
        {"[]", "domain.state", 0, false},
        {"{}", "domain.state", 0, false},
        {DOMAIN("dancing", ""), "'dancing'", 0, false},
        {"{\"domain\":{\"state\":7}}", "domain.state", 0, false},
        {MIGRATION("running", "", "spy", "running", ""), "migration.role", 0, false},
        {MIGRATION("running", "", "source", "done", ""), "migration.phase", 0, false},
        {MIGRATION("running", "", "source", "running", ",\"startTimestamp\":\"noon\""), "noon", 0,
         false},
        {"{\"domain\":{\"state\":\"none\"},\"domain\":{}}", "domain", 0, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct launcher_status s = {0};
        struct ferry_error err = {0};
        int rc = wire_launcher_status_read(cases[i].json, strlen(cases[i].json), &s, &err);

        print_message("  %s\n", cases[i].json);
        if (cases[i].error) {
            assert_true(rc < 0);
            assert_non_null(strstr(err.msg, cases[i].error));
            continue;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(launcher_status_as_source(&s), cases[i].source);
        assert_int_equal(launcher_status_active(&s), cases[i].active);
    }
}

static void control_sockets(void **state)
{
    static const struct {
        const char *json, *socket;
    } cases[] = {
        {MIGRATION("none", "", "target", "prepared", ",\"filtered\":true"),
         "/pod/libvirt/control.sock"},
        {MIGRATION("none", "", "target", "prepared", ""), "/pod/libvirt/libvirt-sock"},
        {"{\"domain\":{\"state\":\"none\"}}", "/pod/libvirt/control.sock"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct launcher_status s = {0};

        assert_int_equal(wire_launcher_status_read(cases[i].json, strlen(cases[i].json), &s, NULL),
                         0);
        ferry_cleanup_free char *path = launcher_control_socket("/pod", &s);
        assert_string_equal(path, cases[i].socket);
    }
    ferry_cleanup_free char *path = launcher_control_socket("/pod", NULL);
    assert_string_equal(path, "/pod/libvirt/control.sock");
}

static void which_migration(void **state)
{
    struct launcher_status s = {0};
    const char *json = MIGRATION("running", "", "target", "succeeded",
                                 ",\"endTimestamp\":\"2023-11-14T22:13:20Z\",\"downtimeMs\":12");

    (void)state;
    assert_int_equal(wire_launcher_status_read(json, strlen(json), &s, NULL), 0);
    const struct launcher_migration *m =
        launcher_status_migration(&s, "move", LAUNCHER_ROLE_TARGET);
    assert_non_null(m);
    assert_int_equal(m->end_ms, NOW);
    assert_int_equal(m->downtime_ms, 12);
    assert_int_equal(m->mode, MODE_NONE);
    assert_null(launcher_status_migration(&s, "move", LAUNCHER_ROLE_SOURCE));
    assert_null(launcher_status_migration(&s, "other", LAUNCHER_ROLE_TARGET));
    assert_null(launcher_status_migration(NULL, "move", LAUNCHER_ROLE_TARGET));
}

static void node_words(void **state)
{
    static const struct node_facts facts = {.name = "a",
                                            .address = "10.0.0.1",
                                            .cpus = 2,
                                            .memory_bytes = 4096LL << 20,
                                            .pods = 110,
                                            .kernel = "6.1",
                                            .os_image = "Debian \"12\"",
                                            .version = "0.1",
                                            .migration_address = "10.1.1.7",
                                            .api_port = 10250};
    static const struct {
        const char *name, *meta, *status;
        const char *metadata_words, *status_words;
    } cases[] = {
        {"new", "\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"", "",
         "kubernetes.io~1hostname|kubevirt.io~1schedulable|kubevirt.io~1heartbeat|"
         "ferry.io~1migration-address\",\"value\":\"10.1.1.7|\"/metadata/labels\",\"value\":{}|"
         "\"/metadata/annotations\",\"value\":{}|!migration-network",
         "\"/status/conditions\",\"value\":[]|/status/"
         "capacity|\"cpu\":\"2\"|4194304Ki|InternalIP|Debian \\\"12\\\"|HandlerReady|"
         "{\"kubeletEndpoint\":{\"Port\":10250}}|\"path\":\"/status\""},
        {"known and unready",
         "\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"2\",\"labels\":{\"mine\":\"x\","
         "\"kubernetes.io/hostname\":\"a\",\"kubernetes.io/os\":\"linux\",\"kubernetes.io/arch\":"
         "\"amd64\",\"kubevirt.io/schedulable\":\"true\"}",
         ",\"status\":{\"conditions\":[{\"type\":\"Other\",\"status\":\"True\"},{\"type\":"
         "\"Ready\",\"status\":\"False\"}],\"nodeInfo\":{\"kubeletVersion\":\"ferry-0.0\"}}",
         "!kubernetes.io~1hostname|!\"/metadata/labels\",\"value\":{}|kubevirt.io~1heartbeat",
         "\"op\":\"remove\",\"path\":\"/status/conditions/1\"|!/status/conditions/0|"
         "!\"/status/conditions\",\"value\":[]"},
        {"a kubelet's", "\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"2\"",
         ",\"status\":{\"nodeInfo\":{\"kubeletVersion\":\"v1.33.1\"}}", "heartbeat", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *json = ferry_asprintf("{\"kind\":\"Node\",\"metadata\":{%s}%s}",
                                                       cases[i].meta, cases[i].status);
        api_cleanup_object struct api_object *o = NULL;

        assert_int_equal(api_object_parse(API_KIND_NODE, json, strlen(json), &o, NULL), 0);
        ferry_cleanup_free char *meta = case_patch(node_report_metadata(o, &facts, NOW));
        ferry_cleanup_free char *status = case_patch(node_report_status(o, &facts, NOW));
        case_check_words(cases[i].name, meta, cases[i].metadata_words);
        case_check_words(cases[i].name, status, cases[i].status_words);
    }
    /* Hardware is offered where there is some. */
    static const char fresh[] = "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\","
                                "\"resourceVersion\":\"1\"}}";
    api_cleanup_object struct api_object *plain = NULL;
    assert_int_equal(api_object_parse(API_KIND_NODE, fresh, strlen(fresh), &plain, NULL), 0);
    struct node_facts with_kvm = facts;
    ferry_cleanup_free char *emulates = case_patch(node_report_status(plain, &with_kvm, NOW));
    case_check_words("emulates", emulates, "!devices.kubevirt.io/kvm");
    with_kvm.kvm = true;
    ferry_cleanup_free char *offers = case_patch(node_report_status(plain, &with_kvm, NOW));
    case_check_words("has hardware", offers,
                     "/status/allocatable|\"pods\":\"110\",\"devices.kubevirt.io/kvm\":\"1000\"}");
    /* Without an address: one that does not know yet leaves what is said, one in trouble takes it
     * back. */
    static const char known[] = "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\","
                                "\"annotations\":{\"ferry.io/migration-address\":\"10.1.1.7\"}}}";
    api_cleanup_object struct api_object *node = NULL;
    assert_int_equal(api_object_parse(API_KIND_NODE, known, strlen(known), &node, NULL), 0);
    struct node_facts none = facts;
    none.migration_address = "";
    ferry_cleanup_free char *early = case_patch(node_report_metadata(node, &none, NOW));
    case_check_words("not known yet", early, "heartbeat|!migration-address");
    none.migration_trouble = "no eth1";
    ferry_cleanup_free char *late = case_patch(node_report_metadata(node, &none, NOW));
    case_check_words("in trouble", late, "ferry.io~1migration-address\",\"value\":\"\"|no eth1");
    /* A node API that is not served any more. */
    none.api_port = 0;
    ferry_cleanup_free char *unserved = case_patch(node_report_status(node, &none, NOW));
    case_check_words("never served", unserved, "!daemonEndpoints");
    static const char served[] = "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"},"
                                 "\"status\":{\"daemonEndpoints\":{}}}";
    api_cleanup_object struct api_object *had = NULL;
    assert_int_equal(api_object_parse(API_KIND_NODE, served, strlen(served), &had, NULL), 0);
    ferry_cleanup_free char *gone = case_patch(node_report_status(had, &none, NOW));
    case_check_words("served before", gone, "\"remove\",\"path\":\"/status/daemonEndpoints");
    ferry_cleanup_free char *manifest = node_report_manifest(&facts);
    case_check_words("manifest", manifest,
                     "\"kind\":\"Node\"|\"kubevirt.io/schedulable\":\"true\"");
}

static void os_images(void **state)
{
    static const struct {
        const char *text, *image;
    } cases[] = {
        {"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian\"\n",
         "Debian GNU/Linux 12 (bookworm)"},
        {"NAME=x\nPRETTY_NAME='A b'", "A b"},
        {"NAME=x\nPRETTY_NAME=Alpine\nID=y\n", "Alpine"},
        /* another field that ends like it, or speaks of it */
        {"OLD_PRETTY_NAME=\"was\"\nPRETTY_NAME=\"is\"\n", "is"},
        {"NAME='PRETTY_NAME=\"x\"'\n", "Linux"},
        {"PRETTY_NAME=\"no end\nNAME=x\n", "no end"},
        {"", "Linux"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *image = node_report_os_image(cases[i].text);

        assert_string_equal(image, cases[i].image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles),           cmocka_unit_test(launcher_words),
        cmocka_unit_test(control_sockets), cmocka_unit_test(which_migration),
        cmocka_unit_test(node_words),      cmocka_unit_test(os_images),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
