/* Tables for src/base. */
#include "lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/channels.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/proc.h"
#include "base/str.h"

static void errors_carry_class_and_words(void **state)
{
    struct ferry_error err;

    (void)state;
    assert_int_equal(ferry_fail(&err, FERRY_INVALID, "field %s", "a"), -FERRY_INVALID);
    assert_int_equal(ferry_wrap(&err, "object %d", 7), -FERRY_INVALID);
    assert_string_equal(err.msg, "object 7: field a");
    assert_int_equal(ferry_fail_errno(&err, ENOENT, "opening x"), -FERRY_NOT_FOUND);
    assert_int_equal(err.sys, ENOENT);
    assert_string_equal(err.msg, "opening x: No such file or directory");
    assert_int_equal(ferry_fail(NULL, FERRY_RETRY, "nobody listens"), -FERRY_RETRY);
}

/* What it is about, and what is said of it, stay apart however much is put in front. */
static void errors_know_what_they_are_about(void **state)
{
    struct ferry_error err;
    size_t len;

    (void)state;
    assert_int_equal(ferry_fail_reason(&err, FERRY_DENIED, "Quota", "no: %d", 7), -FERRY_DENIED);
    assert_string_equal(ferry_error_reason(&err), "Quota");
    assert_string_equal(ferry_error_words(&err), "no: 7");
    ferry_error_about(&err, &len);
    assert_int_equal(len, 0);
    assert_int_equal(ferry_wrap_about(&err, "x"), -FERRY_DENIED);
    ferry_prefix(&err, "list[%d].", 3);
    ferry_prefix(&err, "spec.");
    assert_string_equal(err.msg, "spec.list[3].x: no: 7");
    assert_memory_equal(ferry_error_about(&err, &len), "spec.list[3].x", 14);
    assert_int_equal(len, 14);
    ferry_wrap(&err, "manifest");
    assert_string_equal(err.msg, "manifest: spec.list[3].x: no: 7");
    assert_string_equal(ferry_error_words(&err), "no: 7");
    assert_string_equal(err.reason, "Quota");

    char overlong[2 * FERRY_ERROR_TEXT];
    memset(overlong, 'y', sizeof(overlong) - 1);
    overlong[sizeof(overlong) - 1] = '\0';
    ferry_wrap(&err, "%s", overlong); /* nothing is left of the words */
    assert_int_equal(strlen(ferry_error_words(&err)), FERRY_ERROR_TEXT - 1);
    ferry_fail_reason(&err, FERRY_RETRY, overlong, "x");
    assert_int_equal(strlen(err.reason), FERRY_ERROR_REASON - 1);

    ferry_fail(&err, FERRY_NOT_FOUND, "none");
    assert_string_equal(ferry_error_reason(&err), "NotFound");
    assert_int_equal(ferry_wrap_about(NULL, "x"), -FERRY_FATAL);
    assert_int_equal(ferry_prefix(NULL, "x"), -FERRY_FATAL);
}

