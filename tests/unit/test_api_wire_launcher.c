/* What programs say to each other: each value goes out and comes back, and what nobody would say is
 * refused or passed over. */
#include "lib/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_error.h"
#include "api/wire/wire_error_old.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_launcher_status.h"
#include "api/wire/wire_options.h"
#include "base/fd.h"
#include "base/str.h"

/* ---- words -------------------------------------------------------------------------------------
 */

static void words(void **state)
{
    const struct wire_words *const tables[] = {
        &wire_launcher_domains,
        &wire_launcher_reasons,
        &wire_launcher_roles,
        &wire_launcher_phases,
        &wire_modes,
        &wire_aborts,
        &wire_launcher_paths,
        &wire_launcher_targets,
        &wire_launcher_watchdogs,
        &wire_launcher_disk_errors,
    };

    (void)state;
    for (size_t t = 0; t < COUNT_OF(tables); t++) {
        for (unsigned v = 0; v < tables[t]->n; v++) {
            const char *text = wire_words_text(tables[t], v);

            assert_non_null(text);
            assert_int_equal(wire_words_find(tables[t], text), *text ? v : tables[t]->n);
        }
        assert_int_equal(wire_words_find(tables[t], NULL), tables[t]->n);
        assert_int_equal(wire_words_find(tables[t], "RUNNING"), tables[t]->n);
        assert_string_equal(wire_words_text(tables[t], 4711), "");
    }
}

/* ---- status ------------------------------------------------------------------------------------
 */

