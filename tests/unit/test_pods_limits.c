/* Tables: where control groups are, and what is written into them for a pod. */
#include "lib/unit.h"

#include "base/oom_kills.h"
#include "base/str.h"
#include "pods/cgroup_plan.h"

#define LINE(point, type, options)                                                                 \
    "30 29 0:30 / " point " rw,relatime shared:9 - " type " x " options "\n"

static void layouts(void **state)
{
    static const struct {
        const char *name, *mounts, *unified;
        const char *cpu, *memory, *pids; /* "2:/path" in the unified hierarchy; NULL = none */
    } cases[] = {
        {"nothing mounted", "", "", NULL, NULL, NULL},
        {"other mounts", LINE("/", "ext4", "rw") LINE("/proc", "proc", "rw"), "", NULL, NULL, NULL},
        {"version 1",
         LINE("/c/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct")
             LINE("/c/memory", "cgroup", "rw,memory"),
         "", "/c/cpu,cpuacct", "/c/memory", NULL},
        {"cpuacct and cpuset are not cpu",
         LINE("/c/a", "cgroup", "rw,cpuacct") LINE("/c/b", "cgroup", "rw,cpuset"), "", NULL, NULL,
         NULL},
        {"a named hierarchy", LINE("/c/systemd", "cgroup", "rw,name=systemd"), "", NULL, NULL,
         NULL},
        {"version 2", LINE("/sys/fs/cgroup", "cgroup2", "rw"), "cpuset cpu io memory pids\n",
         "2:/sys/fs/cgroup", "2:/sys/fs/cgroup", "2:/sys/fs/cgroup"},
        {"version 2 with few controllers", LINE("/u", "cgroup2", "rw"), "hugetlb\n", NULL, NULL,
         NULL},
        {"side by side",
         LINE("/u", "cgroup2", "rw,nsdelegate") LINE("/c/memory", "cgroup", "rw,memory"),
         "cpu pids\n", "2:/u", "/c/memory", "2:/u"},
        {"in both: that of its own",
         LINE("/u", "cgroup2", "rw") LINE("/c/memory", "cgroup", "rw,memory"), "cpu memory\n",
         "2:/u", "/c/memory", NULL},
        {"a space in the path", LINE("/a\\040b", "cgroup", "rw,memory"), "", NULL, "/a b", NULL},
        {"the first of two mounts",
         LINE("/one", "cgroup", "rw,memory") LINE("/two", "cgroup", "rw,memory"), "", NULL, "/one",
         NULL},
        {"not a mount line", "a b - c\n", "", NULL, NULL, NULL},
        {"no end of line", "30 29 0:30 / /m rw - cgroup x rw,memory", "", NULL, "/m", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *expected[] = {cases[i].cpu, cases[i].memory, cases[i].pids};
        struct cgroup_layout l;

        print_message("  %s\n", cases[i].name);
        cgroup_layout_read(cases[i].mounts, cases[i].unified, &l);
        for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
            bool unified = expected[c] && ferry_str_starts(expected[c], "2:");

            assert_true(ferry_streq(l.of[c].mount, unified ? expected[c] + 2 : expected[c]));
            assert_int_equal(l.of[c].unified, unified);
        }
        cgroup_layout_done(&l);
    }
}

static void plans(void **state)
{
    static const struct {
        const char *name;
        struct cgroup_limits limits;
        const char *one, *two; /* the writes, in version 1 and in version 2 */
    } cases[] = {
        {"nothing asked", {0}, "cpu.shares=2 pids.max=4096", "cpu.weight=1 pids.max=4096"},
        {"a request alone",
         {.cpu_request_milli = 100},
         "cpu.shares=102 pids.max=4096",
         "cpu.weight=4 pids.max=4096"},
        {"a whole CPU",
         {.cpu_request_milli = 1000, .cpu_limit_milli = 1000},
         "cpu.shares=1024 cpu.cfs_period_us=100000 cpu.cfs_quota_us=100000 pids.max=4096",
         "cpu.weight=39 cpu.max=100000 100000 pids.max=4096"},
        {"half a CPU",
         {.cpu_limit_milli = 500},
         "cpu.shares=2 cpu.cfs_period_us=100000 cpu.cfs_quota_us=50000 pids.max=4096",
         "cpu.weight=1 cpu.max=50000 100000 pids.max=4096"},
        {"less than the kernel takes",
         {.cpu_limit_milli = 1},
         "cpu.shares=2 cpu.cfs_period_us=100000 cpu.cfs_quota_us=1000 pids.max=4096",
         "cpu.weight=1 cpu.max=1000 100000 pids.max=4096"},
        {"more than there is a weight for",
         {.cpu_request_milli = 1000000},
         "cpu.shares=262144 pids.max=4096",
         "cpu.weight=10000 pids.max=4096"},
        {"memory",
         {.memory_limit_bytes = 1 << 30},
         "cpu.shares=2 memory.limit_in_bytes=1073741824 pids.max=4096",
         "cpu.weight=1 memory.max=1073741824 memory.oom.group=1 pids.max=4096"},
        {"memory that nobody limited",
         {.memory_default_bytes = 1 << 20},
         "cpu.shares=2 memory.limit_in_bytes=1048576 pids.max=4096",
         "cpu.weight=1 memory.max=1048576 memory.oom.group=1 pids.max=4096"},
        {"a limit of memory, whatever the default would be",
         {.memory_limit_bytes = 1 << 30, .memory_default_bytes = 1 << 20},
         "cpu.shares=2 memory.limit_in_bytes=1073741824 pids.max=4096",
         "cpu.weight=1 memory.max=1073741824 memory.oom.group=1 pids.max=4096"},
    };

    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        bool unified = i % 2;
        struct cgroup_place p = {.mount = (char *)"/m", .unified = unified};
        const struct cgroup_layout l = {{p, p, p}};
        struct cgroup_write writes[CGROUP_WRITES_MAX];
        ferry_cleanup_buf struct ferry_buf text = {0};
        size_t n = cgroup_plan(&cases[i / 2].limits, &l, writes);

        for (size_t k = 0; k < n; k++) {
            ferry_buf_printf(&text, "%s%s=%s", k ? " " : "", writes[k].file, writes[k].value);
            /* Older kernels know no groups that are killed as one; all else must be kept. */
            assert_int_equal(writes[k].may_miss, ferry_streq(writes[k].file, "memory.oom.group"));
        }
        print_message("  %s, version %d\n", cases[i / 2].name, unified ? 2 : 1);
        assert_string_equal(text.data, unified ? cases[i / 2].two : cases[i / 2].one);
    }
}

