/* The words between programs: what is written is read again as it was, and what nobody of ours
 * would write is as if it were not there. */
#include "lib/unit.h"

#include "api/object.h"
#include "api/wire/wire_abort.h"
#include "api/wire/wire_addresses.h"
#include "api/wire/wire_clock.h"
#include "api/wire/wire_disks.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_launcher_status.h"
#include "api/wire/wire_mode.h"
#include "api/wire/wire_move.h"
#include "api/wire/wire_networks.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_progress.h"
#include "api/wire/wire_queue.h"
#include "api/wire/wire_reason.h"
#include "api/wire/wire_result.h"
#include "api/wire/wire_trouble.h"
#include "base/str.h"

#define BIG "99999999999999999999"

/* No annotation of ours, whichever it is. */
static const char *const rubbish[] = {
    NULL,
    "",
    " ",
    "x",
    "{",
    "[]",
    "[1]",
    "7",
    "\"text\"",
    "null",
    "{\"a\":1",
    "{\"a\":1}}",
    "{\"\xff\":1}",
    "{\"uid\":\"m\",\"uid\":\"m\"}",
    "{\"uid\":\"m\\u0000\"}",
};

static char *much(const char *before, size_t n, const char *after)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    ferry_buf_puts(&b, before);
    for (size_t i = 0; i < n; i++) {
        ferry_buf_puts(&b, "x");
    }
    ferry_buf_puts(&b, after);
    return ferry_buf_take(&b);
}

/* ---- phases ----------------------------------------------------------------------------------
 */

