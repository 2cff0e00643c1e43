/* Tables for patches (RFC 6902, RFC 7386, strategic) and selectors. */
#include "lib/unit.h"

#include "api/json.h"
#include "api/names.h"
#include "api/object.h"
#include "api/patch.h"
#include "api/selector.h"
#include "base/str.h"

static int apply(int (*how)(yyjson_mut_doc *, const yyjson_val *, struct ferry_error *),
                 const char *object, const char *patch, char **ret, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *o = yyjson_read(object, strlen(object), 0);
    api_cleanup_doc yyjson_doc *p = yyjson_read(patch, strlen(patch), 0);
    api_cleanup_mut_doc yyjson_mut_doc *doc = yyjson_doc_mut_copy(o, NULL);

    assert_non_null(o);
    assert_non_null(p);
    int rc = how(doc, yyjson_doc_get_root(p), err);
    if (rc == 0) {
        *ret = yyjson_mut_write(doc, 0, NULL);
    }
    return rc;
}

struct patch_case {
    const char *object, *patch, *result; /* result: JSON, or what the error says */
    int rc;
};

static void run(int (*how)(yyjson_mut_doc *, const yyjson_val *, struct ferry_error *),
                const struct patch_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct ferry_error err = {0};
        ferry_cleanup_free char *result = NULL;
        int rc = apply(how, cases[i].object, cases[i].patch, &result, &err);
        bool good = rc == cases[i].rc && (rc == 0 ? strcmp(result, cases[i].result) == 0
                                                  : strstr(err.msg, cases[i].result) != NULL);

        if (!good) {
            fail_msg("%s + %s: rc %d, %s", cases[i].object, cases[i].patch, rc,
                     result ? result : err.msg);
        }
    }
}

static void json_patch(void **state)
{
    static const struct patch_case cases[] = {
        {"{\"a\":1}", "[]", "{\"a\":1}", 0},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}", 0},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":2}]", "{\"a\":2}", 0},
        {"{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]", "{\"a\":[1,2,3]}", 0},
        {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":2}]", "{\"a\":[1,2]}", 0},
        {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/5\",\"value\":2}]",
         "operation 0 at '/a/5': there is no such place", -FERRY_NOT_FOUND},
        {"{}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":2}]",
         "operation 0 at '/a/b': there is no such place", -FERRY_NOT_FOUND},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":{\"b\":2}}]", "{\"b\":2}", 0},
        {"{\"a/b\":1,\"c~d\":2}",
         "[{\"op\":\"remove\",\"path\":\"/a~1b\"},{\"op\":\"replace\",\"path\":\"/c~0d\","
         "\"value\":3}]",
         "{\"c~d\":3}", 0},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", "nothing to remove",
         -FERRY_NOT_FOUND},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"\"}]", "cannot be removed", -FERRY_INVALID},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":1}]", "nothing to replace",
         -FERRY_NOT_FOUND},
        {"{\"a\":{\"x\":[1,{\"y\":2}]}}",
         "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"x\":[1,{\"y\":2}]}},"
         "{\"op\":\"add\",\"path\":\"/ok\",\"value\":true}]",
         "{\"a\":{\"x\":[1,{\"y\":2}]},\"ok\":true}", 0},
        {"{\"a\":{\"x\":1,\"y\":2}}",
         "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"y\":2,\"x\":1}}]",
         "{\"a\":{\"x\":1,\"y\":2}}", 0},
        {"{\"metadata\":{\"resourceVersion\":\"8\"}}",
         "[{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"7\"}]",
         "operation 0 at '/metadata/resourceVersion': test failed", -FERRY_CONFLICT},
        {"{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", "test failed", -FERRY_CONFLICT},
        {"{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", "{}", 0},
        {"{\"a\":1,\"b\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b/c\"}]",
         "{\"b\":{\"c\":1}}", 0},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/c\"}]",
         "into itself", -FERRY_INVALID},
        {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]", "{\"a\":1}", 0},
        {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/x\",\"path\":\"/b\"}]", "nothing to remove",
         -FERRY_NOT_FOUND},
        {"{\"a\":[1]}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]",
         "{\"a\":[1],\"b\":[1]}", 0},
        {"{}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]", "nothing to copy",
         -FERRY_NOT_FOUND},
        {"{}", "{}", "must be a list", -FERRY_INVALID},
        {"{}", "[7]", "'path' must be a JSON pointer", -FERRY_INVALID},
        {"{}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", "must be a JSON pointer",
         -FERRY_INVALID},
        {"{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", "'value' is missing", -FERRY_INVALID},
        {"{}", "[{\"op\":\"frob\",\"path\":\"/a\"}]", "'op' must be", -FERRY_INVALID},
        {"{}", "[{\"path\":\"/a\"}]", "'op' must be", -FERRY_INVALID},
        {"{}", "[{\"op\":\"move\",\"path\":\"/a\"}]", "'from' must be", -FERRY_INVALID},
    };

    (void)state;
    run(api_patch_apply_json, cases, COUNT_OF(cases));
}

