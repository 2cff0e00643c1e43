/* Tables for the launcher's decisions and encodings. Numbers of cases are items of
 * docs/conformance.md. */
#include "lib/unit.h"

#include <libvirt/virterror.h>
#include <unistd.h>

#include "api/object.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/libvirt/libvirt_uri.h"
#include "launcher/libvirt/machine.h"
#include "launcher/libvirt/view.h"
#include "launcher/move/gate.h"
#include "launcher/move/incoming.h"
#include "launcher/move/migrate_call.h"
#include "launcher/move/result.h"
#include "launcher/report/guest_note.h"
#include "launcher/report/state.h"
#include "launcher/report/status.h"
#include "launcher/strategy/sample.h"

#define RUNNING view_of(VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_BOOTED)
#define ARRIVED view_of(VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_MIGRATED)
#define PAUSED view_of(VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_USER)
#define SWITCHING view_of(VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_MIGRATION)
#define HELD view_of(VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_API_ERROR)
#define MOVED view_of(VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_MIGRATED)
#define POWERED_OFF view_of(VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_SHUTDOWN)
#define CRASHED view_of(VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_CRASHED)
#define ENDING view_of(VIR_DOMAIN_SHUTDOWN, 0)
#define STARTING view_of(VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_STARTING_UP)
#define LEFT view_of(VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY)
#define LEFT_BROKEN view_of(VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY_FAILED)
#define ARRIVING view_of(VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY)
#define ARRIVING_BROKEN view_of(VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY_FAILED)
#define UNKNOWN view_of(VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_UNKNOWN)

