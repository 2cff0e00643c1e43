/* Tables: the pods of launchers, as they are rendered. Numbers of cases are items of
 * docs/conformance.md. */
#include "lib/objects.h"

#include "control/pod/pod_render.h"

static const char VMI[] =
    "{'metadata':{'name':'web','namespace':'ns','uid':'vmi-1','resourceVersion':'5'},'spec':{"
    "'domain':{'memory':{'guest':'1Gi'}}}}";
static const char MOVE[] = "{'metadata':{'name':'move','namespace':'ns','uid':'mig-1'},'spec':{"
                           "'vmiName':'web'}}";
static const char SOURCE[] = "{'metadata':{'name':'p','namespace':'ns','uid':'pod-a'},'spec':{"
                             "'nodeName':'a'}}";
static const char NODE[] = "{'metadata':{'name':'a'}}";
static const char CLAIM[] =
    "{'metadata':{'name':'data','namespace':'ns'},'spec':{'volumeMode':'Block','accessModes':["
    "'ReadWriteMany']},'status':{'phase':'Bound'}}";

#define CPU(more) "{'spec':{'domain':{'cpu':{" more "}}}}"
#define LABELS(more) "{'metadata':{'labels':{" more "}}}"
#define SELECTOR(more) "{'spec':{'nodeSelector':{" more "}}}"
#define SKYLAKE                                                                                    \
    "'host-model-cpu.node.kubevirt.io/Skylake':'true',"                                            \
    "'host-model-required-features.node.kubevirt.io/vmx':'true'"
#define DISK(volume) "{'spec':{'volumes':[{'name':'data'," volume "}]}}"
#define MEMORY "/spec/containers/0/resources/requests/memory"
#define REQUEST(r) "/spec/containers/0/resources/requests/" r
#define LIMIT(r) "/spec/containers/0/resources/limits/" r
#define NODE_SELECTOR(k) "/spec/nodeSelector/" k
#define MACHINE(t) NODE_SELECTOR("machine-type.node.kubevirt.io~1" t)
#define RECORDED(t) "{'status':{'machine':{'type':'" t "'}}}"
#define ANTI "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/"