static void copies_are_bounded(void **state)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    ferry_cleanup_free char *result = NULL;
    struct ferry_error err;

    (void)state;
    ferry_buf_puts(&b, "[");
    for (int i = 0; i < 60; i++) { /* each doubles what is in /a */
        ferry_buf_printf(&b, "%s{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/-\"}", i ? "," : "");
    }
    ferry_buf_puts(&b, "]");
    assert_int_equal(apply(api_patch_apply_json, "{\"a\":[1]}", b.data, &result, &err),
                     -FERRY_INVALID);
    assert_non_null(strstr(err.msg, "copies too much"));
}

static void merge_patch(void **state)
{
    /* the examples of RFC 7386, appendix A, that concern objects */
    static const struct patch_case cases[] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}", 0},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}", 0},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}", 0},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}", 0},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}", 0},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}", 0},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}", 0},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}", 0},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}", 0},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}", 0},
        {"{}", "[1]", "must be a JSON object", -FERRY_INVALID},
    };

    (void)state;
    run(api_patch_apply_merge, cases, COUNT_OF(cases));
}

static void strategic_patch(void **state)
{
    static const struct patch_case cases[] = {
        {"{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"b\":3,\"c\":null}}", "{\"a\":{\"b\":3}}", 0},
        {"{\"spec\":{\"volumes\":[{\"name\":\"a\",\"x\":\"X\"},{\"name\":\"b\"}]}}",
         "{\"spec\":{\"$setElementOrder/volumes\":[{\"name\":\"a\"}],\"volumes\":[{\"$patch\":"
         "\"delete\",\"name\":\"b\"},{\"name\":\"a\",\"x\":\"Y\"},{\"name\":\"c\"}]}}",
         "{\"spec\":{\"volumes\":[{\"name\":\"a\",\"x\":\"Y\"},{\"name\":\"c\"}]}}", 0},
        {"{\"spec\":{\"taints\":[{\"key\":\"a\"},{\"key\":\"b\"}]}}",
         "{\"spec\":{\"taints\":[{\"key\":\"c\"}]}}", "{\"spec\":{\"taints\":[{\"key\":\"c\"}]}}",
         0},
        {"{\"list\":[1,2]}", "{\"list\":[3]}", "{\"list\":[3]}", 0},
        {"{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
         "{\"metadata\":{\"finalizers\":[\"b\",\"c\"],\"$deleteFromPrimitiveList/finalizers\":"
         "[\"a\"]}}",
         "{\"metadata\":{\"finalizers\":[\"b\",\"c\"]}}", 0},
        {"{\"containers\":[{\"name\":\"x\",\"image\":\"1\"}]}",
         "{\"containers\":[{\"$patch\":\"replace\"},{\"name\":\"y\"}]}",
         "{\"containers\":[{\"name\":\"y\"}]}", 0},
        {"{\"s\":{\"a\":1,\"b\":2}}", "{\"s\":{\"$retainKeys\":[\"c\"],\"c\":3}}",
         "{\"s\":{\"c\":3}}", 0},
        {"{\"s\":{\"a\":1}}", "{\"s\":{\"$patch\":\"replace\",\"c\":3}}", "{\"s\":{\"c\":3}}", 0},
        {"{}", "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
         "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}", 0},
        {"{\"conditions\":[]}", "{\"conditions\":[{\"status\":\"True\"}]}",
         "conditions: an item of the patch has no 'type'", -FERRY_INVALID},
        {"{}", "7", "must be a JSON object", -FERRY_INVALID},
    };

    (void)state;
    run(api_patch_apply_strategic, cases, COUNT_OF(cases));
}

static struct ferry_span label_of_json(const void *object, const char *key)
{
    yyjson_val *labels = yyjson_ptr_get((yyjson_val *)(uintptr_t)object, "/metadata/labels");

    return ferry_span_of(yyjson_get_str(yyjson_obj_get(labels, key)));
}

static struct ferry_span label_of_map(const void *map, const char *key)
{
    return ferry_span_of(api_map_get(map, key));
}

static struct ferry_span field_of_json(const void *object, const char *path)
{
    static char number[API_SELECTOR_NUMBER];

    return api_selector_field(object, path, number);
}

