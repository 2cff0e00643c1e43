/* Whether a VMI can be moved, how, and why not: the table. Numbers of cases are items of
 * docs/conformance.md. */
#include "handler_case.h"

#include "handler/move/node_role.h"
#include "handler/owner/migratable.h"
#include "handler/owner/owner_decide.h"

#define NIC(binding, network)                                                                      \
    "\"domain\":{\"devices\":{\"interfaces\":[{\"name\":\"n\"," binding                            \
    "}]}},\"networks\":[{\"name\":\"n\"," network "}]"
#define POD "\"pod\":{}"
#define MULTUS "\"multus\":{\"networkName\":\"x\"}"
#define DOMAIN_OF(more) "\"domain\":{" more "}"
#define FEATURES(more) DOMAIN_OF("\"features\":{" more "}")
#define SECURITY(more) DOMAIN_OF("\"launchSecurity\":{" more "}")
#define CLAIM "\"persistentVolumeClaim\":{\"claimName\":\"c\"}"
#define VOLUMES(more) "\"volumes\":[" more "]"
#define VOLUME(name, more) "{\"name\":\"" name "\"," more "}"
#define DISK(name, device) "{\"name\":\"" name "\"," device "}"
#define DISKS(more) DOMAIN_OF("\"devices\":{\"disks\":[" more "]}")
#define STATUS(name, mode)                                                                         \
    "{\"name\":\"" name "\",\"persistentVolumeClaimInfo\":{\"accessModes\":[\"" mode "\"]}}"
#define STATUSES(more) "\"volumeStatus\":[" more "]"
#define SHARED STATUSES(STATUS("d", "ReadWriteMany"))
#define ALONE STATUSES(STATUS("d", "ReadWriteOnce"))
#define REENLIGHTENMENT(more) FEATURES("\"hyperv\":{\"reenlightenment\":{" more "}}")
#define TSC(policy)                                                                                \
    DOMAIN_OF("\"cpu\":{\"features\":[{\"name\":\"x\"},{\"name\":\"invtsc\"" policy "}]}")
#define HOST_MODEL DOMAIN_OF("\"cpu\":{\"model\":\"host-model\"}")
#define ALLOWED "\"annotations\":{\"kubevirt.io/allow-pod-bridge-network-live-migration\":\"\"}"

struct movable_case {
    const char *name, *meta, *spec, *status;
    const char *reason; /* NULL = it can be moved */
    bool block;
    const char *storage; /* words against exchanging volumes; NULL = they can be */
    bool host_model_known;
};

