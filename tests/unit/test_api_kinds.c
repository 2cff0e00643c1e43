/* Decoding of the kinds: what a full object gives, and what a bad field is told. */
#include "lib/unit.h"

#include "api/json.h"
#include "api/object.h"

static struct api_object *parse(enum api_kind kind, const char *json)
{
    struct ferry_error err = {0};
    struct api_object *o = NULL;

    if (api_object_parse(kind, json, strlen(json), &o, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    return o;
}

static const char vmi_json[] =
    "{\"metadata\":{\"name\":\"vm\",\"namespace\":\"default\",\"uid\":\"u1\","
    "\"resourceVersion\":\"42\",\"creationTimestamp\":\"2023-11-14T22:13:20Z\","
    "\"deletionTimestamp\":null,"
    "\"labels\":{\"kubevirt.io/nodeName\":\"n1\"},\"annotations\":{\"a\":\"b\"},"
    "\"finalizers\":[\"f1\",\"f2\"],"
    "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"o\",\"uid\":\"ou\","
    "\"controller\":true}],\"unknown\":{\"kept\":1}},"
    "\"spec\":{\"nodeSelector\":{\"zone\":\"a\"},\"evictionStrategy\":\"LiveMigrate\","
    "\"domain\":{\"cpu\":{\"sockets\":2,\"cores\":3},\"memory\":{\"guest\":\"64Mi\"},"
    "\"resources\":{\"requests\":{\"memory\":\"1Gi\"}}}},"
    "\"status\":{\"phase\":\"Running\",\"nodeName\":\"n1\",\"activePods\":{\"p1\":\"n1\"},"
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
    "\"lastTransitionTime\":\"1970-01-01T00:00:01Z\"},{\"type\":\"LiveMigratable\","
    "\"status\":\"False\",\"reason\":\"DisksNotLiveMigratable\"}],"
    "\"migrationState\":{\"migrationUid\":\"m1\",\"targetNode\":\"n2\",\"mode\":\"PreCopy\","
    "\"targetDirectMigrationNodePorts\":{\"43117\":49152,\"43118\":0},\"completed\":true,"
    "\"migrationConfiguration\":{\"bandwidthPerMigration\":\"64Mi\",\"allowPostCopy\":true,"
    "\"completionTimeoutPerGiB\":150}}}}";

static void vmi(void **state)
{
    api_cleanup_object struct api_object *o = parse(API_KIND_VMI, vmi_json);
    const struct api_vmi *v = &o->u.vmi;

    (void)state;
    assert_string_equal(o->meta->name, "vm");
    assert_string_equal(o->meta->namespace_, "default");
    assert_string_equal(o->meta->resource_version, "42");
    assert_int_equal(o->meta->created_ms, 1700000000000);
    assert_int_equal(o->meta->deleted_ms, 0);
    assert_int_equal(o->meta->finalizers.n, 2);
    assert_string_equal(o->meta->finalizers.items[1], "f2");
    assert_int_equal(o->meta->n_owners, 1);
    assert_true(o->meta->owners[0].controller);
    assert_string_equal(api_map_get(&o->meta->labels, "kubevirt.io/nodeName"), "n1");
    assert_null(api_map_get(&o->meta->labels, "other"));
    assert_int_equal(v->memory_bytes, 64 << 20);
    assert_int_equal(v->vcpus, 6);
    assert_int_equal(v->grace_s, 30);
    assert_string_equal(v->phase, "Running");
    assert_string_equal(api_map_get(&v->active_pods, "p1"), "n1");
    assert_true(api_condition_true(&v->conditions, "Ready"));
    assert_int_equal(api_condition_find(&v->conditions, "Ready")->last_transition_ms, 1000);
    assert_false(api_condition_true(&v->conditions, "LiveMigratable"));
    assert_true(v->migration.present);
    assert_true(v->migration.completed);
    assert_int_equal(v->migration.n_ports, 2);
    assert_int_equal(v->migration.ports[0].port, 43117);
    assert_int_equal(v->migration.ports[0].logical, 49152);
    assert_true(v->migration.config.present);
    assert_true(v->migration.config.allow_post_copy);
    assert_false(v->migration.config.has_allow_workload_disruption);
    assert_int_equal(v->migration.config.bandwidth_bytes_per_s, 64 << 20);
    assert_int_equal(v->migration.config.completion_timeout_per_gib_s, 150);
    assert_non_null(v->spec);
}

static void empty_objects(void **state)
{
    (void)state;
    for (int k = API_KIND_NONE; k < API_KIND_COUNT; k++) {
        api_cleanup_object struct api_object *o = parse((enum api_kind)k, "{}");

        assert_null(o->meta->name);
    }
    api_cleanup_object struct api_object *m = parse(API_KIND_MIGRATION, "{\"status\":{}}");
    assert_string_equal(m->u.migration.phase, "");
    assert_false(m->u.migration.state.present);
    api_cleanup_object struct api_object *v = parse(API_KIND_VMI, "{\"spec\":null}");
    assert_int_equal(v->u.vmi.vcpus, 1);
    assert_null(v->u.vmi.spec);
}

static void pod_node_lease(void **state)
{
    api_cleanup_object struct api_object *p = parse(
        API_KIND_POD,
        "{\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"compute\",\"resources\":"
        "{\"requests\":{\"cpu\":\"100m\",\"memory\":\"1Ki\"}}},{\"resources\":{\"requests\":"
        "{\"cpu\":1}}}]},\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"x\","
        "\"ready\":true},{\"name\":\"compute\",\"state\":{\"terminated\":{\"exitCode\":3}}}]}}");
    (void)state;
    assert_int_equal(p->u.pod.cpu_milli, 1100);
    assert_int_equal(p->u.pod.memory_bytes, 1024);
    assert_true(p->u.pod.has_exit_code);
    assert_int_equal(p->u.pod.exit_code, 3);
    assert_false(p->u.pod.container_ready);

    api_cleanup_object struct api_object *n =
        parse(API_KIND_NODE, "{\"spec\":{\"unschedulable\":true},\"status\":{\"allocatable\":"
                             "{\"cpu\":\"2\",\"memory\":\"4Gi\",\"pods\":\"110\"},\"addresses\":"
                             "[{\"type\":\"Hostname\",\"address\":\"h\"},{\"type\":\"InternalIP\","
                             "\"address\":\"10.0.0.1\"}]}}");
    assert_true(n->u.node.unschedulable);
    assert_int_equal(n->u.node.cpu_milli, 2000);
    assert_int_equal(n->u.node.pods, 110);
    assert_string_equal(n->u.node.internal_ip, "10.0.0.1");

    api_cleanup_object struct api_object *l =
        parse(API_KIND_LEASE, "{\"spec\":{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,"
                              "\"renewTime\":\"2023-11-14T22:13:20.123456Z\"}}");
    assert_string_equal(l->u.lease.holder, "me");
    assert_int_equal(l->u.lease.renew_ms, 1700000000123);
}

static void bad_fields_are_named(void **state)
{
    static const struct {
        enum api_kind kind;
        const char *json, *error;
    } cases[] = {
        {API_KIND_VMI, "[]", "must be a JSON object"},
        {API_KIND_VMI, "\"x\"", "must be a JSON object"},
        {API_KIND_VMI, "{\"metadata\":7}", "metadata: must be an object"},
        {API_KIND_VMI, "{\"metadata\":{\"name\":7}}", "metadata.name: must be a string"},
        {API_KIND_VMI, "{\"metadata\":{\"labels\":{\"a/b\":7}}}",
         "metadata.labels[a/b]: must be a string"},
        {API_KIND_VMI, "{\"metadata\":{\"labels\":[]}}",
         "metadata.labels: must be an object of strings"},
        {API_KIND_VMI, "{\"metadata\":{\"creationTimestamp\":\"today\"}}",
         "metadata.creationTimestamp: 'today' is not a time"},
        {API_KIND_VMI, "{\"metadata\":{\"creationTimestamp\":5}}",
         "metadata.creationTimestamp: must be a time"},
        {API_KIND_VMI, "{\"metadata\":{\"finalizers\":[\"a\",1]}}",
         "metadata.finalizers[1]: must be a string"},
        {API_KIND_VMI, "{\"metadata\":{\"ownerReferences\":[{\"uid\":1}]}}",
         "metadata.ownerReferences[0].uid: must be a string"},
        {API_KIND_VMI, "{\"metadata\":{\"ownerReferences\":[1]}}",
         "metadata.ownerReferences[0]: must be an object"},
        {API_KIND_VMI, "{\"status\":{\"phase\":7}}", "status.phase: must be a string"},
        {API_KIND_VMI, "{\"status\":\"x\"}", "status: must be an object or a list"},
        {API_KIND_VMI, "{\"status\":[]}", "status: must be an object"},
        {API_KIND_VMI, "{\"status\":{\"conditions\":{}}}", "status.conditions: must be a list"},
        {API_KIND_VMI, "{\"status\":{\"conditions\":[{\"type\":true}]}}",
         "status.conditions[0].type: must be a string"},
        {API_KIND_VMI, "{\"status\":{\"migrationState\":{\"completed\":\"yes\"}}}",
         "status.migrationState.completed: must be true or false"},
        {API_KIND_VMI,
         "{\"status\":{\"migrationState\":{\"targetDirectMigrationNodePorts\":{\"0\":0}}}}",
         "status.migrationState.targetDirectMigrationNodePorts[0]: must be a port number"},
        {API_KIND_VMI,
         "{\"status\":{\"migrationState\":{\"targetDirectMigrationNodePorts\":{\"1\":\"0\"}}}}",
         "status.migrationState.targetDirectMigrationNodePorts[1]: must be a number"},
        {API_KIND_VMI,
         "{\"status\":{\"migrationState\":{\"migrationConfiguration\":"
         "{\"bandwidthPerMigration\":\"fast\"}}}}",
         "status.migrationState.migrationConfiguration.bandwidthPerMigration: 'fast' is not a "
         "quantity"},
        {API_KIND_VMI, "{\"spec\":{\"domain\":{\"memory\":{\"guest\":\"1 gig\"}}}}",
         "spec.domain.memory.guest: '1 gig' is not a quantity"},
        {API_KIND_VMI, "{\"spec\":{\"domain\":{\"memory\":{\"guest\":true}}}}",
         "spec.domain.memory.guest: must be a quantity"},
        {API_KIND_VMI, "{\"spec\":{\"domain\":[]}}", "spec.domain: must be an object"},
        {API_KIND_VMI, "{\"spec\":{\"domain\":{\"cpu\":{\"cores\":-1}}}}",
         "spec.domain.cpu.cores: must be a whole number"},
        {API_KIND_MIGRATION, "{\"spec\":{\"vmiName\":[]}}", "spec.vmiName: must be a string"},
        {API_KIND_POD, "{\"spec\":{\"terminationGracePeriodSeconds\":1.5}}",
         "spec.terminationGracePeriodSeconds: must be a whole number"},
        {API_KIND_POD,
         "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"x\"}}}]}}",
         "spec.containers[0].resources.requests.cpu: 'x' is not a quantity"},
        {API_KIND_POD, "{\"spec\":{\"containers\":\"x\"}}", "spec.containers: must be"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err = {0};
        struct api_object *o = NULL;
        int rc = api_object_parse(cases[i].kind, cases[i].json, strlen(cases[i].json), &o, &err);

        if (rc != -FERRY_INVALID || strncmp(err.msg, cases[i].error, strlen(cases[i].error)) != 0) {
            api_object_unref(o);
            fail_msg("%s: rc %d '%s'", cases[i].json, rc, err.msg);
        }
        /* errors are optional */
        assert_true(
            api_object_parse(cases[i].kind, cases[i].json, strlen(cases[i].json), &o, NULL) < 0);
    }
}

static void objects_outlive_their_list(void **state)
{
    struct ferry_error err;
    struct api_object *o = NULL;
    yyjson_doc *doc = NULL;
    const char list[] = "{\"items\":[{\"metadata\":{\"name\":\"a\",\"labels\":{\"k\":\"v\"}}}]}";

    (void)state;
    assert_int_equal(api_json_parse(list, sizeof(list) - 1, &doc, &err), 0);
    assert_int_equal(api_object_from_val(API_KIND_POD,
                                         yyjson_ptr_get(yyjson_doc_get_root(doc), "/items/0"), &o,
                                         &err),
                     0);
    yyjson_doc_free(doc);
    struct api_object *second = api_object_ref(o);
    assert_null(api_object_unref(o));
    assert_string_equal(second->meta->name, "a");
    assert_string_equal(api_map_get(&second->meta->labels, "k"), "v");
    assert_int_equal(second->u.pod.grace_s, 30);
    api_object_unref(second);
    assert_null(api_object_unref(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vmi),
        cmocka_unit_test(empty_objects),
        cmocka_unit_test(pod_node_lease),
        cmocka_unit_test(bad_fields_are_named),
        cmocka_unit_test(objects_outlive_their_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
