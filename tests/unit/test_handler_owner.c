/* Ordinary life of a VM: the table. Numbers of cases are items of docs/conformance.md. */
#include "handler_case.h"

#include "handler/owner/owner_decide.h"

#define DELETING "\"deletionTimestamp\":\"2023-11-14T22:13:00Z\""
#define SCHEDULED "\"phase\":\"Scheduled\",\"nodeName\":\"a\""
#define RUNNING "\"phase\":\"Running\",\"nodeName\":\"a\""
/* All that a running VMI says; nothing is left to write. */
#define SETTLED                                                                                    \
    RUNNING ",\"migrationMethod\":\"LiveMigration\",\"migrationTransport\":\"Unix\","              \
            "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},"                            \
            "{\"type\":\"LiveMigratable\",\"status\":\"True\"},"                                   \
            "{\"type\":\"StorageLiveMigratable\",\"status\":\"True\"}]"
#define GIVEN_UP                                                                                   \
    ",\"migrationState\":{\"migrationUid\":\"m\",\"sourceNode\":\"a\",\"targetNode\":\"b\","       \
    "\"completed\":true,\"failed\":true}"
#define FINAL(phase) "\"phase\":\"" phase "\",\"nodeName\":\"a\""

#define RESET_SETTLED                                                                              \
    RUNNING ",\"migrationMethod\":\"LiveMigration\",\"migrationTransport\":\"Unix\","              \
            "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},"                            \
            "{\"type\":\"GuestReset\",\"status\":\"True\",\"reason\":\"Reset\",\"message\":"       \
            "\"the guest was reset at 2023-11-14T22:13:00Z\"},"                                    \
            "{\"type\":\"LiveMigratable\",\"status\":\"True\"},"                                   \
            "{\"type\":\"StorageLiveMigratable\",\"status\":\"True\"}]"
#define GUEST(state, reason, more)                                                                 \
    "{\"domain\":{\"state\":\"" state "\",\"reason\":\"" reason "\"},\"guest\":{" more "}}"

static void check_news(const char *name, const struct owner_news *news, const char *want)
{
    ferry_cleanup_buf struct ferry_buf text = {0};

    for (size_t i = 0; i < news->n; i++) {
        const struct owner_event *e = &news->list[i];

        ferry_buf_printf(&text, "%s%s: %s\n", e->warning ? "!" : "", e->reason, e->text);
    }
    if (want && !ferry_streq(text.data ? text.data : "", want)) {
        fail_msg("%s: tells %s", name, text.data ? text.data : "nothing");
    }
}

