/* Tables for what a stored object says of itself without being parsed again, and for who selects by
 * it. Texts that only look like fields are in all of them. */
#include "lib/unit.h"

#include "api/json.h"
#include "apiserver/request/filter.h"
#include "apiserver/store/entry.h"

/* What looks like fields and is none. */
#define LOOKS                                                                                      \
    "\"labels\":{\"deletionTimestamp\":\"y\",\"uid\":\"wrong\",\"ownerReferences\":\"z\","         \
    "\"finalizers\":\"orphan\",\"resourceVersion\":\"1\"},\"annotations\":{\"note\":"              \
    "\"\\\"uid\\\":\\\"wrong\\\",\\\"deletionTimestamp\\\":\\\"x\\\"\"}"

static const struct api_resource *resource(const char *plural)
{
    return api_resource_find(strncmp(plural, "virtual", 7) == 0 ? "kubevirt.io" : "", "v1", plural);
}

static struct entry *entry_of(const char *plural, const char *json)
{
    return entry_new(resource(plural), 7, "n", "p", json, strlen(json));
}

static char *text_of(struct ferry_span span)
{
    char *text = ferry_span_dup(span);

    return text ? text : ferry_strdup("(none)");
}

static void address_and_text(void **state)
{
    static const char json[] = "{\"metadata\":{\"name\":\"p\"}}";
    static const char *const namespaces[] = {"", "default", "some-other"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(namespaces); i++) {
        cleanup_entry struct entry *e =
            entry_new(resource("pods"), 7, namespaces[i], "p", json, sizeof(json) - 1);

        assert_string_equal(e->ns, namespaces[i]);
        assert_string_equal(e->name, "p");
        assert_string_equal(e->json, json);
        assert_int_equal(e->json_len, sizeof(json) - 1);
        assert_int_equal(e->version, 7);
    }
}

/* uid; whether it ends; finalizers, owners and labels in their order, '!' behind who blocks */
static void put_metadata(struct ferry_buf *b, const struct entry *e)
{
    ferry_cleanup_free char *uid = text_of(entry_uid(e));

    ferry_buf_printf(b, "%s%s", uid, e->ending ? " ends" : "");
    for (size_t i = 0; i < e->n_owners; i++) {
        ferry_cleanup_free char *owner = text_of(entry_owner(e, i).uid);

        ferry_buf_printf(b, " %s%s", owner, entry_owner(e, i).blocks ? "!" : "");
    }
}

static void metadata(void **state)
{
    static const struct {
        const char *meta, *says;
    } cases[] = {
        {"{}", "(none)"},
        {"{\"uid\":\"u-1\"}", "u-1"},
        {"{\"uid\":7}", "(none)"},
        {"{\"uid\":\"u-1\"," LOOKS "}", "u-1"},
        {"{" LOOKS ",\"uid\":\"u-1\"}", "u-1"},
        {"{" LOOKS "}", "(none)"},
        {"{\"uid\":\"u-1\",\"deletionTimestamp\":\"t\"," LOOKS "}", "u-1 ends"},
        {"{\"deletionTimestamp\":null}", "(none)"},
        {"{\"uid\":\"a\\u0041\\\"b\",\"deletionTimestamp\":\"t\"}", "aA\"b ends"},
        {"{\"uid\":\"\\\\\"}", "\\"},
        {"{\"uid\":\"\"}", ""},
        {"{\"uid\":\"u\",\"ownerReferences\":[{\"uid\":\"o-1\",\"blockOwnerDeletion\":true},{"
         "\"name\":"
         "\"x\"},{\"uid\":\"o\\/3\",\"blockOwnerDeletion\":false}]}",
         "u o-1! (none) o/3"},
        {"{\"ownerReferences\":[]}", "(none)"},
        {"{\"ownerReferences\":[{\"name\":\"\\\"uid\\\":\\\"u\\\"\",\"uid\":\"v\"}]}", "(none) v"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *json = ferry_asprintf("{\"metadata\":%s}", cases[i].meta);
        ferry_cleanup_buf struct ferry_buf b = {0};
        cleanup_entry struct entry *e = entry_of("pods", json);

        put_metadata(&b, e);
        if (strcmp(b.data, cases[i].says) != 0) {
            fail_msg("%s: %s", cases[i].meta, b.data);
        }
    }
}

static void no_objects(void **state)
{
    static const char wrong_types[] =
        "{\"metadata\":{\"labels\":[],\"ownerReferences\":{},\"finalizers\":\"orphan\"}}";
    static const char *const texts[] = {"",         "{", "[]", "7", "\"uid\"", "{\"metadata\":[]}",
                                        wrong_types};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        ferry_cleanup_buf struct ferry_buf b = {0};
        cleanup_entry struct entry *e = entry_of("pods", texts[i]);

        put_metadata(&b, e);
        assert_string_equal(b.data, "(none)");
        assert_false(entry_has_finalizer(e, "orphan"));
        assert_null(entry_label(e, "uid").at);
        assert_null(entry_field(e, "spec.nodeName").at);
        assert_string_equal(e->json, texts[i]);
    }
    assert_null(entry_doc(NULL));
}

