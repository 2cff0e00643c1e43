/* The schemas of core kinds: the tables fit together, and objects are met by them. */
#include "lib/unit.h"

#include <string.h>

#include "api/json.h"
#include "apiserver/kinds/core_schema.h"
#include "apiserver/kinds/core_types.h"
#include "apiserver/kinds/schema.h"
#include "apiserver/kinds/schema_pattern.h"

/* "PodSpec" or "PodSpec.nodeName" is something that the tables have. */
static bool exists(const char *what)
{
    size_t n = strcspn(what, ".");

    for (const struct core_type *t = core_types; t->name; t++) {
        if (strlen(t->name) != n || strncmp(t->name, what, n) != 0) {
            continue;
        }
        ferry_cleanup_free char *field = ferry_asprintf("%s:", what[n] ? what + n + 1 : "");
        const char *at = strstr(t->fields, field);

        return !what[n] || (at && (at == t->fields || at[-1] == ' '));
    }
    return false;
}

static void tables(void **state)
{
    static const char *const scalars[] = {"string",   "integer",     "long", "boolean",   "bytes",
                                          "quantity", "intorstring", "time", "microtime", "any"};

    (void)state;
    for (const struct core_text *t = core_texts; t->what; t++) {
        if (!exists(t->what)) {
            fail_msg("a text of '%s', which is not there", t->what);
        }
    }
    for (const struct core_type *t = core_types; t->name; t++) {
        ferry_cleanup_free char *fields = ferry_strdup(t->fields);
        char *rest = NULL;

        for (char *f = strtok_r(fields, " ", &rest); f; f = strtok_r(NULL, " ", &rest)) {
            char *type = strchr(f, ':');
            bool known = false;

            assert_non_null(type);
            type += 1 + 2 * (type[1] == '[' || type[1] == '{');
            type[strcspn(type, "!")] = '\0';
            for (size_t i = 0; i < COUNT_OF(scalars); i++) {
                known = known || strcmp(type, scalars[i]) == 0;
            }
            if (!known && !exists(type)) {
                fail_msg("%s.%s is of no type that is there", t->name, f);
            }
        }
    }
}

static void components(void **state)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    (void)state;
    ferry_buf_puts(&b, "{");
    core_schema_components(&b);
    ferry_buf_puts(&b, "}");
    api_cleanup_doc yyjson_doc *doc = yyjson_read(b.data, b.len, 0);
    const yyjson_val *root = yyjson_doc_get_root(doc);
    assert_non_null(root);
