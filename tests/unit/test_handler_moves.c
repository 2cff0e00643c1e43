/* Both ends of a move: the tables. */
#include "handler_case.h"

#include "handler/local/launcher_client.h"
#include "handler/move/move_disks.h"
#include "handler/source/source_decide.h"
#include "handler/target/target_decide.h"

#define DELETING "\"deletionTimestamp\":\"2023-11-14T22:13:00Z\""
#define VMI(more)                                                                                  \
    "\"phase\":\"Running\",\"nodeName\":\"a\",\"migrationState\":{\"migrationUid\":\"move\","      \
    "\"sourceNode\":\"a\",\"targetNode\":\"b\",\"sourcePod\":\"p\",\"targetPod\":\"q\"" more "}"
#define PUBLISHED                                                                                  \
    ",\"targetNodeAddress\":\"10.1.1.2\",\"targetDirectMigrationNodePorts\":{\"4000\":0,"          \
    "\"4001\":49152}"
#define STARTED ",\"startTimestamp\":\"2023-11-14T22:13:00Z\""
#define ABORT ",\"abortRequested\":true"
#define RUN(more)                                                                                  \
    MIGRATION("running", "booted", "source", "running",                                            \
              ",\"mode\":\"PreCopy\",\"startTimestamp\":\"2023-11-14T22:13:00Z\"" more)
#define SAMPLE ",\"sample\":{\"totalBytes\":9,\"remainingBytes\":5}"
#define FAILED(state, reason, more) MIGRATION(state, reason, "source", "failed", more)

