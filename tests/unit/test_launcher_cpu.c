/* What libvirt says about CPUs, as a report: golden files. FERRY_GOLDEN_WRITE=1 writes them anew.
 */
#include "lib/unit.h"

#include "base/fd.h"
#include "base/str.h"
#include "launcher/domain/cpu_report.h"

static char *read_golden(const char *name, const char *ending, bool needed)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/cpu/%s.%s", GOLDEN_DIR, name, ending);
    struct ferry_buf b = {0};
    struct ferry_error err = {0};

    if (ferry_read_file(path, 1 << 20, &b, &err) < 0) {
        if (needed) {
            fail_msg("%s", err.msg);
        }
        return NULL;
    }
    return b.data;
}

static void same_as_golden(const char *name, const char *ending, const char *text)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/cpu/%s.%s", GOLDEN_DIR, name, ending);

    if (getenv("FERRY_GOLDEN_WRITE")) {
        assert_int_equal(ferry_write_file(path, text, strlen(text), 0644, NULL), 0);
    }
    ferry_cleanup_free char *want = read_golden(name, ending, true);
    assert_string_equal(text, want);
}

/* NAME.caps.xml as libvirt has it, NAME.expanded.xml and NAME.machines.xml where it has that too.
 */
static void reports(void **state)
{
    static const char *const names[] = {"tcg", "epyc", "no-host-model"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        ferry_cleanup_free char *caps = read_golden(names[i], "caps.xml", true);
        ferry_cleanup_free char *expanded = read_golden(names[i], "expanded.xml", false);
        ferry_cleanup_free char *machines = read_golden(names[i], "machines.xml", false);
        ferry_cleanup_free char *json = NULL;
        ferry_cleanup_free char *host = NULL;
        struct ferry_error err = {0};

        print_message("  %s\n", names[i]);
        if (cpu_report_host(caps, &host, &err) < 0 ||
            cpu_report(caps, expanded, machines ? machines : "<capabilities/>", &json, &err) < 0) {
            fail_msg("%s: %s", names[i], err.msg);
        }
        same_as_golden(names[i], "json", json);
        if (host) {
            same_as_golden(names[i], "host.xml", host);
        } else {
            assert_null(expanded);
        }
    }
}

static void refusals(void **state)
{
    static const struct {
        const char *caps, *expanded, *machines, *message;
    } rows[] = {
        {"", NULL, "<capabilities/>", "libvirt's answer is no <domainCapabilities>"},
        {"<domainCapabilities>", NULL, "<capabilities/>",
         "libvirt's answer is no <domainCapabilities>"},
        {"<capabilities/>", NULL, "<capabilities/>", "libvirt's answer is no <domainCapabilities>"},
        {"<domainCapabilities/>", "<model/>", "<capabilities/>", "libvirt's answer is no <cpu>"},
        {"<domainCapabilities/>", NULL, "<cpu/>", "libvirt's answer is no <capabilities>"},
        {"<domainCapabilities/>", NULL, NULL, "libvirt's answer is no <capabilities>"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ferry_cleanup_free char *json = NULL;
        struct ferry_error err = {0};

        assert_true(cpu_report(rows[i].caps, rows[i].expanded, rows[i].machines, &json, &err) < 0);
        assert_string_equal(err.msg, rows[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reports), cmocka_unit_test(refusals)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