static const struct movable_case movable_cases[] = {
    {"plain", NULL, DOMAIN_OF(""), NULL, NULL, false, NULL, false},
    /* network */
    {"506 masquerade on the pod network", NULL, NIC("\"masquerade\":{}", POD), NULL, NULL, false,
     NULL, false},
    {"506 bridge on the pod network", NULL, NIC("\"bridge\":{}", POD), NULL,
     "InterfaceNotLiveMigratable", false, "InterfaceNotLiveMigratable: ", false},
    {"506 bridge elsewhere", NULL, NIC("\"bridge\":{}", MULTUS), NULL, NULL, false, NULL, false},
    {"bridge on the pod network, allowed", ALLOWED, NIC("\"bridge\":{}", POD), NULL, NULL, false,
     NULL, false},
    {"SR-IOV on the pod network, allowed", ALLOWED, NIC("\"sriov\":{}", POD), NULL,
     "InterfaceNotLiveMigratable", false, "InterfaceNotLiveMigratable: ", false},
    {"passt on the pod network", NULL, NIC("\"passt\":{}", POD), NULL, NULL, false, NULL, false},
    {"passt as a binding of its own name", NULL, NIC("\"passtBinding\":{}", POD), NULL, NULL, false,
     NULL, false},
    {"passt as a plugin", NULL, NIC("\"binding\":{\"name\":\"passt\"}", POD), NULL, NULL, false,
     NULL, false},
    {"another plugin", NULL, NIC("\"binding\":{\"name\":\"other\"}", POD), NULL,
     "InterfaceNotLiveMigratable", false, "InterfaceNotLiveMigratable: ", false},
    {"another plugin elsewhere", NULL, NIC("\"binding\":{\"name\":\"other\"}", MULTUS), NULL, NULL,
     false, NULL, false},
    /* CPU */
    {"504 host-model, which is known", NULL, HOST_MODEL, NULL, NULL, false, NULL, true},
    {"504 host-model, which is not known", NULL, HOST_MODEL, NULL, "CPUModeLiveMigratable", false,
     "CPUModeLiveMigratable: ", false},
    {"a model of its own", NULL, DOMAIN_OF("\"cpu\":{\"model\":\"Nehalem\"}"), NULL, NULL, false,
     NULL, false},
    /* devices */
    {"507 host device", NULL, DOMAIN_OF("\"devices\":{\"hostDevices\":[{}]}"), NULL,
     "HostDeviceNotLiveMigratable", false, "HostDeviceNotLiveMigratable: ", false},
    {"507 GPU", NULL, DOMAIN_OF("\"devices\":{\"gpus\":[{}]}"), NULL, "HostDeviceNotLiveMigratable",
     false, "HostDeviceNotLiveMigratable: ", false},
    {"no devices", NULL, DOMAIN_OF("\"devices\":{\"gpus\":[],\"hostDevices\":[]}"), NULL, NULL,
     false, NULL, false},
    /* security */
    {"508 SEV", NULL, SECURITY("\"sev\":{}"), NULL, "SEVNotLiveMigratable", false,
     "SEVNotLiveMigratable: ", false},
    {"508 SEV-SNP", NULL, SECURITY("\"snp\":{}"), NULL, "SEVNotLiveMigratable", false,
     "SEVNotLiveMigratable: ", false},
    {"508 TDX", NULL, SECURITY("\"tdx\":{}"), NULL, "TDXNotLiveMigratable", false,
     "TDXNotLiveMigratable: ", false},
    {"508 Secure Execution", NULL, SECURITY("") ",\"architecture\":\"s390x\"", NULL,
     "SecureExecutionNotLiveMigratable", false, "SecureExecutionNotLiveMigratable: ", false},
    {"launch security of nothing", NULL, SECURITY("") ",\"architecture\":\"amd64\"", NULL, NULL,
     false, NULL, false},
    /* clocks */
    {"511 re-enlightenment without a TSC frequency", NULL, REENLIGHTENMENT(""), NULL,
     "NoTSCFrequencyNotLiveMigratable", false, "NoTSCFrequencyNotLiveMigratable: ", false},
    {"re-enlightenment with one", NULL, REENLIGHTENMENT("\"enabled\":true"),
     "\"topologyHints\":{\"tscFrequency\":5}", NULL, false, NULL, false},
    {"re-enlightenment switched off", NULL, REENLIGHTENMENT("\"enabled\":false"), NULL, NULL, false,
     NULL, false},
    {"invtsc without a TSC frequency", NULL, TSC(""), NULL, "NoTSCFrequencyNotLiveMigratable",
     false, "NoTSCFrequencyNotLiveMigratable: ", false},
    {"invtsc required", NULL, TSC(",\"policy\":\"require\""), NULL,
     "NoTSCFrequencyNotLiveMigratable", false, "NoTSCFrequencyNotLiveMigratable: ", false},
    {"invtsc disabled", NULL, TSC(",\"policy\":\"disable\""), NULL, NULL, false, NULL, false},
    {"511 HyperV passthrough", NULL, FEATURES("\"hypervPassthrough\":{}"), NULL,
     "HypervPassthroughNotLiveMigratable", false, "HypervPassthroughNotLiveMigratable: ", false},
    {"HyperV passthrough switched off", NULL, FEATURES("\"hypervPassthrough\":{\"enabled\":false}"),
     NULL, NULL, false, NULL, false},
    /* volumes */
    {"501 shared disks only", NULL, VOLUMES(VOLUME("d", CLAIM)), SHARED, NULL, false, NULL, false},
    {"501 a disk of its own", NULL, VOLUMES(VOLUME("d", "\"containerDisk\":{}")), NULL, NULL, true,
     NULL, false},
    {"501 shared and not shared", NULL,
     VOLUMES(VOLUME("d", CLAIM) "," VOLUME("e", "\"emptyDisk\":{}")), SHARED, NULL, true, NULL,
     false},
    {"502 claim for one writer", NULL, VOLUMES(VOLUME("d", CLAIM)), ALONE, "DisksNotLiveMigratable",
     true, NULL, false},
    {"502 data volume for one writer", NULL, VOLUMES(VOLUME("d", "\"dataVolume\":{}")), ALONE,
     "DisksNotLiveMigratable", true, NULL, false},
    {"claim that nobody knows", NULL, VOLUMES(VOLUME("d", CLAIM)),
     STATUSES(STATUS("e", "ReadWriteMany")), "DisksNotLiveMigratable", true, NULL, false},
    {"claim for one writer that is copied", NULL, VOLUMES(VOLUME("d", CLAIM)),
     ALONE ",\"migratedVolumes\":[{\"volumeName\":\"d\"}]", NULL, true, NULL, false},
    {"claim for one writer beside one that is copied", NULL,
     VOLUMES(VOLUME("d", CLAIM) "," VOLUME("e", CLAIM)),
     ALONE ",\"migratedVolumes\":[{\"volumeName\":\"d\"}]", "DisksNotLiveMigratable", true, NULL,
     false},
    {"host disk", NULL, VOLUMES(VOLUME("d", "\"hostDisk\":{\"path\":\"/x\"}")), NULL,
     "DisksNotLiveMigratable", true, NULL, false},
    {"shared host disk", NULL, VOLUMES(VOLUME("d", "\"hostDisk\":{\"shared\":true}")), NULL, NULL,
     false, NULL, false},
    {"505 virtiofs", NULL,
     DOMAIN_OF("\"devices\":{\"filesystems\":[{\"name\":\"d\",\"virtiofs\":{}}]}") "," VOLUMES(
         VOLUME("d", "\"configMap\":{}")),
     NULL, NULL, false, NULL, false},
    {"510 CD-ROM", NULL,
     DISKS(DISK("d", "\"cdrom\":{}")) "," VOLUMES(VOLUME("d", "\"containerDisk\":{}")), NULL, NULL,
     false, NULL, false},
    {"510 CD-ROM, read only", NULL,
     DISKS(DISK("d", "\"cdrom\":{\"readonly\":true}")) "," VOLUMES(
         VOLUME("d", "\"containerDisk\":{}")),
     NULL, NULL, false, NULL, false},
    {"510 CD-ROM that is written to", NULL,
     DISKS(DISK("d", "\"cdrom\":{\"readonly\":false}")) "," VOLUMES(
         VOLUME("d", "\"containerDisk\":{}")),
     NULL, NULL, true, NULL, false},
    {"disk beside a CD-ROM", NULL,
     DISKS(DISK("e", "\"cdrom\":{}") "," DISK("d", "\"disk\":{}")) "," VOLUMES(
         VOLUME("d", "\"containerDisk\":{}")),
     NULL, NULL, true, NULL, false},
    {"persistent reservation", NULL,
     DISKS(DISK("d", "\"lun\":{\"reservation\":true}")) "," VOLUMES(VOLUME("d", CLAIM)), SHARED,
     NULL, false, "PersistentReservationNotLiveMigratable: ", false},
    {"LUN without one", NULL,
     DISKS(DISK("d", "\"lun\":{\"reservation\":false}")) "," VOLUMES(VOLUME("d", CLAIM)), SHARED,
     NULL, false, NULL, false},
    /* several: the first is the reason, and all of them speak against exchanging volumes */
    {"everything", NULL,
     DOMAIN_OF("\"cpu\":{\"model\":\"host-model\"},\"launchSecurity\":{\"sev\":{},\"tdx\":{}},"
               "\"devices\":{\"hostDevices\":[{}]}") "," VOLUMES(VOLUME("d", CLAIM)),
     ALONE, "CPUModeLiveMigratable", true,
     "CPUModeLiveMigratable: |; HostDeviceNotLiveMigratable: |; SEVNotLiveMigratable: |"
     "; TDXNotLiveMigratable: |!Disks",
     false},
};

