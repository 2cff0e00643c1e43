#include "lib/unit.h"

#include "base/fd.h"
#include "base/str.h"
#include "control/loops/watches.h"

/* The table of the documentation says what the code does, in its words. */
static void test_documented(void **state)
{
    struct ferry_buf text = {0};
    struct ferry_error err = {0};
    (void)state;

    if (ferry_read_file(DOCS_DIR "/architecture.md", 1 << 20, &text, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    ferry_buf_append(&text, "", 1);
    for (size_t i = 0; i < watches_count; i++) {
        ferry_cleanup_free char *row =
            ferry_asprintf("\n| %s | %s |\n", watches_table[i].plural, watches_table[i].wakes);

        if (!strstr(text.data, row)) {
            fail_msg("docs/architecture.md has no row:%s", row);
        }
    }
    ferry_buf_done(&text);
}

static void test_complete(void **state)
{
    static const char *const wanted[] = {
        "virtualmachineinstances",
        "pods",
        "virtualmachineinstancemigrations",
        "nodes",
        "persistentvolumeclaims",
        "storageclasses",
        "storageprofiles",
        "migrationpolicies",
        "resourcequotas",
        "kubevirts",
        "virtualmachineinstancetypes",
        "virtualmachineclusterinstancetypes",
        "virtualmachinepreferences",
        "virtualmachineclusterpreferences",
        "network-attachment-definitions",
        "namespaces",
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        size_t found = 0;

        for (size_t k = 0; k < watches_count; k++) {
            found += strcmp(watches_table[k].plural, wanted[i]) == 0;
        }
        assert_int_equal(found, 1);
    }
    for (size_t i = 0; i < watches_count; i++) {
        const struct watch *w = &watches_table[i];

        assert_non_null(api_resource_find(w->group, w->version, w->plural));
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(w->informer, watches_table[k].informer);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_documented),
                                       cmocka_unit_test(test_complete)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