static const struct row {
    const char *name, *vmi;
    const char *move, *node, *source; /* merges; NULL move = an ordinary pod */
    struct {
        const char *pointer, *want; /* NULL want = must not be there */
    } at[7];
    const char *unknown_cpu; /* what pod_target_cpu_is_known() says, or NULL */
} rows[] = {
    {"resources: a share per vCPU, the guest's memory and what is around it", CPU("'cores':2"),
     .at = {{REQUEST("cpu"), "200m"},
            {MEMORY, "1226833920"},
            {"/metadata/annotations/kubevirt.io~1memory-overhead-bytes", "153092096"},
            {LIMIT("cpu"), NULL},
            {NODE_SELECTOR("kubevirt.io~1schedulable"), "true"}}},
    {"resources: what is asked for, and limits",
     "{'spec':{'domain':{'resources':{'requests':{'cpu':'2'},'limits':{'cpu':'3','memory':'2Gi'}}}}"
     "}",
     .at = {{REQUEST("cpu"), "2000m"}, {LIMIT("cpu"), "3000m"}, {LIMIT("memory"), "2292187136"}}},
    {"hugepages: the guest's memory from there, the rest from the ordinary",
     "{'spec':{'domain':{'memory':{'hugepages':{'pageSize':'2Mi'}}}}}",
     .at = {{REQUEST("hugepages-2Mi"), "1073741824"},
            {LIMIT("hugepages-2Mi"), "1073741824"},
            {MEMORY, "144703488"},
            {"/spec/volumes/0/emptyDir/medium", "HugePages"},
            {"/spec/containers/0/volumeMounts/0/mountPath", "/dev/hugepages"}}},
    {"dedicated CPUs: whole ones, guaranteed", CPU("'cores':2,'dedicatedCpuPlacement':true"),
     .at = {{REQUEST("cpu"), "2"},
            {LIMIT("cpu"), "2"},
            {LIMIT("memory"), "1226833920"},
            {NODE_SELECTOR("kubevirt.io~1cpumanager"), "true"}}},
    {"dedicated CPUs: one more for the emulator",
     CPU("'cores':2,'dedicatedCpuPlacement':true,'isolateEmulatorThread':true"),
     .at = {{REQUEST("cpu"), "3"}, {LIMIT("cpu"), "3"}}},
    {"host devices, counted by their resource",
     "{'spec':{'domain':{'devices':{'hostDevices':[{'name':'a','deviceName':'v.com/x'},{'name':'b',"
     "'deviceName':'v.com/x'}],'gpus':[{'name':'g','deviceName':'v.com/gpu'}]}}}}",
     .at = {{REQUEST("v.com~1x"), "2"}, {LIMIT("v.com~1x"), "2"}, {LIMIT("v.com~1gpu"), "1"}}},
    {"a CPU model by name", CPU("'model':'Haswell'"),
     .at = {{NODE_SELECTOR("cpu-model.node.kubevirt.io~1Haswell"), "true"}}},
    {"CPU features that are required",
     CPU("'features':[{'name':'avx2','policy':'require'},{'name':'apic'},{'name':'x','policy':"
         "'disable'}]"),
     .at = {{NODE_SELECTOR("cpu-feature.node.kubevirt.io~1avx2"), "true"},
            {NODE_SELECTOR("cpu-feature.node.kubevirt.io~1apic"), "true"},
            {NODE_SELECTOR("cpu-feature.node.kubevirt.io~1x"), NULL}}},
    {"host-model: any node may have it first", CPU("'model':'host-model'"),
     .at = {{NODE_SELECTOR("cpu-model.node.kubevirt.io~1host-model"), NULL}}},
    {"tolerations, spread, scheduler and priority are the VMI's",
     "{'spec':{'tolerations':[{'key':'gpu'}],'topologySpreadConstraints':[{'topologyKey':'zone'}],"
     "'schedulerName':'mine','priorityClassName':'high'}}",
     .at = {{"/spec/tolerations/0/key", "gpu"},
            {"/spec/topologySpreadConstraints/0/topologyKey", "zone"},
            {"/spec/schedulerName", "mine"},
            {"/spec/priorityClassName", "high"}}},
    {"volume: a claim as a device", DISK("'persistentVolumeClaim':{'claimName':'data'}"),
     .at = {{"/spec/volumes/0/persistentVolumeClaim/claimName", "data"},
            {"/spec/containers/0/volumeDevices/0/devicePath",
             "/var/run/kubevirt-private/vmi-disks/data"},
            {"/spec/containers/0/volumeMounts/0/name", NULL}}},
    {"volume: a data volume's claim", DISK("'dataVolume':{'name':'other'}"),
     .at = {{"/spec/volumes/0/persistentVolumeClaim/claimName", "other"},
            {"/spec/containers/0/volumeMounts/0/mountPath",
             "/var/run/kubevirt-private/vmi-disks/data"}}},
    {"volume: a host disk's directory",
     DISK("'hostDisk':{'path':'/srv/vm/disk.img','type':'Disk'}"),
     .at = {{"/spec/volumes/0/hostPath/path", "/srv/vm"}}},
    {"volume: an empty disk", DISK("'emptyDisk':{'capacity':'1Gi'}"),
     .at = {{"/spec/volumes/0/name", "data"},
            {"/spec/volumes/0/emptyDir/sizeLimit", "1094713344"},
            {"/spec/containers/0/volumeMounts/0/name", "data"}}},
    {"volume: the seed of cloud-init, in memory", DISK("'cloudInitNoCloud':{'userData':'x'}"),
     .at = {{"/spec/volumes/0/emptyDir/medium", "Memory"},
            {"/spec/volumes/0/emptyDir/sizeLimit", "8Mi"},
            {"/spec/volumes/1/name", NULL},
            {"/spec/containers/0/volumeMounts/0/mountPath",
             "/var/run/kubevirt-private/vmi-disks/data"}}},
    {"volume: what a seed takes from secrets",
     DISK("'cloudInitNoCloud':{'secretRef':{'name':'u'},'networkDataSecretRef':{'name':'n'}}"),
     .at = {{"/spec/volumes/1/secret/secretName", "u"},
            {"/spec/volumes/2/secret/secretName", "n"},
            {"/spec/containers/0/volumeMounts/1/mountPath",
             "/var/run/kubevirt-private/secret/data-udata"},
            {"/spec/containers/0/volumeMounts/2/mountPath",
             "/var/run/kubevirt-private/secret/data-ndata"}}},
    {"volume: others are not the pod's", DISK("'containerDisk':{'image':'x'}"),
     .at = {{"/spec/volumes/0/name", NULL}}},

    {"24: target: anti-affinity is added to what the VMI has",
     "{'spec':{'affinity':{'nodeAffinity':{'x':'kept'},'podAntiAffinity':{"
     "'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'rack'}]}}}}",
     "{}",
     .at = {{ANTI "0/topologyKey", "rack"},
            {ANTI "1/topologyKey", "kubernetes.io/hostname"},
            {ANTI "1/labelSelector/matchLabels/kubevirt.io~1created-by", "vmi-1"},
            {"/spec/affinity/nodeAffinity/x", "kept"},
            {"/metadata/labels/kubevirt.io~1migrationJobUID", "mig-1"},
            {"/metadata/annotations/kubevirt.io~1migrationJobName", "move"}}},
    {"25: target: addedNodeSelector may only narrow", SELECTOR("'zone':'1'"),
     "{'spec':{'addedNodeSelector':{'zone':'2','disk':'ssd','kubevirt.io/schedulable':'no'}}}",
     .at = {{NODE_SELECTOR("zone"), "1"},
            {NODE_SELECTOR("disk"), "ssd"},
            {NODE_SELECTOR("kubevirt.io~1schedulable"), "true"}}},
    {"105: target: host-model asks for the source's model and its features",
     CPU("'model':'host-model'"), "{}", LABELS(SKYLAKE),
     .at = {{NODE_SELECTOR("cpu-model-migration.node.kubevirt.io~1Skylake"), "true"},
            {NODE_SELECTOR("cpu-feature.node.kubevirt.io~1vmx"), "true"}}},
    {"105: target: no model given is host-model", "{}", "{}", LABELS(SKYLAKE),
     .at = {{NODE_SELECTOR("cpu-model-migration.node.kubevirt.io~1Skylake"), "true"}}},
    {"105: target: one that moved before keeps the CPU that it began with",
     CPU("'model':'host-model'"), "{}", LABELS(SKYLAKE),
     SELECTOR("'cpu-model-migration.node.kubevirt.io/Haswell':'true',"
              "'cpu-feature.node.kubevirt.io/pcid':'true'"),
     .at = {{NODE_SELECTOR("cpu-model-migration.node.kubevirt.io~1Haswell"), "true"},
            {NODE_SELECTOR("cpu-feature.node.kubevirt.io~1pcid"), "true"},
            {NODE_SELECTOR("cpu-model-migration.node.kubevirt.io~1Skylake"), NULL}}},
    {"105: target: a model that is not known is an error, not a guess", CPU("'model':'host-model'"),
     "{}", "{}", .unknown_cpu = "the CPU model of the source node is not known"},
    {"106: target: another CPU model asks for itself alone", CPU("'model':'Haswell'"), "{}",
     LABELS(SKYLAKE),
     .at = {{NODE_SELECTOR("cpu-model.node.kubevirt.io~1Haswell"), "true"},
            {NODE_SELECTOR("cpu-model-migration.node.kubevirt.io~1Skylake"), NULL},
            {NODE_SELECTOR("cpu-feature.node.kubevirt.io~1vmx"), NULL}}},
    {"126: target: the vendor of the source, Intel", "{}", "{}",
     LABELS("'cpu-vendor.node.kubevirt.io/Intel':'true'"),
     .at = {{NODE_SELECTOR("cpu-vendor.node.kubevirt.io~1Intel"), "true"}}},
    {"127: target: the vendor of the source, AMD", CPU("'model':'host-passthrough'"), "{}",
     LABELS("'cpu-vendor.node.kubevirt.io/AMD':'true'"),
     .at = {{NODE_SELECTOR("cpu-vendor.node.kubevirt.io~1AMD"), "true"}}},
    {"128: target: no vendor is known", "{}", "{}", "{}",
     .at = {{NODE_SELECTOR("cpu-vendor.node.kubevirt.io~1Intel"), NULL},
            {NODE_SELECTOR("cpu-vendor.node.kubevirt.io~1AMD"), NULL}}},
    {"machine: the one that was written down", RECORDED("pc-i440fx-9.2"),
     .at = {{MACHINE("pc-i440fx-9.2"), "true"}}},
    {"machine: nothing was, the node decides", "{}", .at = {{MACHINE(""), NULL}}},
    {"machine: what no label can have is not asked for", RECORDED("pc q35"),
     .at = {{MACHINE("pc q35"), NULL}, {NODE_SELECTOR("kubevirt.io~1schedulable"), "true"}}},
    {"target: a node with the guest's machine type", RECORDED("pc-i440fx-9.2"), "{}",
     LABELS("'machine-type.node.kubevirt.io/pc-i440fx-10.0':'true'"),
     .at = {{MACHINE("pc-i440fx-9.2"), "true"}}},
    {"target: the source's node reports no types", RECORDED("pc-i440fx-9.2"), "{}", "{}",
     .at = {{MACHINE("pc-i440fx-9.2"), NULL}}},
    {"target: of an older version, that wrote no type down", "{}", "{}",
     LABELS("'machine-type.node.kubevirt.io/pc-i440fx-10.0':'true'"),
     .at = {{MACHINE("pc-i440fx-10.0"), NULL}}},
    {"target: by hardware, as its source", "{}", "{}", "{}",
     "{'spec':{'containers':[{'name':'compute','resources':{'limits':{'devices.kubevirt.io/"
     "kvm':'1'}}}]}}",
     .at = {{LIMIT("devices.kubevirt.io~1kvm"), "1"},
            {REQUEST("devices.kubevirt.io~1kvm"), "1"},
            {"/spec/containers/0/args/6", "--accelerator"},
            {"/spec/containers/0/args/7", "kvm"}}},
    {"target: emulated as its source, whatever somebody wrote meanwhile",
     "{'metadata':{'annotations':{'ferry.io/accelerator':'kvm'}}}", "{}", "{}",
     .at = {{LIMIT("devices.kubevirt.io~1kvm"), NULL}, {"/spec/containers/0/args/6", NULL}}},
    {"target: a vendor that the VM asks for itself stays",
     SELECTOR("'cpu-vendor.node.kubevirt.io/AMD':'true'"), "{}",
     LABELS("'cpu-vendor.node.kubevirt.io/Intel':'true'"),
     .at = {{NODE_SELECTOR("cpu-vendor.node.kubevirt.io~1AMD"), "true"},
            {NODE_SELECTOR("cpu-vendor.node.kubevirt.io~1Intel"), NULL}}},
};

