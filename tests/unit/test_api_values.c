/* Tables for JSON, YAML, quantities, times, paths and the patch builder of src/api. */
#include "lib/unit.h"

#include "api/json.h"
#include "api/object.h"
#include "base/str.h"

static void quantities(void **state)
{
    static const struct {
        const char *text;
        int64_t scale, value;
        bool bad;
    } cases[] = {
        {"0", 1, 0, false},
        {"1", 1, 1, false},
        {"1Ki", 1, 1024, false},
        {"1.5Gi", 1, INT64_C(1610612736), false},
        {"128Mi", 1, 134217728, false},
        {"1G", 1, 1000000000, false},
        {"500m", 1000, 500, false},
        {"0.5", 1000, 500, false},
        {"2", 1000, 2000, false},
        {"100u", 1000, 1, false}, /* rounded up */
        {"1n", 1, 1, false},
        {"1e3", 1, 1000, false},
        {"1E3", 1, 1000, false},
        {"1E", 1, INT64_C(1000000000000000000), false},
        {"1.1Ki", 1, 1127, false},
        {"-5", 1, -5, false},
        {"+5", 1, 5, false},
        {".5", 1, 1, false},
        {"5.", 1, 5, false},
        {"7Ei", 1, INT64_C(7) << 60, false},
        {"8Ei", 1, 0, true},
        {"0000000000000000000000000000001", 1, 1, false},
        {"9223372036854775808", 1, 0, true},
        {"99999999999999999999999999999999", 1, 0, true},
        {"", 1, 0, true},
        {".", 1, 0, true},
        {"Gi", 1, 0, true},
        {"1 Gi", 1, 0, true},
        {"1gi", 1, 0, true},
        {"1Gi ", 1, 0, true},
        {"1e", 1, 0, true},
        {"1e 3", 1, 0, true},
        {"1e999", 1, 0, true},
        {"1.2.3", 1, 0, true},
        {"--1", 1, 0, true},
    };
    struct ferry_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t v = 0;
        int rc = api_quantity(cases[i].text, cases[i].scale, &v, &err);

        if (cases[i].bad != (rc < 0) || (!cases[i].bad && v != cases[i].value)) {
            fail_msg("'%s': rc %d, value %lld", cases[i].text, rc, (long long)v);
        }
    }
}