static void phases(void **state)
{
    static const struct {
        const char *text;
        enum wire_phase phase;
        bool over;
    } cases[] = {
        {NULL, PHASE_NONE, false},
        {"", PHASE_NONE, false},
        {"Pending", PHASE_PENDING, false},
        {"Scheduling", PHASE_SCHEDULING, false},
        {"Scheduled", PHASE_SCHEDULED, false},
        {"PreparingTarget", PHASE_PREPARING_TARGET, false},
        {"TargetReady", PHASE_TARGET_READY, false},
        {"Running", PHASE_RUNNING, false},
        {"Succeeded", PHASE_SUCCEEDED, true},
        {"Failed", PHASE_FAILED, true},
        {"Unknown", PHASE_UNKNOWN, false},
        {"WaitingForSync", PHASE_UNKNOWN, false},
        {"running", PHASE_UNKNOWN, false},
        {"Succeeded ", PHASE_UNKNOWN, false},
        {"Succeede", PHASE_UNKNOWN, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct api_vmi vmi = {.phase = cases[i].text};
        const struct api_pod pod = {.phase = cases[i].text};
        const struct api_migration m = {.phase = cases[i].text};

        print_message("  '%s'\n", cases[i].text ? cases[i].text : "(absent)");
        assert_int_equal(wire_phase_of(cases[i].text), cases[i].phase);
        assert_int_equal(wire_phase_is_over(cases[i].text), cases[i].over);
        assert_int_equal(wire_vmi_is_over(&vmi), cases[i].over);
        assert_int_equal(wire_pod_is_over(&pod), cases[i].over);
        assert_int_equal(wire_migration_is_over(&m), cases[i].over);
        for (int p = PHASE_NONE; p < PHASE_UNKNOWN; p++) {
            assert_int_equal(wire_phase_is(cases[i].text, (enum wire_phase)p),
                             p == (int)cases[i].phase);
        }
    }
    for (int p = PHASE_NONE; p < PHASE_COUNT; p++) {
        assert_int_equal(wire_phase_of(wire_phase_text((enum wire_phase)p)), p);
    }
    assert_string_equal(wire_phase_shown(NULL), "Pending");
    assert_string_equal(wire_phase_shown(""), "Pending");
    assert_string_equal(wire_phase_shown("Running"), "Running");
}

/* ---- modes and aborts ------------------------------------------------------------------------
 */

static void modes_and_aborts(void **state)
{
    static const char *const modes[] = {"", "PreCopy", "Paused", "PostCopy"};
    static const char *const aborts[] = {"", "Aborting", "Succeeded", "Failed"};

    (void)state;
    assert_int_equal(COUNT_OF(modes), MODE_COUNT);
    assert_int_equal(COUNT_OF(aborts), ABORT_COUNT);
    for (int i = 0; i < MODE_COUNT; i++) {
        assert_string_equal(wire_mode_text((enum wire_mode)i), modes[i]);
        assert_int_equal(wire_mode_is(NULL, (enum wire_mode)i), i == MODE_NONE);
        assert_false(wire_mode_is("precopy", (enum wire_mode)i));
        for (int k = 0; k < MODE_COUNT; k++) {
            assert_int_equal(wire_mode_is(modes[k], (enum wire_mode)i), i == k);
        }
    }
    for (int i = 0; i < ABORT_COUNT; i++) {
        assert_string_equal(wire_abort_text((enum wire_abort)i), aborts[i]);
        assert_int_equal(wire_abort_is(NULL, (enum wire_abort)i), i == ABORT_NONE);
        for (int k = 0; k < ABORT_COUNT; k++) {
            assert_int_equal(wire_abort_is(aborts[k], (enum wire_abort)i), i == k);
        }
    }
}

/* ---- reasons ---------------------------------------------------------------------------------
 */

static void reasons(void **state)
{
    static const struct {
        const char *failure;
        enum wire_reason reason;
    } cases[] = {
        {NULL, REASON_NONE},
        {"", REASON_NONE},
        {":", REASON_NONE},
        {"TargetLost", REASON_NONE},
        {"TargetLost: the target is gone", REASON_TARGET_LOST},
        {"TargetLost:", REASON_TARGET_LOST},
        {"UnschedulableTimeout: no node", REASON_UNSCHEDULABLE_TIMEOUT},
        {"Unschedulable: its own node", REASON_UNSCHEDULABLE},
        {" TargetLost: x", REASON_NONE},
        {"targetlost: x", REASON_NONE},
        {"Target: x", REASON_NONE},
        {"internal error: TargetLost: x", REASON_NONE},
        {"Quota: a wait is no failure", REASON_NONE},
    };

    (void)state;
    assert_null(wire_reason_text(REASON_NONE));
    assert_int_equal(wire_reason_of(NULL), REASON_NONE);
    assert_int_equal(wire_reason_of(""), REASON_NONE);
    assert_int_equal(wire_reason_of("Nonsense"), REASON_NONE);
    assert_int_equal(wire_reason_of("quota"), REASON_NONE);
    for (int i = REASON_NONE + 1; i < REASON_COUNT; i++) {
        enum wire_reason r = (enum wire_reason)i;
        ferry_cleanup_free char *failure = wire_reason_failure(r, "what happened: this");

        assert_int_equal(wire_reason_of(wire_reason_text(r)), r);
        assert_true(wire_reason_is_wait(r) || wire_reason_is_failure(r));
        assert_int_equal(wire_reason_of_failure(failure),
                         wire_reason_is_failure(r) ? r : REASON_NONE);
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        print_message("  '%s'\n", cases[i].failure ? cases[i].failure : "(absent)");
        assert_int_equal(wire_reason_of_failure(cases[i].failure), cases[i].reason);
    }
}

/* ---- progress --------------------------------------------------------------------------------
 */

#define SAMPLE                                                                                     \
    "\"elapsedMs\":10,\"totalBytes\":1000,\"processedBytes\":600,\"remainingBytes\":400,"          \
    "\"bytesPerS\":50,\"dirtyBytesPerS\":5,\"iteration\":2,\"expectedDowntimeMs\":30,"             \
    "\"throttlePercent\":20,\"diskTotalBytes\":70,\"diskRemainingBytes\":7"
#define FIGURES                                                                                    \
    .has_figures = true, .elapsed_ms = 10, .total_bytes = 1000, .processed_bytes = 600,            \
    .remaining_bytes = 400, .bytes_per_s = 50, .dirty_bytes_per_s = 5, .iteration = 2,             \
    .expected_downtime_ms = 30, .throttle_percent = 20, .disk_total_bytes = 70,                    \
    .disk_remaining_bytes = 7

static void check_progress(const char *what, const struct wire_progress *p,
                           const struct wire_progress *want)
{
    print_message("  %s\n", what);
    assert_string_equal(p->uid, want->uid);
    assert_string_equal(p->mode, want->mode);
    assert_int_equal(p->done, want->done);
    assert_int_equal(p->path_away, want->path_away);
    assert_int_equal(p->downtime_ms, want->downtime_ms);
    assert_int_equal(p->has_figures, want->has_figures);
    assert_int_equal(p->elapsed_ms, want->elapsed_ms);
    assert_int_equal(p->total_bytes, want->total_bytes);
    assert_int_equal(p->processed_bytes, want->processed_bytes);
    assert_int_equal(p->remaining_bytes, want->remaining_bytes);
    assert_int_equal(p->bytes_per_s, want->bytes_per_s);
    assert_int_equal(p->dirty_bytes_per_s, want->dirty_bytes_per_s);
    assert_int_equal(p->iteration, want->iteration);
    assert_int_equal(p->expected_downtime_ms, want->expected_downtime_ms);
    assert_int_equal(p->throttle_percent, want->throttle_percent);
    assert_int_equal(p->disk_total_bytes, want->disk_total_bytes);
    assert_int_equal(p->disk_remaining_bytes, want->disk_remaining_bytes);
}

static void progress(void **state)
{
    static const struct {
        const char *text; /* as it is written */
        struct wire_progress p;
    } written[] = {
        {"{\"uid\":\"m\",\"mode\":\"\",\"phase\":\"running\",\"path\":\"up\"}",
         {.uid = "m", .downtime_ms = -1}},
        {"{" SAMPLE ",\"uid\":\"m\",\"mode\":\"PreCopy\",\"phase\":\"running\",\"path\":\"away\"}",
         {.uid = "m", .mode = "PreCopy", .path_away = true, .downtime_ms = -1, FIGURES}},
        {"{" SAMPLE ",\"uid\":\"m\",\"mode\":\"PostCopy\",\"phase\":\"succeeded\",\"path\":\"up\","
         "\"downtimeMs\":12}",
         {.uid = "m", .mode = "PostCopy", .done = true, .downtime_ms = 12, FIGURES}},
    };
    static const struct {
        const char *name, *text;
        struct wire_progress p;
    } others[] = {
        {"nothing in it", "{}", {.downtime_ms = -1}},
        {"members that are not known",
         "{\"uid\":\"m\",\"new\":{\"a\":[1]},\"mode\":\"PreCopy\"}",
         {.uid = "m", .mode = "PreCopy", .downtime_ms = -1}},
        {"of another type",
         "{\"uid\":7,\"mode\":[],\"phase\":true,\"path\":{},\"downtimeMs\":\"1\",\"totalBytes\":"
         "\"9\",\"elapsedMs\":null,\"iteration\":1.5}",
         {.has_figures = true, .downtime_ms = -1}},
        {"out of range",
         "{\"downtimeMs\":-2,\"totalBytes\":-1,\"processedBytes\":" BIG ",\"elapsedMs\":" BIG
         "0,\"throttlePercent\":101,\"iteration\":2147483648,\"remainingBytes\":2e18}",
         {.has_figures = true, .downtime_ms = -1}},
        {"whole all the same",
         "{\"bytesPerS\":2.5e6}",
         {.has_figures = true, .bytes_per_s = 2500000, .downtime_ms = -1}},
        {"too long for a mode", "{\"mode\":\"PreCopyPreCopyPreCopy\"}", {.downtime_ms = -1}},
        {"a path that is not known", "{\"path\":\"sideways\"}", {.downtime_ms = -1}},
    };
    struct wire_progress p;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(written); i++) {
        ferry_cleanup_free char *text = wire_progress_text(&written[i].p);

        assert_string_equal(text, written[i].text);
        assert_true(wire_progress_of(text, "m", &p));
        check_progress(text, &p, &written[i].p);
        assert_false(wire_progress_of(text, "n", &p));
        assert_false(wire_progress_of(text, "", &p));
        assert_false(wire_progress_of(text, NULL, &p));
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_true(wire_progress_read(others[i].text, &p));
        check_progress(others[i].name, &p, &others[i].p);
    }
    for (size_t i = 0; i < COUNT_OF(rubbish); i++) {
        assert_false(wire_progress_read(rubbish[i], &p));
        check_progress("rubbish", &p, &(struct wire_progress){.downtime_ms = -1});
    }
    ferry_cleanup_free char *uid = much("{\"uid\":\"", WIRE_UID, "\"}");
    ferry_cleanup_free char *all = much("{\"a\":\"", WIRE_TEXT_MAX, "\"}");
    assert_true(wire_progress_read(uid, &p) && !p.uid[0]);
    assert_false(wire_progress_read(all, &p));
    assert_null(wire_progress_text(&(struct wire_progress){.mode = "\xff"}));
}

