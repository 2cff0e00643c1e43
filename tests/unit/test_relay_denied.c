/* The list of removed nodes that a relay is told. */
#include "lib/unit.h"

#include "base/str.h"
#include "relay/manager/denied.h"
#include "tls/denials.h"

static void parsing(void **state)
{
    static const struct {
        const char *json;
        size_t n; /* when it is good */
        const char *words;
    } cases[] = {
        {"{\"nodes\":[]}", 0, NULL},
        {"{\"nodes\":[{\"node\":\"a\"},{\"node\":\"b\",\"generation\":\"g\"},"
         "{\"node\":\"c\",\"before\":1700000000}]}",
         3, NULL},
        {"{\"nodes\":[{\"node\":\"a\",\"later\":{}}],\"more\":1}", 1, NULL},
        {"", 0, "nodes: must be a list"},
        {"[]", 0, "nodes: must be a list"},
        {"{}", 0, "nodes: must be a list"},
        {"{\"nodes\":{}}", 0, "nodes: must be a list"},
        {"{\"nodes\":[7]}", 0, "nodes[].node: missing"},
        {"{\"nodes\":[{}]}", 0, "nodes[].node: missing"},
        {"{\"nodes\":[{\"node\":\"\"}]}", 0, "nodes[].node: must be"},
        {"{\"nodes\":[{\"node\":\"a\\u0000b\"}]}", 0, "nodes[].node: must be"},
        {"{\"nodes\":[{\"node\":\"a\",\"generation\":7}]}", 0, "nodes[].generation: must be"},
        {"{\"nodes\":[{\"node\":\"a\",\"generation\":"
         "\"0123456789012345678901234567890123456789012345678\"}]}",
         0, "nodes[].generation: must be"},
        {"{\"nodes\":[{\"node\":\"a\",\"before\":-1}]}", 0, "nodes[].before: must be"},
        {"{\"nodes\":[{\"node\":\"a\",\"before\":18446744073709551615}]}", 0,
         "nodes[].before: must be"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct relay_denied d = {0};
        struct ferry_error err = {0};
        int rc = relay_denied_parse(cases[i].json, strlen(cases[i].json), &d, &err);

        if ((rc < 0) != (cases[i].words != NULL) || d.n != cases[i].n ||
            (cases[i].words && !strstr(err.msg, cases[i].words))) {
            fail_msg("case %zu: %d %zu %s", i, rc, d.n, err.msg);
        }
        relay_denied_done(&d);
    }
}

static void the_list(void **state)
{
    static const struct tls_denial one[] = {{.node = "a"}};
    static const struct tls_denial other[] = {{.node = "a", .generation = "g"}};
    struct tls_denials *d = tls_denials_new();

    (void)state;
    assert_int_equal(tls_denials_version(d), 0);
    assert_false(tls_denials_set(d, NULL, 0)); /* nothing, as before */
    assert_true(tls_denials_set(d, one, 1));
    assert_int_equal(tls_denials_version(d), 1);
    assert_false(tls_denials_set(d, one, 1)); /* told again, as it is every few seconds */
    assert_int_equal(tls_denials_version(d), 1);
    assert_true(tls_denials_set(d, other, 1));
    assert_true(tls_denials_set(d, NULL, 0));
    assert_int_equal(tls_denials_version(d), 3);
    assert_true(tls_denials_set(d, other, 1));
    struct tls_denial *copy = NULL;
    assert_int_equal(tls_denials_copy(d, &copy), 1);
    assert_string_equal(copy[0].node, "a");
    assert_string_equal(copy[0].generation, "g");
    tls_denials_list_free(copy, 1);
    assert_false(tls_denials_has_all(d, "a"));
    assert_true(tls_denials_set(d, one, 1));
    assert_true(tls_denials_has_all(d, "a"));
    assert_false(tls_denials_has_all(d, "b"));
    assert_false(tls_denials_has_all(d, NULL));
    assert_false(tls_denials_has(d, NULL));
    assert_false(tls_denials_has(NULL, NULL));
    tls_denials_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parsing), cmocka_unit_test(the_list)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