static void check_row(const struct row *r)
{
    api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, r->vmi);
    api_cleanup_object struct api_object *move =
        r->move ? make_object(API_KIND_MIGRATION, MOVE, r->move) : NULL;
    api_cleanup_object struct api_object *node =
        r->node ? make_object(API_KIND_NODE, NODE, r->node) : NULL;
    api_cleanup_object struct api_object *source = make_object(API_KIND_POD, SOURCE, r->source);
    api_cleanup_object struct api_object *claim = make_object(API_KIND_CLAIM, CLAIM, NULL);
    const struct api_object *claims[] = {claim};
    const struct pod_request request = {
        .vmi = &vmi->u.vmi,
        .settings = &(struct pod_settings){.launcher_image = "img"},
        .storage = &(struct storage_view){.claims = claims, .n_claims = 1},
        .migration = move ? &move->u.migration : NULL,
        .source_pod = move ? &source->u.pod : NULL,
        .source_node = node ? &node->u.node : NULL,
    };
    ferry_cleanup_free char *json = pod_render(&request);
    struct ferry_error err = {0};
    struct api_object *o = NULL;
    const char *why = NULL;

    if (api_object_parse(API_KIND_POD, json, strlen(json), &o, &err) < 0) {
        fail_msg("%s: %s: %s", r->name, json, err.msg);
    }
    api_cleanup_object struct api_object *pod = o;
    for (size_t i = 0; i < COUNT_OF(r->at) && r->at[i].pointer; i++) {
        const char *got = api_json_str(pod->root, r->at[i].pointer);

        if (!ferry_streq(got, r->at[i].want)) {
            fail_msg("%s: %s is '%s'", r->name, r->at[i].pointer, got ? got : "absent");
        }
    }
    if (move) {
        pod_target_cpu_is_known(&request, &why);
    }
    if (!ferry_streq(why, r->unknown_cpu)) {
        fail_msg("%s: %s", r->name, why ? why : "the CPU is known");
    }
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_row(&rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
