/* Decoding of the kinds: what a full object gives, and what a bad field is told. */
#include "lib/unit.h"

#include "api/intern.h"
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

static void machine(void **state)
{
    api_cleanup_object struct api_object *o = parse(
        API_KIND_VMI,
        "{\"spec\":{\"domain\":{\"cpu\":{\"sockets\":2,\"dedicatedCpuPlacement\":true,\"numa\":"
        "{\"guestMappingPassthrough\":{}},\"features\":[{\"name\":\"invtsc\",\"policy\":"
        "\"require\"}]},\"memory\":{\"hugepages\":{\"pageSize\":\"2Mi\"}},\"resources\":"
        "{\"requests\":{\"memory\":\"1Gi\",\"cpu\":\"500m\"}},\"devices\":{\"disks\":[{\"name\":"
        "\"a\",\"disk\":{\"bus\":\"virtio\"}},{\"name\":\"b\",\"cdrom\":{\"bus\":\"sata\","
        "\"readonly\":false}}],\"interfaces\":[{\"name\":\"default\",\"masquerade\":{}},"
        "{\"name\":\"fast\",\"sriov\":{},\"macAddress\":\"02:00:00:00:00:01\"}],\"hostDevices\":"
        "[{\"name\":\"h\",\"deviceName\":\"vendor/x\"}],\"gpus\":[{\"name\":\"g\",\"deviceName\":"
        "\"vendor/g\"}]},\"launchSecurity\":{\"sev\":{}}},\"networks\":[{\"name\":\"default\","
        "\"pod\":{}},{\"name\":\"fast\",\"multus\":{\"networkName\":\"ns/net\"}}],\"volumes\":"
        "[{\"name\":\"a\",\"dataVolume\":{\"name\":\"dv\"}},{\"name\":\"b\",\"hostDisk\":"
        "{\"path\":\"/d\",\"type\":\"Disk\",\"shared\":true,\"capacity\":\"1Gi\"}},{\"name\":"
        "\"c\",\"floppy\":{}}],\"tolerations\":[{\"key\":\"k\",\"operator\":\"Exists\","
        "\"tolerationSeconds\":0}],\"affinity\":{\"nodeAffinity\":"
        "{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":"
        "[{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"In\",\"values\":[\"a\",\"b\"]}]}]"
        "}},"
        "\"podAntiAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":5,"
        "\"podAffinityTerm\":{\"topologyKey\":\"host\",\"labelSelector\":{}}}]}},"
        "\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":\"zone\","
        "\"whenUnsatisfiable\":\"DoNotSchedule\"}]},"
        "\"status\":{\"evacuationNodeName\":\"n1\",\"runtimeUser\":0,\"migratedVolumes\":"
        "[{\"volumeName\":\"a\",\"sourcePVCInfo\":{\"claimName\":\"s\",\"accessModes\":"
        "[\"ReadWriteOnce\"],\"capacity\":{\"storage\":\"1Gi\"}}}],\"migrationState\":"
        "{\"sourceState\":{\"node\":\"n1\"},\"targetCPUSet\":[2,3]}}}");
    const struct api_vmi *v = &o->u.vmi;
    const struct api_machine *m = &v->machine;

    (void)state;
    assert_true(m->dedicated_cpus && m->numa_passthrough && !m->realtime);
    assert_string_equal(m->cpu_features[0].name, "invtsc");
    assert_string_equal(m->hugepages, "2Mi");
    assert_int_equal(v->memory_bytes, 1 << 30);
    assert_int_equal(v->vcpus, 2);
    assert_int_equal(m->cpu_request_milli, 500);
    assert_int_equal(m->n_disks, 2);
    assert_int_equal(m->disks[0].kind, API_DISK);
    assert_string_equal(m->disks[0].bus, "virtio");
    assert_false(m->disks[0].has_readonly);
    assert_int_equal(m->disks[1].kind, API_DISK_CDROM);
    assert_string_equal(m->disks[1].bus, "sata");
    assert_true(m->disks[1].has_readonly && !m->disks[1].readonly);
    assert_true(m->interfaces[0].masquerade && !m->interfaces[0].bridge);
    assert_true(m->interfaces[1].sriov);
    assert_string_equal(m->host_devices[0].device_name, "vendor/x");
    assert_int_equal(m->n_gpus, 1);
    assert_true(m->sev && !m->tdx && !m->secure_execution);
    assert_true(m->networks[0].pod);
    assert_string_equal(m->networks[1].multus, "ns/net");
    assert_int_equal(m->volumes[0].source, API_VOLUME_DATA_VOLUME);
    assert_string_equal(m->volumes[0].claim, "dv");
    assert_int_equal(m->volumes[1].source, API_VOLUME_HOST_DISK);
    assert_true(m->volumes[1].shared);
    assert_int_equal(m->volumes[1].capacity_bytes, 1 << 30);
    assert_int_equal(m->volumes[2].source, API_VOLUME_OTHER);
    assert_true(m->placement.tolerations[0].has_seconds);
    assert_string_equal(m->placement.affinity.node_required[0].expressions[0].values.items[1], "b");
    assert_int_equal(m->placement.affinity.anti.preferred[0].weight, 5);
    assert_true(m->placement.affinity.anti.preferred[0].selector.present);
    assert_int_equal(m->placement.spreads[0].max_skew, 1);
    assert_string_equal(v->evacuation_node, "n1");
    assert_true(v->has_runtime_user);
    assert_true(v->migrated_volumes[0].source.present);
    assert_false(v->migrated_volumes[0].destination.present);
    assert_true(api_strings_have(&v->migrated_volumes[0].source.access_modes, "ReadWriteOnce"));
    assert_false(api_strings_have(&v->migrated_volumes[0].source.access_modes, "ReadWriteMany"));
    assert_int_equal(v->migrated_volumes[0].source.capacity_bytes, 1 << 30);
    assert_true(v->migration.source.present && !v->migration.target.present);
    assert_int_equal(v->migration.target_cpu_set.items[1], 3);
}