/* What a launcher tells of a move, and what of it reaches the annotation. */
static void figures(void **state)
{
    static const struct {
        struct launcher_sample s;
        struct wire_progress p;
    } cases[] = {
        {{.present = false}, {.done = false}},
        {{.elapsed_ms = 7, .total_bytes = 8}, {.done = false}}, /* none yet */
        {{true, true, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
         {.has_figures = true,
          .elapsed_ms = 1,
          .total_bytes = 2,
          .processed_bytes = 3,
          .remaining_bytes = 4,
          .disk_total_bytes = 5,
          .disk_remaining_bytes = 6,
          .bytes_per_s = 7,
          .dirty_bytes_per_s = 8,
          .iteration = 9,
          .expected_downtime_ms = 11,
          .throttle_percent = 12}},
        {{.present = true,
          .total_bytes = 5,
          .bytes_per_s = -1,
          .downtime_ms = -1,
          .throttle_percent = 101},
         {.has_figures = true, .total_bytes = 5}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct wire_progress p = {0};

        wire_progress_figures(&cases[i].s, &p);
        check_progress("figures", &p, &cases[i].p);
    }
}
/* ---- queue and result ------------------------------------------------------------------------
 */

static void queue(void **state)
{
    static const struct {
        const char *text;
        struct wire_queue q;
    } written[] = {
        {"{\"reason\":\"ClusterLimit\",\"message\":\"5 run\",\"blocker\":\"ns/a\",\"position\":7,"
         "\"since\":\"2026-01-01T00:00:00Z\",\"checkSeconds\":5}",
         {REASON_CLUSTER_LIMIT, "5 run", "ns/a", 7, INT64_C(1767225600000), 5, 0, NULL}},
        {"{\"reason\":\"Refused\",\"message\":\"say \\\"no\\\"\",\"position\":0,"
         "\"since\":\"2026-01-01T00:00:00Z\",\"deadline\":\"2026-01-01T00:05:00Z\"}",
         {REASON_REFUSED, "say \"no\"", NULL, 0, INT64_C(1767225600000), 0, INT64_C(1767225900000),
          NULL}},
        {"{\"reason\":\"NeverSchedulable\",\"lack\":{\"of\":\"cpu\",\"message\":\"b lacks x\"},"
         "\"position\":0}",
         {.reason = REASON_NEVER_SCHEDULABLE, .lack = WIRE_LACK_CPU, .lack_text = "b lacks x"}},
        {"{\"position\":0}", {0}},
    };
    static const struct {
        const char *name, *text;
        struct wire_queue q;
    } others[] = {
        {"nothing in it", "{}", {0}},
        {"of another type",
         "{\"reason\":1,\"message\":[],\"blocker\":{},\"position\":\"1\",\"since\":5,"
         "\"checkSeconds\":true,\"deadline\":null}",
         {0}},
        {"out of range",
         "{\"reason\":\"Nonsense\",\"position\":-1,\"checkSeconds\":" BIG
         ",\"since\":\"yesterday\",\"deadline\":\"9999-99-99T00:00:00Z\"}",
         {0}},
        {"members that are not known",
         "{\"reason\":\"Quota\",\"new\":[{}]}",
         {.reason = REASON_QUOTA}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(written) + COUNT_OF(others); i++) {
        bool ours = i < COUNT_OF(written);
        const struct wire_queue *want = ours ? &written[i].q : &others[i - COUNT_OF(written)].q;
        const char *text = ours ? written[i].text : others[i - COUNT_OF(written)].text;
        ferry_cleanup_free char *again = wire_queue_text(want);
        wire_cleanup_queue struct wire_queue q = {0};

        print_message("  %s\n", text);
        assert_true(!ours || strcmp(again, text) == 0);
        assert_true(wire_queue_read(text, &q));
        assert_int_equal(q.reason, want->reason);
        assert_true(ferry_streq(q.message, want->message));
        assert_true(ferry_streq(q.blocker, want->blocker));
        assert_int_equal(q.position, want->position);
        assert_int_equal(q.since_ms, want->since_ms);
        assert_int_equal(q.check_s, want->check_s);
        assert_int_equal(q.deadline_ms, want->deadline_ms);
        assert_int_equal(q.lack, want->lack);
        assert_true(ferry_streq(q.lack_text, want->lack_text));
    }
    for (size_t i = 0; i < COUNT_OF(rubbish); i++) {
        struct wire_queue q;

        assert_false(wire_queue_read(rubbish[i], &q));
        assert_true(!q.doc && !q.message && !q.reason);
    }
    assert_null(wire_queue_text(&(struct wire_queue){.message = "\xff"}));
}

static void results(void **state)
{
    static const struct {
        const char *text;
        struct wire_result r;
        bool ours;
    } cases[] = {
        {"{\"totalMs\":30,\"downtimeMs\":12,\"transferredBytes\":4096}", {12, 30, 4096}, true},
        {"{\"totalMs\":0}", {-1, 0, -1}, true},
        {"{}", {-1, -1, -1}, true},
        {"{\"downtimeMs\":12,\"new\":[1]}", {12, -1, -1}, false},
        {"{\"downtimeMs\":-1,\"totalMs\":\"3\",\"transferredBytes\":" BIG "}", {-1, -1, -1}, false},
    };
    struct wire_result r;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *text = wire_result_text(&cases[i].r);

        print_message("  %s\n", cases[i].text);
        assert_true(!cases[i].ours || strcmp(text, cases[i].text) == 0);
        assert_true(wire_result_read(cases[i].text, &r));
        assert_memory_equal(&r, &cases[i].r, sizeof(r));
    }
    for (size_t i = 0; i < COUNT_OF(rubbish); i++) {
        assert_false(wire_result_read(rubbish[i], &r));
        assert_true(r.downtime_ms == -1 && r.total_ms == -1 && r.transferred_bytes == -1);
    }
}

/* ---- trouble ---------------------------------------------------------------------------------
 */

static void troubles(void **state)
{
    static const struct {
        const char *name, *text, *message;
        enum wire_reason reason;
        enum ferry_class cls;
    } cases[] = {
        {"all there",
         "{\"uid\":\"m\",\"reason\":\"RelayTrouble\",\"class\":\"denied\",\"message\":\"no way\"}",
         "no way", REASON_RELAY_TROUBLE, FERRY_DENIED},
        {"no more than a reason", "{\"uid\":\"m\",\"reason\":\"Refused\",\"new\":1}", "",
         REASON_REFUSED, FERRY_OK},
        {"a class that is not known",
         "{\"uid\":\"m\",\"reason\":\"NetworkTrouble\",\"class\":\"bad\",\"message\":7}", "",
         REASON_NETWORK_TROUBLE, FERRY_OK},
        {"of another move", "{\"uid\":\"n\",\"reason\":\"RelayTrouble\"}", NULL, 0, 0},
        {"of none", "{\"reason\":\"RelayTrouble\"}", NULL, 0, 0},
        {"a reason that no node has", "{\"uid\":\"m\",\"reason\":\"Quota\"}", NULL, 0, 0},
        {"no reason at all", "{\"uid\":\"m\",\"reason\":\"Nonsense\"}", NULL, 0, 0},
        {"of another type", "{\"uid\":\"m\",\"reason\":[\"RelayTrouble\"]}", NULL, 0, 0},
    };
    struct wire_trouble t;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        print_message("  %s\n", cases[i].name);
        assert_int_equal(wire_trouble_of(cases[i].text, "m", &t), cases[i].message != NULL);
        assert_int_equal(t.reason, cases[i].reason);
        assert_int_equal(t.cls, cases[i].cls);
        assert_string_equal(t.message, cases[i].message ? cases[i].message : "");
    }
    for (size_t i = 0; i < COUNT_OF(rubbish); i++) {
        assert_false(wire_trouble_of(rubbish[i], "m", &t));
    }
    for (int c = FERRY_RETRY; c < FERRY_CLASS_COUNT; c++) {
        const struct wire_trouble said = {REASON_LAUNCHER_TROUBLE, (enum ferry_class)c, "say"};
        ferry_cleanup_free char *text = wire_trouble_text("m", &said);

        assert_true(wire_trouble_of(text, "m", &t));
        assert_true(t.reason == said.reason && t.cls == said.cls);
        assert_string_equal(t.message, said.message);
    }
    ferry_cleanup_free char *text =
        much("{\"uid\":\"m\",\"reason\":\"Refused\",\"message\":\"", 255, "\xc3\xa4\"}");
    assert_true(wire_trouble_of(text, "m", &t));
    assert_int_equal(strlen(t.message), 255); /* no half character */
    assert_null(wire_trouble_text("m", &(struct wire_trouble){REASON_REFUSED, 0, "\xff"}));
}

/* ---- disks -----------------------------------------------------------------------------------
 */

static void disks(void **state)
{
    static const struct {
        const char *name, *list, *again; /* NULL = it is none */
    } cases[] = {
        {"none", "[]", "[]"},
        {"two", "[{\"name\":\"a\",\"bytes\":1},{\"name\":\"b\",\"bytes\":0}]",
         "[{\"name\":\"a\",\"bytes\":1},{\"name\":\"b\",\"bytes\":0}]"},
        {"members that are not known", "[{\"bytes\":1,\"new\":{},\"name\":\"a\"}]",
         "[{\"name\":\"a\",\"bytes\":1}]"},
        {"no list", "{}", NULL},
        {"nothing", "null", NULL},
        {"no name", "[{\"bytes\":1}]", NULL},
        {"an empty name", "[{\"name\":\"\",\"bytes\":1}]", NULL},
        {"a long name",
         "[{\"name\":\"0123456789012345678901234567890123456789012345678901234567890123\","
         "\"bytes\":1}]",
         NULL},
        {"no size", "[{\"name\":\"a\"}]", NULL},
        {"less than nothing", "[{\"name\":\"a\",\"bytes\":-1}]", NULL},
        {"too much", "[{\"name\":\"a\",\"bytes\":" BIG "}]", NULL},
        {"a number", "[7]", NULL},
        {"one that is well does not save the other", "[{\"name\":\"a\",\"bytes\":1},7]", NULL},
    };
    struct wire_disks d;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *text =
            ferry_asprintf("{\"uid\":\"m\",\"disks\":%s}", cases[i].list);
        bool told = wire_disks_of(text, "m", &d);
        ferry_cleanup_free char *list = told ? wire_disks_list(&d) : NULL;
        ferry_cleanup_free char *again = told ? wire_disks_text("m", &d) : NULL;

        print_message("  %s\n", cases[i].name);
        assert_true(ferry_streq(list, cases[i].again));
        assert_true(told || d.n == 0);
        assert_true(!told || wire_disks_of(again, "m", &d));
        assert_false(wire_disks_of(text, "n", &d));
    }
    for (size_t i = 0; i < COUNT_OF(rubbish); i++) {
        assert_false(wire_disks_of(rubbish[i], "m", &d));
        assert_int_equal(d.n, 0);
    }
    for (size_t n = WIRE_DISKS; n <= WIRE_DISKS + 1; n++) {
        ferry_cleanup_buf struct ferry_buf b = {0};

        for (size_t i = 0; i < n; i++) {
            ferry_buf_printf(&b, "%s{\"name\":\"d%zu\",\"bytes\":1}",
                             i ? "," : "{\"uid\":\"m\",\"disks\":[", i);
        }
        ferry_buf_puts(&b, "]}");
        assert_int_equal(wire_disks_of(b.data, "m", &d), n == WIRE_DISKS);
    }
}

