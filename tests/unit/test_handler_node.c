/* Tables: who may call the node API, the checklist of a move, figures, kept records. Numbers of
 * cases are items of docs/conformance.md. */
#include "handler_case.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/json.h"
#include "base/fd.h"
#include "handler/local/records.h"
#include "handler/serve/node_api.h"
#include "handler/serve/node_check_move.h"
#include "handler/serve/node_checks.h"
#include "handler/serve/node_metrics.h"

static void callers(void **state)
{
    static const struct {
        const char *name;
        struct http_peer peer;
        bool may;
    } cases[] = {
        {"root on this host", {.local = true}, true},
        {"a user on this host", {.local = true, .uid = 61201}, false},
        {"nobody", {.certificate = false}, false},
        {"a bad certificate", {.tls_error = "expired"}, false},
        {"an administrator",
         {.certificate = true, .common_name = "me", .n_groups = 1, .groups = {"ferry:admins"}},
         true},
        {"an administrator by the second group",
         {.certificate = true, .n_groups = 2, .groups = {"x", "ferry:admins"}},
         true},
        {"the API server", {.certificate = true, .common_name = "system:ferry-apiserver"}, true},
        {"another node",
         {.certificate = true,
          .common_name = "system:node:b",
          .n_groups = 1,
          .groups = {"system:nodes"}},
         false},
        {"a viewer", {.certificate = true, .n_groups = 1, .groups = {"ferry:viewers"}}, false},
        {"a relay", {.certificate = true, .common_name = "ferry-relay:a"}, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        print_message("  %s\n", cases[i].name);
        assert_int_equal(node_api_refusal(&cases[i].peer) == NULL, cases[i].may);
    }
}

#define STATE(more)                                                                                \
    "\"nodeName\":\"a\",\"migrationState\":{\"migrationUid\":\"move\",\"sourceNode\":\"a\","       \
    "\"targetNode\":\"b\"" more "}"
#define PORTS                                                                                      \
    ",\"targetNodeAddress\":\"10.1.1.2\",\"targetDirectMigrationNodePorts\":{\"4000\":0,\"4001\":" \
    "49152}"
#define RELAY(move, address, ports)                                                                \
    "{\"move\":\"" move "\",\"address\":\"" address "\",\"ports\":{" ports "}}"

static void checklists(void **state)
{
    static const struct {
        const char *name, *status, *launcher;
        enum node_role role;
        const char *relay, *relay_error, *relay_gone;
        const char *words;
    } cases[] = {
        {"target, all well", STATE(PORTS), MIGRATION("none", "", "target", "prepared", ""),
         NODE_ROLE_TARGET, RELAY("move", "10.1.1.2", "\"4000\":0,\"4001\":49152"), NULL, NULL,
         "\"ok\":true,\"checks\"|\"role\":\"target\"|as in the VMI|listeners|!\"ok\":false"},
        {"target, no pod", STATE(""), "no-pod", NODE_ROLE_TARGET, NULL, "unknown key", NULL,
         "\"ok\":false,\"checks\"|not on this node|unknown key"},
        {"target, pod over", STATE(""), "ended", NODE_ROLE_TARGET, NULL, NULL, NULL,
         "the pod is over"},
        {"target, pod starting", STATE(""), "starting", NODE_ROLE_TARGET, NULL, NULL, NULL,
         "does not run yet"},
        {"target, launcher silent", STATE(""), "silent", NODE_ROLE_TARGET, NULL, NULL, NULL,
         "does not answer"},
        {"target, not prepared", STATE(""), DOMAIN("none", ""), NODE_ROLE_TARGET, NULL, NULL, NULL,
         "the launcher is not prepared"},
        {"target, failed", STATE(""),
         MIGRATION("none", "", "target", "failed", ",\"failureReason\":\"no memory\""),
         NODE_ROLE_TARGET, NULL, NULL, NULL, "failed: no memory"},
        {"no relay", STATE(PORTS), DOMAIN("running", "booted"), NODE_ROLE_SOURCE, NULL, NULL,
         "no answer", "\"name\":\"relay\",\"ok\":false|no answer"},
        {"listeners of another move", STATE(PORTS), MIGRATION("none", "", "target", "prepared", ""),
         NODE_ROLE_TARGET, RELAY("old", "10.1.1.2", "\"4000\":0,\"4001\":49152"), NULL, NULL,
         "belong to another move"},
        {"not published", STATE(""), MIGRATION("none", "", "target", "prepared", ""),
         NODE_ROLE_TARGET, RELAY("move", "10.1.1.2", "\"4000\":0"), NULL, NULL,
         "has not published"},
        {"other ports", STATE(PORTS), MIGRATION("none", "", "target", "prepared", ""),
         NODE_ROLE_TARGET, RELAY("move", "10.1.1.2", "\"4002\":0,\"4001\":49152"), NULL, NULL,
         "not those that the VMI names"},
        {"one port more", STATE(PORTS), MIGRATION("none", "", "target", "prepared", ""),
         NODE_ROLE_TARGET, RELAY("move", "10.1.1.2", "\"4000\":0,\"4001\":49152,\"4002\":49153"),
         NULL, NULL, "not those that the VMI names"},
        {"other address", STATE(PORTS), MIGRATION("none", "", "target", "prepared", ""),
         NODE_ROLE_TARGET, RELAY("move", "10.1.1.9", "\"4000\":0,\"4001\":49152"), NULL, NULL,
         "address 10.1.1.9, the VMI 10.1.1.2"},
        {"source waits", STATE(""), DOMAIN("running", "booted"), NODE_ROLE_SOURCE, NULL, NULL, NULL,
         "has not begun|the target has published nothing"},
        {"source, all well", STATE(PORTS), DOMAIN("running", "booted"), NODE_ROLE_SOURCE,
         RELAY("move", "10.1.1.2", "\"4000\":0,\"4001\":49152"), NULL, NULL,
         "\"ok\":true,\"checks\"|sockets"},
        {"over: nothing of the relay is asked", STATE(",\"completed\":true"),
         DOMAIN("running", "booted"), NODE_ROLE_OWNER, NULL, NULL, NULL,
         "\"ok\":true,\"checks\"|!relay"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(NULL, NULL, cases[i].status);
        struct launcher_status status;
        api_cleanup_doc yyjson_doc *doc = NULL;
        struct check_facts f = {.vmi = &o->u.vmi,
                                .node = "a",
                                .role = cases[i].role,
                                .launcher = case_launcher(cases[i].launcher, &status),
                                .relay_error = cases[i].relay_error,
                                .relay_socket_gone = cases[i].relay_gone};

        if (cases[i].relay) {
            assert_int_equal(api_json_parse(cases[i].relay, strlen(cases[i].relay), &doc, NULL), 0);
            f.relay = yyjson_doc_get_root(doc);
        }
        ferry_cleanup_free char *json = node_checks(&f);
        case_check_words(cases[i].name, json, cases[i].words);
    }
}

static void channels_and_probes(void **state)
{
    static const struct {
        const char *name;
        struct check_facts f; /* what differs from all well */
        const char *words;
    } cases[] = {
        {"sockets",
         {.files = {{0, "/m/x", true}, {49152, "/m/y", false}}, .n_files = 2},
         "\"ok\":false,\"checks\"|\"channel\":0,\"ok\":true,\"message\":\"/m/x\"|"
         "\"name\":\"socket\",\"channel\":49152,\"ok\":false,\"message\":\"missing: /m/y\""},
        {"listeners",
         {.listeners = {{0, 4000, true}, {49152, 4001, false}}, .n_listeners = 2},
         "\"name\":\"listener\",\"channel\":0,\"ok\":true|\"channel\":49152,\"ok\":false,"
         "\"message\":\"port 4001: nobody listens\""},
        {"address",
         {.address = "10.1.1.2"},
         "\"name\":\"network\",\"ok\":true,\"message\":\"10.1.1.2\""},
        {"another address",
         {.address = "10.9.9.9"},
         "\"name\":\"network\",\"ok\":false,\"message\":\"the VMI names 10.1.1.2, this node takes "
         "moves in on 10.9.9.9"},
        {"no address",
         {.address_error = "interface migration0 has no usable address"},
         "\"name\":\"network\",\"ok\":false,\"message\":\"interface migration0 has no"},
        {"certificate",
         {.certificate = "names node 'a'"},
         "\"name\":\"certificate\",\"ok\":true,\"message\":\"names node 'a'\""},
        {"bad certificate",
         {.certificate = "", .certificate_error = "has expired"},
         "\"name\":\"certificate\",\"ok\":false,\"message\":\"has expired\""},
        {"not reached",
         {.probes = {{0, NODE_PROBE_REACH, "refused"}}, .n_probes = 1},
         "\"name\":\"reach\",\"channel\":0,\"ok\":false,\"message\":\"refused\"|!mtu|!handshake"},
        {"long packets lost",
         {.probes = {{0, NODE_PROBE_MTU, "lost"}}, .n_probes = 1},
         "\"name\":\"reach\",\"channel\":0,\"ok\":true|\"name\":\"mtu\",\"channel\":0,\"ok\":"
         "false,\"message\":\"lost\"|!handshake"},
        {"handshake",
         {.probes = {{0, NODE_PROBE_DONE, NULL}, {49152, NODE_PROBE_SHAKE, "expired"}},
          .n_probes = 2},
         "\"name\":\"handshake\",\"channel\":0,\"ok\":true|\"name\":\"mtu\",\"channel\":49152,"
         "\"ok\":true|\"name\":\"handshake\",\"channel\":49152,\"ok\":false,\"message\":"
         "\"expired\""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(NULL, NULL, STATE(PORTS));
        struct launcher_status status;
        struct check_facts f = cases[i].f;

        f.vmi = &o->u.vmi;
        f.node = "a";
        f.role = NODE_ROLE_OWNER;
        f.launcher = case_launcher(DOMAIN("running", "booted"), &status);
        ferry_cleanup_free char *json = node_checks(&f);
        case_check_words(cases[i].name, json, cases[i].words);
    }
}

static void who_listens(void **state)
{
    static const char table[] =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
        "   0: 0B004E0A:C000 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
        "   1: 0B004E0A:C001 0C004E0A:9999 01 00000000:00000000 00:00000000 00000000     0\n"
        "  12: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0\n";

    (void)state;
    assert_true(node_check_listens(table, 0xC000));
    assert_false(node_check_listens(table, 0xC001)); /* connected */
    assert_false(node_check_listens(table, 0x9999)); /* the other end */
    assert_true(node_check_listens(table, 8080));
    assert_false(node_check_listens(table, 1));
    assert_false(node_check_listens("", 8080));
    assert_false(node_check_listens(NULL, 8080));
    assert_false(node_check_listens("nonsense\n0: zz\n", 8080));
}

/* 496: figures of a source's job, and none of what libvirt does not say */
static void figures(void **state)
{
    struct launcher_status full, bare, idle;
    ferry_cleanup_buf struct ferry_buf out = {0};

    (void)state;
    case_launcher(MIGRATION("running", "booted", "source", "running",
                            ",\"sample\":{\"totalBytes\":100,\"remainingBytes\":40,"
                            "\"processedBytes\":60,\"dirtyBytesPerS\":7,\"bytesPerS\":9}"),
                  &full);
    case_launcher(
        MIGRATION("running", "booted", "source", "running", ",\"sample\":{\"totalBytes\":5}"),
        &bare);
    case_launcher(DOMAIN("running", "booted"), &idle);
    node_metrics_begin(&out,
                       &(struct node_metrics){.node = "a", .version = "1", .roles = {0, 3, 2, 1}});
    node_metrics_moves(&out, "a",
                       (struct node_metrics_vm[]){
                           {"ns", "full", &full}, {"ns", "bare", &bare}, {"ns", "idle", &idle}},
                       3);
    case_check_words(
        "figures", out.data,
        "ferry_handler_vmis{node=\"a\",role=\"owner\"} 3|role=\"source\"} 2|role=\"target\"} 1|"
        "migration_data_bytes_total{namespace=\"ns\",name=\"full\",node=\"a\"} 100|"
        "data_remaining_bytes{namespace=\"ns\",name=\"full\",node=\"a\"} 40|"
        "data_processed_bytes{namespace=\"ns\",name=\"full\",node=\"a\"} 60|"
        "dirty_memory_rate_bytes{namespace=\"ns\",name=\"full\",node=\"a\"} 7|"
        "memory_transfer_rate_bytes{namespace=\"ns\",name=\"full\",node=\"a\"} 9|"
        "data_bytes_total{namespace=\"ns\",name=\"bare\",node=\"a\"} 5|"
        "!remaining_bytes{namespace=\"ns\",name=\"bare\"|!idle");
}

static void kept_records(void **state)
{
    char dir[] = "/tmp/ferry-records-XXXXXX";
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct ferry_error err;
    size_t left = 0;

    (void)state;
    assert_non_null(mkdtemp(dir));
    ferry_cleanup_free char *sub = ferry_asprintf("%s/records", dir);
    assert_int_equal(records_save(sub, "../evil", "x", 1, &err), -FERRY_INVALID);
    assert_int_equal(records_load(sub, "../../etc/passwd", &text, &err), -FERRY_NOT_FOUND);
    assert_int_equal(records_load(sub, "move", &text, &err), -FERRY_NOT_FOUND);
    for (int i = 0; i < RECORDS_KEPT + 5; i++) {
        ferry_cleanup_free char *uid = ferry_asprintf("move-%d", i);
        ferry_cleanup_free char *path = ferry_asprintf("%s/%s.jsonl", sub, uid);
        struct timespec at[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};

        assert_int_equal(records_save(sub, uid, "{}\n", 3, &err), 0);
        assert_int_equal(utimensat(0, path, at, 0), 0);
    }
    for (int i = 0; i < RECORDS_KEPT + 5; i++) {
        ferry_cleanup_free char *uid = ferry_asprintf("move-%d", i);

        left += records_have(sub, uid);
    }
    assert_int_equal(left, RECORDS_KEPT);
    assert_false(records_have(sub, "move-0"));
    assert_int_equal(records_load(sub, "move-204", &text, &err), 0);
    assert_string_equal(text.data, "{}\n");
    assert_int_equal(ferry_remove_tree(dir, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers),
        cmocka_unit_test(checklists),
        cmocka_unit_test(channels_and_probes),
        cmocka_unit_test(who_listens),
        cmocka_unit_test(figures),
        cmocka_unit_test(kept_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