static void what_is_not_there(void **state)
{
    const struct cgroup_layout none = {0}, memory = {{[CGROUP_MEMORY] = {.mount = (char *)"/m"}}};
    const struct cgroup_limits both = {.cpu_limit_milli = 1, .memory_limit_bytes = 1}, few = {0};
    const struct cgroup_limits by_default = {.memory_default_bytes = 1};
    struct cgroup_write writes[CGROUP_WRITES_MAX];

    (void)state;
    assert_int_equal(cgroup_plan(&both, &none, writes), 0);
    assert_int_equal(cgroup_plan(&both, &memory, writes), 1);
    assert_string_equal(cgroup_unkept(&both, &none), "memory");
    assert_string_equal(cgroup_unkept(&both, &memory), "cpu");
    assert_null(cgroup_unkept(&few, &none));
    assert_null(cgroup_unkept(&by_default, &none)); /* nobody asked for it */
}

static void kills(void **state)
{
    const struct cgroup_layout one = {{[CGROUP_MEMORY] = {.mount = (char *)"/m"}}};
    const struct cgroup_layout two = {{[CGROUP_MEMORY] = {.mount = (char *)"/m", .unified = true}}};

    (void)state;
    assert_string_equal(cgroup_kills_file(&one), "memory.oom_control");
    assert_string_equal(cgroup_kills_file(&two), "memory.events");
    assert_int_equal(ferry_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3);
    assert_int_equal(ferry_oom_kills("low 0\nhigh 0\nmax 9\noom 4\noom_kill 0\noom_group_kill 1\n"),
                     0);
    assert_int_equal(ferry_oom_kills("oom 4\noom_kill 12"), 12);
    assert_int_equal(ferry_oom_kills(""), 0);
}

/* What a pod has beyond its request. */
#define ROOM (INT64_C(2) << 30)

static void limits_of_a_container(void **state)
{
    static const struct {
        const char *json;
        int rc;
        struct cgroup_limits expected;
    } cases[] = {
        {"{}", 0, {.memory_default_bytes = ROOM}},
        {"{\"resources\":{\"requests\":{\"memory\":\"8Ei\"}}}", -FERRY_INVALID, {0}},
        {"{\"resources\":{\"requests\":{\"memory\":\"4Ei\"}}}",
         0,
         {.memory_default_bytes = INT64_MAX / 4 + INT64_MAX / 16 + ROOM}},
        {"{\"resources\":{\"requests\":{\"cpu\":\"200m\",\"memory\":\"1Gi\"}}}",
         0,
         {.cpu_request_milli = 200, .memory_default_bytes = (1 << 30) + (1 << 28) + ROOM}},
        {"{\"resources\":{\"limits\":{\"cpu\":2,\"memory\":\"64Mi\"}}}",
         0,
         {.cpu_limit_milli = 2000, .memory_limit_bytes = 64 << 20}},
        {"{\"resources\":{\"limits\":{\"cpu\":\"two\"}}}", -FERRY_INVALID, {0}},
        {"{\"resources\":{\"limits\":{\"memory\":\"-1\"}}}", -FERRY_INVALID, {0}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        yyjson_doc *doc = yyjson_read(cases[i].json, strlen(cases[i].json), 0);
        struct cgroup_limits l = {0};
        struct ferry_error err;

        print_message("  %s\n", cases[i].json);
        assert_int_equal(cgroup_limits_read(yyjson_doc_get_root(doc), &l, &err), cases[i].rc);
        assert_memory_equal(&l, &cases[i].expected, sizeof(l));
        yyjson_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts),
        cmocka_unit_test(plans),
        cmocka_unit_test(what_is_not_there),
        cmocka_unit_test(kills),
        cmocka_unit_test(limits_of_a_container),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