static void whole_numbers(void **state)
{
    static const struct {
        const char *text;
        int rc;
        long long value;
    } cases[] = {
        {"0", 0, 0},
        {"100", 0, 100},
        {"-1", -FERRY_INVALID, 0},
        {"101", -FERRY_INVALID, 0},
        {"", -FERRY_INVALID, 0},
        {"1x", -FERRY_INVALID, 0},
        {"99999999999999999999", -FERRY_INVALID, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        long long v = 0;

        assert_int_equal(ferry_parse_int(cases[i].text, 0, 100, &v, NULL), cases[i].rc);
        assert_int_equal(v, cases[i].value);
    }
}

static void spans(void **state)
{
    static const char text[] = "one two one";
    const struct ferry_span none = {0}, empty = {text, 0}, one = {text, 3}, two = {text + 4, 3};
    const struct ferry_span again = {text + 8, 3}, on = {text, 2};
    ferry_cleanup_free char *copy = ferry_span_dup(two);

    (void)state;
    assert_true(ferry_span_eq(one, again) && !ferry_span_eq(one, two) && !ferry_span_eq(one, on));
    assert_true(ferry_span_eq(none, none) && !ferry_span_eq(none, empty));
    assert_true(ferry_span_is(one, "one") && !ferry_span_is(one, "on") &&
                !ferry_span_is(one, "ones") && !ferry_span_is(one, NULL));
    assert_true(ferry_span_is(empty, "") && !ferry_span_is(none, "") && ferry_span_is(none, NULL));
    assert_true(ferry_span_cmp(one, two) < 0 && ferry_span_cmp(two, one) > 0 &&
                ferry_span_cmp(one, again) == 0 && ferry_span_cmp(on, one) < 0 &&
                ferry_span_cmp(empty, on) < 0);
    assert_string_equal(copy, "two");
    assert_null(ferry_span_dup(none));
}

static void times(void **state)
{
    char buf[FERRY_RFC3339_SIZE];

    (void)state;
    assert_string_equal(ferry_rfc3339(0, buf), "1970-01-01T00:00:00Z");
    assert_string_equal(ferry_rfc3339_micro(1700000000123, buf), "2023-11-14T22:13:20.123000Z");
}

static void capped_buffers_refuse(void **state)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    (void)state;
    assert_int_equal(ferry_buf_append_capped(&b, "12345", 5, 8, NULL), 0);
    assert_int_equal(ferry_buf_append_capped(&b, "6789", 4, 8, NULL), -FERRY_INVALID);
    assert_string_equal(b.data, "12345");
    assert_int_equal(ferry_buf_append_capped(&b, "x", SIZE_MAX, 8, NULL), -FERRY_INVALID);
}

static void strings_of_json(void **state)
{
    static const struct {
        const char *text, *json;
    } rows[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"line\nend\x01", "\"line\\u000aend\\u0001\""},
        {"f\xc3\xa4hre", "\"f\xc3\xa4hre\""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ferry_cleanup_buf struct ferry_buf b = {0};

        ferry_buf_json(&b, rows[i].text);
        assert_string_equal(b.data, rows[i].json);
    }
}

static void sockets_at_any_depth(void **state)
{
    char top[] = "/tmp/ferry-test-XXXXXX";
    ferry_cleanup_buf struct ferry_buf path = {0};
    struct ferry_error err;
    struct ferry_peer peer;

    (void)state;
    assert_non_null(mkdtemp(top));
    ferry_buf_puts(&path, top);
    for (int i = 0; i < 20; i++) {
        ferry_buf_puts(&path, "/a-directory");
    }
    assert_int_equal(ferry_mkdir_p(path.data, 0700, &err), 0);
    ferry_buf_puts(&path, "/x.sock");
    ferry_cleanup_fd int listener = ferry_unix_listen(path.data, 0600, 1, &err);
    assert_true(listener >= 0);
    ferry_cleanup_fd int client =
        ferry_unix_connect(path.data, ferry_now_ns() + FERRY_NS_PER_S, &err);
    assert_true(client >= 0);
    assert_int_equal(ferry_unix_peer(client, &peer, &err), 0);
    assert_int_equal(peer.uid, getuid());
    /* a second listener takes the place of the stale one */
    ferry_cleanup_fd int again = ferry_unix_listen(path.data, 0600, 1, &err);
    assert_true(again >= 0);
    assert_int_equal(ferry_remove_tree(top, &err), 0);
    assert_int_equal(access(top, F_OK), -1);
    assert_int_equal(ferry_remove_tree(top, &err), 0);
}