/* ---- words about a move ----------------------------------------------------------------------
 */

static void words_of_a_move(void **state)
{
    static const struct {
        const char *uid, *text;
        int64_t generation;
        bool never_ran, unconfirmed;
    } cases[] = {
        {"m", NULL, 0, false, false},
        {"m", "", 0, false, false},
        {"m", "m", 0, false, true},
        {"m", "m/1", 1, false, false},
        {"m", "m/2147483647", INT32_MAX, false, false},
        {"m", "m/2147483648", 0, false, false},
        {"m", "m/0", 0, false, false},
        {"m", "m/-1", 0, false, false},
        {"m", "m/1x", 0, false, false},
        {"m", "m/", 0, false, false},
        {"m", "mm/1", 0, false, false},
        {"m", "n/1", 0, false, false},
        {"m", "m/never-ran", 0, true, false},
        {"m", "m/never-ran-", 0, false, false},
        {"m", "n/never-ran", 0, false, false},
        {"m", "mm", 0, false, false},
        {"", "", 0, false, false},
        {"", "/1", 0, false, false},
        {"", "/never-ran", 0, false, false},
        {NULL, "/1", 0, false, false},
        {NULL, "", 0, false, false},
    };
    static const char *const keys[] = {ANNOTATION_RECOVER, ANNOTATION_TARGET_STATE,
                                       ANNOTATION_UNCONFIRMED};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct api_pair pairs[COUNT_OF(keys)];
        struct api_vmi vmi = {.migration = {.uid = cases[i].uid},
                              .meta.annotations = {pairs, cases[i].text ? COUNT_OF(keys) : 0}};

        for (size_t k = 0; k < COUNT_OF(keys); k++) {
            pairs[k] = (struct api_pair){keys[k], cases[i].text};
        }
        print_message("  '%s' of '%s'\n", cases[i].text ? cases[i].text : "(absent)",
                      cases[i].uid ? cases[i].uid : "(none)");
        assert_int_equal(wire_move_generation(&vmi, ANNOTATION_RECOVER), cases[i].generation);
        assert_int_equal(wire_move_generation(&vmi, ANNOTATION_PORTS_GENERATION), 0);
        assert_int_equal(wire_move_never_ran(&vmi), cases[i].never_ran);
        assert_int_equal(wire_move_is_unconfirmed(&vmi), cases[i].unconfirmed);
        ferry_cleanup_free char *never = wire_move_never_ran_text(&vmi);
        ferry_cleanup_free char *third = wire_move_generation_text(&vmi, 3);
        struct api_pair said[] = {{ANNOTATION_RECOVER, third}, {ANNOTATION_TARGET_STATE, never}};
        vmi.meta.annotations = (struct api_map){said, COUNT_OF(said)};
        bool is_move = !ferry_str_empty(cases[i].uid);
        assert_int_equal(wire_move_generation(&vmi, ANNOTATION_RECOVER), is_move ? 3 : 0);
        assert_int_equal(wire_move_never_ran(&vmi), is_move);
    }
}