#define RUN(...)                                                                                   \
    {                                                                                              \
        .domain = LAUNCHER_DOMAIN_RUNNING, .domain_reason = LAUNCHER_REASON_BOOTED,                \
        .machine = "pc-q35-9.2", .migration = {                                                    \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static void statuses_come_back(void **state)
{
    static const struct launcher_status cases[] = {
        {.domain_reason = LAUNCHER_REASON_NONE},
        {.domain = LAUNCHER_DOMAIN_PAUSED, .domain_reason = LAUNCHER_REASON_POSTCOPY_FAILED},
        {.domain = LAUNCHER_DOMAIN_CRASHED, .domain_reason = LAUNCHER_REASON_PANICKED},
        RUN(.uid = "m-1", .role = LAUNCHER_ROLE_SOURCE, .phase = LAUNCHER_RUNNING,
            .mode = MODE_POST_COPY, .start_ms = 1700000000000, .downtime_ms = -1, .recoveries = 3,
            .abort_requested = true, .abort_status = ABORT_UNDER_WAY,
            .sample = {.present = true,
                       .elapsed_ms = 1,
                       .total_bytes = INT64_C(1) << 40,
                       .processed_bytes = 3,
                       .remaining_bytes = 0,
                       .disk_total_bytes = 6,
                       .disk_remaining_bytes = 5,
                       .bytes_per_s = 7,
                       .dirty_bytes_per_s = 8,
                       .iteration = 9,
                       .downtime_ms = 10,
                       .throttle_percent = 99}),
        RUN(.uid = "m-2", .role = LAUNCHER_ROLE_TARGET, .phase = LAUNCHER_FAILED,
            .end_ms = 1700000001000, .failure_reason = "it \"broke\"\n", .downtime_ms = -1,
            .reason_code = "LibvirtError", .never_ran = true),
        {.domain = LAUNCHER_DOMAIN_PAUSED,
         .domain_reason = LAUNCHER_REASON_IO_ERROR,
         .guest = {.volume = "root", .disk_error = LAUNCHER_DISK_FULL}},
        {.domain = LAUNCHER_DOMAIN_RUNNING,
         .guest = {.reset_ms = 1700000000000,
                   .watchdog_ms = 1700000001000,
                   .watchdog = LAUNCHER_WATCHDOG_INJECT_NMI}},
        RUN(.uid = "m-3", .role = LAUNCHER_ROLE_SOURCE, .phase = LAUNCHER_SUCCEEDED,
            .mode = MODE_PAUSED, .downtime_ms = 0),
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *text = wire_launcher_status_write(&cases[i]);
        struct launcher_status back;
        struct ferry_error err = {0};

        if (wire_launcher_status_read(text, strlen(text), &back, &err) < 0) {
            fail_msg("%s: %s", text, err.msg);
        }
        ferry_cleanup_free char *again = wire_launcher_status_write(&back);
        assert_string_equal(again, text);
        assert_int_equal(back.domain, cases[i].domain);
        assert_int_equal(back.domain_reason, cases[i].domain_reason);
        assert_int_equal(back.migration.role, cases[i].migration.role);
        assert_int_equal(back.migration.sample.present, cases[i].migration.sample.present);
    }
}

#define STATUS(more) "{\"domain\":{\"state\":\"running\",\"reason\":\"booted\"}" more "}"
#define MOVE(more)                                                                                 \
    STATUS(",\"migration\":{\"uid\":\"m\",\"role\":\"source\",\"phase\":\"running\"" more "}")

static void hostile_statuses(void **state)
{
    static const struct {
        const char *json, *error; /* NULL = it is taken */
    } cases[] = {
        {STATUS(""), NULL},
        {STATUS(",\"later\":{\"a\":[1]}"), NULL},
        {STATUS(",\"migration\":null"), NULL},
        {MOVE(""), NULL},
        {MOVE(",\"mode\":\"Teleport\",\"abortStatus\":\"\",\"reason\":7"), NULL},
        {MOVE(",\"sample\":{}"), NULL},
        {MOVE(",\"startTimestamp\":\"\",\"endTimestamp\":null"), NULL},
        {"", "launcher status"},
        {"7", "domain.state"},
        {"{\"domain\":7}", "domain: must be an object"},
        {"{\"domain\":{\"state\":\"running\",\"reason\":7}}", "domain.reason"},
        {STATUS(",\"guest\":{\"diskError\":\"of another kind\",\"watchdogAction\":\"bark\"}"),
         NULL},
        {STATUS(",\"guest\":[]"), "guest: must be an object"},
        {STATUS(",\"guest\":{\"resetTimestamp\":7}"), "guest.resetTimestamp"},
        {STATUS(",\"guest\":{\"volume\":7}"), "guest.volume"},
        {STATUS(",\"machine\":[]"), "machine: must be a string"},
        {STATUS(",\"migration\":[]"), "migration: must be an object"},
        {STATUS(",\"migration\":{}"), "migration.uid: is missing"},
        {MOVE(",\"sample\":7"), "migration.sample: must be an object"},
        {MOVE(",\"sample\":{\"totalBytes\":-1}"), "migration.sample.totalBytes"},
        {MOVE(",\"sample\":{\"totalBytes\":18446744073709551615}"), "totalBytes"},
        {MOVE(",\"sample\":{\"iteration\":1.5}"), "migration.sample.iteration"},
        {MOVE(",\"recoveries\":\"many\""), "migration.recoveries"},
        {MOVE(",\"neverRan\":1"), "migration.neverRan: must be true or false"},
        {MOVE(",\"endTimestamp\":7"), "migration.endTimestamp"},
        {MOVE(",\"endTimestamp\":\"0001-01-01T00:00:00Z\""), "from 1970"},
        {MOVE(",\"endTimestamp\":\"9999-12-31T23:59:59-01:00\""), "from 1970"},
        {MOVE(",\"role\":\"target\""), "role"}, /* twice */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct launcher_status s;
        struct ferry_error err = {0};
        int rc = wire_launcher_status_read(cases[i].json, strlen(cases[i].json), &s, &err);

        if ((rc < 0) != (cases[i].error != NULL) ||
            (cases[i].error && !strstr(err.msg, cases[i].error))) {
            fail_msg("%s: %d '%s'", cases[i].json, rc, err.msg);
        }
    }
}

/* A launcher may say what it likes; what does not fit is cut behind a whole character. */
static void overlong_words(void **state)
{
    struct ferry_buf json = {0};
    struct launcher_status s;

    (void)state;
    ferry_buf_puts(&json, "{\"domain\":{\"state\":\"none\"},\"migration\":{\"role\":\"source\","
                          "\"phase\":\"failed\",\"uid\":\"");
    for (int i = 0; i < 100; i++) {
        ferry_buf_puts(&json, "x");
    }
    ferry_buf_puts(&json, "\",\"failureReason\":\"");
    for (int i = 0; i < 1000; i++) {
        ferry_buf_puts(&json, "ä");
    }
    ferry_buf_puts(&json, "\"}}");
    assert_int_equal(wire_launcher_status_read(json.data, json.len, &s, NULL), 0);
    assert_int_equal(strlen(s.migration.uid), LAUNCHER_UID_SIZE - 1);
    assert_int_equal(strlen(s.migration.failure_reason), LAUNCHER_FAILURE_SIZE - 2);
    ferry_buf_done(&json);
}

/* ---- options -----------------------------------------------------------------------------------
 */

static void check_options(const char *text, const struct wire_options *want)
{
    api_cleanup_doc yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    struct wire_options back;
    struct ferry_error err = {0};

    if (wire_options_read(yyjson_doc_get_root(doc), &back, &err) < 0) {
        fail_msg("%s: %s", text, err.msg);
    }
    api_cleanup_mut_doc yyjson_mut_doc *a = yyjson_mut_doc_new(NULL);
    ferry_cleanup_free char *have = yyjson_mut_val_write(wire_options_write(a, &back), 0, NULL);
    ferry_cleanup_free char *wanted = yyjson_mut_val_write(wire_options_write(a, want), 0, NULL);
    assert_string_equal(have, wanted);
}

static void options_come_back(void **state)
{
    struct wire_options o;

    (void)state;
    wire_options_init(&o);
    check_options("{}", &o);
    o.strategy = WIRE_STRATEGY_KUBEVIRT;
    o.zstd = o.allow_post_copy = o.unsafe = true;
    o.parallel_connections = 4;
    o.max_downtime_ms = 77;
    o.stall.on = o.tuning.on = true;
    o.stall.ewma_alpha = 0.25;
    o.tuning.steps = 3;
    api_cleanup_mut_doc yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    ferry_cleanup_free char *all = yyjson_mut_val_write(wire_options_write(doc, &o), 0, NULL);
    check_options(all, &o);
}

/* What a handler says is what a launcher reads; what it does not say keeps its default. */
static void requests_are_understood(void **state)
{
    static const struct {
        const char *config;
        unsigned said;
        struct wire_options o;
        int64_t completion_s, downtime_ms, connections;
        bool post_copy;
    } cases[] = {
        {NULL, 0, {.allow_post_copy = true}, 150, 900, 0, false},
        {NULL, 1U << WIRE_OPTION_POST_COPY, {.allow_post_copy = true}, 150, 900, 0, true},
        {"{\"completionTimeoutPerGiB\":0,\"maxDowntimeMs\":500,\"allowPostCopy\":true}",
         0,
         {0},
         0,
         500,
         0,
         false},
        {"{\"experimental\":{\"downtimeTuning\":{\"steps\":3}}}",
         1U << WIRE_OPTION_CONNECTIONS | 1U << WIRE_OPTION_COMPRESSION,
         {.parallel_connections = 8, .zstd = true},
         150,
         900,
         8,
         false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *config = cases[i].config;
        api_cleanup_doc yyjson_doc *doc = config ? yyjson_read(config, strlen(config), 0) : NULL;
        ferry_cleanup_free char *text =
            wire_options_request(&cases[i].o, cases[i].said, yyjson_doc_get_root(doc));
        api_cleanup_doc yyjson_doc *request = yyjson_read(text, strlen(text), 0);
        struct wire_options back;

        assert_int_equal(wire_options_read(yyjson_doc_get_root(request), &back, NULL), 0);
        assert_int_equal(back.completion_timeout_per_gib_s, cases[i].completion_s);
        assert_int_equal(back.max_downtime_ms, cases[i].downtime_ms);
        assert_int_equal(back.parallel_connections, cases[i].connections);
        assert_int_equal(back.allow_post_copy, cases[i].post_copy);
    }
}

/* ---- errors ------------------------------------------------------------------------------------
 */

static void answers(void **state)
{
    static const struct {
        const char *body, *message, *reason;
        int status;
    } cases[] = {
        {"{\"code\":404,\"message\":\"no\",\"retry\":false,\"reason\":\"NotFound\"}", "no",
         "NotFound", 404},
        {"{\"code\":409,\"message\":\"no\",\"retry\":false}", "no", "", 409},
        {"{\"message\":\"m\",\"reason\":\"BadRequest\",\"details\":{\"causes\":[{\"reason\":"
         "\"Later\"},{\"reason\":\"MoveInFlight\"}]}}",
         "m", "MoveInFlight", 400},
        {"{\"message\":\"spec.x: Required value\",\"reason\":\"Invalid\",\"details\":{\"causes\":"
         "[{\"reason\":\"FieldValueRequired\"}]}}",
         "spec.x: Required value", "Invalid", 422},
        {"{\"message\":\"x\",\"reason\":\"AReasonThatIsLongerThanAnybodyWouldEverWriteOne\"}", "x",
         "", 400},
        {"{\"message\":7,\"reason\":[]}", "no reason given (HTTP 500)", "", 500},
        {"{\"message\":\"\",\"details\":{\"causes\":7}}", "no reason given (HTTP 400)", "", 400},
        {"[]", "no reason given (HTTP 503)", "", 503},
        {NULL, "no reason given (HTTP 503)", "", 503},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *body = cases[i].body;
        api_cleanup_doc yyjson_doc *doc = body ? yyjson_read(body, strlen(body), 0) : NULL;
        struct ferry_error err;

        assert_int_equal(
            wire_error_read(FERRY_PEER, cases[i].status, yyjson_doc_get_root(doc), &err),
            -FERRY_PEER);
        assert_string_equal(err.msg, cases[i].message);
        assert_string_equal(err.reason, cases[i].reason);
        assert_int_equal(err.http, cases[i].status);
    }
}

static void failures(void **state)
{
    static const struct {
        const char *value, *uid;
        enum wire_reason code;
    } cases[] = {
        {"m-1/TargetLost", "m-1", REASON_TARGET_LOST},
        {"m-1/Aborted", "m-1", REASON_ABORTED},
        {"m-1/Quota", "m-1", REASON_NONE}, /* one of waits */
        {"m-1/TargetLost", "m-2", REASON_NONE},
        {"m-1/TargetLost", "m", REASON_NONE},
        {"m-1/Gone", "m-1", REASON_NONE},
        {"m-1/", "m-1", REASON_NONE},
        {"/Aborted", "", REASON_NONE},
        {"/Aborted", NULL, REASON_NONE},
        {"Aborted", "m-1", REASON_NONE},
        {NULL, "m-1", REASON_NONE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct api_pair pair = {.key = ANNOTATION_FAILURE, .value = cases[i].value};
        const struct api_map map = {.items = &pair, .n = cases[i].value != NULL};
        enum wire_reason code = wire_error_failure_read(&map, cases[i].uid);

        if (code != cases[i].code) {
            fail_msg("%s of %s: %d", cases[i].value, cases[i].uid, (int)code);
        }
        if (code) {
            ferry_cleanup_free char *again = wire_error_failure_write(cases[i].uid, code);

            assert_string_equal(again, cases[i].value);
        }
    }
}

static void lacks(void **state)
{
    static const struct {
        const char *json, *text;
        enum wire_lack lack;
    } cases[] = {
        {"{\"message\":\"x\",\"lack\":{\"of\":\"cpu\",\"message\":\"b lacks it\"}}", "b lacks it",
         WIRE_LACK_CPU},
        {"{\"lack\":{\"of\":\"machine\",\"message\":\"m\"}}", "m", WIRE_LACK_MACHINE},
        {"{\"message\":\"all is well\"}", NULL, WIRE_LACK_NOTHING},
        {"{\"message\":7,\"lack\":{\"of\":\"gold\"}}", NULL, WIRE_LACK_NOTHING},
        {"[]", NULL, WIRE_LACK_NOTHING},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(cases[i].json, strlen(cases[i].json), 0);
        enum wire_lack lack;
        const char *text = wire_error_lack_read(yyjson_doc_get_root(doc), &lack);

        assert_int_equal(lack, cases[i].lack);
        assert_true(ferry_streq(text, cases[i].text));
    }
    enum wire_lack none;
    assert_null(wire_error_lack_read(NULL, &none));
}

/* ---- messages of others ------------------------------------------------------------------------
 */

/* The text of a golden file without its end of line. */
static char *golden(const char *name)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/messages/%s.txt", GOLDEN_DIR, name);
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct ferry_error err;

    if (ferry_read_file(path, 4096, &text, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    while (text.len && text.data[text.len - 1] == '\n') {
        text.data[--text.len] = '\0';
    }
    return ferry_buf_take(&text);
}

enum meaning { ANSWER, FAILURE, SCHEDULER, LACK };

static const struct {
    const char *file;
    enum meaning about;
    int status; /* of an ANSWER */
    enum wire_error error;
    const char *code; /* of a FAILURE; of a LACK where the words begin */
    enum wire_unschedulable unschedulable;
    enum wire_lack lack;
} messages[] = {
    {"apiserver-in-flight", ANSWER, 400, .error = WIRE_ERROR_MOVE_IN_FLIGHT},
    {"webhook-in-flight", ANSWER, 400, .error = WIRE_ERROR_MOVE_IN_FLIGHT},
    {"apiserver-quota", ANSWER, 403, .error = WIRE_ERROR_QUOTA},
    {"kube-apiserver-quota", ANSWER, 403, .error = WIRE_ERROR_QUOTA},
    {"kube-apiserver-podsecurity", ANSWER, 403, .error = WIRE_ERROR_NONE},
    {"launcher-refusal", ANSWER, 400, .error = WIRE_ERROR_NONE},
    {"relay-refusal", ANSWER, 403, .error = WIRE_ERROR_NONE},
    {"handler-target-lost", FAILURE, .code = "TargetLost"},
    {"handler-refused", FAILURE, .code = "Refused"},
    {"controller-aborted", FAILURE, .code = "Aborted"},
    {"kubevirt-failure", FAILURE, .code = NULL},
    {"kube-scheduler-memory", SCHEDULER, .unschedulable = WIRE_UNSCHEDULABLE_FOR_NOW},
    {"kube-scheduler-selector", SCHEDULER, .unschedulable = WIRE_UNSCHEDULABLE_NEVER},
    {"kube-scheduler-claim", SCHEDULER, .unschedulable = WIRE_UNSCHEDULABLE_VOLUME},
    {"controller-lack-cpu", LACK, .code = "no other node has its CPU", .lack = WIRE_LACK_CPU},
    {"controller-lack-machine", LACK, .code = "no other node has its machine",
     .lack = WIRE_LACK_MACHINE},
    {"kube-scheduler-memory", LACK, .code = NULL, .lack = WIRE_LACK_NOTHING},
};

static bool is_understood(size_t i, const char *text)
{
    enum wire_lack lack;
    const char *from;

    switch (messages[i].about) {
    case ANSWER:
        return wire_error_old_answer(messages[i].status, text) == messages[i].error;
    case FAILURE:
        return wire_reason_of_failure(text) == wire_reason_of(messages[i].code);
    case SCHEDULER:
        return wire_error_old_unschedulable(text) == messages[i].unschedulable;
    case LACK:
        break;
    }
    from = wire_error_old_lack(text, &lack);
    return lack == messages[i].lack &&
           (messages[i].code ? ferry_str_starts(from, messages[i].code) : !from);
}

static void messages_of_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(messages); i++) {
        ferry_cleanup_free char *text = golden(messages[i].file);

        print_message("  %s\n", messages[i].file);
        if (!is_understood(i, text)) {
            fail_msg("%s: '%s' is not understood", messages[i].file, text);
        }
    }
    assert_int_equal(wire_error_old_answer(403, "in-flight migration detected"), WIRE_ERROR_NONE);
    assert_int_equal(wire_error_old_answer(400, NULL), WIRE_ERROR_NONE);
}

/* Each file is in the table: what nobody reads proves nothing. */
static void no_file_is_forgotten(void **state)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/messages", GOLDEN_DIR);
    DIR *dir = opendir(path);

    (void)state;
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        bool known = e->d_name[0] == '.';

        for (size_t i = 0; i < COUNT_OF(messages); i++) {
            size_t n = strlen(messages[i].file);

            known = known || (strncmp(e->d_name, messages[i].file, n) == 0 &&
                              ferry_streq(e->d_name + n, ".txt"));
        }
        if (!known) {
            fail_msg("%s is in no row", e->d_name);
        }
    }
    closedir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(statuses_come_back),
        cmocka_unit_test(hostile_statuses),
        cmocka_unit_test(overlong_words),
        cmocka_unit_test(options_come_back),
        cmocka_unit_test(requests_are_understood),
        cmocka_unit_test(answers),
        cmocka_unit_test(failures),
        cmocka_unit_test(lacks),
        cmocka_unit_test(messages_of_others),
        cmocka_unit_test(no_file_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
