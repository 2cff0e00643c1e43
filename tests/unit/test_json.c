/* Tables for src/json. */
#include "lib/unit.h"

#include <math.h>

#include "base/str.h"
#include "json/doc.h"

/* What a document says when a string of any bytes is in it. */
static void texts_are_json_whatever_is_in_them(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"plain", "plain"},
        {"caf\xc3\xa9", "caf\xc3\xa9"},
        {"\xff", "\xef\xbf\xbd"},
        {"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"a\xff"
         "b\xc3\xa9",
         "a\xef\xbf\xbd"
         "b\xc3\xa9"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        yyjson_mut_doc *doc = json_doc_new();
        size_t len = 0;

        yyjson_mut_obj_add_strcpy(doc, json_doc_object(doc), "a", cases[i].in);
        ferry_cleanup_free char *text = json_doc_text(doc, YYJSON_WRITE_NOFLAG, &len);
        assert_non_null(text);
        assert_int_equal(strlen(text), len);
        ferry_cleanup_free char *taken = json_doc_take(doc);
        assert_string_equal(taken, text);
        json_cleanup_doc yyjson_doc *back = yyjson_read(text, len, YYJSON_READ_NOFLAG);
        assert_non_null(back);
        assert_string_equal(yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(back), "a")),
                            cases[i].out);
    }
}

static void numbers_that_json_has_not_are_null(void **state)
{
    static const double cases[] = {NAN, INFINITY, -INFINITY};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        yyjson_mut_doc *doc = json_doc_new();

        yyjson_mut_obj_add_real(doc, json_doc_object(doc), "n", cases[i]);
        ferry_cleanup_free char *text = json_doc_take(doc);
        assert_string_equal(text, "{\"n\":null}");
    }
}

static void values_and_copies(void **state)
{
    static const char text[] = "{\"a\":[1,{\"b\":\"c\"}]}";
    json_cleanup_doc yyjson_doc *doc = yyjson_read(text, strlen(text), YYJSON_READ_NOFLAG);
    json_cleanup_mut_doc yyjson_mut_doc *copy = json_doc_copy(doc);
    yyjson_val *a = yyjson_obj_get(yyjson_doc_get_root(doc), "a");

    (void)state;
    ferry_cleanup_free char *of_copy = json_doc_text(copy, YYJSON_WRITE_NOFLAG, NULL);
    ferry_cleanup_free char *of_value = json_doc_val_text(a, YYJSON_WRITE_NOFLAG, NULL);
    ferry_cleanup_free char *of_mut = json_doc_mut_text(
        yyjson_mut_obj_get(yyjson_mut_doc_get_root(copy), "a"), YYJSON_WRITE_NOFLAG, NULL);
    assert_string_equal(of_copy, text);
    assert_string_equal(of_value, "[1,{\"b\":\"c\"}]");
    assert_string_equal(of_mut, of_value);
    json_cleanup_mut_doc yyjson_mut_doc *empty = json_doc_new();
    assert_null(json_doc_text(empty, YYJSON_WRITE_NOFLAG, NULL));
    assert_null(json_doc_val_text(NULL, YYJSON_WRITE_NOFLAG, NULL));
    assert_null(json_doc_mut_text(NULL, YYJSON_WRITE_NOFLAG, NULL));
    assert_null(json_doc_copy(NULL));
}

static void lists_of_strings_and_of_names(void **state)
{
    static const char text[] = "{\"l\":[\"a\",1,\"b\"],\"n\":[{\"name\":\"x\",\"v\":1}]}";
    json_cleanup_doc yyjson_doc *doc = yyjson_read(text, strlen(text), YYJSON_READ_NOFLAG);
    yyjson_val *list = yyjson_obj_get(yyjson_doc_get_root(doc), "l");
    json_cleanup_mut_doc yyjson_mut_doc *copy = json_doc_copy(doc);
    yyjson_mut_val *named = yyjson_mut_obj_get(yyjson_mut_doc_get_root(copy), "n");

    (void)state;
    assert_true(json_doc_lists(list, "b"));
    assert_false(json_doc_lists(list, "1"));
    assert_false(json_doc_lists(NULL, "a"));
    assert_ptr_equal(json_doc_named(copy, named, "x"), yyjson_mut_arr_get_first(named));
    yyjson_mut_val *added = json_doc_named(copy, named, "y");
    assert_ptr_equal(json_doc_named(copy, named, "y"), added);
    assert_int_equal(yyjson_mut_arr_size(named), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_json_whatever_is_in_them),
        cmocka_unit_test(numbers_that_json_has_not_are_null),
        cmocka_unit_test(values_and_copies),
        cmocka_unit_test(lists_of_strings_and_of_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
