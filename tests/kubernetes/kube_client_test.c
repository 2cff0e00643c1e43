/* src/kube/client against the API server that KUBECONFIG names; the test around it (test_client.py)
 * makes nodes a and b and 501 config maps labelled many=true first. */
#include "lib/unit.h"

#include "base/clock.h"
#include "base/str.h"
#include "http/client.h"
#include "kube/client.h"
#include "kube/recorder.h"

enum { MANY = 501, DEADLINE_S = 20 };

static struct kube_client *client;

static struct kube_ref ref_of(const char *group, const char *version, const char *plural,
                              const char *name)
{
    const struct api_resource *r = api_resource_find(group, version, plural);

    assert_non_null(r);
    return (struct kube_ref){.resource = r, .ns = r->namespaced ? "default" : NULL, .name = name};
}

static struct kube_ref vmi_ref(const char *name)
{
    return kube_ref(API_KIND_VMI, "default", name);
}

static void must(int rc, const struct ferry_error *err)
{
    if (rc < 0) {
        fail_msg("%s", err->msg);
    }
}

static void must_fail(int rc, enum ferry_class cls, const struct ferry_error *err)
{
    if (rc != -(int)cls || err->cls != cls) {
        fail_msg("%s (%s), expected %s: %s", ferry_class_name((enum ferry_class) - rc),
                 ferry_class_name(err->cls), ferry_class_name(cls), err->msg);
    }
}

static struct api_object *make_vmi(const char *name)
{
    struct api_object *o = NULL;
    struct ferry_error err = {0};
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"VirtualMachineInstance\",\"metadata\":"
        "{\"name\":\"%s\",\"labels\":{\"app\":\"%s\"}},\"spec\":{\"domain\":{\"memory\":{\"guest\":"
        "\"64Mi\"},\"devices\":{}}}}",
        name, name);

    must(kube_client_create(client, vmi_ref(NULL), json, &o, &err), &err);
    return o;
}

/* Of a VMI of its own. `meta` is "name" or "generateName". */
static struct api_object *make_migration(const char *meta, const char *name)
{
    struct api_object *o = NULL;
    struct ferry_error err = {0};
    ferry_cleanup_free char *vm = ferry_asprintf("%svm", name);
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"VirtualMachineInstanceMigration\","
        "\"metadata\":{\"%s\":\"%s\"},\"spec\":{\"vmiName\":\"%s\"}}",
        meta, name, vm);

    api_object_unref(make_vmi(vm));

    must(kube_client_create(client, kube_ref(API_KIND_MIGRATION, "default", NULL), json, &o, &err),
         &err);
    return o;
}

/* ---- what api_resources() says is what the server serves ---------------------------------------
 */

static yyjson_val *find_named(yyjson_val *list, const char *name)
{
    yyjson_val *item;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, item)
    {
        if (ferry_streq(api_json_str(item, "/name"), name)) {
            return item;
        }
    }
    return NULL;
}

static void check_resource(const struct api_resource *r, yyjson_val *list)
{
    yyjson_val *served = find_named(list, r->plural), *s;
    ferry_cleanup_free char *status = ferry_asprintf("%s/status", r->plural);
    ferry_cleanup_buf struct ferry_buf names = {0};
    size_t i, max;

    if (!served) {
        fail_msg("%s is not served", r->plural);
        return;
    }
    assert_string_equal(api_json_str(served, "/kind"), r->kind_name);
    assert_string_equal(api_json_str(served, "/singularName"), r->singular);
    assert_int_equal(api_json_bool(served, "/namespaced", false), r->namespaced);
    yyjson_arr_foreach(yyjson_obj_get(served, "shortNames"), i, max, s)
    {
        ferry_buf_printf(&names, "%s%s", i ? "," : "", yyjson_get_str(s));
    }
    assert_string_equal(names.data ? names.data : "", r->short_names);
    if (!r->status_shared && !find_named(list, status) == r->has_status) {
        fail_msg("%s: a status subresource is %sexpected", r->plural, r->has_status ? "" : "not ");
    }
}

/* Kinds of projects that a cluster may be without. */
static bool is_of_others(const struct api_resource *r)
{
    return ferry_streq(r->group, "cdi.kubevirt.io") || ferry_streq(r->group, "k8s.cni.cncf.io");
}