#define POD "/io.k8s.api.core.v1.Pod"
    static const struct {
        const char *pointer, *text;
    } rows[] = {
        {POD "/x-kubernetes-group-version-kind/0/kind", "Pod"},
        {POD "/properties/spec/allOf/0/$ref", "#/components/schemas/io.k8s.api.core.v1.PodSpec"},
        {POD "/properties/metadata/allOf/0/$ref",
         "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
        {POD "Spec/properties/containers/items/allOf/0/$ref",
         "#/components/schemas/io.k8s.api.core.v1.Container"},
        {POD "Spec/required/0", "containers"},
        {POD "Spec/properties/nodeSelector/additionalProperties/type", "string"},
        {"/io.k8s.api.storage.v1.StorageClass/x-kubernetes-group-version-kind/0/group",
         "storage.k8s.io"},
        {"/io.k8s.api.coordination.v1.LeaseSpec/properties/renewTime/format", "date-time"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *text = api_json_str(root, rows[i].pointer);

        if (!text || strcmp(text, rows[i].text) != 0) {
            fail_msg("%s is '%s'", rows[i].pointer, text ? text : "absent");
        }
    }
}

static void objects(void **state)
{
    static const struct {
        const char *plural, *json, *unknown, *field; /* what is told; the field that is wrong */
    } cases[] = {
        {"pods", "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}", "", ""},
        {"pods", "{\"spec\":{\"containers\":[{\"nam\":\"a\"}]}}",
         "unknown field \"spec.containers[0].nam\"", ""},
        {"pods", "{\"spec\":{\"hostPID\":\"yes\"}}", "", "spec.hostPID"},
        {"pods", "{\"spec\":{\"containers\":{}}}", "", "spec.containers"},
        {"pods", "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"rbd\":{\"anything\":1}}]}}", "", ""},
        {"pods", "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"cpu\":2}}}]}}", "", ""},
        {"pods", "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"cpu\":true}}}]}}", "",
         "spec.containers[0].resources.limits.cpu"},
        {"pods", "{\"status\":{\"startTime\":\"yesterday\"}}", "", "status.startTime"},
        {"pods", "{\"metadata\":{\"anything\":1}}", "", ""}, /* not the schema's business */
        {"nodes", "{\"spec\":{\"taints\":[{\"key\":\"k\",\"when\":1}]}}",
         "unknown field \"spec.taints[0].when\"", ""},
        {"leases", "{\"spec\":{\"leaseDurationSeconds\":\"15\"}}", "", "spec.leaseDurationSeconds"},
        {"configmaps", "{\"data\":{\"a\":1}}", "", "data.a"},
        {"configmaps", "{\"spec\":{}}", "unknown field \"spec\"", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct api_resource *r = api_resources();
        ferry_cleanup_buf struct ferry_buf unknown = {0};
        struct status st = {0};

        while (strcmp(r->plural, cases[i].plural) != 0) {
            r++;
        }
        api_cleanup_doc yyjson_doc *doc = yyjson_read(cases[i].json, strlen(cases[i].json), 0);
        api_cleanup_mut_doc yyjson_mut_doc *copy = yyjson_doc_mut_copy(doc, NULL);
        assert_non_null(core_schema(r));
        schema_unknown(core_schema(r), yyjson_mut_doc_get_root(copy), &unknown);
        (void)schema_validate(core_schema(r), r, "x", yyjson_mut_doc_get_root(copy), NULL, &st);
        if (strcmp(unknown.data ? unknown.data : "", cases[i].unknown) != 0 ||
            strcmp(st.field, cases[i].field) != 0) {
            fail_msg("%s: '%s' '%s' %s", cases[i].json, unknown.data ? unknown.data : "", st.field,
                     st.message);
        }
    }
}

/* What was wrong before may stay; what becomes wrong may not. */
static void changes_by_schema(void **state)
{
    static const struct {
        const char *plural, *before, *after, *field;
    } cases[] = {
        {"pods", "{\"spec\":{\"hostPID\":\"yes\"}}", "{\"spec\":{\"hostPID\":\"yes\"}}", ""},
        {"pods", "{\"spec\":{\"hostPID\":\"yes\"}}",
         "{\"spec\":{\"hostPID\":\"yes\",\"nodeName\":\"a\"}}", ""},
        {"pods", "{\"spec\":{\"hostPID\":\"yes\"}}", "{\"spec\":{\"hostPID\":\"no\"}}",
         "spec.hostPID"},
        {"pods", "{\"spec\":{\"hostPID\":\"yes\"}}",
         "{\"spec\":{\"hostPID\":\"yes\",\"hostIPC\":\"yes\"}}", "spec.hostIPC"},
        {"pods", "{\"spec\":{\"containers\":[{\"tty\":1},{}]}}",
         "{\"spec\":{\"containers\":[{\"tty\":1},{\"name\":\"a\"}]}}", ""},
        {"pods", "{\"spec\":{\"containers\":[{\"tty\":1}]}}",
         "{\"spec\":{\"containers\":[{\"tty\":1},{\"tty\":1}]}}", "spec.containers[1].tty"},
        {"pods", "{\"spec\":3}", "{\"spec\":{\"hostPID\":\"yes\"}}", "spec.hostPID"},
        {"configmaps", "{\"data\":{\"a\":1}}", "{\"data\":{\"a\":1,\"b\":\"c\"}}", "data.a"},
        {"configmaps", "{\"data\":{\"a\":1}}", "{\"data\":{\"a\":1},\"immutable\":true}", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct api_resource *r = api_resource_find("", "v1", cases[i].plural);
        api_cleanup_doc yyjson_doc *before =
            yyjson_read(cases[i].before, strlen(cases[i].before), 0);
        api_cleanup_doc yyjson_doc *after = yyjson_read(cases[i].after, strlen(cases[i].after), 0);
        api_cleanup_mut_doc yyjson_mut_doc *copy = yyjson_doc_mut_copy(after, NULL);
        struct status st = {0};
        int rc = schema_validate(core_schema(r), r, "x", yyjson_mut_doc_get_root(copy),
                                 yyjson_doc_get_root(before), &st);

        if (strcmp(st.field, cases[i].field) != 0 || (rc == 0) != !*cases[i].field) {
            fail_msg("%s to %s: '%s'", cases[i].before, cases[i].after, st.field);
        }
    }
}

static void patterns(void **state)
{
    static const char quantity[] = "^[0-9]+(\\.[0-9]+)?([EPTGMK]i|[EPTGMkmun]|[eE][+-]?[0-9]+)?$";
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {quantity, "64Mi", true}, {quantity, "1.5", true}, {quantity, "much", false},
        {"^a+$", "aaa", true},    {"^a+$", "ab", false},   {quantity, "64Mi ", false},
        {"a(", "anything", true}, {"a(", "", true},        {quantity, "64Mi", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (schema_pattern_matches(cases[i].pattern, cases[i].text) != cases[i].matches) {
            fail_msg("%s: %s", cases[i].pattern, cases[i].text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),   cmocka_unit_test(components),
        cmocka_unit_test(objects),  cmocka_unit_test(changes_by_schema),
        cmocka_unit_test(patterns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