/* As JSON has them: a text, or a number of any kind. */
static void quantities_as_values(void **state)
{
    static const struct {
        const char *json;
        int64_t scale, value; /* -1: refused */
    } cases[] = {
        {"\"1Gi\"", 1, INT64_C(1) << 30},
        {"1073741824", 1, INT64_C(1) << 30},
        {"1073741824.0", 1, INT64_C(1) << 30},
        {"1.073741824e+09", 1, INT64_C(1) << 30},
        {"1073741824.5", 1, (INT64_C(1) << 30) + 1},
        {"0.25", 1000, 250},
        {"0.0", 1000, 0},
        {"10.0", 1, 10},
        {"1e30", 1, -1},
        {"true", 1, -1},
        {"null", 1, -1},
        {"[]", 1, -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        yyjson_doc *doc = yyjson_read(cases[i].json, strlen(cases[i].json), 0);
        int64_t v = -1;
        int rc = api_quantity_val(yyjson_doc_get_root(doc), cases[i].scale, &v, NULL);

        yyjson_doc_free(doc);
        if ((rc < 0) != (cases[i].value < 0) || v != cases[i].value) {
            fail_msg("%s: rc %d, value %lld", cases[i].json, rc, (long long)v);
        }
    }
}

static void times(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2023-11-14T22:13:20Z", INT64_C(1700000000000)},
        {"2023-11-14T22:13:20.123456Z", INT64_C(1700000000123)},
        {"2023-11-14T23:13:20+01:00", INT64_C(1700000000000)},
        {"2023-11-14T21:43:20.5-00:30", INT64_C(1700000000500)},
        {"2024-02-29T00:00:00Z", INT64_C(1709164800000)},
        {"2023-02-29T00:00:00Z", -1},
        {"2023-13-01T00:00:00Z", -1},
        {"2023-00-01T00:00:00Z", -1},
        {"2023-01-01T24:00:00Z", -1},
        {"2023-01-01 00:00:00Z", -1},
        {"2023-01-01T00:00:00", -1},
        {"2023-01-01T00:00:00.Z", -1},
        {"2023-01-01T00:00:00Zx", -1},
        {"2023-01-01T00:00:00+1:00", -1},
        {"", -1},
        {"now", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t v = -1;
        int rc = api_time_parse(cases[i].text, &v, NULL);

        if ((cases[i].ms < 0) != (rc < 0) || v != cases[i].ms) {
            fail_msg("'%s': rc %d, value %lld", cases[i].text, rc, (long long)v);
        }
    }
}

static void strict_json(void **state)
{
    static const struct {
        const char *json, *error; /* NULL: fine */
    } cases[] = {
        {"{}", NULL},
        {"{\"a\":[1,2,{\"b\":null}]}", NULL},
        {"", "invalid JSON at byte 0"},
        {"{", "invalid JSON at byte 1"},
        {"{} x", "invalid JSON at byte 3"},
        {"{'a':1}", "invalid JSON at byte 1"},
        {"{\"a\":1,}", "invalid JSON"},
        {"{\"a\":NaN}", "invalid JSON"},
        {"{\"a\":\"\xff\"}", "invalid JSON"},
        {"{\"a\":1,\"a\":2}", "duplicate key 'a'"},
        {"{\"metadata\":{\"labels\":{\"x\":\"1\",\"y\":\"2\",\"x\":\"3\"}}}",
         "metadata.labels: duplicate key 'x'"},
        {"{\"a\":[{},{\"b\":1,\"b\":1}]}", "a[1]: duplicate key 'b'"},
        {"{\"metadata\":{\"labels\":{\"a.b/c\":{\"d\":1,\"d\":1}}}}",
         "metadata.labels[a.b/c]: duplicate key 'd'"},
        {"{\"a\":\"x\\u0000y\"}", "a: contains a NUL"},
        {"{\"a\\u0000\":1}", "a key contains a NUL"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err = {0};
        api_cleanup_doc yyjson_doc *doc = NULL;
        int rc = api_json_parse(cases[i].json, strlen(cases[i].json), &doc, &err);

        if (!cases[i].error != (rc == 0) || (rc < 0 && !strstr(err.msg, cases[i].error))) {
            fail_msg("%s: rc %d, '%s'", cases[i].json, rc, err.msg);
        }
    }
}

static int parse_nested(size_t depth, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    api_cleanup_doc yyjson_doc *doc = NULL;

    for (size_t i = 0; i < depth; i++) {
        ferry_buf_puts(&b, "[");
    }
    for (size_t i = 0; i < depth; i++) {
        ferry_buf_puts(&b, "]");
    }
    return api_json_parse_depth(b.data, b.len, API_JSON_DEPTH, &doc, err);
}

static void depth_is_limited(void **state)
{
    struct ferry_error err;

    (void)state;
    assert_int_equal(parse_nested(64, &err), 0);
    assert_int_equal(parse_nested(65, &err), -FERRY_INVALID);
    assert_non_null(strstr(err.msg, "nested too deeply"));
    assert_int_equal(parse_nested(100000, &err), -FERRY_INVALID);
}

static void many_keys(void **state)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct ferry_error err;
    yyjson_doc *doc = NULL;

    (void)state;
    ferry_buf_puts(&b, "{");
    for (int i = 0; i < 5000; i++) {
        ferry_buf_printf(&b, "\"key-%d\":%d,", i, i);
    }
    size_t len = b.len;
    ferry_buf_puts(&b, "\"last\":0}");
    assert_int_equal(api_json_parse(b.data, b.len, &doc, &err), 0);
    yyjson_doc_free(doc);
    b.len = len;
    ferry_buf_puts(&b, "\"key-77\":0}");
    assert_int_equal(api_json_parse(b.data, b.len, &doc, &err), -FERRY_INVALID);
    assert_non_null(strstr(err.msg, "duplicate key 'key-77'"));
}

/* {"a": [0, 0, ...]} or {"a": {"0": 0, "1": 0, ...}} */
static int parse_parts(bool keys, size_t n, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    api_cleanup_doc yyjson_doc *doc = NULL;

    ferry_buf_puts(&b, keys ? "{\"a\":{" : "{\"a\":[");
    for (size_t i = 0; i < n; i++) {
        ferry_buf_puts(&b, i ? "," : "");
        if (keys) {
            ferry_buf_printf(&b, "\"%zu\":", i);
        }
        ferry_buf_puts(&b, "0");
    }
    ferry_buf_puts(&b, keys ? "}}" : "]}");
    return api_json_parse(b.data, b.len, &doc, err);
}

static void parts_are_limited(void **state)
{
    struct ferry_error err;

    (void)state;
    assert_int_equal(parse_parts(true, API_JSON_MAX_KEYS, &err), 0);
    assert_int_equal(parse_parts(true, API_JSON_MAX_KEYS + 1, &err), -FERRY_INVALID);
    assert_string_equal(err.msg, "a: too many keys");
    assert_int_equal(parse_parts(false, API_JSON_MAX_ITEMS, &err), 0);
    assert_int_equal(parse_parts(false, API_JSON_MAX_ITEMS + 1, &err), -FERRY_INVALID);
    assert_string_equal(err.msg, "a: too many items");
}

static int join(void *ctx, const char *json, size_t len, struct ferry_error *err)
{
    struct ferry_buf *b = ctx;

    (void)err;
    if (b->len) {
        ferry_buf_puts(b, "|");
    }
    ferry_buf_append(b, json, len);
    return 0;
}

static void yaml(void **state)
{
    static const struct {
        const char *yaml, *json, *error;
    } cases[] = {
        {"a: 1\nb: [x, 'y', \"z\"]\n", "{\"a\":1,\"b\":[\"x\",\"y\",\"z\"]}", NULL},
        {"a: true\nb: no\nc: ~\nd:\ne: 'true'\nf: 1.5\ng: 1Gi\nh: 0x10\ni: 010\nj: -3\n",
         "{\"a\":true,\"b\":false,\"c\":null,\"d\":null,\"e\":\"true\",\"f\":1.5,\"g\":\"1Gi\","
         "\"h\":16,\"i\":8,\"j\":-3}",
         NULL},
        {"a: 1\n---\nb: 2\n---\n---\nc: 3\n", "{\"a\":1}|{\"b\":2}|{\"c\":3}", NULL},
        {"# only a comment\n", "", NULL},
        {"", "", NULL},
        {"1: x\n", "{\"1\":\"x\"}", NULL},
        {"a: !!str 7\n", "{\"a\":\"7\"}", NULL},
        {"a: 2024-01-01T00:00:00Z\n", "{\"a\":\"2024-01-01T00:00:00Z\"}", NULL},
        {"a: |\n  two\n  lines\n", "{\"a\":\"two\\nlines\\n\"}", NULL},
        {" {\"a\": [1]}", " {\"a\": [1]}", NULL},
        {"{\"a\":1}{\"b\":2}\n\n{\"c\":3}\n", "{\"a\":1}|{\"b\":2}|{\"c\":3}", NULL},
        {"{\"a\":1}\n---\nb: 2\n---\n{\"c\": 3}\n", "{\"a\":1}|{\"b\":2}|{\"c\":3}", NULL},
        {"b: 2\n---\n{\"c\": 3}\n", "{\"b\":2}|{\"c\":3}", NULL},
        {"{\"a\":1} x", NULL, "unexpected text at byte 8"},
        {"{\"a\":1}{\"b\":2,\"b\":3}", NULL, "duplicate key 'b'"},
        {"{\"a\":1}{", NULL, "invalid JSON"},
        {"a: 1\na: 2\n", NULL, "document at line 1: duplicate key 'a'"},
        {"x: 1\n---\ny:\n  a: 1\n  a: 2\n", NULL, "document at line 3: y: duplicate key 'a'"},
        {"a: &x 1\nb: *x\n", NULL, "line 1: anchors are not supported"},
        {"a: *x\n", NULL, "line 1: aliases are not supported"},
        {"a: 1\nb:\n  <<: 1\n", NULL, "line 3: merge keys are not supported"},
        {"a: !!binary aGk=\n", NULL, "line 1: tags are not supported"},
        {"? [1]\n: x\n", NULL, "line 1: a key must be a plain value"},
        {"a: [1, 2\nb: 3\n", NULL, "line 2"},
        {"a: 1\n b: 2\n", NULL, "line 2"},
        {"a: 'x\n", NULL, "line"},
        {"\ta: 1\n", NULL, "line 1"},
        {"{\"a\": 1,}", NULL, "invalid JSON at byte 7"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_buf struct ferry_buf b = {0};
        struct ferry_error err = {0};
        int rc = api_yaml_each(cases[i].yaml, strlen(cases[i].yaml), join, &b, &err);

        if (cases[i].error) {
            if (rc >= 0 || !strstr(err.msg, cases[i].error)) {
                fail_msg("%s: rc %d '%s'", cases[i].yaml, rc, err.msg);
            }
        } else if (rc < 0 || strcmp(b.data ? b.data : "", cases[i].json) != 0) {
            fail_msg("%s: rc %d '%s' gave %s", cases[i].yaml, rc, err.msg, b.data);
        }
    }
}

static void paths(void **state)
{
    static const struct {
        enum api_kind kind;
        const char *ns, *name, *sub, *path;
    } cases[] = {
        {API_KIND_NODE, NULL, NULL, NULL, "/api/v1/nodes"},
        {API_KIND_NODE, "ignored", "n1", "status", "/api/v1/nodes/n1/status"},
        {API_KIND_POD, NULL, NULL, NULL, "/api/v1/pods"},
        {API_KIND_POD, "a", "b", "binding", "/api/v1/namespaces/a/pods/b/binding"},
        {API_KIND_VMI, "a", "x/y z", NULL,
         "/apis/kubevirt.io/v1/namespaces/a/virtualmachineinstances/x%2Fy%20z"},
        {API_KIND_LEASE, "kube-system", "c", NULL,
         "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/c"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *p =
            api_path(api_resource_of_kind(cases[i].kind), cases[i].ns, cases[i].name, cases[i].sub);

        assert_string_equal(p, cases[i].path);
    }
    assert_null(api_resource_of_kind(API_KIND_NONE));
    assert_null(api_resource_find("", "v1", "services"));
    assert_string_equal(
        api_resource_find("kubevirt.io", "v1", "virtualmachineinstancemigrations")->short_names,
        "vmim,vmims");
}

static void kinds_of_manifests(void **state)
{
    static const struct {
        const char *json, *plural, *error;
    } cases[] = {
        {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}", "pods", NULL},
        {"{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"KubeVirt\"}", "kubevirts", NULL},
        {"{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"Kubevirt\"}", NULL,
         "kind: there is no Kubevirt in kubevirt.io/v1; did you mean KubeVirt (kubevirt.io/v1)?"},
        {"{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"VirtualMachineInstanceMigrations\"}", NULL,
         "kind: there is no VirtualMachineInstanceMigrations in kubevirt.io/v1; did you mean "
         "VirtualMachineInstanceMigration (kubevirt.io/v1)?"},
        {"{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"vmi\"}", NULL,
         "kind: there is no vmi in kubevirt.io/v1; did you mean VirtualMachineInstance "
         "(kubevirt.io/v1)?"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"pods\"}", NULL,
         "kind: there is no pods in v1; did you mean Pod (v1)?"},
        {"{\"apiVersion\":\"kubevirt.io/v1alpha3\",\"kind\":\"VirtualMachine\"}", NULL,
         "apiVersion: VirtualMachine is in kubevirt.io/v1, not in kubevirt.io/v1alpha3"},
        {"{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\"}", NULL,
         "kind: there is no Deployment in apps/v1"},
        {"{\"apiVersion\":\"v1\"}", NULL, "kind: required"},
        {"{\"kind\":\"Pod\"}", NULL, "apiVersion: required"},
        {"[]", NULL, "kind: required"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(cases[i].json, strlen(cases[i].json), 0);
        const struct api_resource *r = NULL;
        struct ferry_error err = {0};
        int rc = api_resource_of_manifest(yyjson_doc_get_root(doc), &r, &err);

        if (rc < 0 ? !ferry_streq(err.msg, cases[i].error)
                   : !ferry_streq(r->plural, cases[i].plural)) {
            fail_msg("%s: rc %d '%s'", cases[i].json, rc, err.msg);
        }
    }
}

static void patches_are_built(void **state)
{
    struct api_patch *p = api_patch_new();
    ferry_cleanup_free char *key = api_pointer_escape("kubevirt.io/a~b");
    ferry_cleanup_free char *path = ferry_asprintf("/metadata/labels/%s", key);

    (void)state;
    assert_true(api_patch_empty(p));
    api_patch_test_str(p, "/metadata/resourceVersion", "7");
    api_patch_test_raw(p, "/x", "{\"a\":[]}");
    api_patch_add_str(p, path, "v");
    api_patch_add_int(p, "/i", -5);
    api_patch_add_bool(p, "/b", true);
    api_patch_add_time(p, "/t", 1700000000123);
    api_patch_add_raw(p, "/r", "[1]");
    api_patch_remove(p, "/gone");
    assert_false(api_patch_empty(p));
    ferry_cleanup_free char *text = api_patch_take(p);
    assert_string_equal(
        text, "[{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"7\"},"
              "{\"op\":\"test\",\"path\":\"/x\",\"value\":{\"a\":[]}},"
              "{\"op\":\"add\",\"path\":\"/metadata/labels/kubevirt.io~1a~0b\",\"value\":\"v\"},"
              "{\"op\":\"add\",\"path\":\"/i\",\"value\":-5},"
              "{\"op\":\"add\",\"path\":\"/b\",\"value\":true},"
              "{\"op\":\"add\",\"path\":\"/t\",\"value\":\"2023-11-14T22:13:20Z\"},"
              "{\"op\":\"add\",\"path\":\"/r\",\"value\":[1]},"
              "{\"op\":\"remove\",\"path\":\"/gone\"}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities),
        cmocka_unit_test(quantities_as_values),
        cmocka_unit_test(times),
        cmocka_unit_test(parts_are_limited),
        cmocka_unit_test(strict_json),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(many_keys),
        cmocka_unit_test(yaml),
        cmocka_unit_test(kinds_of_manifests),
        cmocka_unit_test(paths),
        cmocka_unit_test(patches_are_built),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