static void ordinary_life(void **state)
{
    static const struct {
        const char *name, *meta, *status, *launcher;
        int64_t gone_for_ms; /* -1 = not missing */
        const char *sync_error;
        enum owner_action action;
        const char *patch; /* words, NULL = no patch */
        bool missing;
        bool again;
        const char
            *news; /* events: "Reason: text\n", a leading ! for warnings; NULL = not looked at */
    } cases[] = {
        /* start */
        {"not ours yet", NULL, "\"phase\":\"Scheduling\"", DOMAIN("none", ""), -1, NULL,
         OWNER_NOTHING, NULL, false, false},
        {"pod not up", NULL, SCHEDULED, "starting", -1, NULL, OWNER_NOTHING, NULL, false, true},
        {"pod not seen", NULL, SCHEDULED, "no-pod", -1, NULL, OWNER_NOTHING, NULL, false, true},
        {"launcher not up", NULL, SCHEDULED, "silent", -1, NULL, OWNER_NOTHING, NULL, false, true},
        {"start", NULL, SCHEDULED, DOMAIN("none", ""), -1, NULL, OWNER_SYNC, NULL, false, true},
        {"start failed before", NULL, SCHEDULED, DOMAIN("shutoff", "failed"), -1, "bad machine",
         OWNER_SYNC, "Synchronized|bad machine|\"status\":\"False\"|/status/conditions", false,
         true},
        {"started", NULL, SCHEDULED, DOMAIN("running", "booted"), -1, NULL, OWNER_NOTHING,
         "\"/status/phase\",\"value\":\"Running\"|phaseTransitionTimestamps|\"Ready\"|"
         "LiveMigratable|LiveMigration|\"Unix\"|resourceVersion|!Paused",
         false, true, "Started: VirtualMachineInstance started.\n"},
        {"came and went before it was seen", NULL, SCHEDULED, DOMAIN("shutoff", "shutdown"), -1,
         NULL, OWNER_NOTHING, "\"Succeeded\"|GuestNotRunning", false, false},
        {"pod died before the start", NULL, SCHEDULED, "ended", -1, NULL, OWNER_NOTHING,
         "\"Failed\"", false, false},
        {"started at last", NULL,
         SCHEDULED ",\"conditions\":[{\"type\":\"Synchronized\",\"status\":\"False\"}]",
         DOMAIN("running", "booted"), -1, NULL, OWNER_NOTHING,
         "\"type\":\"Synchronized\",\"status\":\"True\"", false, true},
        /* run */
        {"settled", NULL, SETTLED, DOMAIN("running", "booted"), -1, NULL, OWNER_NOTHING, NULL,
         false, true, ""},
        {"settled, launcher busy", NULL, SETTLED, "silent", -1, NULL, OWNER_NOTHING, NULL, false,
         true},
        {"paused by its user", NULL, SETTLED, DOMAIN("paused", "user"), -1, NULL, OWNER_NOTHING,
         "PausedByUser", false, true},
        {"paused by an error", NULL, SETTLED, DOMAIN("paused", "io-error"), -1, NULL, OWNER_NOTHING,
         "PausedIOError", false, true},
        {"its disk is full", NULL, SETTLED,
         GUEST("paused", "io-error", "\"volume\":\"data\",\"diskError\":\"no-space\""), -1, NULL,
         OWNER_NOTHING, "PausedIOError|no space is left for volume data", false, true,
         "!IOerror: VM Paused due to not enough space on volume: data\n"},
        {"its disk is broken", NULL, SETTLED,
         GUEST("paused", "io-error", "\"volume\":\"data\",\"diskError\":\"io-error\""), -1, NULL,
         OWNER_NOTHING, "low-level IO error detected: at volume data", false, true,
         "!IOerror: VM Paused due to IO error at the volume: data\n"},
        {"its disk is full, as was told", NULL,
         RUNNING ",\"migrationMethod\":\"LiveMigration\",\"migrationTransport\":\"Unix\","
                 "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"Paused\","
                 "\"status\":\"True\",\"reason\":\"PausedIOError\",\"message\":\"VMI was paused, "
                 "low-level IO error detected: no space is left for volume data\"},"
                 "{\"type\":\"LiveMigratable\",\"status\":\"True\"},"
                 "{\"type\":\"StorageLiveMigratable\",\"status\":\"True\"}]",
         GUEST("paused", "io-error", "\"volume\":\"data\",\"diskError\":\"no-space\""), -1, NULL,
         OWNER_NOTHING, NULL, false, true, ""},
        {"reset", NULL, SETTLED,
         GUEST("running", "booted", "\"resetTimestamp\":\"2023-11-14T22:13:00Z\""), -1, NULL,
         OWNER_NOTHING, "GuestReset|2023-11-14T22:13:00Z|!WatchdogFired", false, true,
         "Reset: the guest was reset at 2023-11-14T22:13:00Z\n"},
        {"reset, as was told", NULL, RESET_SETTLED,
         GUEST("running", "booted", "\"resetTimestamp\":\"2023-11-14T22:13:00Z\""), -1, NULL,
         OWNER_NOTHING, NULL, false, true, ""},
        {"reset once more", NULL, RESET_SETTLED,
         GUEST("running", "booted", "\"resetTimestamp\":\"2023-11-14T22:13:05Z\""), -1, NULL,
         OWNER_NOTHING, "2023-11-14T22:13:05Z", false, true,
         "Reset: the guest was reset at 2023-11-14T22:13:05Z\n"},
        {"reset before it moved here", NULL, RESET_SETTLED, DOMAIN("running", "migrated"), -1, NULL,
         OWNER_NOTHING, NULL, false, true, ""},
        {"reset by its watchdog", NULL, SETTLED,
         GUEST("running", "booted",
               "\"resetTimestamp\":\"2023-11-14T22:13:00Z\",\"watchdogTimestamp\":"
               "\"2023-11-14T22:13:00Z\",\"watchdogAction\":\"reset\""),
         -1, NULL, OWNER_NOTHING, "GuestReset|WatchdogFired", false, true,
         "!Watchdog: the guest's watchdog fired at 2023-11-14T22:13:00Z; its action: reset\n"
         "Reset: the guest was reset at 2023-11-14T22:13:00Z\n"},
        {"stopped by its watchdog", NULL, SETTLED,
         GUEST("paused", "watchdog",
               "\"watchdogTimestamp\":\"2023-11-14T22:13:00Z\",\"watchdogAction\":\"pause\""),
         -1, NULL, OWNER_NOTHING, "PausedByWatchdog|WatchdogFired", false, true, NULL},
        {"513 stopped for a moment by a move", NULL, SETTLED, DOMAIN("paused", "migration"), -1,
         NULL, OWNER_NOTHING, NULL, false, true},
        {"514 another method than it was", NULL,
         RUNNING ",\"migrationMethod\":\"BlockMigration\",\"migrationTransport\":\"Unix\","
                 "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},"
                 "{\"type\":\"LiveMigratable\",\"status\":\"True\"}]",
         DOMAIN("running", "booted"), -1, NULL, OWNER_NOTHING,
         "\"/status/migrationMethod\",\"value\":\"LiveMigration\"", false, true},
        {"runs again", NULL,
         RUNNING ",\"migrationMethod\":\"LiveMigration\",\"migrationTransport\":\"Unix\","
                 "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"Paused\","
                 "\"status\":\"True\"},{\"type\":\"LiveMigratable\",\"status\":\"True\"},"
                 "{\"type\":\"StorageLiveMigratable\",\"status\":\"True\"}]",
         DOMAIN("running", "unpaused"), -1, NULL, OWNER_NOTHING,
         "\"op\":\"remove\",\"path\":\"/status/conditions/1\"", false, true},
        {"a move that was given up", NULL,
         SETTLED ",\"migrationState\":{\"migrationUid\":\"move\",\"completed\":true,\"failed\":"
                 "true}",
         MIGRATION("running", "booted", "source", "running", ""), -1, NULL, OWNER_CANCEL, NULL,
         false, true},
        {"a move that failed", NULL, SETTLED,
         MIGRATION("running", "booted", "source", "failed", ""), -1, NULL, OWNER_NOTHING, NULL,
         false, true},
        {"lost with its target in post-copy", NULL, SETTLED,
         MIGRATION("paused", "postcopy-failed", "source", "failed",
                   ",\"mode\":\"PostCopy\",\"reasonCode\":\"TargetLost\""),
         -1, NULL, OWNER_NOTHING, "\"Failed\"|the guest is lost", false, false},
        {"paused after a move that failed otherwise", NULL, SETTLED,
         MIGRATION("paused", "user", "source", "failed", ",\"reasonCode\":\"LibvirtError\""), -1,
         NULL, OWNER_NOTHING, "PausedByUser", false, true},
        {"arrived by a move, paused", NULL, SETTLED,
         MIGRATION("paused", "user", "target", "failed", ",\"reasonCode\":\"TargetLost\""), -1,
         NULL, OWNER_NOTHING, "PausedByUser", false, true},
        /* end */
        {"shut down by itself", NULL, SETTLED, DOMAIN("shutoff", "shutdown"), -1, NULL,
         OWNER_NOTHING, "\"Succeeded\"|/status/conditions/0|\"False\"|!/status/reason", false,
         false, "Stopped: The VirtualMachineInstance was shut down: the guest shut itself down\n"},
        {"ended by force", NULL, SETTLED, DOMAIN("shutoff", "destroyed"), -1, NULL, OWNER_NOTHING,
         "\"Failed\"|GuestDestroyed", false, false, NULL},
        {"shut down by its watchdog", NULL, SETTLED,
         GUEST("shutoff", "shutdown",
               "\"watchdogTimestamp\":\"2023-11-14T22:13:00Z\",\"watchdogAction\":\"poweroff\""),
         -1, NULL, OWNER_NOTHING, "\"Succeeded\"|by its watchdog", false, false, NULL},
        {"left, and did not arrive", NULL, SETTLED, DOMAIN("shutoff", "migrated"), -1, NULL,
         OWNER_NOTHING, "\"Failed\"|did not arrive", false, false},
        {"left by a move that was given up, and may have arrived",
         "\"labels\":{\"kubevirt.io/migrationTargetNodeName\":\"b\"},"
         "\"annotations\":{\"ferry.io/unconfirmed\":\"m\"}",
         SETTLED GIVEN_UP, DOMAIN("shutoff", "migrated"), -1, NULL, OWNER_NOTHING, NULL, true,
         true},
        {"left by a move that was given up, and its target has let go", NULL, SETTLED GIVEN_UP,
         DOMAIN("shutoff", "migrated"), -1, NULL, OWNER_NOTHING, "\"Failed\"", false, false},
        {"crashed", NULL, SETTLED, DOMAIN("crashed", "crashed"), -1, NULL, OWNER_NOTHING,
         "\"Failed\"|\"GuestCrashed\"|the guest crashed", false, false,
         "!Stopped: The VirtualMachineInstance crashed: the guest crashed: its QEMU ended "
         "unexpectedly\n"},
        {"panicked", NULL, SETTLED, DOMAIN("crashed", "guest-panicked"), -1, NULL, OWNER_NOTHING,
         "\"Failed\"|\"GuestPanicked\"", false, false,
         "!GuestPanicked: the guest crashed: its kernel panicked\n"
         "!Stopped: The VirtualMachineInstance crashed: the guest crashed: its kernel panicked\n"},
        {"out of memory", NULL, SETTLED, DOMAIN("crashed", "out-of-memory"), -1, NULL,
         OWNER_NOTHING, "\"Failed\"|\"OutOfMemory\"|ran out of memory", false, false, NULL},
        {"its pod was killed for memory", NULL, SETTLED, "ended-OOMKilled", -1, NULL, OWNER_NOTHING,
         "\"Failed\"|\"OutOfMemory\"|ran out of memory", false, false, NULL},
        {"nobody knows the guest", NULL, SETTLED, DOMAIN("none", ""), -1, NULL, OWNER_NOTHING, NULL,
         true, true},
        {"nor a little later", NULL, SETTLED, DOMAIN("none", ""), 9000, NULL, OWNER_NOTHING, NULL,
         true, true},
        {"nor after that", NULL, SETTLED, DOMAIN("none", ""), 10000, NULL, OWNER_NOTHING,
         "\"Failed\"", true, false},
        {"launcher left", NULL, SETTLED, "ended-0", -1, NULL, OWNER_NOTHING, "\"Succeeded\"", false,
         false},
        {"launcher died", NULL, SETTLED, "ended", -1, NULL, OWNER_NOTHING, "\"Failed\"", false,
         false},
        {"pod vanished", NULL, SETTLED, "no-pod", -1, NULL, OWNER_NOTHING, NULL, false, true},
        {"over, launcher still there", NULL, FINAL("Succeeded"), DOMAIN("shutoff", "shutdown"), -1,
         NULL, OWNER_STOP, NULL, false, true},
        {"over", NULL, FINAL("Failed"), "ended", -1, NULL, OWNER_NOTHING, NULL, false, false},
        /* deletion */
        {"deleted while it runs", DELETING, SETTLED, DOMAIN("running", "booted"), -1, NULL,
         OWNER_STOP, NULL, false, true},
        {"deleted before it ran", DELETING, SCHEDULED, DOMAIN("none", ""), -1, NULL, OWNER_STOP,
         NULL, false, true},
        {"deleted, launcher busy", DELETING, SETTLED, "silent", -1, NULL, OWNER_NOTHING, NULL,
         false, true},
        {"deleted and down", DELETING, SETTLED, "ended-0", -1, NULL, OWNER_NOTHING, "\"Succeeded\"",
         false, false},
        {"deleted, pod gone", DELETING, SETTLED, "no-pod", -1, NULL, OWNER_NOTHING, "\"Succeeded\"",
         false, false},
        {"deleted after it failed", DELETING, FINAL("Failed"), "ended", -1, NULL, OWNER_NOTHING,
         NULL, false, false},
        {"deleted after it failed, launcher there", DELETING, FINAL("Failed"),
         DOMAIN("crashed", ""), -1, NULL, OWNER_STOP, NULL, false, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o =
            case_vmi(cases[i].meta, "\"terminationGracePeriodSeconds\":5", cases[i].status);
        struct launcher_status s = {0};
        const struct owner_input in = {
            .vmi = &o->u.vmi,
            .launcher = case_launcher(cases[i].launcher, &s),
            .gone_since_ms = cases[i].gone_for_ms < 0 ? 0 : NOW - cases[i].gone_for_ms,
            .sync_error = cases[i].sync_error,
            .now_ms = NOW};
        struct owner_decision d = owner_decide(&in);
        ferry_cleanup_free char *patch = case_patch(d.patch);

        print_message("  %s\n", cases[i].name);
        assert_int_equal(d.action, cases[i].action);
        case_check_words(cases[i].name, patch, cases[i].patch);
        case_check_fields(cases[i].name, o, "a", patch);
        check_news(cases[i].name, &d.news, cases[i].news);
        assert_int_equal(d.guest_missing, cases[i].missing);
        assert_int_equal(d.again_ms > 0, cases[i].again);
        if (d.action == OWNER_STOP) {
            assert_int_equal(d.grace_s, cases[i].meta ? 5 : 0);
        }
        if (d.action == OWNER_CANCEL) {
            assert_string_equal(d.cancel_uid, "move");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ordinary_life)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