static void test_resources(void **state)
{
    (void)state;
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        ferry_cleanup_free char *path = *r->group
                                            ? ferry_asprintf("/apis/%s/%s", r->group, r->version)
                                            : ferry_asprintf("/api/%s", r->version);
        http_cleanup_reply struct http_reply reply = {0};
        struct ferry_error err = {0};

        must(http_client_call(
                 kube_client_http(client),
                 &(struct http_call){.method = "GET", .path = path, .accept = "application/json"},
                 &reply, &err),
             &err);
        if (reply.status == 404 && is_of_others(r)) {
            continue;
        }
        assert_int_equal(reply.status, 200);
        yyjson_doc *doc = yyjson_read(reply.body.data, reply.body.len, 0);
        check_resource(r, yyjson_obj_get(yyjson_doc_get_root(doc), "resources"));
        yyjson_doc_free(doc);
    }
}

/* ---- calls -----------------------------------------------------------------------------------
 */

static void test_create_get_delete(void **state)
{
    (void)state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *made = make_vmi("cgd"), *got = NULL;

    must(kube_client_get(client, vmi_ref("cgd"), &got, &err), &err);
    assert_string_equal(got->meta->uid, made->meta->uid);
    assert_string_equal(got->meta->resource_version, made->meta->resource_version);
    assert_int_equal(got->u.vmi.memory_bytes, 64 << 20);
    assert_true(got->meta->created_ms > 0);

    must_fail(kube_client_create(client, vmi_ref(NULL),
                                 "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":"
                                 "\"VirtualMachineInstance\",\"metadata\":{\"name\":\"cgd\"},"
                                 "\"spec\":{\"domain\":{\"memory\":{\"guest\":\"64Mi\"}}}}",
                                 NULL, &err),
              FERRY_CONFLICT, &err);
    must_fail(kube_client_create(client, vmi_ref(NULL),
                                 "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":"
                                 "\"VirtualMachineInstance\",\"metadata\":{\"name\":\"bad\"},"
                                 "\"spec\":{}}",
                                 NULL, &err),
              FERRY_INVALID, &err);
    assert_non_null(strstr(err.msg, "spec.domain"));
    must_fail(kube_client_create(client, vmi_ref(NULL), "{", NULL, &err), FERRY_INVALID, &err);

    must_fail(kube_client_delete(
                  client, vmi_ref("cgd"),
                  &(struct kube_delete_options){.uid = "00000000-0000-0000-0000-000000000000"},
                  &err),
              FERRY_CONFLICT, &err);
    must(kube_client_delete(client, vmi_ref("cgd"),
                            &(struct kube_delete_options){.uid = made->meta->uid}, &err),
         &err);
    must_fail(kube_client_get(client, vmi_ref("cgd"), &got, &err), FERRY_NOT_FOUND, &err);
    must_fail(kube_client_delete(client, vmi_ref("cgd"), NULL, &err), FERRY_NOT_FOUND, &err);
}

static void test_generate_name(void **state)
{
    (void)state;
    api_cleanup_object struct api_object *o = make_migration("generateName", "gen-");

    assert_true(strncmp(o->meta->name, "gen-", 4) == 0 && strlen(o->meta->name) > 4);
    assert_string_equal(o->u.migration.phase, "");
}

static int patch_json(struct kube_ref ref, const char *body, struct api_object **ret,
                      struct ferry_error *err)
{
    return kube_client_patch(client, ref, KUBE_PATCH_JSON, body, ret, err);
}

/* A guard that does not hold is a conflict; a value that the kind does not take is not, guard or
 * no guard: trying again would never end. */