static void storage(void **state)
{
    api_cleanup_object struct api_object *c =
        parse(API_KIND_CLAIM, "{\"spec\":{\"accessModes\":[\"ReadWriteMany\"],\"volumeMode\":"
                              "\"Block\",\"storageClassName\":\"fast\",\"resources\":{\"requests\":"
                              "{\"storage\":\"1Gi\"}}},\"status\":{\"phase\":\"Bound\"}}");
    api_cleanup_object struct api_object *v =
        parse(API_KIND_VOLUME,
              "{\"spec\":{\"local\":{\"path\":\"/d\"},\"claimRef\":{\"namespace\":\"ns\",\"name\":"
              "\"c\"},\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{\"matchFields\":"
              "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n1\"]}]}]}}}}");
    api_cleanup_object struct api_object *p = parse(
        API_KIND_STORAGE_PROFILE,
        "{\"metadata\":{\"name\":\"fast\"},\"status\":{\"claimPropertySets\":[{\"accessModes\":"
        "[\"ReadWriteMany\"],\"volumeMode\":\"Block\"},{\"accessModes\":[\"ReadWriteOnce\"]}]}}");
    api_cleanup_object struct api_object *n =
        parse(API_KIND_NETWORK, "{\"spec\":{\"config\":\"{}\"}}");

    (void)state;
    assert_true(api_strings_have(&c->u.claim.access_modes, "ReadWriteMany"));
    assert_string_equal(c->u.claim.volume_mode, "Block");
    assert_int_equal(c->u.claim.request_bytes, 1 << 30);
    assert_string_equal(c->u.claim.phase, "Bound");
    assert_string_equal(v->u.volume.path, "/d");
    assert_string_equal(v->u.volume.volume_mode, "Filesystem");
    assert_string_equal(v->u.volume.claim_name, "c");
    assert_string_equal(v->u.volume.node_terms[0].fields[0].values.items[0], "n1");
    assert_int_equal(p->u.storage_profile.n_properties, 2);
    assert_string_equal(p->u.storage_profile.properties[0].volume_mode, "Block");
    assert_string_equal(n->u.network.config, "{}");
}

