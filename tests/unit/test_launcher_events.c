/* Events and flight records: what is kept, in which order, and how much. */
#include "lib/unit.h"

#include <dirent.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/libvirt/probes.h"
#include "launcher/report/events.h"
#include "launcher/report/metrics.h"
#include "launcher/report/record.h"

static yyjson_mut_doc *number(int n)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_int(doc, o, "n", n);
    return doc;
}

/* Reads all lines after `since`; checks that their numbers are [first, last]. */
static void expect(struct events *e, uint64_t *since, int first, int last)
{
    int n = first;

    while (n <= last) {
        ferry_cleanup_buf struct ferry_buf out = {0};
        size_t lines = events_read(e, since, ferry_now_ns(), &out);
        char *save = NULL;

        assert_true(lines > 0);
        for (char *l = strtok_r(out.data, "\n", &save); l; l = strtok_r(NULL, "\n", &save), n++) {
            ferry_cleanup_free char *want = ferry_asprintf("\"type\":\"t\",\"n\":%d}", n);

            assert_true(ferry_str_starts(l, "{\"seq\":"));
            assert_true(ferry_str_ends(l, want));
        }
    }
    assert_int_equal(n, last + 1);
}

static void events_are_kept_in_order(void **state)
{
    struct events *e = events_new();
    ferry_cleanup_buf struct ferry_buf none = {0};
    uint64_t early = 0, late;

    (void)state;
    assert_int_equal(events_read(e, &early, ferry_now_ns() + FERRY_NS_PER_MS, &none), 0);
    for (int i = 0; i < 10; i++) {
        events_publish(e, "t", number(i));
    }
    expect(e, &early, 0, 9);
    late = early;
    assert_int_equal(events_read(e, &late, ferry_now_ns() + FERRY_NS_PER_MS, &none), 0);
    for (int i = 10; i < 2000; i++) {
        events_publish(e, "t", number(i));
    }
    expect(e, &late, 2000 - 1024, 1999); /* a slow reader misses the oldest */
    early = 0;
    expect(e, &early, 2000 - 1024, 1999);
    events_free(e);
}

static void records_are_bounded(void **state)
{
    char dir[] = "/tmp/ferry-test-records-XXXXXX";
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct ferry_error err;
    char uid[16];

    (void)state;
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < 10; i++) {
        snprintf(uid, sizeof(uid), "m-%d", i);
        struct record *r = record_open(dir, uid);
        record_note(r, "start", "\"quoted\"");
        record_close(r);
        ferry_sleep_ms(5); /* the age of files tells them apart */
    }
    assert_int_equal(record_read(dir, "m-1", &text, &err), -FERRY_NOT_FOUND);
    assert_int_equal(record_read(dir, "m-2", &text, &err), 0);
    assert_non_null(strstr(text.data, "\"type\":\"start\",\"text\":\"\\\"quoted\\\"\"}\n"));
    ferry_buf_done(&text);

    struct record *r = record_open(dir, "m-9"); /* goes on where it was */
    ferry_cleanup_free char *big = ferry_xcalloc(1, 100001);
    memset(big, 'x', 100000);
    for (int i = 0; i < 50; i++) {
        record_note(r, "big", big);
    }
    record_close(r);
    assert_int_equal(record_read(dir, "m-9", &text, &err), 0);
    assert_true(text.len < (4 << 20) + 100);
    assert_non_null(strstr(text.data, "\"type\":\"start\""));
    assert_true(ferry_str_ends(text.data, "{\"type\":\"full\"}\n"));
    record_note(NULL, "no record", "is fine");
    assert_int_equal(ferry_remove_tree(dir, &err), 0);
}