static void test_json_patch(void **state)
{
    (void)state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *old = make_vmi("jp"), *now = NULL;
    ferry_cleanup_free char *guarded =
        ferry_asprintf("[{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"%s\"},"
                       "{\"op\":\"add\",\"path\":\"/status\",\"value\":{\"phase\":\"Pending\"}}]",
                       old->meta->resource_version);

    must(patch_json(vmi_ref("jp"), guarded, &now, &err), &err);
    assert_string_equal(now->u.vmi.phase, "Pending");
    assert_string_not_equal(now->meta->resource_version, old->meta->resource_version);
    must_fail(patch_json(vmi_ref("jp"), guarded, NULL, &err), FERRY_CONFLICT, &err);
    must_fail(patch_json(vmi_ref("jp"),
                         "[{\"op\":\"test\",\"path\":\"/status/phase\",\"value\":\"Running\"},"
                         "{\"op\":\"add\",\"path\":\"/status/reason\",\"value\":\"x\"}]",
                         NULL, &err),
              FERRY_CONFLICT, &err);
    must_fail(patch_json(vmi_ref("jp"),
                         "[{\"op\":\"test\",\"path\":\"/status/phase\",\"value\":\"Pending\"},"
                         "{\"op\":\"add\",\"path\":\"/status/phase\",\"value\":\"Walking\"}]",
                         NULL, &err),
              FERRY_INVALID, &err);
    assert_non_null(strstr(err.msg, "status.phase"));
    must_fail(patch_json(vmi_ref("jp"),
                         "[{\"op\":\"test\",\"path\":\"/status/phase\",\"value\":\"Pending\"},"
                         "{\"op\":\"remove\",\"path\":\"/status/nothing\"}]",
                         NULL, &err),
              FERRY_CONFLICT, &err);
    must_fail(patch_json(vmi_ref("jp"), "[{\"op\":\"jump\"}]", NULL, &err), FERRY_INVALID, &err);
    must_fail(patch_json(vmi_ref("jp"), "{}", NULL, &err), FERRY_INVALID, &err);
    must_fail(patch_json(vmi_ref("nobody"), guarded, NULL, &err), FERRY_NOT_FOUND, &err);
}

static void test_other_patches(void **state)
{
    (void)state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *old = make_vmi("op"), *now = NULL;

    must(kube_client_patch(client, vmi_ref("op"), KUBE_PATCH_MERGE,
                           "{\"metadata\":{\"labels\":{\"app\":null,\"tier\":\"db\"}},"
                           "\"status\":{\"nodeName\":\"a\"}}",
                           &now, &err),
         &err);
    assert_null(api_map_get(&now->meta->labels, "app"));
    assert_string_equal(api_map_get(&now->meta->labels, "tier"), "db");
    assert_string_equal(now->u.vmi.node_name, "a");

    ferry_cleanup_free char *stale =
        ferry_asprintf("{\"metadata\":{\"resourceVersion\":\"%s\",\"labels\":{\"a\":\"b\"}}}",
                       old->meta->resource_version);
    must_fail(kube_client_patch(client, vmi_ref("op"), KUBE_PATCH_MERGE, stale, NULL, &err),
              FERRY_CONFLICT, &err);

    api_object_unref(now);
    now = NULL;
    must(kube_client_patch(client, vmi_ref("op"), KUBE_PATCH_APPLY,
                           "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"VirtualMachineInstance\","
                           "\"metadata\":{\"name\":\"op\",\"annotations\":{\"ferry.io/x\":\"y\"}},"
                           "\"spec\":{\"domain\":{}}}",
                           &now, &err),
         &err);
    assert_string_equal(api_map_get(&now->meta->annotations, "ferry.io/x"), "y");
    assert_string_equal(api_map_get(&now->meta->labels, "tier"), "db");
}

/* One patch may change status and labels of a VMI; a migration's status has its own door. */
static void test_status(void **state)
{
    (void)state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *vmi = make_vmi("st"), *m = make_migration("name", "st"),
                                         *now = NULL, *after = NULL;

    must(patch_json(kube_ref_status(vmi),
                    "[{\"op\":\"add\",\"path\":\"/status\",\"value\":{\"phase\":\"Running\"}},"
                    "{\"op\":\"add\",\"path\":\"/metadata/labels/kubevirt.io~1nodeName\","
                    "\"value\":\"a\"}]",
                    &now, &err),
         &err);
    assert_string_equal(now->u.vmi.phase, "Running");
    assert_string_equal(api_map_get(&now->meta->labels, "kubevirt.io/nodeName"), "a");

    must(patch_json(
             kube_ref_status(m),
             "[{\"op\":\"add\",\"path\":\"/status\",\"value\":{\"phase\":\"Pending\","
             "\"phaseTransitionTimestamps\":[{\"phase\":\"Pending\",\"phaseTransitionTimestamp\":"
             "\"2026-11-15T13:50:01Z\"}]}}]",
             &after, &err),
         &err);
    assert_string_equal(after->u.migration.phase, "Pending");
    assert_int_equal(after->u.migration.n_phase_times, 1);
    api_object_unref(after);
    after = NULL;
    must(patch_json(kube_ref_of(m),
                    "[{\"op\":\"add\",\"path\":\"/metadata/finalizers\",\"value\":"
                    "[\"kubevirt.io/migrationJobFinalize\"]},"
                    "{\"op\":\"add\",\"path\":\"/status/phase\",\"value\":\"Failed\"}]",
                    &after, &err),
         &err);
    assert_string_equal(after->u.migration.phase, "Pending");
    assert_int_equal(after->meta->finalizers.n, 1);
}