/* Whoever may write to a directory may put anything where a socket was. */
static void sockets_of_others(void **state)
{
    char top[] = "/tmp/ferry-test-XXXXXX", at[3][64];
    int64_t deadline = ferry_now_ns() + FERRY_NS_PER_S;
    struct ferry_error err;

    (void)state;
    assert_non_null(mkdtemp(top));
    snprintf(at[0], sizeof(at[0]), "%s/real.sock", top);
    snprintf(at[1], sizeof(at[1]), "%s/link.sock", top);
    snprintf(at[2], sizeof(at[2]), "%s/file.sock", top);
    ferry_cleanup_fd int listener = ferry_unix_listen(at[0], 0600, 1, &err);
    assert_true(listener >= 0);
    assert_int_equal(symlink(at[0], at[1]), 0);
    assert_int_equal(ferry_write_file(at[2], "", 0, 0600, &err), 0);

    assert_int_equal(ferry_unix_connect(at[1], deadline, &err), -FERRY_DENIED);
    assert_non_null(strstr(err.msg, "it is a link"));
    assert_int_equal(ferry_unix_connect(at[2], deadline, &err), -FERRY_DENIED);
    assert_non_null(strstr(err.msg, "it is no socket"));
    assert_int_equal(ferry_unix_connect_owned(at[0], getuid() + 1, deadline, &err), -FERRY_DENIED);
    assert_non_null(strstr(err.msg, "belongs to uid"));
    ferry_cleanup_fd int mine = ferry_unix_connect_owned(at[0], getuid(), deadline, &err);
    assert_true(mine >= 0);
    assert_int_equal(ferry_remove_tree(top, &err), 0);
}

static void files_are_replaced_whole(void **state)
{
    char path[] = "/tmp/ferry-test-file-XXXXXX";
    ferry_cleanup_fd int fd = mkstemp(path);
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct ferry_error err;
    struct stat st;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ferry_write_file(path, "new", 3, 0640, &err), 0);
    assert_int_equal(ferry_read_file(path, 100, &b, &err), 0);
    assert_string_equal(b.data, "new");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    ferry_buf_done(&b);
    assert_int_equal(ferry_read_file(path, 2, &b, &err), -FERRY_INVALID);
    unlink(path);
    assert_int_equal(ferry_read_file(path, 100, &b, &err), -FERRY_NOT_FOUND);
}

static void processes(void **state)
{
    ferry_cleanup_buf struct ferry_buf out = {0};
    struct ferry_error err;
    pid_t pid;

    (void)state;
    assert_int_equal(
        ferry_run((const char *const[]){"sh", "-c", "echo a; echo b >&2", NULL}, &out, &err), 0);
    assert_string_equal(out.data, "a\nb\n");
    assert_int_equal(
        ferry_run((const char *const[]){"sh", "-c", "echo bad luck; exit 3", NULL}, NULL, &err),
        -FERRY_FATAL);
    assert_non_null(strstr(err.msg, "ended with code 3: bad luck"));
    assert_int_equal(ferry_run((const char *const[]){"no-such-program-here", NULL}, NULL, &err),
                     -FERRY_NOT_FOUND);

    const char *const sleeper[] = {"sleep", "1000", NULL};
    assert_int_equal(ferry_spawn(&(struct ferry_spawn){.argv = sleeper, .out_fd = -1}, &pid, &err),
                     0);
    uint64_t started = ferry_proc_start_time(pid);
    assert_true(started > 0);
    assert_int_equal(ferry_proc_end(pid, started + 1, 1000, &err),
                     0); /* another process: left alone */
    assert_int_equal(ferry_proc_start_time(pid), started);
    assert_int_equal(ferry_proc_end(pid, started, 1000, &err), 0);
    assert_int_equal(ferry_proc_start_time(pid), 0);
}

static void characters(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } cases[] = {
        {"a", 1},
        {"", 1},
        {"\xc3\xa9", 2},
        {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x98\x80", 4},
        {"\xff", 0},
        {"\x80", 0},
        {"\xc3", 0},
        {"\xc3(", 0},
        {"\xe2\x82", 0},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xed\xa0\x80", 0},
        {"\xf4\x90\x80\x80", 0},
        {"\xf8\x88", 0},
        {"\xef\xbf\xbd", 3},
        {"\xf4\x8f\xbf\xbf", 4},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (ferry_utf8_len(cases[i].text) != cases[i].len) {
            fail_msg("case %zu: %zu", i, ferry_utf8_len(cases[i].text));
        }
    }
    assert_int_equal(ferry_utf8_fit("a\xc3\xa9", 3), 3);
    assert_int_equal(ferry_utf8_fit("a\xc3\xa9", 2), 1);
    assert_int_equal(ferry_utf8_fit("a\xff", 9), 1);
    assert_int_equal(ferry_utf8_fit("", 9), 0);
}

