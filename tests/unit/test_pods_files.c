/* What of a ConfigMap or Secret becomes which file. */
#include "lib/unit.h"

#include "api/base64.h"
#include "base/str.h"
#include "pods/pod_files.h"

static void plans(void **state)
{
    static const struct {
        const char *name;
        enum pod_volume_kind kind;
        bool optional;
        const char *items, *object; /* NULL = none */
        int rc;
        const char *said;  /* of the error */
        const char *files; /* "NAME=BYTES " in order */
    } cases[] = {
        {"text", POD_VOLUME_CONFIG_MAP, false, NULL, "{\"data\":{\"a\":\"x\",\"b.c\":\"\"}}", 0,
         NULL, "a=x b.c= "},
        {"bytes beside text", POD_VOLUME_CONFIG_MAP, false, NULL,
         "{\"data\":{\"a\":\"x\"},\"binaryData\":{\"b\":\"eXo=\"}}", 0, NULL, "a=x b=yz "},
        {"a secret", POD_VOLUME_SECRET, false, NULL, "{\"data\":{\"a\":\"eHl6\"}}", 0, NULL,
         "a=xyz "},
        {"a secret has no binaryData", POD_VOLUME_SECRET, false, NULL,
         "{\"binaryData\":{\"a\":\"eHl6\"}}", 0, NULL, ""},
        {"nothing in it", POD_VOLUME_SECRET, false, NULL, "{}", 0, NULL, ""},
        {"renamed, the rest left out", POD_VOLUME_SECRET, false, "[{\"key\":\"b\",\"path\":\"n\"}]",
         "{\"data\":{\"a\":\"eA==\",\"b\":\"eQ==\"}}", 0, NULL, "n=y "},
        {"one key twice", POD_VOLUME_CONFIG_MAP, false,
         "[{\"key\":\"a\",\"path\":\"n\"},{\"key\":\"a\",\"path\":\"m\"}]",
         "{\"data\":{\"a\":\"x\"}}", 0, NULL, "n=x m=x "},
        {"bytes by name", POD_VOLUME_CONFIG_MAP, false, "[{\"key\":\"b\",\"path\":\"n\"}]",
         "{\"binaryData\":{\"b\":\"eXo=\"}}", 0, NULL, "n=yz "},
        {"missing object", POD_VOLUME_SECRET, false, NULL, NULL, -FERRY_RETRY,
         "secret 's' not found", NULL},
        {"missing object that may be", POD_VOLUME_SECRET, true, NULL, NULL, 0, NULL, ""},
        {"missing key", POD_VOLUME_CONFIG_MAP, false, "[{\"key\":\"k\",\"path\":\"n\"}]",
         "{\"data\":{\"a\":\"x\"}}", -FERRY_RETRY, "configmap 's' references non-existent key 'k'",
         NULL},
        {"missing key that may be", POD_VOLUME_CONFIG_MAP, true,
         "[{\"key\":\"k\",\"path\":\"n\"},{\"key\":\"a\",\"path\":\"m\"}]",
         "{\"data\":{\"a\":\"x\"}}", 0, NULL, "m=x "},
        {"a path for a key", POD_VOLUME_SECRET, false, NULL, "{\"data\":{\"../a\":\"eA==\"}}",
         -FERRY_INVALID, "cannot be the name of a file", NULL},
        {"a hidden way up", POD_VOLUME_CONFIG_MAP, false, NULL, "{\"data\":{\"..\":\"x\"}}",
         -FERRY_INVALID, "cannot be the name of a file", NULL},
        {"no base64", POD_VOLUME_SECRET, false, NULL, "{\"data\":{\"a\":\"s3cr3t!\"}}",
         -FERRY_INVALID, "key 'a' of secret 's' cannot be read", NULL},
        {"no text", POD_VOLUME_CONFIG_MAP, false, NULL, "{\"data\":{\"a\":7}}", -FERRY_INVALID,
         "key 'a' of configmap 's' cannot be read", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        yyjson_doc *object =
            cases[i].object ? yyjson_read(cases[i].object, strlen(cases[i].object), 0) : NULL;
        yyjson_doc *items =
            cases[i].items ? yyjson_read(cases[i].items, strlen(cases[i].items), 0) : NULL;
        const struct pod_volume v = {.name = "v",
                                     .source = "s",
                                     .kind = cases[i].kind,
                                     .optional = cases[i].optional,
                                     .items = yyjson_doc_get_root(items)};
        pod_files_cleanup struct pod_files files = {0};
        ferry_cleanup_buf struct ferry_buf b = {0};
        struct ferry_error err = {0};

        print_message("  %s\n", cases[i].name);
        assert_int_equal(pod_files_plan(&v, yyjson_doc_get_root(object), &files, &err),
                         cases[i].rc);
        for (size_t k = 0; k < files.n; k++) {
            ferry_buf_printf(&b, "%s=%.*s ", files.list[k].name, (int)files.list[k].n,
                             files.list[k].data);
        }
        if (cases[i].rc == 0) {
            assert_string_equal(b.data ? b.data : "", cases[i].files);
        } else {
            assert_non_null(strstr(err.msg, cases[i].said));
            assert_null(strstr(err.msg, "s3cr3t")); /* what it holds is not told */
        }
        yyjson_doc_free(object);
        yyjson_doc_free(items);
    }
}

static void names(void **state)
{
    static const struct {
        const char *name;
        bool good;
    } cases[] = {
        {"userdata", true}, {"a.b-c_D9", true},  {".hidden", true}, {"...", false},
        {NULL, false},      {"", false},         {".", false},      {"..", false},
        {"..a", false},     {"a/b", false},      {"/a", false},     {"a b", false},
        {"a\nb", false},    {"\xc3\xa4", false},
    };
    char longest[255];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(pod_files_is_name(cases[i].name), cases[i].good);
    }
    memset(longest, 'a', sizeof(longest));
    longest[253] = '\0';
    assert_true(pod_files_is_name(longest));
    longest[253] = 'a';
    longest[254] = '\0';
    assert_false(pod_files_is_name(longest));
}