static void labels_and_finalizers(void **state)
{
    static const char json[] =
        "{\"metadata\":{\"labels\":{\"a\":\"1\",\"kubevirt.io/nodeName\":\"n1\",\"e\":\"\",\"q\":"
        "\"x\\\"y\",\"n\":7},\"finalizers\":[\"a/b\",\"orphan\",\"c\\/d\",7]}}";
    static const struct {
        const char *key, *value;
    } cases[] = {
        {"a", "1"},      {"kubevirt.io/nodeName", "n1"},      {"e", ""},      {"q", "x\"y"},
        {"b", "(none)"}, {"kubevirt.io/node", "(none)"},      {"", "(none)"}, {"1", "(none)"},
        {"n", "(none)"}, {"kubevirt.io/nodeNames", "(none)"},
    };
    cleanup_entry struct entry *e = entry_of("pods", json);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *value = text_of(entry_label(e, cases[i].key));

        assert_string_equal(value, cases[i].value);
    }
    assert_true(entry_has_finalizer(e, "a/b"));
    assert_true(entry_has_finalizer(e, "c/d"));
    assert_true(entry_has_finalizer(e, "orphan"));
    assert_false(entry_has_finalizer(e, "a"));
    assert_false(entry_has_finalizer(e, ""));
}

static void owners(void **state)
{
    cleanup_entry struct entry *e = entry_of(
        "pods", "{\"metadata\":{\"uid\":\"me\",\"ownerReferences\":[{\"uid\":\"a\"},{\"uid\":"
                "\"b\",\"blockOwnerDeletion\":true},{}]}}");
    cleanup_entry struct entry *later = entry_of("pods", "{\"metadata\":{\"uid\":\"me\"}}");
    cleanup_entry struct entry *other = entry_of("pods", "{\"metadata\":{\"uid\":\"mee\"}}");
    bool blocks;

    (void)state;
    assert_true(entry_is_owned_by(e, ferry_span_of("a"), &blocks) && !blocks);
    assert_true(entry_is_owned_by(e, ferry_span_of("b"), &blocks) && blocks);
    assert_false(entry_is_owned_by(e, ferry_span_of("me"), &blocks));
    assert_false(entry_is_owned_by(e, ferry_span_of(NULL), &blocks));
    assert_true(entry_is_same(e, later));
    assert_false(entry_is_same(e, other));
}