/* ---- networks --------------------------------------------------------------------------------
 */

static void addresses(void **state)
{
    static const struct {
        const char *name, *text, *again; /* NULL = it cannot be read */
    } cases[] = {
        {"none", "{}", "{}"},
        {"both families", "{\"lan\":[\"10.1.2.3/24\",\"fd00::1/64\"]}",
         "{\"lan\":[\"10.1.2.3/24\",\"fd00::1/64\"]}"},
        {"two interfaces", "{\"lan\":[\"10.1.2.3/24\"],\"wan\":[]}",
         "{\"lan\":[\"10.1.2.3/24\"],\"wan\":[]}"},
        {"no list", "{\"lan\":\"10.1.2.3/24\"}", NULL},
        {"no address", "{\"lan\":[\"lan\"]}", NULL},
        {"no prefix", "{\"lan\":[\"10.1.2.3\"]}", NULL},
        {"a number", "{\"lan\":[7]}", NULL},
        {"more than there are pools",
         "{\"lan\":[\"10.0.0.1/8\",\"10.0.0.2/8\",\"10.0.0.3/8\",\"10.0.0.4/8\",\"10.0.0.5/8\"]}",
         NULL},
        {"more than there are interfaces",
         "{\"a\":[],\"b\":[],\"c\":[],\"d\":[],\"e\":[],\"f\":[],\"g\":[],\"h\":[],\"i\":[]}",
         NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        wire_cleanup_addresses struct wire_addresses a = {0};
        bool read = wire_addresses_read(cases[i].text, &a);
        ferry_cleanup_free char *again = read ? wire_addresses_text(&a) : NULL;

        print_message("  %s\n", cases[i].name);
        assert_true(ferry_streq(again, cases[i].again));
        assert_true(read || (a.n == 0 && !a.doc));
        assert_int_equal(wire_addresses_of(&a, "lan") != NULL, read && a.n > 0);
        assert_null(wire_addresses_of(&a, "nonesuch"));
    }
    for (size_t i = 0; i < COUNT_OF(rubbish); i++) {
        struct wire_addresses a;

        assert_false(wire_addresses_read(rubbish[i], &a));
    }
}

static void networks(void **state)
{
    static const struct api_interface interfaces[] = {
        {.name = "pod"}, {.name = "lan"}, {.name = "vf", .sriov = true}, {.name = "dmz"}};
    static const struct api_vmi_network nets[] = {{.name = "pod", .pod = true},
                                                  {.name = "lan", .multus = "lan"},
                                                  {.name = "vf", .multus = "vf"},
                                                  {.name = "dmz", .multus = "other/dmz"}};
    struct api_vmi vmi = {.meta = {.namespace_ = "ns", .uid = "u"},
                          .machine = {.interfaces = interfaces,
                                      .n_interfaces = COUNT_OF(interfaces),
                                      .networks = nets,
                                      .n_networks = COUNT_OF(nets)}};
    ferry_cleanup_free char *text = wire_networks_text(&vmi);
    struct wire_networks n;

    (void)state; /* texts that are refused: test_pods_net */
    assert_string_equal(text, "{\"tap1\":\"ns/lan\",\"tap2\":\"other/dmz\"}");
    assert_int_equal(wire_networks_read(text, &n, NULL), 0);
    assert_int_equal(n.n, 2);
    assert_string_equal(wire_networks_of(&n, "tap1")->name, "lan");
    assert_string_equal(wire_networks_of(&n, "tap2")->ns, "other");
    assert_null(wire_networks_of(&n, "tap0"));
    assert_null(wire_networks_of(&n, "eth0"));
    assert_int_equal(wire_networks_read("{\"tap1\":\"a/b\",\"tap01\":\"a/c\"}", &n, NULL),
                     -FERRY_INVALID);
    assert_int_equal(n.n, 0);
    vmi.machine.n_interfaces = 1;
    assert_null(wire_networks_text(&vmi));
}

/* ---- the clock -------------------------------------------------------------------------------
 */

static void clocks(void **state)
{
    static const struct wire_clock said = {.boot = "b1", .steps = {{1000, 5}, {2000, -7}}, .n = 2};
    static const struct {
        const char *name, *text;
        size_t n;
    } cases[] = {
        {"none", "{\"boot\":\"b1\",\"steps\":[]}", 0},
        {"one", "{\"steps\":[{\"beforeMs\":1,\"byMs\":-1,\"new\":0}],\"new\":0}", 1},
        {"no list", "{\"steps\":{\"beforeMs\":1,\"byMs\":1}}", 0},
        {"what makes no sense is passed over",
         "{\"steps\":[7,{},{\"beforeMs\":0,\"byMs\":1},{\"beforeMs\":-5,\"byMs\":1},"
         "{\"beforeMs\":1,\"byMs\":0},{\"beforeMs\":" BIG ",\"byMs\":1},{\"beforeMs\":1,\"byMs\":"
         "1.5},{\"beforeMs\":3,\"byMs\":4}]}",
         1},
        {"more than are kept",
         "{\"steps\":[{\"beforeMs\":1,\"byMs\":1},{\"beforeMs\":2,\"byMs\":1},{\"beforeMs\":3,"
         "\"byMs\":1},{\"beforeMs\":4,\"byMs\":1},{\"beforeMs\":5,\"byMs\":1},{\"beforeMs\":6,"
         "\"byMs\":1},{\"beforeMs\":7,\"byMs\":1},{\"beforeMs\":8,\"byMs\":1},{\"beforeMs\":9,"
         "\"byMs\":1}]}",
         WIRE_CLOCK_STEPS},
    };
    ferry_cleanup_free char *text = wire_clock_text(&said);
    struct wire_clock c;

    (void)state;
    assert_true(wire_clock_read(text, &c));
    assert_true(strcmp(c.boot, said.boot) == 0 && c.n == said.n);
    assert_memory_equal(c.steps, said.steps, sizeof(c.steps));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        print_message("  %s\n", cases[i].name);
        assert_true(wire_clock_read(cases[i].text, &c));
        assert_int_equal(c.n, cases[i].n);
    }
    for (size_t i = 0; i < COUNT_OF(rubbish); i++) {
        assert_false(wire_clock_read(rubbish[i], &c));
        assert_true(c.n == 0 && !c.boot[0]);
    }
}

