/* Tables for src/json. */
#include "lib/unit.h"

#include <math.h>

#include "base/str.h"
#include "json/doc.h"
#include "json/keys.h"

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

/* An object of `n` keys "k0"…, of which one is put, one taken away, one taken and put again, one
 * added; few keys are compared, many are hashed. */
static void an_object_is_changed_key_by_key(void **state)
{
    static const size_t sizes[] = {3, 15, 16, 17, 200};

    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        json_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
        yyjson_mut_val *obj = json_doc_object(doc);

        for (size_t i = 0; i < sizes[s]; i++) {
            char key[24];

            snprintf(key, sizeof(key), "k%zu", i);
            yyjson_mut_obj_add(obj, yyjson_mut_strcpy(doc, key), yyjson_mut_uint(doc, i));
        }
        struct json_keys *keys = json_keys_of(obj, 1);
        json_keys_put(keys, yyjson_mut_str(doc, "k0"), yyjson_mut_str(doc, "put"));
        json_keys_put(keys, yyjson_mut_str(doc, "k1"), NULL);
        assert_null(json_keys_get(keys, "k1", 2));
        json_keys_put(keys, yyjson_mut_str(doc, "k2"), NULL);
        json_keys_put(keys, yyjson_mut_str(doc, "k2"), yyjson_mut_str(doc, "again"));
        json_keys_put(keys, yyjson_mut_str(doc, "none"), NULL);
        json_keys_put(keys, yyjson_mut_str(doc, "added"), yyjson_mut_true(doc));
        assert_true(yyjson_mut_get_bool(json_keys_get(keys, "added", 5)));
        assert_null(json_keys_get(keys, "adde", 4));
        json_keys_done(keys);
        assert_int_equal(yyjson_mut_obj_size(obj), sizes[s]);
        assert_string_equal(yyjson_mut_get_str(yyjson_mut_obj_get(obj, "k0")), "put");
        assert_null(yyjson_mut_obj_get(obj, "k1"));
        assert_string_equal(yyjson_mut_get_str(yyjson_mut_obj_get(obj, "k2")), "again");
    }
}

static void of_equal_keys_the_last_holds(void **state)
{
    static const char text[] = "{\"a\":1,\"b\":2,\"a\":3}";
    json_cleanup_doc yyjson_doc *doc = yyjson_read(text, strlen(text), YYJSON_READ_NOFLAG);
    json_cleanup_mut_doc yyjson_mut_doc *copy = json_doc_copy(doc);

    (void)state;
    json_keys_settle(yyjson_mut_doc_get_root(copy));
    ferry_cleanup_free char *settled = json_doc_text(copy, YYJSON_WRITE_NOFLAG, NULL);
    assert_string_equal(settled, "{\"a\":3,\"b\":2}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_json_whatever_is_in_them),
        cmocka_unit_test(numbers_that_json_has_not_are_null),
        cmocka_unit_test(values_and_copies),
        cmocka_unit_test(lists_of_strings_and_of_names),
        cmocka_unit_test(an_object_is_changed_key_by_key),
        cmocka_unit_test(of_equal_keys_the_last_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