static void label_selectors(void **state)
{
    static const char object[] =
        "{\"metadata\":{\"labels\":{\"a\":\"1\",\"kubevirt.io/nodeName\":\"n1\",\"e\":\"\"}}}";
    static const struct {
        const char *text;
        int match; /* -1: refused */
    } cases[] = {
        {"", 1},
        {"  ", 1},
        {"a", 1},
        {"b", 0},
        {"!a", 0},
        {"!b", 1},
        {"a=1", 1},
        {"a==1", 1},
        {"a = 1", 1},
        {"a=2", 0},
        {"a!=2", 1},
        {"a!=1", 0},
        {"b!=1", 1},
        {"e=", 1},
        {"e", 1},
        {"a=", 0},
        {"a=1,b", 0},
        {"a=1,kubevirt.io/nodeName=n1", 1},
        {"kubevirt.io/nodeName in (n2,n1)", 1},
        {"kubevirt.io/nodeName in (n2, n3)", 0},
        {"a notin (2,3)", 1},
        {"a notin (1)", 0},
        {"b notin (1)", 1},
        {"b in ()", 0},
        {"a in (1),!b , e", 1},
        {"a,", 1},
        {",a", -1},
        {"a b", -1},
        {"a in 1", -1},
        {"a in (1", -1},
        {"a>1", -1},
        {"=1", -1},
        {"a=1=2", -1},
        {"-a=1", -1},
        {"a=-1", -1},
        {"a/b/c=1", -1},
        {"!a=1", -1},
        {"a=x y", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(object, strlen(object), 0);
        api_cleanup_object struct api_object *o = NULL;
        api_cleanup_selector struct api_selector *s = NULL;
        struct ferry_error err = {0};
        int got = api_selector_parse_labels(cases[i].text, &s, &err) < 0 ? -1 : 0;

        assert_int_equal(api_object_parse(API_KIND_NONE, object, strlen(object), &o, NULL), 0);
        if (got == 0) {
            got = api_selector_matches(s, label_of_json, yyjson_doc_get_root(doc));
            assert_int_equal(got, api_selector_matches(s, label_of_map, &o->meta->labels));
        }
        if (got != cases[i].match) {
            fail_msg("'%s': %d, '%s'", cases[i].text, got, err.msg);
        }
    }
}

static void field_selectors(void **state)
{
    static const char object[] =
        "{\"metadata\":{\"name\":\"x,y\",\"namespace\":\"d\"},\"spec\":{\"nodeName\":\"n1\","
        "\"unschedulable\":true,\"count\":3}}";
    static const struct {
        const char *text;
        int match;
    } cases[] = {
        {"", 1},
        {"metadata.namespace=d", 1},
        {"metadata.namespace==e", 0},
        {"metadata.name=x\\,y", 1},
        {"spec.nodeName=n1,metadata.namespace=d", 1},
        {"spec.nodeName!=n1", 0},
        {"spec.nodeName!=", 1},
        {"status.phase=", 1},
        {"status.phase!=Running", 1},
        {"status.phase=Running", 0},
        {"spec.unschedulable=true", 1},
        {"spec.count=3", 1},
        {"spec.nodeName", -1},
        {"=x", -1},
        {"a=b=c", -1},
        {"a=b\\c", -1},
        {"a=b\\", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(object, strlen(object), 0);
        api_cleanup_selector struct api_selector *s = NULL;
        int got = api_selector_parse_fields(cases[i].text, &s, NULL) < 0
                      ? -1
                      : api_selector_matches(s, field_of_json, yyjson_doc_get_root(doc));

        if (got != cases[i].match) {
            fail_msg("'%s': %d", cases[i].text, got);
        }
    }
    api_cleanup_selector struct api_selector *s = NULL;
    assert_int_equal(api_selector_parse_fields("a!=1,metadata.name=q", &s, NULL), 0);
    assert_int_equal(api_selector_count(s), 2);
    assert_string_equal(api_selector_key(s, 0), "a");
    assert_string_equal(api_selector_equal(s, "metadata.name"), "q");
    assert_null(api_selector_equal(s, "a"));
}

static void names(void **state)
{
    static const struct {
        const char *text;
        bool label, subdomain, key, value;
    } cases[] = {
        {"a", true, true, true, true},
        {"a-1", true, true, true, true},
        {"a.b", false, true, true, true},
        {"a..b", false, false, true, true},
        {"A_b", false, false, true, true},
        {"-a", false, false, false, false},
        {"a-", false, false, false, false},
        {"", false, false, false, true},
        {"kubevirt.io/x", false, false, true, false},
        {"/x", false, false, false, false},
        {"x/", false, false, false, false},
        {"a b", false, false, false, false},
        {"\xc3\xa4", false, false, false, false},
        {"0123456789012345678901234567890123456789012345678901234567890123", false, true, false,
         false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *s = cases[i].text;

        if (api_name_is_dns_label(s) != cases[i].label ||
            api_name_is_dns_subdomain(s) != cases[i].subdomain ||
            api_name_is_label_key(s) != cases[i].key ||
            api_name_is_label_value(s) != cases[i].value) {
            fail_msg("'%s'", s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_patch),      cmocka_unit_test(copies_are_bounded),
        cmocka_unit_test(merge_patch),     cmocka_unit_test(strategic_patch),
        cmocka_unit_test(label_selectors), cmocka_unit_test(field_selectors),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
