/* Tables: what KubeVirt's own tests ask of the two ends of a move, and the hand-shake of a post-
 * copy recovery. Numbers of cases are items of docs/conformance.md. */
#include "handler_case.h"

#include "handler/local/follow.h"
#include "handler/move/node_role.h"
#include "handler/node/address.h"
#include "handler/node/renewal.h"
#include "handler/source/source_decide.h"
#include "handler/target/target_decide.h"

#define VMI(more)                                                                                  \
    "\"phase\":\"Running\",\"nodeName\":\"a\",\"migrationState\":{\"migrationUid\":\"move\","      \
    "\"sourceNode\":\"a\",\"targetNode\":\"b\"" more "}"
#define PUBLISHED                                                                                  \
    ",\"targetNodeAddress\":\"10.1.1.2\",\"targetDirectMigrationNodePorts\":{\"4000\":0,\"4001\":" \
    "49152}"
#define STARTED ",\"startTimestamp\":\"2023-11-14T22:13:00Z\",\"mode\":\"PreCopy\""
#define ABORT ",\"abortRequested\":true"
#define SOURCE(more) MIGRATION("running", "booted", "source", "running", more)
#define COMING "\"labels\":{\"kubevirt.io/migrationTargetNodeName\":\"b\"}"

static void who_acts(void **state)
{
    static const struct {
        const char *name, *status;
        enum node_role role;
    } cases[] = {
        {"337 no migration state", "\"nodeName\":\"a\"", NODE_ROLE_OWNER},
        {"338 the source is another node",
         "\"nodeName\":\"c\",\"migrationState\":{\"migrationUid\":\"move\",\"sourceNode\":\"c\","
         "\"targetNode\":\"b\"}",
         NODE_ROLE_NONE},
        {"340 completed", VMI(",\"completed\":true"), NODE_ROLE_OWNER},
        {"500 a move from here is left to its source's part", VMI(""), NODE_ROLE_SOURCE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(NULL, NULL, cases[i].status);

        print_message("  %s\n", cases[i].name);
        assert_string_equal(node_role_name(node_role_of(&o->u.vmi, "a")),
                            node_role_name(cases[i].role));
    }
}

static void source(void **state)
{
    static const struct {
        const char *name, *status, *launcher;
        enum source_action action;
        const char *patch;
        const char *failed;
    } cases[] = {
        {"336 no migration in the launcher", VMI(""), DOMAIN("running", "booted"), SOURCE_NOTHING,
         NULL, NULL},
        {"339 the launcher's is another one", VMI(""),
         "{\"domain\":{\"state\":\"running\"},\"migration\":{\"uid\":\"old\",\"role\":\"source\","
         "\"phase\":\"failed\",\"failureReason\":\"x\"}}",
         SOURCE_NOTHING, NULL, NULL},
        {"342 failed", VMI(PUBLISHED STARTED),
         MIGRATION("running", "booted", "source", "failed",
                   ",\"failureReason\":\"broken\",\"reasonCode\":\"Stuck\""),
         SOURCE_NOTHING, "/failed|Stuck: broken|!/spec", "Stuck"},
        {"343 abort, an earlier abort failed", VMI(PUBLISHED STARTED ABORT),
         SOURCE(",\"abortStatus\":\"Failed\""), SOURCE_CANCEL, NULL, NULL},
        {"344 abort, no status", VMI(PUBLISHED STARTED ABORT), SOURCE(""), SOURCE_CANCEL, NULL,
         NULL},
        {"345 abort, empty status in both", VMI(PUBLISHED STARTED ABORT ",\"abortStatus\":\"\""),
         SOURCE(",\"abortStatus\":\"\""), SOURCE_CANCEL, NULL, NULL},
        {"346 aborting; 348 as the launcher says, too",
         VMI(PUBLISHED STARTED ABORT ",\"abortStatus\":\"Aborting\""),
         SOURCE(",\"abortStatus\":\"Aborting\""), SOURCE_NOTHING, NULL, NULL},
        {"349 abort succeeded", VMI(PUBLISHED STARTED ABORT ",\"abortStatus\":\"Succeeded\""),
         SOURCE(",\"abortStatus\":\"Succeeded\""), SOURCE_NOTHING, NULL, NULL},
        {"350 a cancel that failed is asked for again; 351 one that was asked for is sent",
         VMI(PUBLISHED STARTED ABORT), SOURCE(""), SOURCE_CANCEL, NULL, NULL},
        {"the target is lost in post-copy", VMI(PUBLISHED STARTED),
         MIGRATION("paused", "postcopy-failed", "source", "failed",
                   ",\"mode\":\"PostCopy\",\"failureReason\":\"gone\",\"reasonCode\":"
                   "\"TargetLost\""),
         SOURCE_NOTHING, "/failed|TargetLost: gone", "TargetLost"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(NULL, NULL, cases[i].status);
        struct launcher_status s = {0};
        struct source_decision d =
            source_decide(&(struct source_input){.vmi = &o->u.vmi,
                                                 .launcher = case_launcher(cases[i].launcher, &s),
                                                 .order = SOURCE_ORDER_GIVEN,
                                                 .relay_ready = true,
                                                 .now_ms = NOW});
        ferry_cleanup_free char *patch = case_patch(d.patch);

        print_message("  %s\n", cases[i].name);
        assert_int_equal(d.action, cases[i].action);
        if (cases[i].patch) {
            case_check_words(cases[i].name, patch, cases[i].patch);
        }
        assert_true(ferry_streq(wire_reason_text(d.failed), cases[i].failed));
    }
}

static void source_words(void **state)
{
    static const struct {
        const char *name, *config, *words;
    } cases[] = {
        {"334 of an older controller", "\"allowPostCopy\":true",
         "\"allowWorkloadDisruption\":true|!maxDowntimeMs"},
        {"356 stall options", "\"experimental\":{\"stallDetector\":{\"stallMargin\":4}}",
         "\"stallDetector\":{\"stallMargin\":4}"},
        {"357 downtime tuning", "\"experimental\":{\"downtimeTuning\":{\"steps\":3}}",
         "\"downtimeTuning\":{\"steps\":3}"},
        {"358 no downtime tuning", "\"experimental\":{}", "!downtimeTuning"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *status = ferry_asprintf(
            "\"migrationState\":{\"migrationUid\":\"move\",\"migrationConfiguration\":{%s}}",
            cases[i].config);
        api_cleanup_object struct api_object *o = case_vmi(NULL, NULL, status);
        ferry_cleanup_free char *json = source_options(&o->u.vmi, 0);

        case_check_words(cases[i].name, json, cases[i].words);
    }
}

#define LISTENING                                                                                  \
    {                                                                                              \
        .listening = true, .address = "10.1.1.2",                                                  \
        .ports = {{.port = 4000, .logical = 0}, {.port = 4001, .logical = 49152}}, .n_ports = 2    \
    }

static void target(void **state)
{
    static const struct {
        const char *name, *meta, *status, *launcher;
        struct target_input more;
        enum target_action action;
        const char *patch;
        enum target_event event;
    } cases[] = {
        {"360 handed off: prepare",
         COMING,
         VMI(""),
         DOMAIN("none", ""),
         {0},
         TARGET_PREPARE,
         NULL,
         TARGET_NO_EVENT},
        {"360 prepared: listen",
         COMING,
         VMI(""),
         MIGRATION("none", "", "target", "prepared", ""),
         {0},
         TARGET_LISTEN,
         NULL,
         TARGET_NO_EVENT},
        {"360 listening: publish",
         COMING,
         VMI(""),
         MIGRATION("none", "", "target", "prepared", ""),
         {.relay = LISTENING},
         TARGET_NOTHING,
         "targetNodeAddress|\\\"4001\\\":49152|!/spec",
         TARGET_PUBLISHED},
        {"361 the VMI is being deleted",
         COMING ",\"deletionTimestamp\":\"2023-11-14T22:13:00Z\"",
         VMI(""),
         DOMAIN("none", ""),
         {0},
         TARGET_UNLISTEN,
         NULL,
         TARGET_NO_EVENT},
        {"368 finalised: completed",
         COMING,
         "\"nodeName\":\"b\",\"migrationState\":{\"migrationUid\":\"move\",\"sourceNode\":\"a\","
         "\"targetNode\":\"b\",\"endTimestamp\":\"2023-11-14T22:13:00Z\"}",
         MIGRATION("running", "migrated", "target", "succeeded", ""),
         {.finalized = true},
         TARGET_NOTHING,
         "/completed\",\"value\":true|!/spec",
         TARGET_COMPLETED},
        {"370 a move that failed is let go of, and its launcher with it",
         COMING,
         VMI(",\"completed\":true,\"failed\":true"),
         DOMAIN("none", ""),
         {0},
         TARGET_UNLISTEN,
         NULL,
         TARGET_NO_EVENT},
        {"378 listening, and cancelled here: the launcher is still looked at",
         COMING,
         VMI(",\"abortRequested\":true"),
         MIGRATION("none", "", "target", "failed", ",\"failureReason\":\"x\""),
         {.relay = {.listening = true}},
         TARGET_NOTHING,
         NULL,
         TARGET_NO_EVENT},
        {"379 final clean-up leaves the spec alone",
         COMING,
         VMI(",\"completed\":true,\"failed\":true"),
         "no-pod",
         {.unlistened = true},
         TARGET_NOTHING,
         "migrationTargetNodeName|!/spec",
         TARGET_NO_EVENT},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(cases[i].meta, NULL, cases[i].status);
        struct launcher_status s = {0};
        struct target_input in = cases[i].more;

        in.vmi = &o->u.vmi;
        in.node = "b";
        in.launcher = case_launcher(cases[i].launcher, &s);
        in.now_ms = NOW;
        struct target_decision d = target_decide(&in);
        ferry_cleanup_free char *patch = case_patch(d.patch);
        print_message("  %s\n", cases[i].name);
        assert_int_equal(d.action, cases[i].action);
        if (patch) {
            assert_null(strstr(patch, "\"/spec"));
        }
        assert_int_equal(patch != NULL, cases[i].patch != NULL);
        case_check_fields(cases[i].name, o, "b", patch);
        assert_int_equal(d.event, cases[i].event);
    }
}

static void no_migration_interface(void **state)
{
    char address[ADDRESS_SIZE];

    (void)state; /* 387 */
    assert_int_equal(address_for_migration("nonesuch0", "10.0.0.7", address, NULL), 0);
    assert_string_equal(address, "10.0.0.7");
}

/* ---- recovery ---------------------------------------------------------------------------------
 */

#define NOTES(recover, ports)                                                                      \
    COMING ",\"annotations\":{\"ferry.io/recover\":\"" recover                                     \
           "\",\"ferry.io/ports-generation\":\"" ports "\"}"
#define DEAD MIGRATION("paused", "postcopy-failed", "source", "running", ",\"mode\":\"PostCopy\"")

static void asks(void **state)
{
    static const struct {
        const char *name, *meta, *launcher;
        bool relay_ready, failed;
        int64_t recovered, recovered_ago_ms;
        enum source_action action;
        const char *patch;
    } cases[] = {
        {"streams dead: ask", COMING, DEAD, true, false, 0, 9999, SOURCE_NOTHING,
         "ferry.io~1recover\",\"value\":\"move/1\""},
        {"the notes are of another move", NOTES("old/3", "old/3"), DEAD, true, false, 0, 9999,
         SOURCE_NOTHING, "\"move/1\""},
        {"the notes are no numbers", NOTES("move/x", "move/-1"), DEAD, true, false, 0, 9999,
         SOURCE_NOTHING, "\"move/1\""},
        {"asked: wait for the target", NOTES("move/1", ""), DEAD, true, false, 0, 9999,
         SOURCE_NOTHING, NULL},
        {"asked again: the old ports do not count", NOTES("move/2", "move/1"), DEAD, true, false, 1,
         9999, SOURCE_NOTHING, NULL},
        {"fresh ports: sockets first", NOTES("move/1", "move/1"), DEAD, false, false, 0, 9999,
         SOURCE_CONNECT, NULL},
        {"then go on", NOTES("move/1", "move/1"), DEAD, true, false, 0, 9999, SOURCE_RECOVER, NULL},
        {"that failed: the next generation", NOTES("move/1", "move/1"), DEAD, true, true, 1, 9999,
         SOURCE_NOTHING, "\"move/2\""},
        {"went on just now", NOTES("move/1", "move/1"), DEAD, true, false, 1, 500, SOURCE_NOTHING,
         NULL},
        {"dead once more", NOTES("move/1", "move/1"), DEAD, true, false, 1, 9999, SOURCE_NOTHING,
         "\"move/2\""},
        {"post-copy that works", COMING,
         MIGRATION("paused", "postcopy", "source", "running", ",\"mode\":\"PostCopy\""), false,
         false, 0, 9999, SOURCE_CONNECT, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o =
            case_vmi(cases[i].meta, NULL, VMI(PUBLISHED STARTED));
        struct launcher_status s = {0};
        struct source_decision d =
            source_decide(&(struct source_input){.vmi = &o->u.vmi,
                                                 .launcher = case_launcher(cases[i].launcher, &s),
                                                 .order = SOURCE_ORDER_GIVEN,
                                                 .relay_ready = cases[i].relay_ready,
                                                 .recover_failed = cases[i].failed,
                                                 .recovered = cases[i].recovered,
                                                 .recovered_ms = NOW - cases[i].recovered_ago_ms,
                                                 .progress_ms = NOW,
                                                 .now_ms = NOW});
        ferry_cleanup_free char *patch = case_patch(d.patch);

        print_message("  %s\n", cases[i].name);
        assert_int_equal(d.action, cases[i].action);
        if (cases[i].patch) {
            case_check_words(cases[i].name, patch, cases[i].patch);
        } else if (patch) {
            assert_null(strstr(patch, "ferry.io~1recover"));
        }
    }
}

static void replies(void **state)
{
    static const struct {
        const char *name, *meta;
        bool recovered, listening;
        enum target_action action;
        const char *patch;
    } cases[] = {
        {"not asked", COMING, false, true, TARGET_NOTHING, NULL},
        {"asked: fresh listeners first", NOTES("move/1", ""), false, false, TARGET_LISTEN, NULL},
        {"then the launcher", NOTES("move/1", ""), false, true, TARGET_RECOVER, NULL},
        {"then the word", NOTES("move/1", ""), true, true, TARGET_NOTHING,
         "ports-generation\",\"value\":\"move/1\""},
        {"answered", NOTES("move/1", "move/1"), false, true, TARGET_NOTHING, NULL},
        {"asked again", NOTES("move/2", "move/1"), false, true, TARGET_RECOVER, NULL},
        {"of another move", NOTES("old/2", ""), false, true, TARGET_NOTHING, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(
            cases[i].meta, NULL, VMI(PUBLISHED STARTED ",\"targetNodeDomainDetected\":true"));
        struct launcher_status s = {0};
        struct target_input in = {
            .vmi = &o->u.vmi,
            .node = "b",
            .launcher =
                case_launcher(MIGRATION("running", "postcopy-failed", "target", "running", ""), &s),
            .relay = LISTENING,
            .recovered = cases[i].recovered,
            .now_ms = NOW};

        in.relay.listening = cases[i].listening;
        struct target_decision d = target_decide(&in);
        ferry_cleanup_free char *patch = case_patch(d.patch);
        print_message("  %s\n", cases[i].name);
        assert_int_equal(d.action, cases[i].action);
        case_check_words(cases[i].name, patch, cases[i].patch);
    }
}

/* What a launcher tells by itself, and whether it is a reason to look. */
static void lines_of_launchers(void **state)
{
    static const struct {
        const char *line;
        bool matters;
    } cases[] = {
        {"{\"seq\":1,\"type\":\"domain\",\"state\":\"running\"}", true},
        {"{\"seq\":2,\"type\":\"migration\",\"uid\":\"u\"}", true},
        {"{\"seq\":3,\"type\":\"sample\",\"remainingBytes\":5}", false},
        {"{\"type\":7}", false},
        {"[\"domain\"]", false},
        {"{\"type\":\"domain\"", false},
        {"", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        print_message("  %s\n", cases[i].line);
        assert_int_equal(follow_line_matters(cases[i].line, strlen(cases[i].line)),
                         cases[i].matters);
    }
}

static void a_kubeconfig_names_files(void **state)
{
    static const char *const had = "users:\n- name: n\n  user:\n    client-certificate-data: QUJD\n"
                                   "    client-key-data: REVG\ncurrent-context: x\n";
    static const char *const names = "users:\n- name: n\n  user:\n    client-certificate: "
                                     "pki/node.crt\n    client-key: pki/node.key\n"
                                     "current-context: x\n";
    ferry_cleanup_free char *first = renewal_kubeconfig(had);
    ferry_cleanup_free char *again = renewal_kubeconfig(names);

    (void)state;
    assert_string_equal(first, names);
    assert_string_equal(again, names);
}

static void when_certificates_are_renewed(void **state)
{
    static const struct {
        int64_t begin, end;
        int percent;
        int64_t due;
    } cases[] = {
        {1000, 4000, 66, 2980}, {0, 2592000, 66, 1710720}, {1000, 4000, 0, 1000},
        {1000, 4000, 99, 3970}, {4000, 1000, 66, 4000}, /* one that was never good */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(renewal_due_s(cases[i].begin, cases[i].end, cases[i].percent),
                         cases[i].due);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_acts),
        cmocka_unit_test(source),
        cmocka_unit_test(source_words),
        cmocka_unit_test(target),
        cmocka_unit_test(no_migration_interface),
        cmocka_unit_test(asks),
        cmocka_unit_test(replies),
        cmocka_unit_test(lines_of_launchers),
        cmocka_unit_test(when_certificates_are_renewed),
        cmocka_unit_test(a_kubeconfig_names_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