static void virtual_machines(void **state)
{
    static const struct {
        const char *spec, *strategy;
    } cases[] = {
        {"\"runStrategy\":\"Manual\"", "Manual"},
        {"\"running\":true", "Always"},
        {"\"running\":false", "Halted"},
        {"\"updateVolumesStrategy\":\"Migration\"", "Halted"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char json[512];

        snprintf(json, sizeof(json),
                 "{\"spec\":{%s,\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":"
                 "{\"domain\":{\"cpu\":{\"cores\":3}},\"volumes\":[{\"name\":\"v\"}]}}}}",
                 cases[i].spec);
        api_cleanup_object struct api_object *o = parse(API_KIND_VM, json);

        assert_string_equal(o->u.vm.run_strategy, cases[i].strategy);
        if (i == COUNT_OF(cases) - 1) {
            assert_string_equal(o->u.vm.update_volumes_strategy, "Migration");
        }
        assert_int_equal(o->u.vm.machine.cores, 3);
        assert_int_equal(o->u.vm.machine.grace_s, 30);
        assert_int_equal(o->u.vm.machine.n_volumes, 1);
        assert_string_equal(api_map_get(&o->u.vm.template_labels, "a"), "b");
    }
}

/* What people configure stays visible when it is wrong, with what is wrong in it. */
static void configuration(void **state)
{
    api_cleanup_object struct api_object *k = parse(
        API_KIND_KUBEVIRT,
        "{\"spec\":{\"configuration\":{\"developerConfiguration\":{\"featureGates\":["
        "\"LiveMigration\","
        "\"Whatever\"]},\"evictionStrategy\":\"LiveMigrate\",\"migrations\":{\"network\":\"net\","
        "\"allowPostCopy\":false,\"parallelMigrationsPerCluster\":9}},\"workloadUpdateStrategy\":"
        "{\"workloadUpdateMethods\":[\"LiveMigrate\"],\"batchEvictionSize\":3}}}");
    api_cleanup_object struct api_object *p = parse(
        API_KIND_POLICY,
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"selectors\":{\"namespaceSelector\":{\"a\":"
        "\"b\"}},"
        "\"bandwidthPerMigration\":\"64Mi\",\"experimental\":{\"stallDetector\":{\"ewmaAlpha\":"
        "\"0.4\",\"searchLocalMinima\":false},\"downtimeTuning\":{\"steps\":7},\"compression\":"
        "\"zstd\"}}}");
    api_cleanup_object struct api_object *bad = parse(
        API_KIND_POLICY, "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"maxDowntimeMs\":\"x\"}}");

    (void)state;
    assert_null(k->invalid);
    assert_true(api_strings_have(&k->u.kubevirt.feature_gates, "LiveMigration"));
    assert_string_equal(k->u.kubevirt.migrations.network, "net");
    assert_true(k->u.kubevirt.migrations.has_allow_post_copy);
    assert_false(k->u.kubevirt.migrations.has_allow_auto_converge);
    assert_int_equal(k->u.kubevirt.migrations.parallel_per_cluster, 9);
    assert_int_equal(k->u.kubevirt.batch_eviction_size, 3);
    assert_true(api_strings_have(&k->u.kubevirt.update_methods, "LiveMigrate"));
    assert_string_equal(api_map_get(&p->u.policy.namespace_selector, "a"), "b");
    assert_int_equal(p->u.policy.config.bandwidth_bytes_per_s, 64 << 20);
    assert_int_equal(p->u.policy.config.experimental.stall_detector.ewma_alpha_milli, 400);
    assert_true(p->u.policy.config.experimental.stall_detector.has_search_local_minima);
    assert_int_equal(p->u.policy.config.experimental.downtime_tuning.steps, 7);
    assert_string_equal(bad->meta->name, "q");
    assert_string_equal(bad->invalid, "spec.maxDowntimeMs: must be a whole number");
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

/* What most objects have is there once; what one has for itself is its own. */
static void words_are_shared(void **state)
{
    static const char json[] = "{\"metadata\":{\"name\":\"mine\",\"namespace\":\"default\"}}";
    (void)state;
    api_cleanup_object struct api_object *a = parse(API_KIND_POD, json);
    api_cleanup_object struct api_object *b = parse(API_KIND_POD, json);

    assert_ptr_equal(a->meta->namespace_, b->meta->namespace_);
    assert_ptr_equal(a->meta->namespace_, api_intern("default", 7));
    assert_string_equal(a->meta->namespace_, "default");
    assert_string_equal(a->meta->name, "mine");
    assert_ptr_not_equal(a->meta->name, b->meta->name);
    assert_non_null(api_intern("preferredDuringSchedulingIgnoredDuringExecution", 47));
    assert_null(api_intern("default", 6));
    assert_null(api_intern("defaulT", 7));
    assert_null(api_intern("defauxt", 7));
    assert_null(api_intern("", 0));
    for (size_t len = 60; len < 200; len++) {
        char text[200];

        memset(text, 'd', sizeof(text));
        assert_null(api_intern(text, len));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vmi),
        cmocka_unit_test(empty_objects),
        cmocka_unit_test(pod_node_lease),
        cmocka_unit_test(machine),
        cmocka_unit_test(storage),
        cmocka_unit_test(virtual_machines),
        cmocka_unit_test(configuration),
        cmocka_unit_test(bad_fields_are_named),
        cmocka_unit_test(objects_outlive_their_list),
        cmocka_unit_test(words_are_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