/* ---- objects that are not decoded ------------------------------------------------------------
 */

static void keys(void **state)
{
    static const char text[] = "{\"metadata\":{\"labels\":{\"kubevirt.io\":\"a\",\"n\":1},"
                               "\"annotations\":{\"kubevirt.io/domain\":\"b\"}}}";
    api_cleanup_doc yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    const yyjson_val *root = yyjson_doc_get_root(doc);

    (void)state;
    assert_string_equal(wire_label(root, LABEL_APP), "a");
    assert_string_equal(wire_annotation(root, ANNOTATION_DOMAIN), "b");
    assert_null(wire_label(root, ANNOTATION_DOMAIN));
    assert_null(wire_label(root, "n"));
    assert_null(wire_label(NULL, LABEL_APP));
    assert_null(wire_annotation(yyjson_obj_get((yyjson_val *)root, "metadata"), LABEL_APP));
}

static void the_vmi_of_a_pod(void **state)
{
    static const struct api_owner owners[] = {
        {.kind = "VirtualMachineInstance", .uid = "not its controller"},
        {.kind = "ReplicaSet", .uid = "another kind", .controller = true},
        {.kind = "VirtualMachineInstance", .uid = "vmi", .controller = true},
    };

    (void)state;
    for (size_t n = 0; n <= COUNT_OF(owners); n++) {
        const struct api_pod pod = {.meta = {.owners = owners, .n_owners = n}};
        const char *uid = wire_pod_vmi(&pod);

        assert_true(n < COUNT_OF(owners) ? !uid : strcmp(uid, "vmi") == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vmi_of_a_pod),
        cmocka_unit_test(modes_and_aborts),
        cmocka_unit_test(phases),
        cmocka_unit_test(reasons),
        cmocka_unit_test(progress),
        cmocka_unit_test(figures),
        cmocka_unit_test(queue),
        cmocka_unit_test(results),
        cmocka_unit_test(troubles),
        cmocka_unit_test(disks),
        cmocka_unit_test(words_of_a_move),
        cmocka_unit_test(addresses),
        cmocka_unit_test(networks),
        cmocka_unit_test(clocks),
        cmocka_unit_test(keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
