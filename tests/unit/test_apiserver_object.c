/* Tables for what happens to an object on its way in: prepare, admission, deletion; and to rows.
 * Numbers of cases are items of docs/conformance.md. */
#include "lib/unit.h"

#include "api/json.h"
#include "apiserver/kinds/table.h"
#include "apiserver/object/admission.h"
#include "apiserver/object/prepare.h"
#include "base/str.h"

static yyjson_mut_doc *document(const char *json)
{
    api_cleanup_doc yyjson_doc *doc = yyjson_read(json, strlen(json), 0);

    if (!doc) {
        fail_msg("bad JSON in the test: %s", json);
    }
    return yyjson_doc_mut_copy(doc, NULL);
}

static const struct prepare_stamp stamp = {
    .now_ms = 1700000000000, .uid = "uid-1", .suffix = "xyz42"};

#define STAMPED "\"uid\":\"uid-1\",\"creationTimestamp\":\"2023-11-14T22:13:20Z\",\"generation\":1"

static void creations(void **state)
{
    static const struct {
        const char *path, *body;
        int code;            /* 0: fine */
        const char *outcome; /* JSON, or part of the message */
    } cases[] = {
        {"/apis/kubevirt.io/v1/namespaces/d/virtualmachineinstancemigrations",
         "{\"metadata\":{\"name\":\"m\",\"uid\":\"mine\",\"deletionTimestamp\":\"x\","
         "\"managedFields\":[]},\"spec\":{\"vmiName\":\"v\"},\"status\":{\"phase\":\"Succeeded\"}}",
         0,
         "{\"metadata\":{\"name\":\"m\"," STAMPED ",\"namespace\":\"d\",\"labels\":{"
         "\"kubevirt.io/vmi-name\":\"v\"},\"finalizers\":[\"kubevirt.io/migrationJobFinalize\"]},"
         "\"spec\":{\"vmiName\":\"v\"},\"kind\":\"VirtualMachineInstanceMigration\","
         "\"apiVersion\":\"kubevirt.io/v1\"}"},
        {"/apis/kubevirt.io/v1/namespaces/d/virtualmachineinstancemigrations",
         "{\"metadata\":{\"generateName\":\"kubevirt-migrate-vm-\"},\"spec\":{}}", 0,
         "{\"metadata\":{\"generateName\":\"kubevirt-migrate-vm-\",\"name\":"
         "\"kubevirt-migrate-vm-xyz42\",\"namespace\":\"d\"," STAMPED ",\"finalizers\":["
         "\"kubevirt.io/migrationJobFinalize\"]},\"spec\":{},"
         "\"kind\":\"VirtualMachineInstanceMigration\",\"apiVersion\":\"kubevirt.io/v1\"}"},
        {"/api/v1/namespaces/d/pods",
         "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[]},\"status\":"
         "{\"phase\":\"Running\"}}",
         0,
         "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\"," STAMPED "},\"spec\":"
         "{\"containers\":[],\"terminationGracePeriodSeconds\":30},\"kind\":\"Pod\","
         "\"apiVersion\":\"v1\",\"status\":{\"phase\":\"Pending\"}}"},
        {"/api/v1/nodes", "{\"metadata\":{\"name\":\"n\"},\"status\":{\"phase\":\"x\"}}", 0,
         "{\"metadata\":{\"name\":\"n\",\"uid\":\"uid-1\",\"creationTimestamp\":"
         "\"2023-11-14T22:13:20Z\"},\"status\":{\"phase\":\"x\"},\"kind\":\"Node\",\"apiVersion\":"
         "\"v1\"}"},
        {"/api/v1/nodes", "{}", 422, "metadata.name: Required value"},
        {"/api/v1/nodes", "[]", 400, "must be a JSON object"},
        {"/api/v1/nodes", "{\"metadata\":7}", 400, "metadata: must be an object"},
        {"/api/v1/nodes", "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"n\"}}", 400,
         "the kind of the object (Pod) does not match"},
        {"/api/v1/nodes", "{\"apiVersion\":\"v2\",\"metadata\":{\"name\":\"n\"}}", 400,
         "the API version in the data (v2)"},
        {"/api/v1/nodes", "{\"metadata\":{\"name\":\"N_1\"}}", 422, "metadata.name: Invalid value"},
        {"/api/v1/nodes", "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"1\"}}", 400,
         "resourceVersion should not be set"},
        {"/api/v1/nodes", "{\"metadata\":{\"name\":\"n\",\"labels\":{\"-x\":\"y\"}}}", 422,
         "metadata.labels: Invalid value: \"-x\""},
        {"/api/v1/nodes", "{\"metadata\":{\"name\":\"n\",\"labels\":{\"x\":\"y z\"}}}", 422,
         "metadata.labels: Invalid value: \"y z\""},
        {"/api/v1/nodes", "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"x y\":\"\"}}}", 422,
         "metadata.annotations"},
        {"/api/v1/nodes", "{\"metadata\":{\"name\":\"n\",\"ownerReferences\":[{\"uid\":\"u\"}]}}",
         422, "metadata.ownerReferences: Required value"},
        {"/api/v1/nodes", "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"unschedulable\":\"yes\"}}",
         422, "spec.unschedulable in body must be of type boolean"},
        {"/api/v1/namespaces/d/pods", "{\"metadata\":{\"name\":\"p\",\"namespace\":\"e\"}}", 400,
         "does not match the namespace sent on the request"},
        {"/api/v1/namespaces", "{\"metadata\":{\"name\":\"a.b\"}}", 422, "metadata.name"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_mut_doc yyjson_mut_doc *doc = document(cases[i].body);
        api_cleanup_doc yyjson_doc *view = NULL;
        struct status st = {0};
        struct route route;

        assert_int_equal(route_parse("POST", cases[i].path, false, &route, &st), 0);
        int rc = prepare_create(&route, doc, &stamp, &view, &st);
        if (cases[i].code) {
            assert_null(view);
            if (rc == 0 || st.code != cases[i].code || !strstr(st.message, cases[i].outcome)) {
                fail_msg("%s: rc %d, %d %s", cases[i].body, rc, st.code, st.message);
            }
            continue;
        }
        ferry_cleanup_free char *got = yyjson_mut_write(doc, 0, NULL);
        api_cleanup_mut_doc yyjson_mut_doc *want = document(cases[i].outcome);
        if (rc < 0 ||
            !yyjson_mut_equals(yyjson_mut_doc_get_root(doc), yyjson_mut_doc_get_root(want))) {
            fail_msg("%s: rc %d %s, %s", cases[i].body, rc, st.message, got);
        }
        ferry_cleanup_free char *seen = yyjson_write(view, 0, NULL);
        assert_string_equal(seen, got); /* the same for all who look at it */
    }
}

#define OLD_META                                                                                   \
    "\"name\":\"m\",\"namespace\":\"d\",\"uid\":\"u\",\"resourceVersion\":\"7\",\"generation\":1"
static const char old_migration[] =
    "{\"kind\":\"VirtualMachineInstanceMigration\",\"apiVersion\":\"kubevirt.io/v1\",\"metadata\":"
    "{" OLD_META ",\"labels\":{\"kubevirt.io/vmi-name\":\"v\"},\"deletionTimestamp\":"
    "\"2023-11-14T22:13:20Z\",\"finalizers\":[\"a/b\"]},\"spec\":{\"vmiName\":\"v\"},\"status\":"
    "{\"phase\":\"Running\"}}";

static void updates(void **state)
{
    static const struct {
        const char *sub, *body;
        int code;
        const char *pointer, *value; /* of the outcome; or part of the message */
    } cases[] = {
        /* the main door does not touch status */
        {"", "{\"metadata\":{},\"spec\":{\"vmiName\":\"v\"},\"status\":{\"phase\":\"Failed\"}}", 0,
         "/status/phase", "Running"},
        {"", "{\"metadata\":{},\"spec\":{\"vmiName\":\"v\"}}", 0, "/status/phase", "Running"},
        /* the status door touches nothing else */
        {"status", "{\"metadata\":{\"labels\":{}},\"spec\":{},\"status\":{\"phase\":\"Failed\"}}",
         0, "/status/phase", "Failed"},
        {"status", "{\"metadata\":{\"labels\":{}},\"spec\":{},\"status\":{\"phase\":\"Failed\"}}",
         0, "/spec/vmiName", "v"},
        {"status", "{\"metadata\":{\"labels\":{}},\"spec\":{}}", 0,
         "/metadata/labels/kubevirt.io~1vmi-name", "v"},
        /* what identifies the object stays */
        {"", "{\"metadata\":{\"creationTimestamp\":\"x\",\"deletionTimestamp\":null}}", 0,
         "/metadata/deletionTimestamp", "2023-11-14T22:13:20Z"},
        {"", "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}}", 0, "/metadata/uid", "u"},
        {"", "{\"metadata\":{\"finalizers\":[]}}", 0, "/metadata/uid", "u"},
        {"", "{\"metadata\":{\"name\":\"n\"}}", 400, "", "does not match the name on the URL"},
        {"", "{\"metadata\":{\"namespace\":\"n\"}}", 400, "", "does not match the namespace"},
        {"", "{\"metadata\":{\"uid\":\"w\"}}", 409, "", "UID"},
        {"", "{\"metadata\":{\"resourceVersion\":\"6\"}}", 409, "", "the object has been modified"},
        {"status", "{\"metadata\":{\"resourceVersion\":\"6\"}}", 409, "",
         "the object has been modified"},
        {"", "{\"metadata\":{\"finalizers\":[\"a/b\",\"c/d\"]}}", 422, "",
         "no new finalizers can be added"},
        {"", "{\"kind\":\"Pod\"}", 400, "", "does not match the kind"},
        {"", "{\"metadata\":{},\"spec\":{\"vmiName\":9}}", 422, "",
         "spec.vmiName: Invalid value: must be"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_mut_doc yyjson_mut_doc *doc = document(cases[i].body);
        api_cleanup_doc yyjson_doc *old = yyjson_read(old_migration, sizeof(old_migration) - 1, 0);
        api_cleanup_doc yyjson_doc *view = NULL;
        struct route route = {.resource = api_resource_of_kind(API_KIND_MIGRATION),
                              .verb = ROUTE_UPDATE,
                              .ns = "d",
                              .name = "m"};
        struct status st = {0};

        snprintf(route.subresource, sizeof(route.subresource), "%s", cases[i].sub);
        int rc = prepare_update(&route, yyjson_doc_get_root(old), doc, &view, &st);
        const char *got = cases[i].code ? st.message
                                        : yyjson_mut_get_str(yyjson_mut_ptr_get(
                                              yyjson_mut_doc_get_root(doc), cases[i].pointer));
        if ((rc < 0) != (cases[i].code != 0) || st.code != cases[i].code ||
            (cases[i].code ? !strstr(got, cases[i].value) : !ferry_streq(got, cases[i].value))) {
            fail_msg("%s: rc %d %d %s", cases[i].body, rc, st.code, got ? got : "(nothing)");
        }
    }
}

static void admission_of_migrations(void **state)
{
    static const struct {
        const char *body, *vmi, *other;
        enum auth_role role;
        const char *refusal; /* NULL: admitted */
    } cases[] = {
        {"{\"spec\":{\"vmiName\":\"v\"}}", "{}", NULL, AUTH_ADMIN, NULL},
        {"{\"spec\":{}}", "{}", NULL, AUTH_ADMIN, "spec.vmiName: Required value"},
        {"{}", "{}", NULL, AUTH_ADMIN, "spec.vmiName: Required value"},
        {"{\"spec\":{\"vmiName\":\"v\"}}", NULL, NULL, AUTH_ADMIN, "the VMI \"v\" does not exist"},
        {"{\"spec\":{\"vmiName\":\"v\"}}", "{\"status\":{\"phase\":\"Failed\"}}", NULL, AUTH_ADMIN,
         "finalized state"},
        {"{\"spec\":{\"vmiName\":\"v\"}}", "{\"status\":{\"phase\":\"Succeeded\"}}", NULL,
         AUTH_ADMIN, "finalized state"},
        {"{\"spec\":{\"vmiName\":\"v\"}}",
         "{\"status\":{\"conditions\":[{\"type\":\"LiveMigratable\",\"status\":\"False\","
         "\"reason\":\"DisksNotLiveMigratable\",\"message\":\"disk x\"}]}}",
         NULL, AUTH_ADMIN, "Reason: DisksNotLiveMigratable, Message: disk x"},
        {"{\"spec\":{\"vmiName\":\"v\"}}",
         "{\"status\":{\"conditions\":[{\"type\":\"LiveMigratable\",\"status\":\"True\"}]}}", NULL,
         AUTH_ADMIN, NULL},
        {"{\"spec\":{\"vmiName\":\"v\"}}", "{}",
         "{\"metadata\":{\"name\":\"o\"},\"spec\":{\"vmiName\":\"v\"},\"status\":{\"phase\":"
         "\"Running\"}}",
         AUTH_ADMIN, "in-flight migration detected. Active migration job (o)"},
        {"{\"spec\":{\"vmiName\":\"v\"}}", "{}",
         "{\"metadata\":{\"name\":\"o\"},\"spec\":{\"vmiName\":\"v\"}}", AUTH_ADMIN,
         "in-flight migration detected"},
        {"{\"spec\":{\"vmiName\":\"v\"}}", "{}",
         "{\"metadata\":{\"name\":\"o\"},\"spec\":{\"vmiName\":\"v\"},\"status\":{\"phase\":"
         "\"Failed\"}}",
         AUTH_ADMIN, NULL},
        {"{\"spec\":{\"vmiName\":\"v\"}}", "{}",
         "{\"metadata\":{\"name\":\"o\"},\"spec\":{\"vmiName\":\"w\"}}", AUTH_ADMIN, NULL},
        {"{\"spec\":{\"vmiName\":\"v\",\"priority\":\"system-critical\"}}", "{}", NULL, AUTH_ADMIN,
         "spec.migrationPriority"},
        {"{\"spec\":{\"vmiName\":\"v\",\"priority\":\"system-critical\"}}", "{}", NULL,
         AUTH_CONTROLLER, NULL},
        {"{\"spec\":{\"vmiName\":\"v\",\"sendTo\":{}}}", "{}", NULL, AUTH_ADMIN, "spec.sendTo"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(cases[i].body, strlen(cases[i].body), 0);
        api_cleanup_object struct api_object *vmi = NULL, *other = NULL;
        struct status st = {0};

        if (cases[i].vmi) {
            assert_int_equal(
                api_object_parse(API_KIND_VMI, cases[i].vmi, strlen(cases[i].vmi), &vmi, NULL), 0);
        }
        if (cases[i].other) {
            assert_int_equal(api_object_parse(API_KIND_MIGRATION, cases[i].other,
                                              strlen(cases[i].other), &other, NULL),
                             0);
        }
        struct admission_view view = {
            .role = cases[i].role, .vmi = vmi, .migrations = &other, .n_migrations = other ? 1 : 0};
        int rc = admission_create(api_resource_of_kind(API_KIND_MIGRATION),
                                  yyjson_doc_get_root(doc), &view, &st);
        if ((rc == 0) != !cases[i].refusal || (rc < 0 && !strstr(st.message, cases[i].refusal))) {
            fail_msg("%s: rc %d %s", cases[i].body, rc, st.message);
        }
    }
}

static void admission_of_others(void **state)
{
    static const struct {
        enum api_kind kind;
        enum auth_role role;
        const char *old; /* NULL: a creation */
        const char *body, *refusal;
    } cases[] = {
        {API_KIND_VMI, AUTH_ADMIN, NULL, "{\"spec\":{\"domain\":{\"memory\":{\"guest\":\"1Gi\"}}}}",
         NULL},
        {API_KIND_VMI, AUTH_ADMIN, NULL,
         "{\"spec\":{\"domain\":{\"resources\":{\"requests\":{\"memory\":64000000}}}}}", NULL},
        {API_KIND_VMI, AUTH_ADMIN, NULL, "{\"spec\":{}}", "spec.domain: Required value"},
        {API_KIND_VMI, AUTH_ADMIN, NULL, "{\"spec\":{\"domain\":{}}}",
         "spec.domain.memory.guest: Required value"},
        {API_KIND_VMI, AUTH_ADMIN, NULL, "{\"spec\":{\"domain\":{\"memory\":{\"guest\":\"0\"}}}}",
         "spec.domain.memory.guest: Invalid value"},
        {API_KIND_VMI, AUTH_ADMIN, NULL,
         "{\"spec\":{\"evictionStrategy\":\"Hop\",\"domain\":{\"memory\":{\"guest\":\"1Gi\"}}}}",
         "spec.evictionStrategy: Unsupported value: \"Hop\""},
        {API_KIND_VMI, AUTH_ADMIN, "{\"spec\":{\"a\":1}}", "{\"spec\":{\"a\":1},\"x\":2}", NULL},
        {API_KIND_VMI, AUTH_ADMIN, "{\"spec\":{\"a\":1}}", "{\"spec\":{\"a\":2}}", "restricted"},
        {API_KIND_VMI, AUTH_CONTROLLER, "{\"spec\":{\"a\":1}}", "{\"spec\":{\"a\":2}}", NULL},
        {API_KIND_POD, AUTH_CONTROLLER, NULL, "{\"spec\":{\"containers\":[{}]}}", NULL},
        {API_KIND_POD, AUTH_CONTROLLER, NULL, "{\"spec\":{\"containers\":[]}}",
         "spec.containers: Required value"},
        {API_KIND_POD, AUTH_CONTROLLER, "{\"spec\":{\"nodeName\":\"a\"}}",
         "{\"spec\":{\"nodeName\":\"b\"}}", "may not change fields other than"},
        {API_KIND_POD, AUTH_ADMIN, "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"x\"}]}}",
         "{\"spec\":{\"activeDeadlineSeconds\":5,\"containers\":[{\"name\":\"a\",\"image\":\"y\"}]}"
         "}",
         NULL},
        {API_KIND_POD, AUTH_ADMIN, "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"x\"}]}}",
         "{\"spec\":{\"containers\":[{\"name\":\"b\",\"image\":\"x\"}]}}",
         "may not change fields other than"},
        {API_KIND_MIGRATION, AUTH_ADMIN, "{\"spec\":{\"vmiName\":\"v\"}}",
         "{\"spec\":{\"vmiName\":\"w\"}}", "restricted"},
        {API_KIND_MIGRATION, AUTH_ADMIN,
         "{\"metadata\":{\"labels\":{\"kubevirt.io/vmi-name\":\"v\",\"a\":\"b\"}}}",
         "{\"metadata\":{\"labels\":{\"kubevirt.io/vmi-name\":\"v\"}}}", NULL},
        {API_KIND_MIGRATION, AUTH_ADMIN,
         "{\"metadata\":{\"labels\":{\"kubevirt.io/vmi-name\":\"v\"}}}",
         "{\"metadata\":{\"labels\":{\"kubevirt.io/vmi-name\":\"w\"}}}", "metadata.labels"},
        {API_KIND_MIGRATION, AUTH_ADMIN,
         "{\"metadata\":{\"labels\":{\"kubevirt.io/vmi-name\":\"v\"}}}", "{\"metadata\":{}}",
         "metadata.labels"},
        {API_KIND_MIGRATION, AUTH_ADMIN,
         "{\"metadata\":{\"labels\":{\"kubevirt.io/vmi-name\":\"v\"}},\"status\":{\"phase\":"
         "\"Failed\"}}",
         "{\"metadata\":{}}", NULL},
        {API_KIND_LEASE, AUTH_ADMIN, NULL, "{}", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(cases[i].body, strlen(cases[i].body), 0);
        api_cleanup_doc yyjson_doc *old =
            cases[i].old ? yyjson_read(cases[i].old, strlen(cases[i].old), 0) : NULL;
        const struct api_resource *r = api_resource_of_kind(cases[i].kind);
        struct admission_view view = {.role = cases[i].role};
        struct status st = {0};
        const yyjson_val *object = yyjson_doc_get_root(doc);
        int rc = old ? admission_update(r, yyjson_doc_get_root(old), object, &view, &st)
                     : admission_create(r, object, &view, &st);

        if ((rc == 0) != !cases[i].refusal || (rc < 0 && !strstr(st.message, cases[i].refusal))) {
            fail_msg("%s: rc %d %s", cases[i].body, rc, st.message);
        }
    }
}

static void deletions(void **state)
{
    static const struct {
        enum api_kind kind;
        const char *object;
        int64_t grace; /* -1: not given */
        enum prepare_delete_result result;
        const char *when;
    } cases[] = {
        {API_KIND_VMI, "{\"metadata\":{}}", -1, PREPARE_REMOVE, "2023-11-14T22:13:20Z"},
        {API_KIND_VMI, "{\"metadata\":{\"finalizers\":[\"f\"]}}", -1, PREPARE_STORE,
         "2023-11-14T22:13:20Z"},
        {API_KIND_VMI, "{\"metadata\":{\"finalizers\":[\"f\"]}}", 60, PREPARE_STORE,
         "2023-11-14T22:13:20Z"},
        {API_KIND_VMI,
         "{\"metadata\":{\"finalizers\":[\"f\"],\"deletionTimestamp\":\"t\","
         "\"deletionGracePeriodSeconds\":0}}",
         -1, PREPARE_NOTHING, "t"},
        {API_KIND_POD, "{\"metadata\":{},\"spec\":{}}", -1, PREPARE_REMOVE, "2023-11-14T22:13:20Z"},
        {API_KIND_POD, "{\"metadata\":{},\"spec\":{\"nodeName\":\"n\"}}", -1, PREPARE_STORE,
         "2023-11-14T22:13:50Z"},
        {API_KIND_POD,
         "{\"metadata\":{},\"spec\":{\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":10}}", -1,
         PREPARE_STORE, "2023-11-14T22:13:30Z"},
        {API_KIND_POD, "{\"metadata\":{},\"spec\":{\"nodeName\":\"n\"}}", 5, PREPARE_STORE,
         "2023-11-14T22:13:25Z"},
        {API_KIND_POD, "{\"metadata\":{},\"spec\":{\"nodeName\":\"n\"}}", 0, PREPARE_REMOVE,
         "2023-11-14T22:13:20Z"},
        {API_KIND_POD, "{\"metadata\":{},\"spec\":{\"nodeName\":\"n\"}}", INT64_MAX, PREPARE_STORE,
         "2091-12-03T01:27:27Z"},
        {API_KIND_POD,
         "{\"metadata\":{},\"spec\":{\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":"
         "9223372036854775807}}",
         -1, PREPARE_STORE, "2091-12-03T01:27:27Z"},
        {API_KIND_POD, "{\"metadata\":{\"finalizers\":[\"f\"]},\"spec\":{\"nodeName\":\"n\"}}", 0,
         PREPARE_STORE, "2023-11-14T22:13:20Z"},
        {API_KIND_POD,
         "{\"metadata\":{},\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"Failed\"}}", -1,
         PREPARE_REMOVE, "2023-11-14T22:13:20Z"},
        {API_KIND_POD,
         "{\"metadata\":{\"deletionTimestamp\":\"t\",\"deletionGracePeriodSeconds\":30},"
         "\"spec\":{\"nodeName\":\"n\"}}",
         -1, PREPARE_NOTHING, "t"},
        {API_KIND_POD,
         "{\"metadata\":{\"deletionTimestamp\":\"t\",\"deletionGracePeriodSeconds\":30},"
         "\"spec\":{\"nodeName\":\"n\"}}",
         5, PREPARE_STORE, "2023-11-14T22:13:25Z"},
        {API_KIND_POD,
         "{\"metadata\":{\"deletionTimestamp\":\"t\",\"deletionGracePeriodSeconds\":30},"
         "\"spec\":{\"nodeName\":\"n\"}}",
         60, PREPARE_NOTHING, "t"},
        {API_KIND_POD,
         "{\"metadata\":{\"deletionTimestamp\":\"t\",\"deletionGracePeriodSeconds\":30},"
         "\"spec\":{\"nodeName\":\"n\"}}",
         0, PREPARE_REMOVE, "2023-11-14T22:13:20Z"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_mut_doc yyjson_mut_doc *doc = document(cases[i].object);
        struct prepare_deletion how = {.has_grace = cases[i].grace >= 0, .grace_s = cases[i].grace};
        enum prepare_delete_result got =
            prepare_delete(api_resource_of_kind(cases[i].kind), doc, &how, stamp.now_ms);
        const char *when = yyjson_mut_get_str(
            yyjson_mut_ptr_get(yyjson_mut_doc_get_root(doc), "/metadata/deletionTimestamp"));

        if (got != cases[i].result || !ferry_streq(when, cases[i].when)) {
            fail_msg("%s, grace %lld: %d %s", cases[i].object, (long long)cases[i].grace, got,
                     when ? when : "");
        }
    }
}

static void ages(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {119, "119s"},
        {120, "2m"},
        {125, "2m5s"},
        {600, "10m"},
        {605, "10m"},
        {3 * 3600 - 1, "179m"},
        {3 * 3600, "3h"},
        {3 * 3600 + 60, "3h1m"},
        {8 * 3600 + 60, "8h"},
        {48 * 3600, "2d"},
        {49 * 3600, "2d1h"},
        {10 * 86400, "10d"},
        {800 * 86400, "2y70d"},
        {-5, "0s"},
    };
    char buf[TABLE_AGE_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_string_equal(table_age(stamp.now_ms, stamp.now_ms + cases[i].seconds * 1000, buf),
                            cases[i].text);
    }
    assert_string_equal(table_age(0, 1, buf), "<unknown>");
}

static void rows(void **state)
{
    static const struct {
        const char *plural, *object, *cells;
    } cases[] = {
        {"virtualmachineinstances",
         "{\"metadata\":{\"name\":\"v\",\"creationTimestamp\":\"2023-11-14T22:13:10Z\"},"
         "\"status\":{\"phase\":\"Running\",\"nodeName\":\"n\",\"interfaces\":[{\"ipAddress\":"
         "\"10.0.0.9\"}],\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
         "[\"v\",\"10s\",\"Running\",\"10.0.0.9\",\"n\",\"True\",\"\",\"\"]"},
        {"virtualmachineinstances", "{}", "[\"\",\"<unknown>\",\"\",\"\",\"\",\"\",\"\",\"\"]"},
        {"pods",
         "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{}],\"nodeName\":\"n\"},"
         "\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"ready\":true,"
         "\"restartCount\":2}]}}",
         "[\"p\",\"1/1\",\"Running\",\"2\",\"<unknown>\",\"\",\"n\"]"},
        {"pods", "{\"metadata\":{\"name\":\"p\",\"deletionTimestamp\":\"x\"}}",
         "[\"p\",\"0/0\",\"Terminating\",\"0\",\"<unknown>\",\"\",\"\"]"},
        {"nodes",
         "{\"metadata\":{\"name\":\"n\",\"labels\":{\"node-role.kubernetes.io/worker\":\"\"}},"
         "\"spec\":{\"unschedulable\":true},\"status\":{\"conditions\":[{\"type\":\"Ready\","
         "\"status\":\"False\"}]}}",
         "[\"n\",\"NotReady,SchedulingDisabled\",\"worker\",\"<unknown>\",\"\",\"<none>\",\"\","
         "\"\"]"},
        {"virtualmachineinstancemigrations",
         "{\"metadata\":{\"name\":\"m\",\"annotations\":{\"ferry.io/queue\":\"{\\\"reason\\\":"
         "\\\"Quota\\\"}\"}},\"spec\":{\"vmiName\":\"v\"},\"status\":{\"phase\":\"Running\"}}",
         "[\"m\",\"Running\",\"v\",\"\",\"\",\"\",\"75%\",\"Quota\",\"<unknown>\",\"{"
         "\\\"reason\\\":"
         "\\\"Quota\\\"}\",\"\"]"},
        {"virtualmachineinstancemigrations",
         "{\"metadata\":{\"name\":\"m\"},\"spec\":{\"vmiName\":\"v\"},\"status\":{\"phase\":"
         "\"Failed\","
         "\"migrationState\":{\"sourceNode\":\"a\",\"targetNode\":\"b\",\"mode\":\"PreCopy\","
         "\"failureReason\":\"Aborted\"}}}",
         "[\"m\",\"Failed\",\"v\",\"a\",\"b\",\"PreCopy\",\"75%\",\"Aborted\",\"<unknown>\",\"\","
         "\"\"]"},
        {"events",
         "{\"metadata\":{\"name\":\"e\"},\"type\":\"Normal\",\"reason\":\"R\",\"message\":"
         "\"say \\\"hi\\\"\\n\",\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\"}}",
         "[\"<unknown>\",\"Normal\",\"R\",\"pod/p\",\"say \\\"hi\\\"\\u000a\",\"e\"]"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(cases[i].object, strlen(cases[i].object), 0);
        const char *group = strncmp(cases[i].plural, "virtual", 7) == 0 ? "kubevirt.io" : "";
        const struct api_resource *r = api_resource_find(group, "v1", cases[i].plural);
        ferry_cleanup_buf struct ferry_buf b = {0};
        api_cleanup_doc yyjson_doc *table = NULL;
        struct ferry_error err = {0};

        table_begin(&b, r, 5);
        const struct table_move move = {.total_bytes = 1000, .remaining_bytes = 250};
        table_row(&b, r, yyjson_doc_get_root(doc), cases[i].object, &move, TABLE_METADATA,
                  stamp.now_ms, true);
        table_row(&b, r, yyjson_doc_get_root(doc), cases[i].object, &move, TABLE_OBJECT,
                  stamp.now_ms, false);
        table_end(&b);
        if (api_json_parse(b.data, b.len, &table, &err) < 0) {
            fail_msg("%s: %s", err.msg, b.data);
        }
        yyjson_val *root = yyjson_doc_get_root(table);
        ferry_cleanup_free char *cells =
            yyjson_val_write(yyjson_ptr_get(root, "/rows/1/cells"), 0, NULL);
        api_cleanup_doc yyjson_doc *want = yyjson_read(cases[i].cells, strlen(cases[i].cells), 0);
        if (!yyjson_equals(yyjson_ptr_get(root, "/rows/1/cells"), yyjson_doc_get_root(want))) {
            fail_msg("%s: %s", cases[i].object, cells);
        }
        assert_int_equal(yyjson_arr_size(yyjson_ptr_get(root, "/columnDefinitions")),
                         yyjson_arr_size(yyjson_ptr_get(root, "/rows/0/cells")));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creations),
        cmocka_unit_test(updates),
        cmocka_unit_test(admission_of_migrations),
        cmocka_unit_test(admission_of_others),
        cmocka_unit_test(deletions),
        cmocka_unit_test(ages),
        cmocka_unit_test(rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