/* A volume as large as may be, and by one byte or one file too large. */
static void limits(void **state)
{
    static const struct {
        size_t files, bytes;
        bool good;
    } cases[] = {
        {1, POD_FILES_BYTES, true},
        {1, POD_FILES_BYTES + 1, false},
        {POD_FILES_MAX, 1, true},
        {POD_FILES_MAX + 1, 1, false},
        {2, POD_FILES_BYTES / 2 + 1, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_buf struct ferry_buf b = {0};
        const struct pod_volume v = {.name = "v", .source = "s", .kind = POD_VOLUME_CONFIG_MAP};
        pod_files_cleanup struct pod_files files = {0};
        struct ferry_error err = {0};

        ferry_buf_puts(&b, "{\"data\":{");
        for (size_t k = 0; k < cases[i].files; k++) {
            ferry_buf_printf(&b, "%s\"k%zu\":\"%*s\"", k ? "," : "", k, (int)cases[i].bytes, "");
        }
        ferry_buf_puts(&b, "}}");
        yyjson_doc *doc = yyjson_read(b.data, b.len, 0);
        assert_int_equal(pod_files_plan(&v, yyjson_doc_get_root(doc), &files, &err),
                         cases[i].good ? 0 : -FERRY_INVALID);
        assert_true(cases[i].good || strstr(err.msg, "more than"));
        yyjson_doc_free(doc);
    }
}

static void base64(void **state)
{
    static const struct {
        const char *text, *bytes; /* NULL = refused */
    } cases[] = {
        {"", ""},           {"eA==", "x"},        {"eHk=", "xy"},
        {"eHl6", "xyz"},    {"eHl6eA==", "xyzx"}, {"eHl6\neA==\n", "xyzx"},
        {"eHl", NULL},      {"e===", NULL},       {"====", NULL},
        {"eA==eA==", NULL}, {"eHl6 ", NULL},      {"eH-_", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *got = NULL;
        size_t n = 0;

        print_message("  '%s'\n", cases[i].text);
        assert_int_equal(api_base64_decode(cases[i].text, strlen(cases[i].text), &got, &n),
                         cases[i].bytes != NULL);
        if (cases[i].bytes) {
            assert_int_equal(n, strlen(cases[i].bytes));
            assert_memory_equal(got, cases[i].bytes, n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans),
        cmocka_unit_test(names),
        cmocka_unit_test(limits),
        cmocka_unit_test(base64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