static void fields(void **state)
{
    static const struct {
        const char *plural, *json, *path, *value;
        bool selectable;
    } cases[] = {
        {"pods", "{\"spec\":{\"nodeName\":\"n1\"}}", "spec.nodeName", "n1", true},
        {"pods", "{\"spec\":{\"nodeName\":\"\"}}", "spec.nodeName", "(none)", true},
        {"pods", "{\"spec\":{\"nodeName\":7}}", "spec.nodeName", "7", true},
        {"pods", "{\"nodeName\":\"n1\",\"metadata\":{\"labels\":{\"nodeName\":\"n1\"}}}",
         "spec.nodeName", "(none)", true},
        {"pods", "{\"status\":{\"phase\":\"Run\\u006eing\"}}", "status.phase", "Running", true},
        {"pods", "{}", "metadata.name", "p", true},
        {"pods", "{}", "metadata.namespace", "n", true},
        {"pods", "{\"spec\":{\"hostname\":\"h\"}}", "spec.hostname", "(none)", false},
        {"nodes", "{\"spec\":{\"unschedulable\":true}}", "spec.unschedulable", "true", true},
        {"nodes", "{\"spec\":{\"unschedulable\":false}}", "spec.unschedulable", "false", true},
        {"nodes", "{\"spec\":{}}", "spec.unschedulable", "(none)", true},
        {"secrets", "{\"type\":\"Opaque\"}", "type", "Opaque", true},
        {"events", "{\"reason\":\"it \\\"said\\\" so\"}", "reason", "it \"said\" so", true},
        {"events", "{\"lastTimestamp\":\"t\"}", "lastTimestamp", "t", false},
        {"virtualmachineinstances", "{\"status\":{\"phase\":\"Running\"}}", "status.phase",
         "(none)", false},
        {"virtualmachineinstancemigrations", "{\"spec\":{\"vmiName\":\"web\"}}", "spec.vmiName",
         "web", false},
        {"persistentvolumes", "{\"spec\":{\"claimRef\":{\"uid\":\"u\"}}}", "spec.claimRef.uid", "u",
         false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_entry struct entry *e = entry_of(cases[i].plural, cases[i].json);
        ferry_cleanup_free char *value = text_of(entry_field(e, cases[i].path));

        if (strcmp(value, cases[i].value) != 0 ||
            entry_field_is_selectable(e->resource, cases[i].path) != cases[i].selectable) {
            fail_msg("%s %s: %s", cases[i].json, cases[i].path, value);
        }
    }
}

static void what_a_migration_is_about(void **state)
{
    cleanup_entry struct entry *m =
        entry_of("virtualmachineinstancemigrations", "{\"spec\":{\"vmiName\":\"web\"}}");
    cleanup_entry struct entry *none =
        entry_of("virtualmachineinstancemigrations", "{\"spec\":{}}");
    cleanup_entry struct entry *pod = entry_of("pods", "{\"spec\":{\"nodeName\":\"web\"}}");

    (void)state;
    assert_true(ferry_span_is(entry_about(m), "web"));
    assert_null(entry_about(none).at);
    assert_null(entry_about(pod).at);
}

static void another_version(void **state)
{
    static const struct {
        const char *json, *as_of;
    } cases[] = {
        {"{\"metadata\":{\"resourceVersion\":\"9\",\"x\":1}}",
         "{\"metadata\":{\"resourceVersion\":\"12345\",\"x\":1}}"},
        {"{\"metadata\":{\"labels\":{\"resourceVersion\":\"1\"},\"resourceVersion\":\"9\"},"
         "\"spec\":{\"resourceVersion\":\"9\"}}",
         "{\"metadata\":{\"labels\":{\"resourceVersion\":\"1\"},\"resourceVersion\":\"12345\"},"
         "\"spec\":{\"resourceVersion\":\"9\"}}"},
        {"{\"metadata\":{}}", "{\"metadata\":{}}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_entry struct entry *e = entry_of("pods", cases[i].json);
        ferry_cleanup_buf struct ferry_buf b = {0};

        entry_put_as_of(e, 12345, &b);
        assert_string_equal(b.data, cases[i].as_of);
    }
}

static void filters(void **state)
{
    static const char pod[] =
        "{\"metadata\":{\"labels\":{\"app\":\"web\",\"e\":\"\"}},\"spec\":{\"nodeName\":\"n1\"},"
        "\"status\":{\"phase\":\"Running\"}}";
    static const struct {
        const char *ns, *name, *labels, *fields;
        bool matches;
    } cases[] = {
        {NULL, NULL, NULL, NULL, true},
        {"n", "p", NULL, NULL, true},
        {"m", NULL, NULL, NULL, false},
        {NULL, "q", NULL, NULL, false},
        {NULL, NULL, "app=web,e", NULL, true},
        {NULL, NULL, "app=we", NULL, false},
        {NULL, NULL, "!app", NULL, false},
        {NULL, NULL, "other!=x,e=", NULL, true},
        {NULL, NULL, NULL, "metadata.name=p,metadata.namespace=n", true},
        {NULL, NULL, NULL, "metadata.name=q", false},
        {NULL, NULL, NULL, "metadata.namespace!=n", false},
        {NULL, NULL, NULL, "spec.nodeName=n1,status.phase!=Failed", true},
        {NULL, NULL, NULL, "spec.nodeName=n", false},
        {NULL, NULL, NULL, "spec.nodeName!=", true},
        {NULL, NULL, NULL, "status.podIP=", true},
        {NULL, NULL, "app in (web,db)", "status.phase=Running", true},
        {NULL, NULL, "app in (db)", "status.phase=Running", false},
    };
    cleanup_entry struct entry *e = entry_of("pods", pod);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_filter struct filter f = {0};
        struct status st;

        assert_int_equal(filter_parse(e->resource, cases[i].ns, cases[i].name, cases[i].labels,
                                      cases[i].fields, &f, &st),
                         0);
        if (filter_matches(&f, e) != cases[i].matches) {
            fail_msg("row %zu", i);
        }
    }
    cleanup_filter struct filter f = {0};
    struct status st;
    assert_int_equal(filter_parse(e->resource, NULL, NULL, NULL, "spec.hostname=h", &f, &st), -1);
    assert_int_equal(st.code, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(address_and_text),
        cmocka_unit_test(metadata),
        cmocka_unit_test(no_objects),
        cmocka_unit_test(labels_and_finalizers),
        cmocka_unit_test(owners),
        cmocka_unit_test(fields),
        cmocka_unit_test(what_a_migration_is_about),
        cmocka_unit_test(another_version),
        cmocka_unit_test(filters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