static void leaving(void **state)
{
    static const struct {
        const char *name, *meta, *status, *launcher;
        bool relay_ready, cancelled;
        int64_t undecided_ms, progress_ago_ms; /* -1 = never */
        enum source_action action;
        const char *patch;
        const char *failed;
        bool undecided, again;
    } cases[] = {
        /* before it begins */
        {"target not ready", NULL, VMI(""), DOMAIN("running", "booted"), false, false, -1, -1,
         SOURCE_NOTHING, NULL, NULL, false, false},
        {"published: sockets first", NULL, VMI(PUBLISHED), DOMAIN("running", "booted"), false,
         false, -1, -1, SOURCE_CONNECT, NULL, NULL, false, false},
        {"then the start", NULL, VMI(PUBLISHED), DOMAIN("running", "booted"), true, false, -1, -1,
         SOURCE_START, NULL, NULL, false, false},
        {"a paused guest moves, too", NULL, VMI(PUBLISHED), DOMAIN("paused", "user"), true, false,
         -1, -1, SOURCE_START, NULL, NULL, false, false},
        {"the launcher did an older move", NULL, VMI(PUBLISHED),
         "{\"domain\":{\"state\":\"running\"},\"migration\":{\"uid\":\"old\",\"role\":\"source\","
         "\"phase\":\"failed\"}}",
         true, false, -1, -1, SOURCE_START, NULL, NULL, false, false},
        {"the launcher came by a move", NULL, VMI(PUBLISHED),
         "{\"domain\":{\"state\":\"running\"},\"migration\":{\"uid\":\"old\",\"role\":\"target\","
         "\"phase\":\"succeeded\"}}",
         true, false, -1, -1, SOURCE_START, NULL, NULL, false, false},
        {"cancelled before the start", NULL, VMI(PUBLISHED ABORT), DOMAIN("running", "booted"),
         true, false, -1, -1, SOURCE_NOTHING,
         "/failed\",\"value\":true|/completed\",\"value\":true|Aborted|abortStatus\",\"value\":"
         "\"Succeeded\"|endTimestamp",
         "Aborted", false, false},
        {"cancelled before the target was ready", NULL, VMI(ABORT), DOMAIN("running", "booted"),
         false, false, -1, -1, SOURCE_NOTHING, "/failed|Aborted", "Aborted", false, false},
        {"the VMI is being deleted", DELETING, VMI(PUBLISHED), DOMAIN("running", "booted"), true,
         false, -1, -1, SOURCE_NOTHING, "/failed|being deleted|!abortStatus", "Aborted", false,
         false},
        {"the guest is not there", NULL, VMI(PUBLISHED), DOMAIN("none", ""), true, false, -1, -1,
         SOURCE_NOTHING, NULL, NULL, true, true},
        {"launcher busy", NULL, VMI(PUBLISHED), "silent", true, false, -1, -1, SOURCE_NOTHING, NULL,
         NULL, false, true},
        {"pod gone", NULL, VMI(PUBLISHED), "no-pod", true, false, -1, -1, SOURCE_NOTHING, NULL,
         NULL, true, true},
        {"pod gone for long", NULL, VMI(PUBLISHED), "ended", true, false, 30000, -1, SOURCE_NOTHING,
         "SourceLost|/failed", "SourceLost", true, false},
        {"pod gone, but the guest arrived", NULL,
         VMI(PUBLISHED ",\"targetNodeDomainReadyTimestamp\":\"2023-11-14T22:13:00Z\""), "ended",
         true, false, 90000, -1, SOURCE_NOTHING, NULL, NULL, true, true},
        /* under way */
        {"began", NULL, VMI(PUBLISHED), RUN(""), true, false, -1, -1, SOURCE_NOTHING,
         "startTimestamp|2023-11-14T22:13:00Z|mode\",\"value\":\"PreCopy\"|migrationUid|"
         "!resourceVersion|!progress",
         NULL, false, true},
        {"goes on", NULL, VMI(PUBLISHED STARTED ",\"mode\":\"PreCopy\""), RUN(""), true, false, -1,
         -1, SOURCE_NOTHING, NULL, NULL, false, true},
        {"goes on after a restart of the handler", NULL,
         VMI(PUBLISHED STARTED ",\"mode\":\"PreCopy\""), RUN(""), false, false, -1, -1,
         SOURCE_CONNECT, NULL, NULL, false, false},
        {"progress", "\"annotations\":{\"x\":\"y\"}",
         VMI(PUBLISHED STARTED ",\"mode\":\"PreCopy\""), RUN(SAMPLE), true, false, -1, 1000,
         SOURCE_NOTHING,
         "ferry.io~1progress|remainingBytes|\\\"uid\\\":\\\"move\\\"|!annotations\"", NULL, false,
         true},
        {"the first annotation", NULL, VMI(PUBLISHED STARTED ",\"mode\":\"PreCopy\""), RUN(SAMPLE),
         true, false, -1, -1, SOURCE_NOTHING, "\"/metadata/annotations\"|resourceVersion", NULL,
         false, true},
        {"progress, too soon", NULL, VMI(PUBLISHED STARTED ",\"mode\":\"PreCopy\""), RUN(SAMPLE),
         true, false, -1, 999, SOURCE_NOTHING, NULL, NULL, false, true},
        {"switched to post-copy", NULL, VMI(PUBLISHED STARTED ",\"mode\":\"PreCopy\""),
         MIGRATION("paused", "postcopy", "source", "running", ",\"mode\":\"PostCopy\""), true,
         false, -1, -1, SOURCE_NOTHING, "PostCopy", NULL, false, true},
        {"stopped by the monitor", NULL, VMI(PUBLISHED STARTED),
         MIGRATION("paused", "migration", "source", "running", ",\"mode\":\"Paused\""), true, false,
         -1, -1, SOURCE_NOTHING,
         "\"type\":\"Paused\",\"status\":\"True\",\"reason\":\"PausedByMigrationMonitor\"|"
         "resourceVersion|/mode\",\"value\":\"Paused",
         NULL, false, true},
        {"stopped for the last bytes, as in every move", NULL,
         VMI(PUBLISHED STARTED ",\"mode\":\"PreCopy\""),
         MIGRATION("paused", "migration", "source", "running", ",\"mode\":\"PreCopy\""), true,
         false, -1, -1, SOURCE_NOTHING, NULL, NULL, false, true},
        {"stopped by the monitor, and by its user before", NULL,
         VMI(PUBLISHED STARTED) ",\"conditions\":[{\"type\":\"Paused\",\"status\":\"True\","
                                "\"reason\":\"PausedByUser\"}]",
         MIGRATION("paused", "migration", "source", "running", ",\"mode\":\"Paused\""), true, false,
         -1, -1, SOURCE_NOTHING, "!PausedByMigrationMonitor|!conditions", NULL, false, true},
        /* cancel */
        {"cancel", NULL, VMI(PUBLISHED STARTED ABORT), RUN(""), true, false, -1, -1, SOURCE_CANCEL,
         NULL, NULL, false, false},
        {"cancel comes before everything else", NULL, VMI(PUBLISHED STARTED ABORT), RUN(""), false,
         false, -1, -1, SOURCE_CANCEL, NULL, NULL, false, false},
        {"an earlier cancel failed", NULL,
         VMI(PUBLISHED STARTED ABORT ",\"abortStatus\":\"Failed\""),
         RUN(",\"abortStatus\":\"Failed\""), true, false, -1, -1, SOURCE_CANCEL, NULL, NULL, false,
         false},
        {"cancel sent", NULL, VMI(PUBLISHED STARTED ABORT ",\"mode\":\"PreCopy\""), RUN(""), true,
         true, -1, -1, SOURCE_NOTHING, NULL, NULL, false, true},
        {"aborting", NULL, VMI(PUBLISHED STARTED ABORT ",\"mode\":\"PreCopy\""),
         RUN(",\"abortStatus\":\"Aborting\""), true, false, -1, -1, SOURCE_NOTHING,
         "abortStatus\",\"value\":\"Aborting\"", NULL, false, true},
        {"aborting, known", NULL,
         VMI(PUBLISHED STARTED ABORT ",\"mode\":\"PreCopy\",\"abortStatus\":\"Aborting\""),
         RUN(",\"abortStatus\":\"Aborting\""), true, false, -1, -1, SOURCE_NOTHING, NULL, NULL,
         false, true},
        {"deleted while it moves", DELETING, VMI(PUBLISHED STARTED), RUN(""), true, false, -1, -1,
         SOURCE_CANCEL, NULL, NULL, false, false},
        /* the end */
        {"aborted", NULL, VMI(PUBLISHED STARTED ABORT),
         FAILED("running", "migration-canceled",
                ",\"abortStatus\":\"Succeeded\",\"reasonCode\":\"Aborted\",\"failureReason\":"
                "\"has been aborted\",\"endTimestamp\":\"2023-11-14T22:13:10Z\""),
         true, false, -1, -1, SOURCE_NOTHING,
         "abortStatus\",\"value\":\"Succeeded\"|Aborted: has been aborted|2023-11-14T22:13:10Z|"
         "resourceVersion",
         "Aborted", false, false},
        {"failed by itself", NULL, VMI(PUBLISHED STARTED),
         FAILED("running", "booted", ",\"reasonCode\":\"NotConverging\",\"failureReason\":\"x\""),
         true, false, -1, -1, SOURCE_NOTHING, "NotConverging: x|/failed|/completed",
         "NotConverging", false, false},
        {"failed without a reason", NULL, VMI(PUBLISHED STARTED), FAILED("running", "booted", ""),
         true, false, -1, -1, SOURCE_NOTHING, "LibvirtError: ", "LibvirtError", false, false},
        {"failed, guest stands still", NULL, VMI(PUBLISHED STARTED),
         FAILED("paused", "migration", ""), true, false, -1, -1, SOURCE_NOTHING, NULL, NULL, true,
         true},
        {"failed, guest gone", NULL, VMI(PUBLISHED STARTED), FAILED("none", "", ""), true, false,
         10000, -1, SOURCE_NOTHING, NULL, NULL, true, true},
        {"failed, guest gone for long", NULL, VMI(PUBLISHED STARTED), FAILED("none", "", ""), true,
         false, 30000, -1, SOURCE_NOTHING, "SourceLost|ferry.io~1unconfirmed\",\"value\":\"move\"",
         "SourceLost", true, false},
        {"failed, yet the guest arrived", NULL,
         VMI(PUBLISHED STARTED ",\"targetNodeDomainReadyTimestamp\":\"2023-11-14T22:13:00Z\""),
         FAILED("none", "", ""), true, false, 60000, -1, SOURCE_NOTHING, NULL, NULL, true, true},
        {"moved", "\"annotations\":{\"x\":\"y\"}", VMI(PUBLISHED STARTED ",\"mode\":\"PreCopy\""),
         MIGRATION("shutoff", "migrated", "source", "succeeded",
                   ",\"mode\":\"PreCopy\",\"downtimeMs\":12" SAMPLE),
         true, false, -1, 10, SOURCE_NOTHING,
         "ferry.io~1progress|\\\"downtimeMs\\\":12|!completed|!failed", NULL, false, true},
        {"moved before the start was written", NULL, VMI(PUBLISHED),
         MIGRATION("none", "", "source", "succeeded",
                   ",\"startTimestamp\":\"2023-11-14T22:13:00Z\""),
         true, false, -1, -1, SOURCE_NOTHING, "startTimestamp|!completed", NULL, false, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(cases[i].meta, NULL, cases[i].status);
        struct launcher_status s = {0};
        const struct source_input in = {
            .vmi = &o->u.vmi,
            .launcher = case_launcher(cases[i].launcher, &s),
            .order = SOURCE_ORDER_GIVEN,
            .relay_ready = cases[i].relay_ready,
            .cancelled = cases[i].cancelled,
            .undecided_since_ms = cases[i].undecided_ms < 0 ? 0 : NOW - cases[i].undecided_ms,
            .progress_ms = cases[i].progress_ago_ms < 0 ? 0 : NOW - cases[i].progress_ago_ms,
            .now_ms = NOW};
        struct source_decision d = source_decide(&in);
        ferry_cleanup_free char *patch = case_patch(d.patch);

        print_message("  %s\n", cases[i].name);
        assert_int_equal(d.action, cases[i].action);
        case_check_words(cases[i].name, patch, cases[i].patch);
        case_check_fields(cases[i].name, o, "a", patch);
        assert_true(ferry_streq(wire_reason_text(d.failed), cases[i].failed));
        assert_int_equal(d.undecided, cases[i].undecided);
        assert_int_equal(d.again_ms > 0, cases[i].again);
    }
}

/* ---- target -----------------------------------------------------------------------------------
 */

#define COMING                                                                                     \
    "\"labels\":{\"kubevirt.io/nodeName\":\"a\",\"kubevirt.io/migrationTargetNodeName\":\"b\"}"
#define TOLD "\"annotations\":{\"ferry.io/target-state\":\"move/never-ran\"}"
#define REFUSED(at)                                                                                \
    TARGET("none", "", "failed",                                                                   \
           ",\"endTimestamp\":\"2023-11-14T" at "Z\",\"neverRan\":true,"                           \
           "\"reasonCode\":\"ControlRefused\",\"failureReason\":\"procedure 7\"")
#define ARRIVED(more)                                                                              \
    "\"phase\":\"Running\",\"nodeName\":\"b\",\"migrationState\":{\"migrationUid\":\"move\","      \
    "\"sourceNode\":\"a\",\"targetNode\":\"b\",\"endTimestamp\":\"2023-11-14T22:13:10Z\"" STARTED  \
        more "}"
#define ARRIVED_NOW                                                                                \
    "\"phase\":\"Running\",\"nodeName\":\"b\",\"migrationState\":{\"migrationUid\":\"move\","      \
    "\"sourceNode\":\"a\",\"targetNode\":\"b\",\"endTimestamp\":\"2023-11-14T22:13:19Z\"" STARTED  \
    "}"
#define SAYS(uid, phase)                                                                           \
    ",\"annotations\":{\"ferry.io/progress\":\"{\\\"uid\\\":\\\"" uid                              \
    "\\\",\\\"phase\\\":\\\"" phase "\\\"}\"}"
#define TARGET(state, reason, phase, more) MIGRATION(state, reason, "target", phase, more)
#define PREPARED TARGET("none", "", "prepared", "")

static void coming(void **state)
{
    static const struct target_relay ours = {
        .listening = true,
        .address = "10.1.1.2",
        .ports = {{.port = 4001, .logical = 49152}, {.port = 4000, .logical = 0}},
        .n_ports = 2};
    static const struct target_relay moved = {
        .listening = true,
        .address = "10.1.1.2",
        .ports = {{.port = 5000, .logical = 0}, {.port = 5001, .logical = 49152}},
        .n_ports = 2};
    static const struct target_relay silent = {.listening = false};
    static const struct {
        const char *name, *meta, *status, *launcher;
        const struct target_relay *relay;
        bool unlistened, finalized;
        enum target_action action;
        const char *patch;
        enum target_event event;
        bool again;
    } cases[] = {
        /* preparing */
        {"pod not seen", COMING, VMI(""), "no-pod", &silent, false, false, TARGET_NOTHING, NULL,
         TARGET_NO_EVENT, true},
        {"pod starts", COMING, VMI(""), "starting", &silent, false, false, TARGET_NOTHING, NULL,
         TARGET_NO_EVENT, true},
        {"launcher starts", COMING, VMI(""), "silent", &silent, false, false, TARGET_NOTHING, NULL,
         TARGET_NO_EVENT, true},
        {"prepare", COMING, VMI(""), DOMAIN("none", ""), &silent, false, false, TARGET_PREPARE,
         NULL, TARGET_NO_EVENT, false},
        {"cancelled before", COMING, VMI(ABORT), DOMAIN("none", ""), &silent, false, false,
         TARGET_NOTHING, NULL, TARGET_NO_EVENT, false},
        {"listen", COMING, VMI(""), PREPARED, &silent, false, false, TARGET_LISTEN, NULL,
         TARGET_NO_EVENT, false},
        {"publish", COMING, VMI(""), PREPARED, &ours, false, false, TARGET_NOTHING,
         "targetNodeAddress\",\"value\":\"10.1.1.2\"|targetDirectMigrationNodePorts|\"4000\":0|"
         "\"4001\":49152|migrationUid|!Detected",
         TARGET_PUBLISHED, true},
        {"published", COMING, VMI(PUBLISHED), PREPARED, &ours, false, false, TARGET_NOTHING, NULL,
         TARGET_NO_EVENT, true},
        {"the relay was restarted", COMING, VMI(PUBLISHED), PREPARED, &moved, false, false,
         TARGET_NOTHING, "\"5001\":49152|!targetNodeAddress", TARGET_PUBLISHED, true},
        {"after a restart of the handler", COMING, VMI(PUBLISHED STARTED), PREPARED, &silent, false,
         false, TARGET_LISTEN, NULL, TARGET_NO_EVENT, false},
        /* under way */
        {"the guest comes in", COMING, VMI(PUBLISHED STARTED),
         TARGET("paused", "migration", "running", ""), &ours, false, false, TARGET_NOTHING,
         "targetNodeDomainDetected|!Ready", TARGET_NO_EVENT, true},
        {"still comes in", COMING, VMI(PUBLISHED STARTED ",\"targetNodeDomainDetected\":true"),
         TARGET("paused", "migration", "running", ""), &ours, false, false, TARGET_NOTHING, NULL,
         TARGET_NO_EVENT, true},
        /* arrival */
        {"arrived", COMING, VMI(PUBLISHED STARTED ",\"targetNodeDomainDetected\":true"),
         TARGET("running", "migrated", "succeeded", ",\"endTimestamp\":\"2023-11-14T22:13:10Z\""),
         &silent, false, false, TARGET_NOTHING,
         "/status/nodeName\",\"value\":\"b\"|kubevirt.io~1nodeName\",\"value\":\"b\"|"
         "endTimestamp\",\"value\":\"2023-11-14T22:13:10Z\"|ReadyTimestamp|"
         "{\"pod-uid\":\"b\"}|resourceVersion|/status/migrationTransport\",\"value\":\"Unix|"
         "!completed|!startTimestamp",
         TARGET_OWNED, true},
        {"arrived, stopped by the source's monitor", COMING,
         VMI(PUBLISHED STARTED) ",\"conditions\":[{\"type\":\"Paused\",\"status\":\"True\","
                                "\"reason\":\"PausedByMigrationMonitor\"}]",
         TARGET("running", "migrated", "succeeded", ""), &silent, false, false, TARGET_NOTHING,
         "/status/nodeName|\"remove\",\"path\":\"/status/conditions/0", TARGET_OWNED, true},
        {"arrived, stopped by its user", COMING,
         VMI(PUBLISHED STARTED) ",\"conditions\":[{\"type\":\"Paused\",\"status\":\"True\","
                                "\"reason\":\"PausedByUser\"}]",
         TARGET("paused", "user", "succeeded", ""), &silent, false, false, TARGET_NOTHING,
         "/status/nodeName|!\"remove\"", TARGET_OWNED, true},
        {"arrived so quickly that nothing else was seen", COMING, VMI(PUBLISHED),
         TARGET("running", "migrated", "succeeded", ""), &silent, false, false, TARGET_NOTHING,
         "startTimestamp|endTimestamp|Detected|/status/nodeName", TARGET_OWNED, true},
        {"arrived although it was cancelled", COMING, VMI(PUBLISHED STARTED ABORT),
         TARGET("running", "migrated", "succeeded", ""), &silent, false, false, TARGET_NOTHING,
         "/status/nodeName", TARGET_OWNED, true},
        {"arrived while the VMI was deleted", COMING "," DELETING, VMI(PUBLISHED STARTED),
         TARGET("running", "migrated", "succeeded", ""), &silent, false, false, TARGET_NOTHING,
         "/status/nodeName", TARGET_OWNED, true},
        {"finalise", COMING, ARRIVED(""), TARGET("running", "migrated", "succeeded", ""), &silent,
         false, false, TARGET_FINALIZE, NULL, TARGET_NO_EVENT, false},
        {"finalise, launcher busy", COMING, ARRIVED(""), "silent", &silent, false, false,
         TARGET_NOTHING, NULL, TARGET_NO_EVENT, true},
        {"the source is not through", COMING, ARRIVED_NOW,
         TARGET("running", "migrated", "succeeded", ""), &silent, false, true, TARGET_NOTHING, NULL,
         TARGET_NO_EVENT, true},
        {"the source tells of an older move", COMING SAYS("old", "succeeded"), ARRIVED_NOW,
         TARGET("running", "migrated", "succeeded", ""), &silent, false, true, TARGET_NOTHING, NULL,
         TARGET_NO_EVENT, true},
        {"the source still runs", COMING SAYS("move", "running"), ARRIVED_NOW,
         TARGET("running", "migrated", "succeeded", ""), &silent, false, true, TARGET_NOTHING, NULL,
         TARGET_NO_EVENT, true},
        {"the source is through", COMING SAYS("move", "succeeded"), ARRIVED_NOW,
         TARGET("running", "migrated", "succeeded", ""), &silent, false, true, TARGET_NOTHING,
         "/completed", TARGET_COMPLETED, false},
        {"the source is silent", COMING, ARRIVED(""),
         TARGET("running", "migrated", "succeeded", ""), &silent, false, true, TARGET_NOTHING,
         "/completed\",\"value\":true|!failed", TARGET_COMPLETED, false},
        /* clean-up */
        {"completed", COMING, ARRIVED(",\"completed\":true"), DOMAIN("running", "migrated"),
         &silent, false, false, TARGET_UNLISTEN, NULL, TARGET_NO_EVENT, false},
        {"completed and unlistened", COMING, ARRIVED(",\"completed\":true"),
         DOMAIN("running", "migrated"), &silent, true, false, TARGET_NOTHING,
         "\"op\":\"remove\",\"path\":\"/metadata/labels/kubevirt.io~1migrationTargetNodeName\"",
         TARGET_NO_EVENT, false},
        {"failed, as the source says", COMING, VMI(PUBLISHED ",\"completed\":true,\"failed\":true"),
         PREPARED, &silent, false, false, TARGET_UNLISTEN, NULL, TARGET_NO_EVENT, false},
        {"failed, pod gone already", COMING, VMI(PUBLISHED ",\"completed\":true,\"failed\":true"),
         "no-pod", &silent, true, false, TARGET_NOTHING, "remove", TARGET_NO_EVENT, false},
        {"given up, but the guest is here: it is taken",
         COMING ",\"annotations\":{\"ferry.io/unconfirmed\":\"move\"}",
         VMI(PUBLISHED STARTED ",\"completed\":true,\"failed\":true"),
         TARGET("running", "migrated", "succeeded", ""), &silent, true, false, TARGET_NOTHING,
         "/status/nodeName\",\"value\":\"b\"|kubevirt.io~1nodeName|!remove", TARGET_OWNED, true},
        {"given up, but the guest is here: the streams end first", COMING,
         VMI(PUBLISHED STARTED ",\"completed\":true,\"failed\":true"),
         TARGET("running", "migrated", "succeeded", ""), &silent, false, false, TARGET_UNLISTEN,
         NULL, TARGET_NO_EVENT, false},
        {"given up, the guest was taken: finalise", COMING,
         ARRIVED(",\"completed\":true,\"failed\":true"),
         TARGET("running", "migrated", "succeeded", ""), &silent, true, false, TARGET_FINALIZE,
         NULL, TARGET_NO_EVENT, false},
        {"given up, the guest was taken: let go of the move", COMING,
         ARRIVED(",\"completed\":true,\"failed\":true"),
         TARGET("running", "migrated", "succeeded", ""), &silent, true, true, TARGET_NOTHING,
         "remove", TARGET_NO_EVENT, false},
        {"given up, the launcher does not answer: it may still hear", COMING,
         VMI(PUBLISHED STARTED ",\"completed\":true,\"failed\":true"), "silent", &silent, true,
         false, TARGET_WITHDRAW, NULL, TARGET_NO_EVENT, false},
        {"given up, no guest came: it shall not come any more", COMING,
         VMI(PUBLISHED STARTED ",\"completed\":true,\"failed\":true"),
         TARGET("paused", "migration", "running", ""), &silent, true, false, TARGET_WITHDRAW, NULL,
         TARGET_NO_EVENT, false},
        {"given up, and what came has died here", COMING,
         VMI(PUBLISHED STARTED ",\"completed\":true,\"failed\":true"),
         TARGET("none", "", "failed", ""), &silent, true, false, TARGET_NOTHING,
         "remove|!never-ran", TARGET_NO_EVENT, false},
        {"deleted before it began", COMING "," DELETING, VMI(PUBLISHED), PREPARED, &ours, false,
         false, TARGET_UNLISTEN, NULL, TARGET_NO_EVENT, false},
        {"deleted while it comes", COMING "," DELETING, VMI(PUBLISHED STARTED), PREPARED, &ours,
         false, false, TARGET_NOTHING, NULL, TARGET_NO_EVENT, true},
        /* failure seen here first */
        {"incoming side failed", COMING, VMI(PUBLISHED STARTED),
         TARGET("none", "", "failed", ",\"endTimestamp\":\"2023-11-14T22:13:10Z\""), &ours, false,
         false, TARGET_NOTHING, NULL, TARGET_NO_EVENT, true},
        {"it never ran here, and the source is told at once", COMING, VMI(PUBLISHED STARTED),
         TARGET("none", "", "failed",
                ",\"endTimestamp\":\"2023-11-14T22:13:10Z\",\"neverRan\":true"),
         &ours, false, false, TARGET_NOTHING, "ferry.io~1target-state|move/never-ran|!completed",
         TARGET_NO_EVENT, true},
        {"incoming side failed and the source is silent", COMING, VMI(PUBLISHED STARTED),
         TARGET("none", "", "failed", ",\"endTimestamp\":\"2023-11-14T22:12:20Z\""), &ours, false,
         false, TARGET_NOTHING,
         "/failed|/completed|SourceLost|endTimestamp\",\"value\":\"2023-11-14T22:12:20Z\"|"
         "!startTimestamp",
         TARGET_FAILED, false},
        {"what the source asked for was refused: its own words are waited for a little",
         COMING "," TOLD, VMI(PUBLISHED STARTED), REFUSED("22:13:18"), &ours, false, false,
         TARGET_NOTHING, NULL, TARGET_NO_EVENT, true},
        {"and its silence not for long", COMING "," TOLD, VMI(PUBLISHED STARTED),
         REFUSED("22:13:17"), &ours, false, false, TARGET_NOTHING,
         "/failed|/completed|ControlRefused: procedure 7", TARGET_FAILED, false},
        {"nor has it said when it began", COMING, VMI(PUBLISHED),
         TARGET("none", "", "failed", ",\"endTimestamp\":\"2023-11-14T22:12:20Z\""), &ours, false,
         false, TARGET_NOTHING, "/failed|endTimestamp|startTimestamp", TARGET_FAILED, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(cases[i].meta, NULL, cases[i].status);
        struct launcher_status s = {0};
        const struct target_input in = {.vmi = &o->u.vmi,
                                        .node = "b",
                                        .launcher = case_launcher(cases[i].launcher, &s),
                                        .relay = *cases[i].relay,
                                        .unlistened = cases[i].unlistened,
                                        .finalized = cases[i].finalized,
                                        .now_ms = NOW};
        struct target_decision d = target_decide(&in);
        ferry_cleanup_free char *patch = case_patch(d.patch);

        print_message("  %s\n", cases[i].name);
        assert_int_equal(d.action, cases[i].action);
        case_check_words(cases[i].name, patch, cases[i].patch);
        case_check_fields(cases[i].name, o, "b", patch);
        assert_int_equal(d.event, cases[i].event);
        assert_int_equal(d.again_ms > 0, cases[i].again);
    }
}

/* Which disks are copied is said with the ports. */
static void published_disks(void **state)
{
    static const struct target_relay ours = {
        .listening = true, .address = "10.1.1.2", .ports = {{40000, 0}}, .n_ports = 1};

    (void)state;
    for (int with = 0; with < 2; with++) {
        api_cleanup_object struct api_object *o = case_vmi(COMING, NULL, VMI(""));
        struct launcher_status s = {0};
        struct target_decision d =
            target_decide(&(struct target_input){.vmi = &o->u.vmi,
                                                 .node = "b",
                                                 .launcher = case_launcher(PREPARED, &s),
                                                 .relay = ours,
                                                 .disks = with ? "move [1]" : NULL,
                                                 .now_ms = NOW});
        ferry_cleanup_free char *patch = case_patch(d.patch);

        case_check_words("disks", patch,
                         with ? "targetDirectMigrationNodePorts|ferry.io~1target-disks\",\"value\":"
                                "\"move [1]"
                              : "targetDirectMigrationNodePorts|!target-disks");
    }
}

/* What the launcher answers when a move that was given up is withdrawn. */
static void given_up_moves(void **state)
{
    static const struct {
        const char *name, *launcher;
        enum target_withdrawn withdrawn;
        const char *patch;
        bool again;
    } cases[] = {
        {"it will not come", TARGET("paused", "migration", "running", ""), TARGET_WITHDRAWN,
         "remove|ferry.io~1target-state|move/never-ran|!nodeName\"", false},
        {"its libvirtd is silent, it will not come", "silent", TARGET_WITHDRAWN,
         "remove|move/never-ran", false},
        {"it was started just now", TARGET("paused", "migration", "running", ""), TARGET_KEPT, NULL,
         true},
        {"nothing answers", "silent", TARGET_KEPT, NULL, true},
        {"a launcher that cannot promise it", TARGET("paused", "migration", "running", ""),
         TARGET_NOT_ABLE, "remove|!never-ran", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o =
            case_vmi(COMING, NULL, VMI(PUBLISHED STARTED ",\"completed\":true,\"failed\":true"));
        struct launcher_status s = {0};
        const struct target_input in = {.vmi = &o->u.vmi,
                                        .node = "b",
                                        .launcher = case_launcher(cases[i].launcher, &s),
                                        .unlistened = true,
                                        .withdrawn = cases[i].withdrawn,
                                        .now_ms = NOW};
        struct target_decision d = target_decide(&in);
        ferry_cleanup_free char *patch = case_patch(d.patch);

        print_message("  %s\n", cases[i].name);
        assert_int_equal(d.action, TARGET_NOTHING);
        case_check_words(cases[i].name, patch, cases[i].patch);
        case_check_fields(cases[i].name, o, "b", patch);
        assert_int_equal(d.again_ms > 0, cases[i].again);
    }
}

static void options(void **state)
{
    static const struct {
        const char *config, *words;
    } cases[] = {
        {"", "{}|!allow"},
        {",\"migrationConfiguration\":{}",
         "\"allowAutoConverge\":false|\"allowPostCopy\":false|\"allowWorkloadDisruption\":false|"
         "!bandwidth|!completion|!progress"},
        {",\"migrationConfiguration\":{\"allowPostCopy\":true}",
         "\"allowPostCopy\":true|\"allowWorkloadDisruption\":true"},
        {",\"migrationConfiguration\":{\"allowPostCopy\":true,\"allowWorkloadDisruption\":false}",
         "\"allowPostCopy\":true|\"allowWorkloadDisruption\":false"},
        {",\"migrationConfiguration\":{\"bandwidthPerMigration\":\"64Mi\","
         "\"completionTimeoutPerGiB\":150,\"progressTimeout\":99,\"unsafeMigrationOverride\":true,"
         "\"allowAutoConverge\":true}",
         "\"bandwidthBytesPerS\":67108864|\"completionTimeoutPerGiBS\":150|"
         "\"progressTimeoutS\":99|\"unsafe\":true|\"allowAutoConverge\":true"},
        {",\"migrationConfiguration\":{\"completionTimeoutPerGiB\":0,\"maxDowntimeMs\":500,"
         "\"experimental\":{\"stallDetector\":{\"ewmaAlpha\":\"0.5\"}}}",
         "\"completionTimeoutPerGiBS\":0|\"maxDowntimeMs\":500|"
         "\"stallDetector\":{\"ewmaAlpha\":\"0.5\"}|!progress"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *status =
            ferry_asprintf("\"migrationState\":{\"migrationUid\":\"move\"%s}", cases[i].config);
        api_cleanup_object struct api_object *o = case_vmi(NULL, NULL, status);
        ferry_cleanup_free char *json = source_options(&o->u.vmi, 0);

        case_check_words(cases[i].config, json, cases[i].words);
        ferry_cleanup_free char *measured = source_options(&o->u.vmi, 123456789);
        case_check_words(cases[i].config, json, "!pathBytesPerS");
        case_check_words(cases[i].config, measured, "\"pathBytesPerS\":123456789");
    }
}

static void connections_beside_each_other(void **state)
{
    static const struct {
        const char *annotation, *config, *words;
    } cases[] = {
        {NULL, "{}", "!parallelConnections|!compression"},
        {"4", "{}", "\"parallelConnections\":4|!compression"},
        {"4", "{\"experimental\":{\"compression\":\"none\"}}", "\"parallelConnections\":4|!zstd"},
        {NULL, "{\"experimental\":{\"compression\":\"zstd\"}}",
         "\"compression\":\"zstd\"|\"parallelConnections\":4"},
        {"8", "{\"experimental\":{\"compression\":\"zstd\"}}",
         "\"compression\":\"zstd\"|\"parallelConnections\":8"},
        {"0", "{}", "!parallelConnections"},
        {"33", "{}", "!parallelConnections"},
        {"many", "{}", "!parallelConnections"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *json = ferry_asprintf(
            "{\"metadata\":{\"name\":\"v\",\"namespace\":\"n\",\"annotations\":{%s%s%s}},"
            "\"status\":{\"migrationState\":{\"migrationUid\":\"move\","
            "\"migrationConfiguration\":%s}}}",
            cases[i].annotation ? "\"ferry.io/parallel-connections\":\"" : "",
            cases[i].annotation ? cases[i].annotation : "", cases[i].annotation ? "\"" : "",
            cases[i].config);
        api_cleanup_object struct api_object *o = NULL;

        assert_int_equal(api_object_parse(API_KIND_VMI, json, strlen(json), &o, NULL), 0);
        ferry_cleanup_free char *options = source_options(&o->u.vmi, 0);
        case_check_words(json, options, cases[i].words);
    }
}

/* Whoever watches is told that the transport waits. */
static void progress_tells_of_the_path(void **state)
{
    api_cleanup_object struct api_object *o =
        case_vmi(NULL, NULL, VMI(PUBLISHED STARTED ",\"mode\":\"PreCopy\""));
    struct launcher_status s = {0};
    struct source_input in = {.vmi = &o->u.vmi,
                              .launcher = case_launcher(RUN(SAMPLE), &s),
                              .order = SOURCE_ORDER_GIVEN,
                              .relay_ready = true,
                              .now_ms = NOW};

    (void)state;
    for (int away = 0; away < 2; away++) {
        in.path_away = away;
        struct source_decision d = source_decide(&in);
        ferry_cleanup_free char *patch = case_patch(d.patch);

        case_check_words("path", patch,
                         away ? "\\\"path\\\":\\\"away\\\"" : "\\\"path\\\":\\\"up\\\"");
    }
}

/* What the target has for the disks reaches the source, for this move alone. */
static void disks_of_a_move(void **state)
{
    static const char answer[] = "{\"diskSocket\":\"/x\",\"disks\":[{\"name\":\"d\",\"bytes\":7}]}";
    static const char none[] = "{\"controlSocket\":\"/x\"}";
    ferry_cleanup_free char *text = move_disks_publish("move", answer, sizeof(answer) - 1);
    static const char *const annotations[] = {
        "\"annotations\":{\"ferry.io/"
        "target-disks\":\"{\\\"uid\\\":\\\"move\\\",\\\"disks\\\":[{\\\"name\\\":\\\"d\\\","
        "\\\"bytes\\\":7}]}\"}",
        "\"annotations\":{\"ferry.io/"
        "target-disks\":\"{\\\"uid\\\":\\\"old\\\",\\\"disks\\\":[{\\\"name\\\":\\\"d\\\","
        "\\\"bytes\\\":7}]}\"}",
        "\"annotations\":{\"ferry.io/target-disks\":\"nonsense\"}", NULL};

    (void)state;
    assert_string_equal(text, "{\"uid\":\"move\",\"disks\":[{\"name\":\"d\",\"bytes\":7}]}");
    assert_null(move_disks_publish("move", none, sizeof(none) - 1));
    assert_null(move_disks_publish("move", "x", 1));
    for (size_t i = 0; i < COUNT_OF(annotations); i++) {
        api_cleanup_object struct api_object *o =
            case_vmi(annotations[i], NULL, "\"migrationState\":{\"migrationUid\":\"move\"}");
        ferry_cleanup_free char *disks = move_disks_of(&o->u.vmi, "ferry.io/target-disks");

        assert_true(ferry_streq(disks, i == 0 ? "[{\"name\":\"d\",\"bytes\":7}]" : NULL));
    }
}

/* Where volumes are exchanged, the target waits until the source has said how large they are, but
 * not for ever. */
static void disks_of_the_source(void **state)
{
#define EXCHANGED "\"migratedVolumes\":[{\"volumeName\":\"d\"}],"
    static const struct {
        const char *name, *said, *status;
        int64_t known_ms;
        bool waits;
    } cases[] = {
        {"nothing is exchanged", NULL, "", 0, false},   {"not said yet", NULL, EXCHANGED, 0, true},
        {"of another move", "old", EXCHANGED, 0, true}, {"said", "move", EXCHANGED, 0, false},
        {"never said", NULL, EXCHANGED, 10000, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *notes = ferry_asprintf(
            COMING "%s%s%s",
            cases[i].said ? ",\"annotations\":{\"ferry.io/source-disks\":\"{\\\"uid\\\":\\\"" : "",
            cases[i].said ? cases[i].said : "", cases[i].said ? "\\\",\\\"disks\\\":[]}\"}" : "");
        ferry_cleanup_free char *status = ferry_asprintf("%s%s", cases[i].status, VMI(""));
        api_cleanup_object struct api_object *o = case_vmi(notes, NULL, status);
        struct launcher_status s = {0};
        struct target_input in = {.vmi = &o->u.vmi,
                                  .node = "b",
                                  .now_ms = 1000000,
                                  .seen_ms = 1000000 - cases[i].known_ms};

        print_message("  %s\n", cases[i].name);
        in.launcher = case_launcher(DOMAIN("none", ""), &s);
        struct target_decision d = target_decide(&in);
        assert_int_equal(d.action, cases[i].waits ? TARGET_NOTHING : TARGET_PREPARE);
        assert_true(!cases[i].waits || d.again_ms > 0);
    }
}

/* What a node cannot do for its side of a move: said, and ended where waiting would change nothing
 * and nothing can have begun. */
#define TROUBLE(side, uid)                                                                         \
    ",\"annotations\":{\"ferry.io/" side "-trouble\":\"{\\\"uid\\\":\\\"" uid                      \
    "\\\",\\\"reason\\\":\\\"RelayTrouble\\\",\\\"class\\\":\\\"retry\\\",\\\"message\\\":"        \
    "\\\"away\\\"}\"}"
#define NO_WORD_OF_AN_END "!/failed|!/completed|!failureReason|!endTimestamp"
static const struct move_trouble refuses = {
    .reason = REASON_REFUSED, .cls = FERRY_NOT_FOUND, .for_good = true, .message = "no kernel"};
static const struct move_trouble denies = {.reason = REASON_RELAY_TROUBLE,
                                           .cls = FERRY_DENIED,
                                           .for_good = true,
                                           .message = "not passable"};
static const struct move_trouble away = {
    .reason = REASON_RELAY_TROUBLE, .cls = FERRY_RETRY, .message = "away"};
static const struct move_trouble blip = {
    .reason = REASON_RELAY_TROUBLE, .cls = FERRY_RETRY, .fresh = true, .message = "away"};

static void troubles_of_the_source(void **state)
{
    static const struct {
        const char *name, *meta, *status, *launcher;
        const struct move_trouble *trouble; /* NULL = none */
        enum source_action action;
        const char *patch, *failed;
        bool again;
    } cases[] = {
        {"the launcher refuses", COMING, VMI(PUBLISHED), DOMAIN("running", "booted"), &refuses,
         SOURCE_NOTHING,
         "Refused: by the source: no kernel|/failed\",\"value\":true|/completed\",\"value\":true|"
         "endTimestamp|resourceVersion|!startTimestamp|!abortStatus|ferry.io~1source-trouble|"
         "ferry.io~1failure\",\"value\":\"move/Refused\"|"
         "\\\"class\\\":\\\"not-found\\\"",
         "Refused", false},
        {"its disks cannot be told", COMING, VMI(""), DOMAIN("running", "booted"), &refuses,
         SOURCE_NOTHING, "Refused: by the source: no kernel", "Refused", false},
        {"the relay will never", COMING, VMI(PUBLISHED), DOMAIN("running", "booted"), &denies,
         SOURCE_NOTHING,
         "RelayTrouble: by the source: not passable|/failed|/completed|ferry.io~1source-trouble|"
         "\\\"uid\\\":\\\"move\\\"|\\\"reason\\\":\\\"RelayTrouble\\\"|"
         "\\\"class\\\":\\\"denied\\\"|!target-trouble",
         "RelayTrouble", false},
        {"the relay is away", COMING, VMI(PUBLISHED), DOMAIN("running", "booted"), &away,
         SOURCE_NOTHING,
         "ferry.io~1source-trouble|\\\"class\\\":\\\"retry\\\"|!/failed|!/completed|!failureReason",
         NULL, true},
        {"it was away a moment ago", COMING, VMI(PUBLISHED), DOMAIN("running", "booted"), &blip,
         SOURCE_NOTHING, NULL, NULL, true},
        {"it is said already", COMING TROUBLE("source", "move"), VMI(PUBLISHED),
         DOMAIN("running", "booted"), &away, SOURCE_NOTHING, NULL, NULL, true},
        {"said of an older move", COMING TROUBLE("source", "old"), VMI(PUBLISHED),
         DOMAIN("running", "booted"), &away, SOURCE_NOTHING,
         "\\\"uid\\\":\\\"move\\\"|" NO_WORD_OF_AN_END, NULL, true},
        {"the launcher is silent", COMING, VMI(PUBLISHED), "silent", &away, SOURCE_NOTHING,
         "ferry.io~1source-trouble", NULL, true},
        {"a cancel is answered as such", COMING, VMI(PUBLISHED ABORT), DOMAIN("running", "booted"),
         &refuses, SOURCE_NOTHING, "Aborted|!Refused: ", "Aborted", false},
        {"it has begun: how that ends is not for this to say", COMING, VMI(PUBLISHED STARTED),
         RUN(""), &denies, SOURCE_NOTHING, "ferry.io~1source-trouble|mode|!/failed|!/completed",
         NULL, true},
        {"in post-copy nothing is tried without its sockets",
         COMING ",\"annotations\":{\"ferry.io/recover\":\"move/1\",\"ferry.io/ports-generation\":"
                "\"move/1\"}",
         VMI(PUBLISHED STARTED ",\"mode\":\"PostCopy\""),
         MIGRATION("paused", "postcopy-failed", "source", "running", ",\"mode\":\"PostCopy\""),
         &denies, SOURCE_NOTHING, "ferry.io~1source-trouble|" NO_WORD_OF_AN_END, NULL, true},
        {"over: it works again", COMING TROUBLE("source", "move"),
         VMI(PUBLISHED STARTED ",\"mode\":\"PreCopy\""), RUN(""), NULL, SOURCE_NOTHING,
         "\"remove\",\"path\":\"/metadata/annotations/ferry.io~1source-trouble|" NO_WORD_OF_AN_END,
         NULL, true},
        {"over, with news", COMING TROUBLE("source", "move"), VMI(PUBLISHED), RUN(""), NULL,
         SOURCE_NOTHING,
         "startTimestamp|\"remove\",\"path\":\"/metadata/annotations/ferry.io~1source-trouble",
         NULL, true},
        {"of the other side it says nothing", COMING TROUBLE("target", "move"),
         VMI(PUBLISHED STARTED ",\"mode\":\"PreCopy\""), RUN(""), NULL, SOURCE_NOTHING, NULL, NULL,
         true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(cases[i].meta, NULL, cases[i].status);
        struct launcher_status s = {0};
        struct source_input in = {.vmi = &o->u.vmi,
                                  .launcher = case_launcher(cases[i].launcher, &s),
                                  .order = SOURCE_ORDER_GIVEN,
                                  .relay_ready = true,
                                  .now_ms = NOW};

        print_message("  %s\n", cases[i].name);
        if (cases[i].trouble) {
            in.trouble = *cases[i].trouble;
        }
        struct source_decision d = source_decide(&in);
        ferry_cleanup_free char *patch = case_patch(d.patch);
        assert_int_equal(d.action, cases[i].action);
        case_check_words(cases[i].name, patch, cases[i].patch);
        case_check_fields(cases[i].name, o, "a", patch);
        assert_true(ferry_streq(wire_reason_text(d.failed), cases[i].failed));
        assert_int_equal(d.again_ms > 0, cases[i].again);
    }
}

static void troubles_of_the_target(void **state)
{
    static const struct {
        const char *name, *meta, *status, *launcher;
        const struct move_trouble *trouble; /* NULL = none */
        const char *patch;
        enum target_event event;
    } cases[] = {
        {"the launcher refuses", COMING, VMI(""), DOMAIN("none", ""), &refuses,
         "Refused: by the target: no kernel|/failed\",\"value\":true|/completed\",\"value\":true|"
         "endTimestamp|resourceVersion|!startTimestamp|!abortStatus|ferry.io~1target-trouble",
         TARGET_REFUSED},
        {"a launcher that knows nothing of a published move", COMING, VMI(PUBLISHED),
         DOMAIN("none", ""), &refuses, "Refused: by the target", TARGET_REFUSED},
        {"a cancel is answered by the source", COMING, VMI(ABORT), DOMAIN("none", ""), &refuses,
         NULL, TARGET_NO_EVENT},
        {"the relay will never", COMING, VMI(""), PREPARED, &denies,
         "RelayTrouble: by the target: not passable|/failed|ferry.io~1target-trouble|"
         "\\\"class\\\":\\\"denied\\\"|!source-trouble",
         TARGET_REFUSED},
        {"nor when the source may have begun", COMING, VMI(PUBLISHED), PREPARED, &denies,
         "ferry.io~1target-trouble|" NO_WORD_OF_AN_END, TARGET_NO_EVENT},
        {"the relay is away", COMING, VMI(""), PREPARED, &away,
         "ferry.io~1target-trouble|" NO_WORD_OF_AN_END, TARGET_NO_EVENT},
        {"it was away a moment ago", COMING, VMI(""), PREPARED, &blip, NULL, TARGET_NO_EVENT},
        {"the launcher is silent", COMING, VMI(""), "silent", &away, "ferry.io~1target-trouble",
         TARGET_NO_EVENT},
        {"it has begun", COMING, VMI(PUBLISHED STARTED), DOMAIN("none", ""), &refuses,
         "ferry.io~1target-trouble|" NO_WORD_OF_AN_END, TARGET_NO_EVENT},
        {"the guest is here, its launcher does not take it in", COMING, ARRIVED_NOW,
         TARGET("running", "migrated", "succeeded", ""), &denies,
         "ferry.io~1target-trouble|" NO_WORD_OF_AN_END, TARGET_NO_EVENT},
        {"the guest came: that is the end of it", COMING, VMI(PUBLISHED STARTED),
         TARGET("running", "migrated", "succeeded", ""), &denies, "kubevirt.io~1nodeName",
         TARGET_OWNED},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(cases[i].meta, NULL, cases[i].status);
        struct launcher_status s = {0};
        struct target_decision d =
            target_decide(&(struct target_input){.vmi = &o->u.vmi,
                                                 .node = "b",
                                                 .launcher = case_launcher(cases[i].launcher, &s),
                                                 .trouble = *cases[i].trouble,
                                                 .now_ms = NOW});
        ferry_cleanup_free char *patch = case_patch(d.patch);

        print_message("  %s\n", cases[i].name);
        assert_int_equal(d.action, TARGET_NOTHING);
        case_check_words(cases[i].name, patch, cases[i].patch);
        case_check_fields(cases[i].name, o, "b", patch);
        assert_int_equal(d.event, cases[i].event);
    }
}

/* What it said of its trouble goes with what works again, and only its own. */
static void troubles_pass(void **state)
{
    static const struct target_relay relay = {
        .listening = true,
        .address = "10.1.1.2",
        .ports = {{.port = 4000, .logical = 0}, {.port = 4001, .logical = 49152}},
        .n_ports = 2};
    static const struct {
        const char *name, *meta, *status, *patch;
    } cases[] = {
        {"with the ports", COMING TROUBLE("target", "move"), VMI(""),
         "targetNodeAddress|\"remove\",\"path\":\"/metadata/annotations/ferry.io~1target-trouble"},
        {"by itself", COMING TROUBLE("target", "old"), VMI(PUBLISHED),
         "\"remove\",\"path\":\"/metadata/annotations/ferry.io~1target-trouble|!targetNodeAddress"},
        {"not the source's", COMING TROUBLE("source", "move"), VMI(PUBLISHED), NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(cases[i].meta, NULL, cases[i].status);
        struct launcher_status s = {0};
        struct target_decision d =
            target_decide(&(struct target_input){.vmi = &o->u.vmi,
                                                 .node = "b",
                                                 .launcher = case_launcher(PREPARED, &s),
                                                 .relay = relay,
                                                 .now_ms = NOW});
        ferry_cleanup_free char *patch = case_patch(d.patch);

        case_check_words(cases[i].name, patch, cases[i].patch);
    }
}

/* The map that is missing is made once: made for each, it loses what was there before. */
static void two_notes_on_a_bare_object(void **state)
{
    api_cleanup_object struct api_object *o = case_vmi(NULL, NULL, VMI(PUBLISHED));
    struct vmi_edit e = vmi_edit_begin(&o->u.vmi, NOW);

    (void)state;
    vmi_edit_annotation(&e, "one", "1");
    vmi_edit_failure(&e, REASON_ABORTED);
    vmi_edit_failure(&e, REASON_QUOTA); /* one of waits */
    ferry_cleanup_free char *patch = case_patch(vmi_edit_end(&e));
    const char *made = strstr(patch, "\"/metadata/annotations\",\"value\":{}");
    assert_non_null(made);
    assert_null(strstr(made + 1, "\"/metadata/annotations\","));
    case_check_words("both", patch, "annotations/one|\"move/Aborted\"|!Quota");
}

static void errors_as_troubles(void **state)
{
    static const struct {
        const char *name;
        enum move_part part;
        enum ferry_class cls;
        int http;
        int64_t since_ms;
        const char *call, *reason, *message; /* the call that failed; what is told of it */
        bool for_good, fresh;
    } cases[] = {
        {"the relay may not", MOVE_PART_RELAY, FERRY_DENIED, 403, 0, "PUT /v1/sources/k",
         "RelayTrouble", "uid 7 cannot open directory /m: Permission denied", true, false},
        {"the relay cannot ever", MOVE_PART_RELAY, FERRY_INVALID, 400, 0, "PUT /v1/sources/k",
         "RelayTrouble", "no port", true, false},
        {"its directory is gone", MOVE_PART_RELAY, FERRY_NOT_FOUND, 404, 5000, "PUT /v1/sources/k",
         "RelayTrouble", "gone", false, false},
        {"nobody answers", MOVE_PART_RELAY, FERRY_RETRY, 0, 1000, "PUT /v1/targets/k",
         "RelayTrouble", "no answer at /r", false, false},
        {"not its answer", MOVE_PART_RELAY, FERRY_DENIED, 0, 1000, NULL, "RelayTrouble", "x", false,
         false},
        {"for a moment", MOVE_PART_RELAY, FERRY_RETRY, 0, 999, NULL, "RelayTrouble", "x", false,
         true},
        {"a launcher refuses", MOVE_PART_LAUNCHER, FERRY_NOT_FOUND, 404, 0, "PUT /v1/target/move",
         "Refused", "no kernel", true, false},
        {"a launcher is busy", MOVE_PART_LAUNCHER, FERRY_CONFLICT, 409, 1500, "PUT /v1/target/move",
         "LauncherTrouble", "busy", false, false},
        {"no address", MOVE_PART_NETWORK, FERRY_INVALID, 0, 1500, NULL, "NetworkTrouble",
         "no address", false, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err;

        ferry_fail(&err, cases[i].cls, "%s", cases[i].message);
        if (cases[i].call) {
            ferry_wrap_about(&err, "%s", cases[i].call);
            ferry_wrap(&err, "of this node");
        }
        err.http = cases[i].http;
        struct move_trouble t = move_trouble_of(cases[i].part, &err, cases[i].since_ms);
        print_message("  %s\n", cases[i].name);
        assert_string_equal(wire_reason_text(t.reason), cases[i].reason);
        assert_string_equal(t.message, cases[i].message);
        assert_int_equal(t.cls, cases[i].cls);
        assert_int_equal(t.for_good, cases[i].for_good);
        assert_int_equal(t.fresh, cases[i].fresh);
        assert_true(move_trouble_again_ms(&t) > 0);
    }
    /* Long words end where a character does. */
    struct ferry_error err;
    char text[400];
    memset(text, 'x', 255);
    snprintf(text + 255, sizeof(text) - 255, "\xc3\xa9 and more");
    ferry_fail(&err, FERRY_RETRY, "%s", text);
    struct move_trouble t = move_trouble_of(MOVE_PART_RELAY, &err, 0);
    assert_int_equal(strlen(t.message), 255);
}

/* ---- who asked for it -------------------------------------------------------------------------
 */

#define POD_OF(vmi, job, node)                                                                     \
    "{'metadata':{'name':'q','uid':'pod-q','labels':{'kubevirt.io/migrationJobUID':'" job          \
    "'},'annotations':{'kubevirt.io/migrationJobName':'m'},'ownerReferences':[{'kind':"            \
    "'VirtualMachineInstance','name':'vm','uid':'" vmi                                             \
    "','controller':true}]},'spec':{'nodeName':'" node "'}}"
#define JOB(uid, vmi, phase)                                                                       \
    "{'metadata':{'name':'m','uid':'" uid "'},'spec':{'vmiName':'" vmi                             \
    "'},'status':{'phase':'" phase "'}}"

static void orders(void **state)
{
    static const char good[] = POD_OF("vmi-uid", "move", "b");
    static const char job[] = JOB("move", "vm", "TargetReady");
    static const struct {
        const char *name, *status, *pod, *migration;
        enum source_order order;
        const char *why;
    } cases[] = {
        {"as the controller asks", VMI(PUBLISHED), good, job, SOURCE_ORDER_GIVEN, NULL},
        {"no target pod", VMI(PUBLISHED), NULL, NULL, SOURCE_ORDER_AWAITED, NULL},
        {"no migration", VMI(PUBLISHED), good, NULL, SOURCE_ORDER_NONE, "no migration"},
        {"one of the same name", VMI(PUBLISHED), good, JOB("other", "vm", "TargetReady"),
         SOURCE_ORDER_NONE, "no migration"},
        {"of another VMI", VMI(PUBLISHED), good, JOB("move", "vm2", "TargetReady"),
         SOURCE_ORDER_NONE, "another VMI"},
        {"one that failed", VMI(PUBLISHED), good, JOB("move", "vm", "Failed"), SOURCE_ORDER_NONE,
         "is over"},
        {"one that is done", VMI(PUBLISHED), good, JOB("move", "vm", "Succeeded"),
         SOURCE_ORDER_NONE, "is over"},
        {"another VMI's pod", VMI(PUBLISHED), POD_OF("other", "move", "b"), job, SOURCE_ORDER_NONE,
         "not this VMI's"},
        {"a pod elsewhere", VMI(PUBLISHED), POD_OF("vmi-uid", "move", "c"), job, SOURCE_ORDER_NONE,
         "not on the target node"},
        {"a pod of an earlier move", VMI(PUBLISHED), POD_OF("vmi-uid", "older", "b"), job,
         SOURCE_ORDER_NONE, "not made for this move"},
        {"a guest that is elsewhere",
         "\"nodeName\":\"c\",\"migrationState\":{\"migrationUid\":\"move\",\"sourceNode\":\"a\","
         "\"targetNode\":\"b\"}",
         good, job, SOURCE_ORDER_NONE, "does not lead from this node"},
        {"to where it is",
         "\"nodeName\":\"a\",\"migrationState\":{\"migrationUid\":\"move\",\"sourceNode\":\"a\","
         "\"targetNode\":\"a\"}",
         good, job, SOURCE_ORDER_NONE, "does not lead from this node"},
        {"to nowhere",
         "\"nodeName\":\"a\",\"migrationState\":{\"migrationUid\":\"move\",\"sourceNode\":\"a\"}",
         NULL, NULL, SOURCE_ORDER_NONE, "does not lead from this node"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(NULL, NULL, cases[i].status);
        api_cleanup_object struct api_object *pod =
            cases[i].pod ? make_object(API_KIND_POD, cases[i].pod, NULL) : NULL;
        api_cleanup_object struct api_object *job_of =
            cases[i].migration ? make_object(API_KIND_MIGRATION, cases[i].migration, NULL) : NULL;
        const char *why = "unset";
        enum source_order order = source_order_of(&o->u.vmi, "a", pod ? &pod->u.pod : NULL,
                                                  job_of ? &job_of->u.migration : NULL, &why);

        print_message("  %s\n", cases[i].name);
        assert_int_equal(order, cases[i].order);
        assert_int_equal(why != NULL, cases[i].why != NULL);
        assert_true(!why || strstr(why, cases[i].why));
    }
}

/* Nothing goes out, not even a connection, before somebody is known to have asked. */
static void without_an_order(void **state)
{
    static const struct {
        const char *status;
        enum source_order order;
        enum source_action action;
        const char *patch;
        bool again;
    } cases[] = {
        {VMI(""), SOURCE_ORDER_UNKNOWN, SOURCE_ASK, NULL, false},
        {VMI(PUBLISHED), SOURCE_ORDER_UNKNOWN, SOURCE_ASK, NULL, false},
        {VMI(PUBLISHED), SOURCE_ORDER_AWAITED, SOURCE_NOTHING, NULL, true},
        {VMI(PUBLISHED), SOURCE_ORDER_NONE, SOURCE_NOTHING,
         "/failed|/completed|Refused: by the source: no order|endTimestamp|ferry.io~1failure",
         false},
        {VMI(PUBLISHED), SOURCE_ORDER_GIVEN, SOURCE_CONNECT, NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(NULL, NULL, cases[i].status);
        struct launcher_status s = {0};
        const struct source_input in = {.vmi = &o->u.vmi,
                                        .launcher = case_launcher(DOMAIN("running", "booted"), &s),
                                        .order = cases[i].order,
                                        .order_lacks = "no order",
                                        .now_ms = NOW};
        struct source_decision d = source_decide(&in);
        ferry_cleanup_free char *patch = case_patch(d.patch);

        assert_int_equal(d.action, cases[i].action);
        case_check_words("order", patch, cases[i].patch);
        case_check_fields("order", o, "a", patch);
        assert_int_equal(d.again_ms > 0, cases[i].again);
    }
}

static void refusals(void **state)
{
    static const struct {
        const char *name;
        enum ferry_class cls;
        int http;
        const char *words;
    } cases[] = {
        {"wrong for good", FERRY_INVALID, 400, "no kernel"},
        {"a file is missing", FERRY_NOT_FOUND, 404, "no kernel"},
        {"not allowed", FERRY_DENIED, 403, "no kernel"},
        {"busy", FERRY_RETRY, 503, NULL},
        {"in the way of another move", FERRY_CONFLICT, 409, NULL},
        {"broken", FERRY_FATAL, 500, NULL},
        {"nobody answered", FERRY_NOT_FOUND, 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err;

        ferry_fail(&err, cases[i].cls, "no kernel");
        ferry_wrap_about(&err, "PUT /v1/target/move");
        err.http = cases[i].http;
        print_message("  %s\n", cases[i].name);
        assert_true(ferry_streq(launcher_refused(&err), cases[i].words));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaving),
        cmocka_unit_test(troubles_of_the_source),
        cmocka_unit_test(troubles_of_the_target),
        cmocka_unit_test(troubles_pass),
        cmocka_unit_test(two_notes_on_a_bare_object),
        cmocka_unit_test(errors_as_troubles),
        cmocka_unit_test(refusals),
        cmocka_unit_test(orders),
        cmocka_unit_test(without_an_order),
        cmocka_unit_test(coming),
        cmocka_unit_test(options),
        cmocka_unit_test(connections_beside_each_other),
        cmocka_unit_test(progress_tells_of_the_path),
        cmocka_unit_test(disks_of_a_move),
        cmocka_unit_test(disks_of_the_source),
        cmocka_unit_test(given_up_moves),
        cmocka_unit_test(published_disks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