static void test_finalizer(void **state)
{
    (void)state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *m = make_migration("name", "fin"), *now = NULL;

    must(patch_json(kube_ref_of(m),
                    "[{\"op\":\"add\",\"path\":\"/metadata/finalizers\",\"value\":"
                    "[\"kubevirt.io/migrationJobFinalize\"]}]",
                    NULL, &err),
         &err);
    must(kube_client_delete(client, kube_ref_of(m), NULL, &err), &err);
    must(kube_client_get(client, kube_ref_of(m), &now, &err), &err);
    assert_true(now->meta->deleted_ms > 0);
    /* Being deleted, it takes no new finalizer. */
    must_fail(patch_json(kube_ref_of(m),
                         "[{\"op\":\"add\",\"path\":\"/metadata/finalizers/-\",\"value\":"
                         "\"ferry.io/new\"}]",
                         NULL, &err),
              FERRY_INVALID, &err);
    must(patch_json(kube_ref_of(m), "[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]", NULL,
                    &err),
         &err);
    api_object_unref(now);
    now = NULL;
    must_fail(kube_client_get(client, kube_ref_of(m), &now, &err), FERRY_NOT_FOUND, &err);
}

static struct api_object *make_pod(const char *name)
{
    struct api_object *o = NULL;
    struct ferry_error err = {0};
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"},\"spec\":"
        "{\"schedulerName\":\"nobody\",\"containers\":[{\"name\":\"compute\",\"image\":\"x\","
        "\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"}}}]}}",
        name);

    must(kube_client_create(client, kube_ref(API_KIND_POD, "default", NULL), json, &o, &err), &err);
    return o;
}

static void test_pod(void **state)
{
    (void)state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *pod = make_pod("bound"), *now = NULL;
    struct kube_ref ref = kube_ref_of(pod);
    kube_cleanup_list struct kube_list on_a = {0}, on_b = {0};

    assert_string_equal(pod->u.pod.phase, "Pending");
    assert_int_equal(pod->u.pod.cpu_milli, 100);
    must(kube_client_bind(client, pod, "a", &err), &err);
    must_fail(kube_client_bind(client, pod, "b", &err), FERRY_CONFLICT, &err);
    must(kube_client_list(client, kube_ref(API_KIND_POD, NULL, NULL),
                          &(struct kube_list_options){.field_selector = "spec.nodeName=a"}, &on_a,
                          &err),
         &err);
    must(kube_client_list(client, kube_ref(API_KIND_POD, NULL, NULL),
                          &(struct kube_list_options){.field_selector = "spec.nodeName=b"}, &on_b,
                          &err),
         &err);
    assert_int_equal(on_a.n, 1);
    assert_string_equal(on_a.items[0]->u.pod.node_name, "a");
    assert_int_equal(on_b.n, 0);

    must(kube_client_patch(client, kube_ref_status(pod), KUBE_PATCH_MERGE,
                           "{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":"
                           "\"compute\",\"ready\":true,\"restartCount\":0,\"image\":\"x\","
                           "\"imageID\":\"\",\"state\":{\"running\":{}}}]}}",
                           &now, &err),
         &err);
    assert_true(now->u.pod.container_running && now->u.pod.container_ready);

    /* A bound pod stays, marked, until its node says that it ended: grace 0. */
    must(
        kube_client_delete(client, ref, &(struct kube_delete_options){.uid = pod->meta->uid}, &err),
        &err);
    api_object_unref(now);
    now = NULL;
    must(kube_client_get(client, ref, &now, &err), &err);
    assert_true(now->meta->deleted_ms > 0);
    must(kube_client_delete(client, ref,
                            &(struct kube_delete_options){.uid = pod->meta->uid, .has_grace = true},
                            &err),
         &err);
    api_object_unref(now);
    now = NULL;
    must_fail(kube_client_get(client, ref, &now, &err), FERRY_NOT_FOUND, &err);
}