/* A deadline is one of the monotonic clock, whatever the hour is. */
static void waits_end_at_their_deadline(void **state)
{
    static const int64_t after_ms[] = {INT32_MIN, -1, 0, 1, 20};
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;

    (void)state;
    pthread_cond_init(&cond, NULL);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < COUNT_OF(after_ms); i++) {
        int64_t deadline_ns = ferry_now_ns() + after_ms[i] * FERRY_NS_PER_MS;

        while (ferry_cond_wait(&cond, &lock, deadline_ns)) {
        }
        assert_true(ferry_now_ns() >= deadline_ns);
    }
    assert_false(ferry_cond_wait(&cond, &lock, -1));
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&cond);
}

struct door {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool open;
};

static void *open_door(void *ctx)
{
    struct door *d = ctx;

    pthread_mutex_lock(&d->lock);
    d->open = true;
    pthread_cond_signal(&d->cond);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void waits_end_with_a_signal(void **state)
{
    const int64_t deadlines[] = {INT64_MAX, ferry_now_ns() + 60 * FERRY_NS_PER_S};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(deadlines); i++) {
        struct door d = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
        pthread_t thread;

        pthread_mutex_lock(&d.lock);
        assert_int_equal(pthread_create(&thread, NULL, open_door, &d), 0);
        while (!d.open) {
            assert_true(ferry_cond_wait(&d.cond, &d.lock, deadlines[i]));
        }
        pthread_mutex_unlock(&d.lock);
        pthread_join(thread, NULL);
    }
}

/* The numbers and the names are KubeVirt's, and those of relays and launchers of other versions. */
static void channels(void **state)
{
    static const struct {
        int64_t number;
        bool known;
    } numbers[] = {{0, true},
                   {49152, true},
                   {49153, true},
                   {49151, false},
                   {49154, false},
                   {1, false},
                   {-1, false},
                   {65535, false},
                   {INT64_MAX, false},
                   {INT64_MIN, false},
                   {INT64_C(49152) << 32, false}};
    static const char long_key[] = "0123456789012345678901234567890123456789012345678901234567890";
    static const struct {
        const char *key;
        enum ferry_channel channel;
        const char *name;
    } names[] = {
        {"uid", FERRY_CHANNEL_CONTROL, "uid-source.sock"},
        {"uid", FERRY_CHANNEL_MEMORY, "uid-49152-source.sock"},
        {"uid", FERRY_CHANNEL_DISKS, "uid-49153-source.sock"},
        {"", FERRY_CHANNEL_CONTROL, "-source.sock"},
        {long_key, FERRY_CHANNEL_DISKS,
         "01234567890123456789012345678901234567890123456789012345-49153-source.sock"},
    };
    char name[FERRY_CHANNEL_NAME];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        assert_int_equal(ferry_channel_is_known(numbers[i].number), numbers[i].known);
    }
    for (size_t i = 0; i < FERRY_CHANNELS; i++) {
        assert_true(ferry_channel_is_known(ferry_channels[i]));
        assert_true(i == 0 || ferry_channels[i - 1] < ferry_channels[i]);
    }
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        ferry_cleanup_free char *path =
            ferry_channel_path("/run/m", names[i].key, names[i].channel);

        assert_string_equal(ferry_channel_socket(names[i].key, names[i].channel, name),
                            names[i].name);
        assert_string_equal(path + strlen("/run/m/"), names[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels),
        cmocka_unit_test(characters),
        cmocka_unit_test(errors_carry_class_and_words),
        cmocka_unit_test(errors_know_what_they_are_about),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(spans),
        cmocka_unit_test(times),
        cmocka_unit_test(capped_buffers_refuse),
        cmocka_unit_test(strings_of_json),
        cmocka_unit_test(sockets_at_any_depth),
        cmocka_unit_test(sockets_of_others),
        cmocka_unit_test(files_are_replaced_whole),
        cmocka_unit_test(processes),
        cmocka_unit_test(waits_end_at_their_deadline),
        cmocka_unit_test(waits_end_with_a_signal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