static void metrics(void **state)
{
    ferry_cleanup_buf struct ferry_buf none = {0};
    ferry_cleanup_buf struct ferry_buf running = {0};
    ferry_cleanup_buf struct ferry_buf over = {0};
    struct state_migration m = {.downtime_ms = -1};
    struct launcher_sample s = {.present = true, .remaining_bytes = 5, .downtime_ms = 250};
    struct launcher_metrics in = {.namespace_ = "default",
                                  .name = "vm1",
                                  .migration = &m,
                                  .sample = &s,
                                  .dirty_bytes_per_s = -1};
    ferry_cleanup_buf struct ferry_buf still = {0};

    (void)state;
    launcher_metrics_write(&in, &none);
    assert_int_equal(none.len, 0);
    in.dirty_bytes_per_s = 4096;
    launcher_metrics_write(&in, &still);
    ferry_buf_append(&still, "", 1);
    assert_non_null(strstr(still.data, "\nkubevirt_vmi_dirty_rate_bytes_per_second{namespace="
                                       "\"default\",name=\"vm1\"} 4096\n"));
    m = (struct state_migration){.role = LAUNCHER_ROLE_SOURCE,
                                 .phase = LAUNCHER_RUNNING,
                                 .start_ms = 1700000000500,
                                 .mode = MODE_POST_COPY,
                                 .downtime_ms = -1};
    launcher_metrics_write(&in, &running);
    ferry_buf_append(&running, "", 1);
#define OF(metric) metric "{namespace=\"default\",name=\"vm1\"} "
    static const char *const lines[] = {
        OF("kubevirt_vmi_migration_data_remaining_bytes") "5\n",
        OF("kubevirt_vmi_migration_start_time_seconds") "1700000000.5\n",
        OF("ferry_migration_postcopy") "1\n",
        OF("ferry_migration_mode") "2\n",
        OF("ferry_migration_volumes_remaining_bytes") "0\n",
        OF("ferry_migration_expected_downtime_seconds") "0.25\n",
        "# TYPE ferry_migration_iteration gauge\n",
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        if (!strstr(running.data, lines[i])) {
            fail_msg("no %s in %s", lines[i], running.data);
        }
    }
    assert_null(strstr(running.data, "dirty_rate_bytes_per_second")); /* not while it moves */
    m.phase = LAUNCHER_SUCCEEDED;
    m.downtime_ms = 31;
    launcher_metrics_write(&in, &over);
    ferry_buf_append(&over, "", 1);
    assert_non_null(strstr(
        over.data, "ferry_migration_downtime_seconds{namespace=\"default\",name=\"vm1\"} 0.031"));
    assert_non_null(strstr(over.data, "status=\"succeeded\""));
    assert_null(strstr(over.data, "remaining"));
}

static void probes(void **state)
{
#define MONITOR "-qmp\0unix:/home/config/libvirt/qemu/lib/qmp-Ab12/qmp.monitor,server=on,wait=off\0"
    static const struct {
        const char *cmdline;
        size_t len;
        bool is;
    } cases[] = {
#define ROW(text, is) {text, sizeof(text) - 1, is}
        ROW("qemu\0-S\0-machine\0none,accel=kvm:tcg\0" MONITOR "-daemonize\0", true),
        ROW("qemu\0" MONITOR "-machine\0none\0", true),
        ROW("qemu\0-machine\0pc-q35\0" MONITOR, false), /* a guest */
        ROW("qemu\0-machine\0none\0-qmp\0unix:/var/other/qmp-Ab12/qmp.monitor\0", false),
        ROW("qemu\0-machine\0none\0-qmp\0unix:/home/config/libvirtx/qmp-A/qmp.monitor\0", false),
        ROW("qemu\0-machine\0none\0-qmp\0unix:/home/config/libvirt/qemu/a.sock\0", false),
        ROW("vi\0none\0/home/config/libvirt/qmp-A/qmp.monitor\0", false),
        ROW("qemu\0-machine", false),
        ROW("", false),
    };
    static const char *const dirs[] = {"/var/lib/libvirt", "/home/config/libvirt", NULL};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (probes_is_one(cases[i].cmdline, cases[i].len, dirs) != cases[i].is) {
            fail_msg("row %zu", i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics),
        cmocka_unit_test(probes),
        cmocka_unit_test(events_are_kept_in_order),
        cmocka_unit_test(records_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
