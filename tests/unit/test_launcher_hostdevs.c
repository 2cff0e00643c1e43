/* Devices of the host that a guest gives back for a move: which they are, and how they are taken
 * out. */
#include "lib/unit.h"

#include "base/str.h"
#include "launcher/domain/hostdevs.h"
#include "launcher/move/preflight.h"

#define DOMAIN(devices) "<domain type='kvm'><name>x</name><devices>" devices "</devices></domain>"
#define HOSTDEV(alias)                                                                             \
    "<hostdev mode='subsystem' type='pci' managed='no'><driver name='vfio'/><source><address "     \
    "domain='0x0000' bus='0x81' slot='0x01' function='0x0'/></source><alias name='" alias          \
    "'/></hostdev>"

static void found(void **state)
{
    static const struct {
        const char *xml;
        const char *aliases; /* one after the other; NULL = an error */
        bool others;
    } cases[] = {
        {DOMAIN(""), "", false},
        {DOMAIN(HOSTDEV("ua-sriov-a")), "ua-sriov-a ", false},
        {DOMAIN(HOSTDEV("ua-sriov-a") "<memballoon model='none'/>" HOSTDEV("ua-sriov-b")),
         "ua-sriov-a ua-sriov-b ", false},
        {DOMAIN(HOSTDEV("ua-hostdevice-gpu")), "", true},
        {DOMAIN(HOSTDEV("hostdev0")), "", true},
        {DOMAIN(HOSTDEV("ua-sriov-a") HOSTDEV("ua-hostdevice-gpu")), "ua-sriov-a ", true},
        {DOMAIN("<hostdev mode='subsystem' type='pci'/>"), "", true},
        /* as libvirt has functions that it sets up itself */
        {DOMAIN("<interface type='hostdev'><alias name='ua-sriov-c'/></interface>"), "ua-sriov-c ",
         false},
        {DOMAIN("<interface type='hostdev'><alias name='hostdev1'/></interface>"), "", true},
        /* names of the user's choice */
        {DOMAIN("<interface type='ethernet'><alias name='ua-sriov-d'/></interface>"), "", false},
        {DOMAIN("<disk type='file'><alias name='ua-sriov-e'/></disk>"), "", false},
        {DOMAIN("<disk type='file'><alias name='ua-hostdev'/></disk>"), "", false},
        {"<domain><metadata><hostdev><alias "
         "name='ua-sriov-x'/></hostdev></metadata><devices/></domain>",
         "", false},
        {"<domain/>", NULL, false},
        {"<domain>", NULL, false},
        {"", NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct hostdevs h;
        struct ferry_error err = {0};
        struct ferry_buf aliases = {0};
        int rc = hostdevs_find(cases[i].xml, &h, &err);

        if ((rc < 0) != (cases[i].aliases == NULL)) {
            fail_msg("row %zu: %d %s", i, rc, err.msg);
        }
        for (size_t k = 0; rc == 0 && k < h.n; k++) {
            ferry_buf_printf(&aliases, "%s ", h.list[k].alias);
        }
        ferry_cleanup_free char *got = ferry_buf_take(&aliases);
        if (rc == 0 && !ferry_streq(got, cases[i].aliases)) {
            fail_msg("row %zu: '%s'", i, got);
        }
        if (hostdevs_others(cases[i].xml) != cases[i].others) {
            fail_msg("row %zu: others", i);
        }
        hostdevs_done(&h);
    }
    assert_false(hostdevs_others(NULL));
}

/* What is plugged in again is what was there, whole. */
static void kept(void **state)
{
    struct hostdevs h, back;
    struct ferry_error err = {0};

    (void)state;
    assert_int_equal(
        hostdevs_find(DOMAIN(HOSTDEV("ua-sriov-a") HOSTDEV("ua-sriov-&quot;b")), &h, &err), 0);
    ferry_cleanup_free char *text = hostdevs_encode(&h);
    assert_int_equal(hostdevs_decode(text, strlen(text), &back, &err), 0);
    assert_int_equal(back.n, 2);
    for (size_t i = 0; i < back.n; i++) {
        assert_string_equal(back.list[i].alias, h.list[i].alias);
        assert_string_equal(back.list[i].xml, h.list[i].xml);
    }
    assert_non_null(strstr(back.list[0].xml, "bus=\"0x81\""));
    assert_true(ferry_str_starts(back.list[0].xml, "<hostdev "));
    hostdevs_done(&h);
    hostdevs_done(&back);

    static const char *const bad[] = {"",
                                      "{}",
                                      "[1]",
                                      "[{\"alias\":\"a\"}]",
                                      "[{\"xml\":\"a\"}]",
                                      "[{\"alias\":\"a\",\"xml\":\"b\"},7]"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (hostdevs_decode(bad[i], strlen(bad[i]), &back, &err) == 0 || back.n != 0) {
            fail_msg("'%s' was taken", bad[i]);
        }
    }
}

static void too_many(void **state)
{
    struct ferry_buf xml = {0};
    struct hostdevs h;
    struct ferry_error err = {0};

    (void)state;
    ferry_buf_puts(&xml, "<domain><devices>");
    for (int i = 0; i <= HOSTDEVS_MAX; i++) {
        ferry_buf_printf(&xml, "<hostdev><alias name='ua-sriov-%d'/></hostdev>", i);
    }
    ferry_buf_puts(&xml, "</devices></domain>");
    ferry_cleanup_free char *text = ferry_buf_take(&xml);
    assert_true(hostdevs_find(text, &h, &err) < 0);
    assert_int_equal(h.n, 0);
}

static void steps(void **state)
{
    static const struct {
        const char *present;
        size_t asked;
        int64_t waited_ms;
        bool cancelled;
        enum hostdevs_step step;
        size_t index;
    } cases[] = {
        {"ab", 0, 0, false, HOSTDEVS_ASK, 0},
        {"ab", 1, 0, false, HOSTDEVS_ASK, 1},
        {"b", 1, 0, false, HOSTDEVS_ASK, 1},
        {"b", 0, 0, false, HOSTDEVS_ASK, 1}, /* the first is gone by itself */
        {"ab", 2, 0, false, HOSTDEVS_WAIT, 0},
        {"ab", 2, HOSTDEVS_WAIT_MS - 1, false, HOSTDEVS_WAIT, 0},
        {"ab", 2, HOSTDEVS_WAIT_MS, false, HOSTDEVS_REFUSED, 0},
        {"b", 2, HOSTDEVS_WAIT_MS, false, HOSTDEVS_REFUSED, 1},
        {"a", 2, 0, false, HOSTDEVS_WAIT, 0},
        {"", 2, 0, false, HOSTDEVS_GONE, 2},
        {"", 0, 0, false, HOSTDEVS_GONE, 2},
        {"", 2, HOSTDEVS_WAIT_MS, false, HOSTDEVS_GONE, 2}, /* late, but gone */
        {"ab", 0, 0, true, HOSTDEVS_STOP, 0},
        {"b", 2, HOSTDEVS_WAIT_MS, true, HOSTDEVS_STOP, 1},
        {"", 2, 0, true, HOSTDEVS_GONE, 2}, /* the move itself is aborted then */
    };
    struct hostdevs all = {.n = 2, .list = {{.alias = (char[]){"a"}}, {.alias = (char[]){"b"}}}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct hostdevs present = {0};
        size_t index;

        for (const char *p = cases[i].present; *p; p++) {
            present.list[present.n++] = all.list[*p - 'a'];
        }
        enum hostdevs_step step = hostdevs_decide(&all, &present, cases[i].asked,
                                                  cases[i].waited_ms, cases[i].cancelled, &index);
        if (step != cases[i].step || index != cases[i].index) {
            fail_msg("row %zu: step %d of %zu", i, (int)step, index);
        }
    }
}

static void preflights(void **state)
{
    static const struct {
        const char *xml, *host, *cpu;
    } cases[] = {
        {"<capabilities><host><uuid>a-b</uuid><cpu/></host></capabilities>", "a-b", NULL},
        {"<capabilities><guest><uuid>a-b</uuid></guest><host><uuid></uuid></host></capabilities>",
         NULL, NULL},
        {"<domain><cpu mode='custom' check='full'><model>Nehalem</model></cpu></domain>", NULL,
         "<cpu mode=\"custom\" check=\"full\"><model>Nehalem</model></cpu>"},
        {"<domain><cpu mode='host-passthrough'/></domain>", NULL, NULL},
        {"<domain><metadata><cpu mode='custom'/></metadata></domain>", NULL, NULL},
        {"<domain>", NULL, NULL},
        {NULL, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *host = preflight_host(cases[i].xml);
        ferry_cleanup_free char *cpu = preflight_cpu(cases[i].xml);

        if (!ferry_streq(host, cases[i].host) || !ferry_streq(cpu, cases[i].cpu)) {
            fail_msg("row %zu: %s %s", i, host ? host : "-", cpu ? cpu : "-");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found), cmocka_unit_test(kept),       cmocka_unit_test(too_many),
        cmocka_unit_test(steps), cmocka_unit_test(preflights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