static void movable(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(movable_cases); i++) {
        const struct movable_case *c = &movable_cases[i];
        api_cleanup_object struct api_object *o = case_vmi(c->meta, c->spec, c->status);
        struct migratable m = migratable_of(&o->u.vmi, c->host_model_known);

        print_message("  %s\n", c->name);
        assert_true(ferry_streq(m.reason, c->reason));
        assert_int_equal(m.yes, !c->reason);
        assert_int_equal(m.message[0] != '\0', c->reason != NULL);
        assert_int_equal(m.block, c->block);
        assert_int_equal(m.storage, !c->storage);
        case_check_words(c->name, m.storage ? NULL : m.storage_message, c->storage);
    }
}

#define READY "{\"type\":\"Ready\",\"status\":\"True\"}"
#define MOVABLE(status) "{\"type\":\"LiveMigratable\",\"status\":\"" status "\"}"
#define RUNS(more, conditions)                                                                     \
    "\"phase\":\"Running\",\"nodeName\":\"a\",\"migrationTransport\":\"Unix\"" more                \
    ",\"conditions\":[" READY conditions "]"

#define TYPED(machine)                                                                             \
    "{\"domain\":{\"state\":\"running\",\"reason\":\"booted\"},\"machine\":\"" machine "\"}"

/* What of it the owner writes. */
static void told(void **state)
{
    static const struct {
        const char *name, *spec, *status, *launcher, *patch;
        bool not_evictable;
    } cases[] = {
        {"movable", DOMAIN_OF(""), RUNS("", ""), DOMAIN("running", "booted"),
         "\"LiveMigratable\",\"status\":\"True\"|\"StorageLiveMigratable\",\"status\":\"True\"|"
         "migrationMethod\",\"value\":\"LiveMigration\"",
         false},
        {"not movable", HOST_MODEL, RUNS("", ""), DOMAIN("running", "booted"),
         "\"LiveMigratable\",\"status\":\"False\",\"reason\":\"CPUModeLiveMigratable\"|"
         "\"StorageLiveMigratable\",\"status\":\"False\",\"reason\":\"NotMigratable\",\"message\":"
         "\"CPUModeLiveMigratable: |migrationMethod",
         false},
        {"514 the method changes with the volumes", VOLUMES(VOLUME("d", "\"emptyDisk\":{}")),
         RUNS(",\"migrationMethod\":\"LiveMigration\"", "," MOVABLE("True")),
         DOMAIN("running", "booted"), "migrationMethod\",\"value\":\"BlockMigration\"", false},
        {"of one that cannot be moved, too", VOLUMES(VOLUME("d", CLAIM)),
         RUNS(",\"migrationMethod\":\"LiveMigration\"," ALONE, ""), DOMAIN("running", "booted"),
         "DisksNotLiveMigratable|volume d: |migrationMethod\",\"value\":\"BlockMigration\"", false},
        {"eviction moves it, and it is movable", "\"evictionStrategy\":\"LiveMigrate\"",
         RUNS("", ""), DOMAIN("running", "booted"), "LiveMigratable", false},
        {"eviction moves it, and it is not movable",
         HOST_MODEL ",\"evictionStrategy\":\"LiveMigrate\"", RUNS("", ""),
         DOMAIN("running", "booted"), "CPUModeLiveMigratable", true},
        {"that is said once", HOST_MODEL ",\"evictionStrategy\":\"LiveMigrate\"",
         RUNS("", "," MOVABLE("False")), DOMAIN("running", "booted"), "CPUModeLiveMigratable",
         false},
        {"not movable any more", HOST_MODEL ",\"evictionStrategy\":\"LiveMigrate\"",
         RUNS("", "," MOVABLE("True")), DOMAIN("running", "booted"), "CPUModeLiveMigratable", true},
        {"eviction moves it if possible",
         HOST_MODEL ",\"evictionStrategy\":\"LiveMigrateIfPossible\"", RUNS("", ""),
         DOMAIN("running", "booted"), "CPUModeLiveMigratable", false},
        {"its machine type", DOMAIN_OF(""), RUNS("", ""), TYPED("pc-q35-9.2"),
         "/status/machine\",\"value\":{\"type\":\"pc-q35-9.2\"}", false},
        {"its machine type is another than was chosen", DOMAIN_OF(""),
         RUNS(",\"machine\":{\"type\":\"pc-q35-9.1\"}", ""), TYPED("pc-q35-9.2"),
         "/status/machine\",\"value\":{\"type\":\"pc-q35-9.2\"}", false},
        {"its machine type was written before", DOMAIN_OF(""),
         RUNS(",\"machine\":{\"type\":\"pc-q35-9.2\"}", ""), TYPED("pc-q35-9.2"),
         "!/status/machine", false},
        {"an older launcher says no machine type", DOMAIN_OF(""),
         RUNS(",\"machine\":{\"type\":\"pc-q35-9.2\"}", ""), DOMAIN("running", "booted"),
         "!/status/machine", false},
        {"no machine type of QEMU's", DOMAIN_OF(""), RUNS("", ""), TYPED("x\\\"y"),
         "!/status/machine", false},
        {"513 the short pause of a move", DOMAIN_OF(""), RUNS("", ""),
         DOMAIN("paused", "migration"), "!Paused", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = case_vmi(NULL, cases[i].spec, cases[i].status);
        struct launcher_status s = {0};
        struct owner_decision d = owner_decide(&(struct owner_input){
            .vmi = &o->u.vmi, .launcher = case_launcher(cases[i].launcher, &s), .now_ms = NOW});
        ferry_cleanup_free char *patch = case_patch(d.patch);

        print_message("  %s\n", cases[i].name);
        case_check_words(cases[i].name, patch, cases[i].patch);
        assert_int_equal(d.not_evictable, cases[i].not_evictable);
    }
}

/* 500: during a move the owner's part is not played: only the source's is. */
static void moving(void **state)
{
    api_cleanup_object struct api_object *o = case_vmi(
        NULL, NULL,
        "\"phase\":\"Running\",\"nodeName\":\"a\",\"migrationState\":{\"migrationUid\":\"m\","
        "\"sourceNode\":\"a\",\"targetNode\":\"b\",\"startTimestamp\":\"2023-11-14T22:13:00Z\"}");

    (void)state;
    assert_int_equal(node_role_of(&o->u.vmi, "a"), NODE_ROLE_SOURCE);
    assert_int_equal(node_role_of(&o->u.vmi, "c"), NODE_ROLE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(movable),
        cmocka_unit_test(told),
        cmocka_unit_test(moving),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