static void uris(void **state)
{
    static const struct {
        const char *text;
        const char *why; /* part of the message; NULL = it is right */
        const char *transport, *user, *host;
        int port;
        bool system;
        const char *socket; /* on this machine */
    } cases[] = {
        {"qemu:///session", NULL, "", NULL, "", 0, false, "/run/u/libvirt/libvirt-sock"},
        {"qemu:///system", NULL, "", NULL, "", 0, true, "/run/libvirt/libvirt-sock"},
        {"qemu+unix:///system?socket=/run/x/sock", NULL, "unix", NULL, "", 0, true, "/run/x/sock"},
        {"qemu+unix:///system?mode=direct&socket=%2Frun%2Fx%20y", NULL, "unix", NULL, "", 0, true,
         "/run/x y"},
        {"qemu+ssh://root@host.example:2222/system?keyfile=/k&no_verify=1", NULL, "ssh", "root",
         "host.example", 2222, true, NULL},
        {"qemu+tls://[fe80::1]:16514/system", NULL, "tls", NULL, "fe80::1", 16514, true, NULL},
        {"qemu+tcp://10.0.0.2/session", NULL, "tcp", NULL, "10.0.0.2", 0, false, NULL},
        {"qemu://host/system", NULL, "", NULL, "host", 0, true, NULL},
        {"qemu+libssh2://u%40d@host/system", "the user before @"},
        {"", "'://' is missing"},
        {"qemu:/system", "'://' is missing"},
        {"://host/system", "the driver before :// is missing"},
        {"xen:///system", "the driver must be qemu"},
        {"qemu+carrier://host/system", "the transport after +"},
        {"qemu+://host/system", "the transport after +"},
        {"qemu+unix://host/system", "no host may be given"},
        {"qemu+ssh:///system", "needs a host"},
        {"qemu+ssh://user@/system", "but no host"},
        {"qemu+ssh://:22/system", "but no host"},
        {"qemu+ssh://@host/system", "the user before @"},
        {"qemu+ssh://me:secret@host/system", "a password has no place here"},
        {"qemu+tcp://host:/system", "the port"},
        {"qemu+tcp://host:0/system", "the port"},
        {"qemu+tcp://host:65536/system", "the port"},
        {"qemu+tcp://host:99999999999999999999/system", "the port"},
        {"qemu+tcp://host:22x/system", "the port"},
        {"qemu+tcp://ho st/system", "%XX"},
        {"qemu+tcp://ho<st/system", "not a name or an address"},
        {"qemu+tls://[fe80::1/system", "']'"},
        {"qemu+tls://[]/system", "not a name or an address"},
        {"qemu+tls://[::1]x/system", "']'"},
        {"qemu://host", "the path is missing"},
        {"qemu://host?socket=/a/system", "the path is missing"},
        {"qemu:///", "must be /system or /session"},
        {"qemu:///embed?root=/x", "must be /system or /session"},
        {"qemu:///system?socket", "name=value"},
        {"qemu:///system?=x", "name=value"},
        {"qemu:///system?socket=rel", "an absolute path"},
        {"qemu:///system?socket=/a&socket=/b", "given once"},
        {"qemu:///system?socket=/a%2", "broken %-sequence"},
        {"qemu:///system?socket=/a%00b", "broken %-sequence"},
        {"qemu:///system#x", "%XX"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct libvirt_uri u;
        struct ferry_error err = {0};
        int rc = libvirt_uri_parse(cases[i].text, &u, &err);

        if (cases[i].why) {
            if (rc != -FERRY_INVALID || !strstr(err.msg, cases[i].why)) {
                fail_msg("%s: %d %s", cases[i].text, rc, err.msg);
            }
            continue;
        }
        if (rc < 0) {
            fail_msg("%s: %s", cases[i].text, err.msg);
        }
        char *socket = libvirt_uri_socket(&u, "/run/u");
        assert_string_equal(u.transport, cases[i].transport);
        assert_string_equal(u.user ? u.user : "", cases[i].user ? cases[i].user : "");
        assert_string_equal(u.host, cases[i].host);
        assert_int_equal(u.port, cases[i].port);
        assert_int_equal(u.system, cases[i].system);
        assert_string_equal(socket ? socket : "", cases[i].socket ? cases[i].socket : "");
        free(socket);
        libvirt_uri_done(&u);
    }
}

static void views(void **state)
{
    static const struct {
        int state, reason;
        const char *name, *why;
    } cases[] = {
        {VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_BOOTED, "running", "booted"},
        {VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_MIGRATED, "running", "migrated"},
        {VIR_DOMAIN_RUNNING, 99, "running", "unknown"},
        {VIR_DOMAIN_BLOCKED, 0, "running", "unknown"},
        {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_USER, "paused", "user"},
        {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_MIGRATION, "paused", "migration"},
        {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY, "paused", "postcopy"},
        {VIR_DOMAIN_SHUTDOWN, 0, "paused", "shutting-down"},
        {VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_MIGRATED, "shutoff", "migrated"},
        {VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_CRASHED, "crashed", "crashed"},
        {VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_UNKNOWN, "shutoff", "unknown"},
        {VIR_DOMAIN_CRASHED, 0, "crashed", "crashed"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct view v = view_of(cases[i].state, cases[i].reason);

        assert_string_equal(wire_launcher_domain_text(v.state), cases[i].name);
        assert_string_equal(wire_launcher_reason_text(v.reason), cases[i].why);
    }
}

static void results(void **state)
{
    const char *const bad = "operation failed:\n  Channel error";
    const struct {
        const char *what;
        struct result_input in;
        bool decided;
        enum launcher_phase phase;
        enum wire_abort abort_status;
        const char *code, *reason;
    } cases[] = {
        {"moved",
         {.domain = MOVED, .call_known = true, .call_ok = true},
         true,
         LAUNCHER_SUCCEEDED,
         ABORT_NONE,
         "",
         ""},
        {"moved, but the call failed",
         {.domain = MOVED, .call_known = true, .text = bad},
         true,
         LAUNCHER_SUCCEEDED,
         ABORT_NONE,
         "",
         ""},
        {"moved while the launcher was away",
         {.domain = MOVED},
         true,
         LAUNCHER_SUCCEEDED,
         ABORT_NONE,
         "",
         ""},
        {"319 an abort that came too late",
         {.domain = MOVED,
          .call_known = true,
          .call_ok = true,
          .abort = STATE_ABORT_ASKED,
          .abort_accepted = true},
         true,
         LAUNCHER_SUCCEEDED,
         ABORT_FAILED,
         "",
         ""},
        {"transient domain gone",
         {.domain = view_none(), .call_known = true, .call_ok = true},
         true,
         LAUNCHER_SUCCEEDED,
         ABORT_NONE,
         "",
         ""},
        {"316 failed by libvirt",
         {.domain = RUNNING, .call_known = true, .libvirt_code = 9, .text = bad},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "LibvirtError",
         "operation failed: Channel error"},
        {"failed without words",
         {.domain = RUNNING, .call_known = true},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "LibvirtError",
         "libvirt gave no reason"},
        {"failed, paused by its user",
         {.domain = PAUSED, .call_known = true, .text = "x"},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "LibvirtError",
         "x"},
        {"CPU",
         {.domain = RUNNING,
          .call_known = true,
          .libvirt_code = VIR_ERR_CPU_INCOMPATIBLE,
          .text = "cpu x"},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "CPUIncompatible",
         "cpu x"},
        {"by the target's filter",
         {.domain = RUNNING,
          .call_known = true,
          .refused = REASON_CONTROL_REFUSED,
          .text = "call x"},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "ControlRefused",
         "call x"},
        {"destination too small",
         {.domain = RUNNING,
          .call_known = true,
          .text = "The sum of offset (0) and size (9) has to be smaller or equal to the actual "
                  "size of the containing "
                  "file (8)"},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "DestinationTooSmall",
         "the destination volume is smaller than the source volume and cannot hold its data: The "
         "sum of offset (0) "
         "and size (9) has to be smaller or equal to the actual size of the containing file (8)"},
        {"destination too small, as QEMU writes it and libvirt breaks it",
         {.domain = RUNNING,
          .call_known = true,
          .text = "internal error: process exited:\nThe sum of offset (0) and size (9) has to be "
                  "smaller or equal to the  actual size\nof the containing file (8)\n"},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "DestinationTooSmall",
         "the destination volume is smaller than the source volume and cannot hold its data: "
         "internal error: process exited: The sum of offset (0) and size (9) has to be smaller or "
         "equal to the actual size of the containing file (8)"},
        {"destination too small, in words that nobody knows",
         {.domain = RUNNING, .call_known = true, .text = "the file is shorter than 9 bytes"},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "LibvirtError",
         "the file is shorter than 9 bytes"},
        {"destination too small, found before anything was sent",
         {.domain = RUNNING,
          .call_known = true,
          .refused = REASON_DESTINATION_TOO_SMALL,
          .text = "volume a"},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "DestinationTooSmall",
         "the destination volume is smaller than the source volume and cannot hold its data: "
         "volume a"},
        {"a device of the host stays in the guest",
         {.domain = RUNNING,
          .call_known = true,
          .refused = REASON_DEVICE_NOT_MIGRATABLE,
          .text = "the guest did not let go"},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "DeviceNotMigratable",
         "the guest did not let go"},
        {"cancelled before libvirt was asked",
         {.domain = RUNNING,
          .call_known = true,
          .refused = REASON_LIBVIRT_ERROR,
          .text = "cancelled",
          .abort = STATE_ABORT_ASKED,
          .abort_accepted = true},
         true,
         LAUNCHER_FAILED,
         ABORT_SUCCEEDED,
         "Aborted",
         "Live migration has been aborted"},
        {"171 our connection to libvirtd broke, and the guest is here",
         {.domain = RUNNING, .call_known = true, .text = "internal error: client socket is closed"},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "LibvirtError",
         "internal error: client socket is closed"},
        {"success is said, the guest is here",
         {.domain = RUNNING, .call_known = true, .call_ok = true},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "LibvirtError",
         "libvirt reported success, but the guest still runs here"},
        {"aborted",
         {.domain = RUNNING,
          .call_known = true,
          .libvirt_code = 78,
          .text = "canceled",
          .abort = STATE_ABORT_ASKED,
          .abort_accepted = true},
         true,
         LAUNCHER_FAILED,
         ABORT_SUCCEEDED,
         "Aborted",
         "Live migration has been aborted"},
        {"aborted, the message is about the channel",
         {.domain = RUNNING,
          .call_known = true,
          .libvirt_code = 9,
          .text = bad,
          .abort = STATE_ABORT_ASKED,
          .abort_accepted = true},
         true,
         LAUNCHER_FAILED,
         ABORT_SUCCEEDED,
         "Aborted",
         "Live migration has been aborted"},
        {"318 abort asked for, not taken, failed by itself; 175 the last word counts",
         {.domain = RUNNING, .call_known = true, .text = bad, .abort = STATE_ABORT_ASKED},
         true,
         LAUNCHER_FAILED,
         ABORT_FAILED,
         "LibvirtError",
         "operation failed: Channel error"},
        {"our own abort, stuck",
         {.domain = RUNNING,
          .call_known = true,
          .text = bad,
          .abort = STATE_ABORT_STUCK,
          .abort_accepted = true,
          .abort_detail = "no progress"},
         true,
         LAUNCHER_FAILED,
         ABORT_SUCCEEDED,
         "Stuck",
         "no progress"},
        {"our own abort, not converging",
         {.domain = RUNNING,
          .call_known = true,
          .text = bad,
          .abort = STATE_ABORT_NOT_CONVERGING,
          .abort_accepted = true,
          .abort_detail = "too slow"},
         true,
         LAUNCHER_FAILED,
         ABORT_SUCCEEDED,
         "NotConverging",
         "too slow"},
        {"aborted while the launcher was away",
         {.domain = RUNNING, .abort = STATE_ABORT_ASKED, .abort_accepted = true},
         true,
         LAUNCHER_FAILED,
         ABORT_SUCCEEDED,
         "Aborted",
         "Live migration has been aborted"},
        {"still going on",
         {.domain = RUNNING, .job_active = true},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         ""},
        {"our connection broke, libvirt goes on",
         {.domain = RUNNING,
          .job_active = true,
          .call_known = true,
          .text = "client socket is closed"},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         ""},
        {"switching over",
         {.domain = SWITCHING, .call_known = true, .text = bad},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         ""},
        {"stopped at the switch-over, the target is gone: resumed, then looked at again",
         {.domain = SWITCHING, .target = OUTCOME_TARGET_GONE},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         "resume"},
        {"the same, but libvirt still works on it",
         {.domain = SWITCHING, .target = OUTCOME_TARGET_GONE, .job_active = true},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         ""},
        {"stopped at the switch-over, the target runs",
         {.domain = SWITCHING, .target = OUTCOME_TARGET_ACTIVE},
         true,
         LAUNCHER_SUCCEEDED,
         ABORT_NONE,
         "",
         "stop"},
        {"post-copy", /* 271 */
         {.domain = LEFT, .postcopy = true, .call_known = true, .text = bad},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         ""},
        {"post-copy broke: a failed call is not a failed migration",
         {.domain = LEFT_BROKEN, .postcopy = true, .call_known = true, .text = bad},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         ""},
        {"post-copy broke, the target waits for more",
         {.domain = LEFT_BROKEN, .postcopy = true, .target = OUTCOME_TARGET_POSTCOPY_PAUSED},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         ""},
        {"post-copy, the target is gone: lost, never resumed",
         {.domain = LEFT_BROKEN, .postcopy = true, .target = OUTCOME_TARGET_GONE},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "TargetLost",
         "the guest is lost: its target died in post-copy, when part of its memory was there only; "
         "what is left here is stale and must not run"},
        {"post-copy was about to begin when the target went away",
         {.domain = SWITCHING, .postcopy = true, .target = OUTCOME_TARGET_GONE},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "TargetLost",
         "the guest is lost: its target died in post-copy, when part of its memory was there only; "
         "what is left here is stale and must not run"},
        {"post-copy broke before the guest ran on the target",
         {.domain = LEFT_BROKEN,
          .postcopy = true,
          .job_active = true,
          .target = OUTCOME_TARGET_NEVER_RAN},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         "rescue"},
        {"the same, and it was taken back",
         {.domain = ARRIVING_BROKEN,
          .postcopy = true,
          .job_active = true,
          .rescued = true,
          .target = OUTCOME_TARGET_NEVER_RAN},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "LibvirtError",
         "a post-copy broke before the guest ran on its target; it was taken back and runs on, but "
         "it cannot be moved before it is stopped and started"},
        {"post-copy was asked for and did not begin",
         {.domain = RUNNING, .postcopy = true, .call_known = true, .text = bad},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "LibvirtError",
         "operation failed: Channel error"},
        {"the target's answer was lost, and libvirt was not let resume the guest",
         {.domain = HELD, .call_known = true, .text = bad},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         ""},
        {"the same, and the target has it",
         {.domain = HELD, .call_known = true, .text = bad, .target = OUTCOME_TARGET_ACTIVE},
         true,
         LAUNCHER_SUCCEEDED,
         ABORT_NONE,
         "",
         "stop"},
        {"the same, and the target never ran it",
         {.domain = HELD, .call_known = true, .text = bad, .target = OUTCOME_TARGET_NEVER_RAN},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         "resume"},
        {"held although QEMU had not sent all of it",
         {.domain = HELD, .call_known = true, .text = bad, .incomplete = true},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         "resume"},
        {"suspended by us, and libvirtd knows of no move any more",
         {.domain = PAUSED, .postcopy = true, .suspended = true},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         ""},
        {"the same, and QEMU had not sent all of it",
         {.domain = PAUSED, .postcopy = true, .suspended = true, .incomplete = true},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         "rescue"},
        {"paused by us so that the move ends, and the move was cut",
         {.domain = PAUSED, .suspended = true, .call_known = true, .text = bad, .incomplete = true},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         "resume"},
        {"paused by its user, and the move failed",
         {.domain = PAUSED, .call_known = true, .text = bad},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "LibvirtError",
         "operation failed: Channel error"},
        {"QEMU on its way down, the reason is not known yet",
         {.domain = ENDING},
         false,
         LAUNCHER_RUNNING,
         ABORT_NONE,
         "",
         ""},
        {"guest powered off",
         {.domain = POWERED_OFF, .call_known = true, .text = bad},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "SourceLost",
         "the guest ended on the source during the migration (shutoff, shutdown)"},
        {"QEMU crashed",
         {.domain = CRASHED, .call_known = true, .text = bad, .abort = STATE_ABORT_ASKED},
         true,
         LAUNCHER_FAILED,
         ABORT_FAILED,
         "SourceLost",
         "the guest ended on the source during the migration (crashed, crashed)"},
        {"gone, and nobody knows how",
         {.domain = UNKNOWN},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "SourceLost",
         "the guest ended on the source during the migration (shutoff, unknown)"},
        {"no trace of it",
         {.domain = view_none()},
         true,
         LAUNCHER_FAILED,
         ABORT_NONE,
         "SourceLost",
         "the guest ended on the source during the migration (none)"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct result r;

        result_decide(&cases[i].in, &r);
        /* what is to be done here is written in place of a reason */
        if (r.resume_source || r.rescue_source || r.stop_source) {
            snprintf(r.failure_reason, sizeof(r.failure_reason), "%s",
                     r.resume_source   ? "resume"
                     : r.rescue_source ? "rescue"
                                       : "stop");
        }
        if (r.decided != cases[i].decided || r.phase != cases[i].phase ||
            r.abort_status != cases[i].abort_status || strcmp(r.reason_code, cases[i].code) != 0 ||
            strcmp(r.failure_reason, cases[i].reason) != 0) {
            fail_msg("%s: decided=%d phase=%d abort=%d code='%s' reason='%s'", cases[i].what,
                     r.decided, (int)r.phase, (int)r.abort_status, r.reason_code, r.failure_reason);
        }
    }
}

static void gates(void **state)
{
    static const struct {
        enum launcher_role role;
        enum launcher_phase phase;
        const char *code;
        bool closed;
    } cases[] = {
        {LAUNCHER_ROLE_NONE, LAUNCHER_PREPARED, "", false},
        {LAUNCHER_ROLE_SOURCE, LAUNCHER_RUNNING, "", true},
        {LAUNCHER_ROLE_SOURCE, LAUNCHER_SUCCEEDED, "", true},
        {LAUNCHER_ROLE_SOURCE, LAUNCHER_FAILED, "Aborted", false},
        {LAUNCHER_ROLE_SOURCE, LAUNCHER_FAILED, "TargetLost", true},
        {LAUNCHER_ROLE_TARGET, LAUNCHER_PREPARED, "", false},
        {LAUNCHER_ROLE_TARGET, LAUNCHER_RUNNING, "", false},
        {LAUNCHER_ROLE_TARGET, LAUNCHER_SUCCEEDED, "", false},
        {LAUNCHER_ROLE_TARGET, LAUNCHER_FAILED, "TargetLost", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct state_values v;

        state_values_init(&v);
        v.migration.role = cases[i].role;
        v.migration.phase = cases[i].phase;
        snprintf(v.migration.reason_code, sizeof(v.migration.reason_code), "%s", cases[i].code);
        print_message("  role %d phase %d %s\n", (int)cases[i].role, (int)cases[i].phase,
                      cases[i].code);
        assert_int_equal(gate_must_be_closed(&v), cases[i].closed);
    }
}

/* Whoever comes first: either nothing starts, or it is known. */
static void gate_files(void **state)
{
    char dir[] = "/tmp/ferry-gate-XXXXXX";
    struct ferry_error err;
    struct gate *g = NULL;

    (void)state;
    assert_non_null(mkdtemp(dir));
    ferry_cleanup_free char *started = ferry_asprintf("%s/started", dir);
    ferry_cleanup_free char *closed = ferry_asprintf("%s/closed", dir);
    assert_int_equal(gate_new(dir, &g, &err), 0);
    assert_false(gate_started(g));
    assert_int_equal(gate_close(g, &err), 0);
    assert_int_equal(gate_close(g, &err), 0);
    assert_int_equal(access(closed, F_OK), 0);
    assert_int_equal(gate_open(g, &err), 0);
    assert_int_equal(gate_open(g, &err), 0);
    assert_int_not_equal(access(closed, F_OK), 0);
    assert_int_equal(ferry_write_file(started, "", 0, 0600, &err), 0);
    assert_true(gate_started(g));
    assert_int_equal(gate_reset(g, &err), 0);
    assert_false(gate_started(g));
    gate_free(g);
    assert_int_equal(ferry_remove_tree(dir, &err), 0);
}

static void what_qemu_did_not_send(void **state)
{
    static const struct {
        const char *status;
        bool postcopy;
        unsigned long version;
        bool never;
    } cases[] = {
        {"failed", false, 0, true},           {"cancelled", false, 10002000, true},
        {"none", false, 8000000, true},       {"completed", false, 10000002, false},
        {"active", false, 10000002, false},   {"device", false, 10000002, false},
        {"failed", true, 10000002, true},     {"cancelled", true, 10000000, true},
        {"failed", true, 10000013, false},    {"failed", true, 10001000, false},
        {"failed", true, 9002000, false},     {"failed", true, 10002000, false},
        {"failed", true, 0, false},           {"device", true, 10000002, false},
        {"completed", true, 10000002, false}, {"postcopy-paused", true, 10000002, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (result_never_sent(cases[i].status, cases[i].postcopy, cases[i].version) !=
            cases[i].never) {
            fail_msg("%s, post-copy %d, QEMU %lu", cases[i].status, cases[i].postcopy,
                     cases[i].version);
        }
    }
}

static void arrivals(void **state)
{
    const struct {
        const char *what;
        struct incoming_input in;
        enum launcher_phase phase;
        bool seen;
    } cases[] = {
        {"nothing yet", {.domain = view_none(), .job_over = true}, LAUNCHER_PREPARED, false},
        {"left by an earlier attempt",
         {.domain = POWERED_OFF, .job_over = true},
         LAUNCHER_PREPARED,
         false},
        {"starting up", {.domain = STARTING, .job_over = true}, LAUNCHER_RUNNING, true},
        {"ending", {.domain = ENDING, .job_over = true, .seen = true}, LAUNCHER_RUNNING, true},
        {"coming", {.domain = SWITCHING}, LAUNCHER_RUNNING, true},
        {"coming, job not visible",
         {.domain = SWITCHING, .job_over = true},
         LAUNCHER_RUNNING,
         true},
        {"coming, and QEMU cannot load it",
         {.domain = SWITCHING, .seen = true, .broken = true},
         LAUNCHER_FAILED,
         true},
        {"its source was refused before it came",
         {.domain = view_none(), .refused = "procedure 7"},
         LAUNCHER_FAILED,
         false},
        {"refused while it comes",
         {.domain = SWITCHING, .seen = true, .refused = "procedure 7"},
         LAUNCHER_FAILED,
         true},
        {"refused when it runs here",
         {.domain = ARRIVED, .job_over = true, .seen = true, .refused = "procedure 7"},
         LAUNCHER_SUCCEEDED,
         true},
        {"refused when it runs here in post-copy",
         {.domain = ARRIVING, .seen = true, .refused = "procedure 7"},
         LAUNCHER_RUNNING,
         true},
        {"refused in a post-copy that broke",
         {.domain = ARRIVING_BROKEN, .seen = true, .refused = "procedure 7"},
         LAUNCHER_RUNNING,
         true},
        {"runs, whatever QEMU said before",
         {.domain = ARRIVED, .job_over = true, .seen = true, .broken = true},
         LAUNCHER_SUCCEEDED,
         true},
        {"295 runs, libvirt not done, or it does not tell",
         {.domain = ARRIVED, .seen = true},
         LAUNCHER_RUNNING,
         true},
        {"294 runs, and libvirt is done; 295 now it tells",
         {.domain = ARRIVED, .job_over = true, .seen = true},
         LAUNCHER_SUCCEEDED,
         true},
        {"runs, never seen before",
         {.domain = ARRIVED, .job_over = true},
         LAUNCHER_SUCCEEDED,
         true},
        {"paused by its user",
         {.domain = PAUSED, .job_over = true, .seen = true},
         LAUNCHER_SUCCEEDED,
         true},
        {"paused, libvirt not done", {.domain = PAUSED, .seen = true}, LAUNCHER_RUNNING, true},
        {"runs in post-copy", {.domain = ARRIVING, .job_over = true}, LAUNCHER_RUNNING, true},
        {"runs in a post-copy that broke",
         {.domain = ARRIVING_BROKEN, .job_over = true, .seen = true},
         LAUNCHER_RUNNING,
         true},
        {"aborted", {.domain = view_none(), .job_over = true, .seen = true}, LAUNCHER_FAILED, true},
        {"crashed on arrival",
         {.domain = CRASHED, .job_over = true, .seen = true},
         LAUNCHER_FAILED,
         true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct incoming r = incoming_decide(&cases[i].in);

        if (r.phase != cases[i].phase || r.seen != cases[i].seen ||
            (r.failure_reason != NULL) != (r.phase == LAUNCHER_FAILED) ||
            (r.reason_code != REASON_NONE) != (r.phase == LAUNCHER_FAILED) ||
            (r.failure_reason && r.failure_reason == cases[i].in.refused) !=
                (r.reason_code == REASON_CONTROL_REFUSED)) {
            fail_msg("%s: phase %d seen %d", cases[i].what, (int)r.phase, r.seen);
        }
    }
}

static void options_and_calls(void **state)
{
    static const struct {
        const char *json, *message;
        unsigned flags;
        unsigned long long mib;
    } cases[] = {
        {"{}", NULL, 0, 0},   /* 202, 207 */
        {"null", NULL, 0, 0}, /* 201 */
        {"{\"bandwidthBytesPerS\":1}", NULL, 0, 1},
        {"{\"bandwidthBytesPerS\":1048576}", NULL, 0, 1},
        {"{\"bandwidthBytesPerS\":1572864}", NULL, 0, 2},
        {"{\"bandwidthBytesPerS\":67108864}", NULL, 0, 64},
        {"{\"allowAutoConverge\":true,\"unsafe\":true,\"later\":1}", NULL, /* 208 */
         VIR_MIGRATE_AUTO_CONVERGE | VIR_MIGRATE_UNSAFE, 0},
        {"{\"allowPostCopy\":true}", NULL, VIR_MIGRATE_POSTCOPY, 0},    /* 210 */
        {"{\"parallelConnections\":4}", NULL, VIR_MIGRATE_PARALLEL, 0}, /* 204 */
        {"{\"parallelConnections\":4,\"compression\":\"zstd\"}", NULL,
         VIR_MIGRATE_PARALLEL | VIR_MIGRATE_COMPRESSED, 0},
        /* 205, as far as this QEMU can: one of the two, and it is said */
        {"{\"parallelConnections\":4,\"allowPostCopy\":true}", NULL, VIR_MIGRATE_POSTCOPY, 0},
        {"{\"compression\":\"zstd\"}",
         "options.compression: zstd needs options.parallelConnections", 0, 0},
        {"{\"compression\":\"xz\"}", "options.compression: must be none or zstd", 0, 0},
        {"{\"strategy\":\"x\"}", "options.strategy: must be ferry or kubevirt", 0, 0},
        {"{\"strategy\":\"kubevirt\",\"stallDetector\":{\"ewmaAlpha\":0.5}}", NULL, 0, 0},
        {"{\"stallDetector\":{\"ewmaAlpha\":\"0.5\"}}", NULL, 0, 0},
        {"{\"stallDetector\":{\"ewmaAlpha\":\"0.5x\"}}",
         "options.stallDetector.ewmaAlpha: must be a number from 0.001 to 1", 0, 0},
        {"{\"stallDetector\":{\"ewmaAlpha\":0}}",
         "options.stallDetector.ewmaAlpha: must be a number from 0.001 to 1", 0, 0},
        {"{\"downtimeTuning\":[]}", "options.downtimeTuning: must be an object", 0, 0},
        {"{\"maxDowntimeMs\":0}", "options.maxDowntimeMs: must be a whole number from 1 to 2000000",
         0, 0},
        {"[]", "options: must be an object", 0, 0},
        {"{\"unsafe\":1}", "options.unsafe: must be true or false", 0, 0},
        {"{\"progressTimeoutS\":-1}",
         "options.progressTimeoutS: must be a whole number from 0 to 2147483648", 0, 0},
        {"{\"bandwidthBytesPerS\":1.5}",
         "options.bandwidthBytesPerS: must be a whole number from 0 to 1125899906842624", 0, 0},
    };
    const unsigned always = VIR_MIGRATE_LIVE | VIR_MIGRATE_PEER2PEER | VIR_MIGRATE_PERSIST_DEST;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        yyjson_doc *doc = yyjson_read(cases[i].json, strlen(cases[i].json), 0);
        struct wire_options o;
        struct migrate_call c;
        struct ferry_error err = {0};
        int rc = wire_options_read(yyjson_doc_get_root(doc), &o, &err);

        yyjson_doc_free(doc);
        assert_string_equal(err.msg, cases[i].message ? cases[i].message : "");
        if (rc < 0) {
            continue;
        }
        for (int paused = 0; paused < 2; paused++) {
            struct migrate_call_input in = {
                .dir = "/run/m", .key = "KEY", .paused = paused, .qemu_version = 10000002};

            migrate_call_make(&o, &in, &c);
            assert_int_equal(c.note != NULL, o.parallel_connections && o.allow_post_copy);
            assert_int_equal(c.connections, c.flags & VIR_MIGRATE_PARALLEL ? 4 : 0);
            assert_int_equal(c.flags,
                             always | cases[i].flags | (paused ? VIR_MIGRATE_PAUSED : 0)); /* 211 */
            assert_int_equal(c.bandwidth_mib_per_s, cases[i].mib);
            assert_string_equal(c.destination_uri,
                                "qemu+unix:///session?socket=/run/m/KEY-source.sock");
            assert_string_equal(c.memory_uri, "unix:///run/m/KEY-49152-source.sock");
            migrate_call_done(&c);
        }
    }
    struct wire_options both = {.parallel_connections = 4, .allow_post_copy = true};
    struct migrate_call c;
    migrate_call_make(
        &both, &(struct migrate_call_input){.dir = "/d", .key = "k", .qemu_version = 10001000}, &c);
    assert_int_equal(c.flags, always | VIR_MIGRATE_PARALLEL | VIR_MIGRATE_POSTCOPY); /* 205 */
    migrate_call_done(&c);
    migrate_call_make(&both,
                      &(struct migrate_call_input){
                          .dir = "/d", .key = "k", .vfio = true, .qemu_version = 10000002},
                      &c);
    assert_int_equal(c.flags, always | VIR_MIGRATE_PARALLEL); /* nothing to choose between */
    assert_string_equal(c.note,
                        "post-copy is left out: a device of the host is attached to the guest");
    migrate_call_done(&c);
    migrate_call_make(&(struct wire_options){0},
                      &(struct migrate_call_input){.dir = "/d", .key = "k", .system = true}, &c);
    assert_string_equal(c.destination_uri, "qemu+unix:///system?socket=/d/k-source.sock");
    migrate_call_done(&c);
    migrate_call_make(&(struct wire_options){0},
                      &(struct migrate_call_input){.dir = "/d", .key = "k", .copies_disks = true},
                      &c); /* 206; 207 are the others */
    assert_int_equal(c.flags, always | VIR_MIGRATE_NON_SHARED_INC);
    assert_string_equal(c.disks_uri, "unix:///d/k-49153-source.sock");
    migrate_call_done(&c);
    struct wire_options defaults;
    assert_int_equal(wire_options_read(NULL, &defaults, NULL), 0);
    assert_int_equal(defaults.completion_timeout_per_gib_s, 150);
    assert_int_equal(defaults.progress_timeout_s, 150);
    assert_int_equal(defaults.max_downtime_ms, 900);
}

static void samples(void **state)
{
    virTypedParameterPtr p = NULL;
    int n = 0, max = 0;
    struct launcher_sample s;

    (void)state;
    sample_decode(VIR_DOMAIN_JOB_NONE, NULL, 0, &s);
    assert_false(s.present);
    assert_false(s.active);
    assert_int_equal(s.downtime_ms, -1);

    virTypedParamsAddInt(&p, &n, &max, VIR_DOMAIN_JOB_OPERATION,
                         VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT);
    virTypedParamsAddULLong(&p, &n, &max, VIR_DOMAIN_JOB_TIME_ELAPSED, 10319);
    sample_decode(VIR_DOMAIN_JOB_UNBOUNDED, p, n, &s);
    assert_true(s.active);
    assert_false(s.present);
    virTypedParamsAddULLong(&p, &n, &max, VIR_DOMAIN_JOB_DATA_TOTAL, 537403392);
    virTypedParamsAddULLong(&p, &n, &max, VIR_DOMAIN_JOB_DATA_PROCESSED, 407651867);
    virTypedParamsAddULLong(&p, &n, &max, VIR_DOMAIN_JOB_DATA_REMAINING, 98492416);
    virTypedParamsAddULLong(&p, &n, &max, VIR_DOMAIN_JOB_MEMORY_BPS, 36685871);
    virTypedParamsAddULLong(&p, &n, &max, VIR_DOMAIN_JOB_MEMORY_DIRTY_RATE, 7555);
    virTypedParamsAddULLong(&p, &n, &max, VIR_DOMAIN_JOB_MEMORY_PAGE_SIZE, 4096);
    virTypedParamsAddULLong(&p, &n, &max, VIR_DOMAIN_JOB_MEMORY_ITERATION, 2);
    virTypedParamsAddULLong(&p, &n, &max, VIR_DOMAIN_JOB_DOWNTIME, 2795);
    virTypedParamsAddInt(&p, &n, &max, VIR_DOMAIN_JOB_AUTO_CONVERGE_THROTTLE, 35);
    sample_decode(VIR_DOMAIN_JOB_UNBOUNDED, p, n, &s);
    assert_true(s.present && s.active);
    assert_int_equal(s.dirty_bytes_per_s, 7555 * 4096);
    assert_int_equal(s.remaining_bytes, 98492416);
    assert_int_equal(s.downtime_ms, 2795);

    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(doc, wire_launcher_sample_write(doc, &s));
    ferry_cleanup_free char *text = yyjson_mut_write(doc, 0, NULL);
    yyjson_mut_doc_free(doc);
    assert_string_equal(text, "{\"elapsedMs\":10319,\"totalBytes\":537403392,"
                              "\"processedBytes\":407651867,\"remainingBytes\":98492416,"
                              "\"bytesPerS\":36685871,\"dirtyBytesPerS\":30945280,\"iteration\":2,"
                              "\"expectedDowntimeMs\":2795,\"throttlePercent\":35}");
    sample_decode(VIR_DOMAIN_JOB_COMPLETED, p, n, &s);
    assert_false(s.active);
    virTypedParamsFree(p, n);
}

static void state_survives_the_file(void **state)
{
    char path[] = "/tmp/ferry-test-state-XXXXXX";
    ferry_cleanup_fd int fd = mkstemp(path);
    struct state *s;
    struct state_values v;
    struct ferry_error err;
    struct state_migration m = {
        .role = LAUNCHER_ROLE_SOURCE,
        .phase = LAUNCHER_RUNNING,
        .uid = "m-1",
        .mode = MODE_PRE_COPY,
        .start_ms = 1700000000123,
        .abort = STATE_ABORT_ASKED,
        .abort_status = ABORT_UNDER_WAY,
        .abort_accepted = true,
        .abort_detail = "figures",
        .downtime_ms = -1,
        .options = {.bandwidth_bytes_per_s = 5,
                    .allow_auto_converge = true,
                    .max_downtime_ms = 900},
    };

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(state_open(path, &s, &err), 0); /* empty: fresh */
    struct state_values *w = state_lock(s);
    w->vm = STATE_VM_STARTED;
    w->stop = true;
    w->stop_deadline_ms = 77;
    snprintf(w->host_uuid, sizeof(w->host_uuid), "abc");
    state_begin_migration(w, &m);
    snprintf(m.uid, sizeof(m.uid), "m-2");
    state_begin_migration(w, &m);
    assert_int_equal(state_commit(s, &err), 0);
    state_close(s);

    assert_int_equal(state_open(path, &s, &err), 0);
    state_get(s, &v);
    assert_int_equal(v.vm, STATE_VM_STARTED);
    assert_true(v.stop);
    assert_int_equal(v.stop_deadline_ms, 77);
    assert_string_equal(v.host_uuid, "abc");
    struct state_values want = v;
    want.migration = m;
    ferry_cleanup_free char *have_text = state_encode(&v);
    ferry_cleanup_free char *want_text = state_encode(&want);
    assert_string_equal(have_text, want_text);
    assert_true(state_uid_known(&v, "m-1"));
    assert_true(state_uid_known(&v, "m-2"));
    assert_false(state_uid_known(&v, "m-3"));
    state_close(s);

    /* a target's options are none, and that is fine */
    m = (struct state_migration){.role = LAUNCHER_ROLE_TARGET, .uid = "m-3", .downtime_ms = -1};
    assert_int_equal(state_open(path, &s, &err), 0);
    state_begin_migration(state_lock(s), &m);
    assert_int_equal(state_commit(s, &err), 0);
    state_close(s);
    assert_int_equal(state_open(path, &s, &err), 0);
    state_close(s);

    assert_int_equal(ferry_write_file(path, "{\"vm\":\"odd\"}", 12, 0600, &err), 0);
    assert_int_equal(state_open(path, &s, &err), -FERRY_INVALID);
    assert_int_equal(ferry_write_file(path, "{", 1, 0600, &err), 0);
    assert_int_equal(state_open(path, &s, &err), -FERRY_INVALID);
    unlink(path);
}

static void old_migrations_are_forgotten_in_order(void **state)
{
    struct state_values v;
    struct state_migration m = {.role = LAUNCHER_ROLE_SOURCE};

    (void)state;
    state_values_init(&v);
    for (int i = 0; i < STATE_PAST_MAX + 3; i++) {
        snprintf(m.uid, sizeof(m.uid), "m-%d", i);
        state_begin_migration(&v, &m);
    }
    assert_false(state_uid_known(&v, "m-1"));
    assert_true(state_uid_known(&v, "m-2"));
    assert_true(state_uid_known(&v, "m-34"));
    assert_true(state_uid_valid("6a4fd0bb-5a4b-4a39-8a70-4f9d2f4a7f01"));
    assert_false(state_uid_valid(""));
    assert_false(state_uid_valid("../x"));
    assert_false(state_uid_valid(NULL));
}

static void statuses(void **state)
{
    struct state_values values = {.migration = {.downtime_ms = -1}};
    struct state_migration *m = &values.migration;
    struct launcher_sample s = {0};
    struct view v = RUNNING;
    ferry_cleanup_free char *none = status_json(&v, "", &values, &s);

    (void)state;
    assert_string_equal(none, "{\"domain\":{\"state\":\"running\",\"reason\":\"booted\"}}");
    ferry_cleanup_free char *typed = status_json(&v, "pc-q35-9.2", &values, &s);
    assert_string_equal(typed, "{\"domain\":{\"state\":\"running\",\"reason\":\"booted\"},"
                               "\"machine\":\"pc-q35-9.2\"}");
    *m = (struct state_migration){.role = LAUNCHER_ROLE_SOURCE,
                                  .phase = LAUNCHER_FAILED,
                                  .uid = "m-1",
                                  .mode = MODE_PRE_COPY,
                                  .start_ms = 1700000000000,
                                  .end_ms = 1700000001000,
                                  .abort = STATE_ABORT_ASKED,
                                  .abort_status = ABORT_SUCCEEDED,
                                  .failure_reason = "Live migration has been aborted",
                                  .reason_code = "Aborted",
                                  .downtime_ms = -1};
    ferry_cleanup_free char *failed = status_json(&v, "", &values, &s);
    assert_string_equal(
        failed, "{\"domain\":{\"state\":\"running\",\"reason\":\"booted\"},\"migration\":{"
                "\"uid\":\"m-1\",\"role\":\"source\",\"phase\":\"failed\",\"mode\":\"PreCopy\","
                "\"startTimestamp\":\"2023-11-14T22:13:20Z\","
                "\"endTimestamp\":\"2023-11-14T22:13:21Z\",\"abortRequested\":true,"
                "\"abortStatus\":\"Succeeded\","
                "\"failureReason\":\"Live migration has been aborted\","
                "\"reasonCode\":\"Aborted\"}}");
    m->phase = LAUNCHER_RUNNING; /* 172: being aborted is not an end */
    m->end_ms = 0;
    m->abort_status = ABORT_UNDER_WAY;
    ferry_cleanup_free char *aborting = status_json(&v, "", &values, &s);
    assert_non_null(strstr(aborting, "\"abortStatus\":\"Aborting\""));
    assert_null(strstr(aborting, "endTimestamp"));
    v = MOVED;
    *m = (struct state_migration){.downtime_ms = -1};
    ferry_cleanup_free char *left = status_json(&v, "pc-q35-9.2", &values, &s);
    assert_string_equal(left, "{\"domain\":{\"state\":\"shutoff\",\"reason\":\"migrated\"}}");
    v = view_none();
    *m = (struct state_migration){
        .role = LAUNCHER_ROLE_SOURCE, .phase = LAUNCHER_SUCCEEDED, .uid = "m-1", .downtime_ms = 25};
    s = (struct launcher_sample){.present = true, .remaining_bytes = 5, .downtime_ms = -1};
    ferry_cleanup_free char *done = status_json(&v, "", &values, &s);
    assert_non_null(strstr(done, "{\"domain\":{\"state\":\"none\",\"reason\":\"\"}"));
    assert_non_null(strstr(done, "\"downtimeMs\":25"));
    assert_non_null(strstr(done, "\"remainingBytes\":5"));
    assert_null(strstr(done, "expectedDowntimeMs"));
}

/* What libvirt tells of a guest, one event after the other, and what the launcher says then. */
static void guests_are_told_of(void **state)
{
    static const struct {
        const char *name;
        struct guest_event events[3];
        int libvirt_state, libvirt_reason;
        int64_t kills;
        const char *words; /* that the status has; one with a ! it has not */
    } cases[] = {
        {"nothing", {{0}}, VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_BOOTED, 9, "!guest"},
        {"reset",
         {{.what = GUEST_RESET}},
         VIR_DOMAIN_RUNNING,
         VIR_DOMAIN_RUNNING_BOOTED,
         0,
         "\"guest\":{\"resetTimestamp\":\"2023-11-14T22:13:20Z\"}"},
        {"reset by its watchdog",
         {{.what = GUEST_WATCHDOG, .watchdog = LAUNCHER_WATCHDOG_RESET}, {.what = GUEST_RESET}},
         VIR_DOMAIN_RUNNING,
         VIR_DOMAIN_RUNNING_BOOTED,
         0,
         "resetTimestamp|watchdogTimestamp|\"watchdogAction\":\"reset\""},
        {"paused by its watchdog",
         {{.what = GUEST_WATCHDOG, .watchdog = LAUNCHER_WATCHDOG_PAUSE}},
         VIR_DOMAIN_PAUSED,
         VIR_DOMAIN_PAUSED_WATCHDOG,
         0,
         "\"reason\":\"watchdog\"|\"watchdogAction\":\"pause\""},
        {"disk full",
         {{.what = GUEST_DISK_ERROR, .disk_error = LAUNCHER_DISK_FULL, .volume = "data"}},
         VIR_DOMAIN_PAUSED,
         VIR_DOMAIN_PAUSED_IOERROR,
         0,
         "\"reason\":\"io-error\"|\"volume\":\"data\"|\"diskError\":\"no-space\""},
        {"disk full, and then there was room",
         {{.what = GUEST_DISK_ERROR, .disk_error = LAUNCHER_DISK_FULL, .volume = "data"}},
         VIR_DOMAIN_RUNNING,
         VIR_DOMAIN_RUNNING_UNPAUSED,
         0,
         "!guest"},
        {"QEMU died",
         {{0}},
         VIR_DOMAIN_SHUTOFF,
         VIR_DOMAIN_SHUTOFF_CRASHED,
         2,
         "\"state\":\"crashed\",\"reason\":\"crashed\""},
        {"QEMU was killed for memory",
         {{0}},
         VIR_DOMAIN_SHUTOFF,
         VIR_DOMAIN_SHUTOFF_CRASHED,
         3,
         "\"state\":\"crashed\",\"reason\":\"out-of-memory\""},
        {"something else was killed for memory",
         {{0}},
         VIR_DOMAIN_SHUTOFF,
         VIR_DOMAIN_SHUTOFF_SHUTDOWN,
         3,
         "\"reason\":\"shutdown\""},
        {"its kernel panicked",
         {{.what = GUEST_PANICKED}},
         VIR_DOMAIN_SHUTOFF,
         VIR_DOMAIN_SHUTOFF_CRASHED,
         2,
         "\"state\":\"crashed\",\"reason\":\"guest-panicked\""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct state_values before, v;
        struct launcher_sample none = {0};
        struct ferry_error err;

        state_values_init(&before);
        before.oom_kills = 2; /* when it was started */
        for (size_t k = 0; k < COUNT_OF(cases[i].events); k++) {
            const struct guest_event *e = &cases[i].events[k];

            assert_int_equal(guest_note(&before, e, 1700000000000), e->what != GUEST_NOTHING);
        }
        /* A launcher that was started again knows as much. */
        ferry_cleanup_free char *kept = state_encode(&before);
        assert_int_equal(state_decode(kept, strlen(kept), &v, &err), 0);
        struct view domain = view_of(cases[i].libvirt_state, cases[i].libvirt_reason);
        struct view seen = guest_view(&domain, &v, cases[i].kills);
        ferry_cleanup_free char *text = status_json(&seen, "", &v, &none);
        ferry_cleanup_free char *list = ferry_strdup(cases[i].words);
        char *save = NULL;
        for (char *w = strtok_r(list, "|", &save); w; w = strtok_r(NULL, "|", &save)) {
            if ((strstr(text, w + (*w == '!')) != NULL) == (*w == '!')) {
                fail_msg("%s: '%s' in %s", cases[i].name, w, text);
            }
        }
    }
}

static void guest_events(void **state)
{
    struct guest_event e =
        guest_event_of_disk(VIR_DOMAIN_EVENT_IO_ERROR_PAUSE, "ua-root", "enospc");

    (void)state;
    assert_int_equal(e.what, GUEST_DISK_ERROR);
    assert_int_equal(e.disk_error, LAUNCHER_DISK_FULL);
    assert_string_equal(e.volume, "root");
    e = guest_event_of_disk(VIR_DOMAIN_EVENT_IO_ERROR_PAUSE, "virtio-disk0", "");
    assert_int_equal(e.disk_error, LAUNCHER_DISK_BROKEN);
    assert_string_equal(e.volume, "");
    e = guest_event_of_disk(VIR_DOMAIN_EVENT_IO_ERROR_PAUSE, NULL, NULL);
    assert_int_equal(e.disk_error, LAUNCHER_DISK_BROKEN);
    assert_int_equal(guest_event_of_disk(VIR_DOMAIN_EVENT_IO_ERROR_REPORT, "ua-a", "").what,
                     GUEST_NOTHING);
    assert_int_equal(
        guest_event_of_lifecycle(VIR_DOMAIN_EVENT_CRASHED, VIR_DOMAIN_EVENT_CRASHED_PANICKED).what,
        GUEST_PANICKED);
    assert_int_equal(
        guest_event_of_lifecycle(VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_CRASHED).what,
        GUEST_NOTHING);
    assert_int_equal(guest_event_of_watchdog(VIR_DOMAIN_EVENT_WATCHDOG_POWEROFF).watchdog,
                     LAUNCHER_WATCHDOG_POWEROFF);
    assert_int_equal(guest_event_of_watchdog(4711).watchdog, LAUNCHER_WATCHDOG_OTHER);
    assert_int_equal(guest_event_of_watchdog(-1).watchdog, LAUNCHER_WATCHDOG_OTHER);
}

static void classes_of_machines(void **state)
{
    static const struct {
        const char *class, *type;
    } cases[] = {
        {"pc-i440fx-10.0-machine", "pc-i440fx-10.0"},
        {"pc-q35-rhel9.6.0-machine", "pc-q35-rhel9.6.0"},
        {"microvm-machine", ""}, /* none that we start */
        {"pc-q35-9.2", ""},
        {"-machine", ""},
        {"pc-q35-\"x-machine", ""},
        {"pc-q35-01234567890123456789012345678901234567890123456789012345678-machine", ""},
        {"", ""},
        {NULL, ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char type[MACHINE_SIZE];

        machine_of_class(cases[i].class, type);
        assert_string_equal(type, cases[i].type);
    }
}

/* Words that are looked for because there is no code: the QEMU that is here still says them. */
static void words_of_qemu(void **state)
{
    static const char words[] = "has to be smaller or equal to the";
    ferry_cleanup_buf struct ferry_buf program = {0};

    (void)state;
    if (ferry_read_file("/usr/bin/qemu-system-x86_64", 256 << 20, &program, NULL) < 0) {
        skip();
    }
    assert_non_null(memmem(program.data, program.len, words, sizeof(words) - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uris),
        cmocka_unit_test(views),
        cmocka_unit_test(results),
        cmocka_unit_test(gates),
        cmocka_unit_test(gate_files),
        cmocka_unit_test(what_qemu_did_not_send),
        cmocka_unit_test(arrivals),
        cmocka_unit_test(options_and_calls),
        cmocka_unit_test(samples),
        cmocka_unit_test(state_survives_the_file),
        cmocka_unit_test(old_migrations_are_forgotten_in_order),
        cmocka_unit_test(classes_of_machines),
        cmocka_unit_test(words_of_qemu),
        cmocka_unit_test(statuses),
        cmocka_unit_test(guests_are_told_of),
        cmocka_unit_test(guest_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