static void test_lease(void **state)
{
    (void)state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *o = NULL;
    int64_t now_ms = ferry_now_unix_ms();
    char when[FERRY_RFC3339_SIZE];
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":"
        "\"l\"},\"spec\":{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,\"renewTime\":"
        "\"%s\"}}",
        ferry_rfc3339_micro(now_ms, when));

    must(kube_client_create(client, kube_ref(API_KIND_LEASE, "default", NULL), json, &o, &err),
         &err);
    assert_string_equal(o->u.lease.holder, "me");
    assert_int_equal(o->u.lease.duration_s, 15);
    assert_int_equal(o->u.lease.renew_ms, now_ms);
}

static void test_list(void **state)
{
    (void)state;
    struct ferry_error err = {0};
    kube_cleanup_list struct kube_list all = {0}, none = {0};
    struct kube_ref ref = ref_of("", "v1", "configmaps", NULL);

    must(kube_client_list(client, ref, &(struct kube_list_options){.label_selector = "many=true"},
                          &all, &err),
         &err);
    assert_int_equal(all.n, MANY);
    assert_true(atoll(all.resource_version) > 0);
    must(kube_client_list(
             client, ref,
             &(struct kube_list_options){.label_selector = "many in (true), many!=true"}, &none,
             &err),
         &err);
    assert_int_equal(none.n, 0);
    kube_list_done(&none);
    must_fail(kube_client_list(client, ref, &(struct kube_list_options){.label_selector = "a in ("},
                               &none, &err),
              FERRY_INVALID, &err);
}

/* ---- events ----------------------------------------------------------------------------------
 */

static void test_events(void **state)
{
    (void)state;
    struct ferry_error err = {0};
    struct kube_recorder *r = NULL;
    api_cleanup_object struct api_object *vmi = make_vmi("ev"), *node = NULL;
    kube_cleanup_list struct kube_list list = {0};

    must(kube_client_get(client, kube_ref(API_KIND_NODE, NULL, "a"), &node, &err), &err);
    must(kube_recorder_start(client, "ferry-controller", "h", &r, &err), &err);
    for (int i = 0; i < 3; i++) {
        kube_record(r, vmi, KUBE_EVENT_WARNING, "Waits", "behind %d others", 2);
    }
    kube_record(r, node, KUBE_EVENT_NORMAL, "Silent", "no word for %d s", 40);
    kube_recorder_stop(r);
    must(kube_client_list(
             client, ref_of("", "v1", "events", NULL),
             &(struct kube_list_options){.field_selector = "involvedObject.name=ev,reason=Waits"},
             &list, &err),
         &err);
    assert_int_equal(list.n, 1);
    assert_int_equal(api_json_int(list.items[0]->root, "/count", 0), 3);
    assert_string_equal(api_json_str(list.items[0]->root, "/message"), "behind 2 others");
    kube_list_done(&list);
    must(kube_client_list(client, ref_of("", "v1", "events", NULL),
                          &(struct kube_list_options){.field_selector = "reason=Silent"}, &list,
                          &err),
         &err);
    assert_int_equal(list.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resources),     cmocka_unit_test(test_create_get_delete),
        cmocka_unit_test(test_generate_name), cmocka_unit_test(test_json_patch),
        cmocka_unit_test(test_other_patches), cmocka_unit_test(test_status),
        cmocka_unit_test(test_finalizer),     cmocka_unit_test(test_pod),
        cmocka_unit_test(test_lease),         cmocka_unit_test(test_list),
        cmocka_unit_test(test_events),
    };
    struct ferry_error err = {0};

    if (!getenv("KUBECONFIG") || kube_client_open(getenv("KUBECONFIG"), &client, &err) < 0) {
        fprintf(stderr, "kube_client_test: KUBECONFIG: %s\n", err.msg);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_client_free(client);
    return failed;
}
