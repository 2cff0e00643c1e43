/* Every field that the table calls honoured (src/api/spec) has a case here: what becomes of a
 * machine, its pod and its libvirt domain and its images, is another with the field than without,
 * or with another value; where one value alone is honoured, it is what the machine is anyway. */
#include "lib/objects.h"

#include <sys/stat.h>
#include <unistd.h>

#include "api/admit.h"
#include "api/spec/vmi_fields.h"
#include "base/fd.h"
#include "control/pod/pod_render.h"
#include "control/vm/vm_render.h"
#include "launcher/domain/disk_image.h"
#include "launcher/domain/disk_made.h"
#include "launcher/domain/disks.h"
#include "launcher/domain/domain_xml.h"
#include "launcher/domain/seed.h"

static const char base[] =
    "{'metadata':{'name':'web','namespace':'ns','uid':'0f0e0d0c-0000-4000-8000-000000000001'},"
    "'spec':{'domain':{'memory':{'guest':'64Mi'},'firmware':{'kernelBoot':{'container':{'image':"
    "'ferry.io/builtin','kernelPath':'/h.elf'}}}}}}";
static const char vm_base[] =
    "{'metadata':{'name':'web','namespace':'ns','uid':'vm-1','generation':1},'spec':{'runStrategy':"
    "'Halted','template':{'spec':{'domain':{'memory':{'guest':'64Mi'}}}}}}";

static const char *const environment[] = {
    "PCI_RESOURCE_B_C=0000:81:00.0",
    "PCI_RESOURCE_B_D=0000:82:00.0",
    "KUBEVIRT_RESOURCE_NAME_n=fast",
    "PCIDEVICE_FAST=0000:3b:02.1",
    NULL,
};

/* ---- what becomes of a machine -----------------------------------------------------------------
 */

static void put_pod(struct ferry_buf *b, const struct api_vmi *vmi)
{
    const struct pod_settings settings = {.launcher_image = "x"};
    ferry_cleanup_free char *pod =
        pod_render(&(struct pod_request){.vmi = vmi, .settings = &settings});

    ferry_buf_printf(b, "POD %s\n", pod);
}

static void put_domain(struct ferry_buf *b, const struct api_vmi *vmi, const struct disks *disks)
{
    const struct domain_xml_options options = {
        .environment = environment,
        .emulator = "/qemu",
        .guest_dir = "/guest",
        .console_dir = "/console",
        .disk_dir = "/disks",
        .qmp_path = "/qmp",
        .qmp_session_path = "/qmp-kept",
    };
    struct ferry_error err = {0};
    ferry_cleanup_free char *xml = NULL;

    if (domain_xml(vmi, disks, &options, &xml, &err) < 0) {
        fail_msg("no domain: %s", err.msg);
    }
    ferry_buf_printf(b, "DOMAIN %s\n", xml);
}

/* The images that are made at the start, and how large. */
static void put_images(struct ferry_buf *b, const struct api_vmi *vmi, const struct disks *disks)
{
    char dir[] = "/tmp/ferry-fields-XXXXXX";
    struct ferry_error err = {0};

    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < disks->n; i++) {
        ferry_cleanup_free char *image = disks_image_path(dir, disks->list[i].name);
        ferry_cleanup_free char *at = ferry_asprintf("%s/%s", dir, disks->list[i].name);
        struct stat st;

        ferry_buf_printf(b, "DISK %s copied %d", disks->list[i].name, disks->list[i].copied);
        if (disks->list[i].seed) {
            continue; /* put_seed() */
        }
        assert_int_equal(ferry_mkdir_p(at, 0700, NULL), 0);
        assert_int_equal(disk_made_initial(vmi, disks, dir, &err), 0);
        ferry_buf_printf(b, " made %lld\n", stat(image, &st) == 0 ? (long long)st.st_size : -1LL);
    }
    assert_int_equal(ferry_remove_tree(dir, NULL), 0);
}

static void put_seed(struct ferry_buf *b, const struct api_vmi *vmi, const struct disks *disks)
{
    ferry_cleanup(seed_done) struct seed seed = {0};

    for (size_t i = 0; i < disks->n; i++) {
        if (disks->list[i].seed && seed_read(vmi, disks->list[i].name, "/none", &seed, NULL) == 0) {
            ferry_buf_printf(b, "SEED %.*s %.*s %.*s\n", (int)seed.user.n,
                             seed.user.data ? seed.user.data : "", (int)seed.network.n,
                             seed.network.data ? seed.network.data : "", (int)seed.meta.n,
                             seed.meta.data);
        }
    }
}

static char *outcome(const char *merge)
{
    api_cleanup_object struct api_object *o = make_object(API_KIND_VMI, base, merge);
    const struct api_vmi *vmi = &o->u.vmi;
    struct ferry_buf b = {0};
    struct ferry_error err = {0};
    struct disks disks;

    if (disks_decode(vmi, &disks, &err) < 0) {
        fail_msg("%s: %s", merge, err.msg);
    }
    put_pod(&b, vmi);
    put_domain(&b, vmi, &disks);
    put_images(&b, vmi, &disks);
    put_seed(&b, vmi, &disks);
    ferry_buf_printf(&b, "EVICTION %s\n", api_eviction_strategy(vmi->eviction_strategy, NULL));
    return ferry_buf_take(&b);
}

static char *vm_outcome(const char *merge)
{
    api_cleanup_object struct api_object *o = make_object(API_KIND_VM, vm_base, merge);

    return vm_render(o, &(struct instancetype_pair){0});
}

/* ---- the cases ---------------------------------------------------------------------------------
 */

#define S(rest) "{'spec':{" rest "}}"
#define D(rest) S("'domain':{" rest "}")
#define DEV(rest) D("'devices':{" rest "}")
#define CPU(rest) D("'cpu':{" rest "}")
#define FEATURE(rest) D("'features':{" rest "}")
#define VOLUME(source) "'volumes':[{'name':'a'," source "}]"
#define WITH(disk, source)                                                                         \
    S("'domain':{'devices':{'disks':[{'name':'a'" disk "}]}}," VOLUME(source))
#define PVC "'persistentVolumeClaim':{'claimName':'c'}"
#define DISK(rest) WITH("," rest, PVC)
#define PLAIN WITH("", PVC)
#define OF(source) WITH("", source)
#define SEED(rest) OF("'cloudInitNoCloud':{'userData':'u'" rest "}")
#define NIC(rest)                                                                                  \
    S("'domain':{'devices':{'interfaces':[{'name':'n'" rest                                        \
      "}]}},'networks':[{'name':'n','multus':{'networkName':'x'}}]")
#define HOST(rest) OF("'hostDisk':{'path':'/d/disk.img','type':'DiskOrCreate'" rest "}")
#define DEVICE(name, device) DEV("'hostDevices':[{'name':'" name "','deviceName':'" device "'}]")
#define BOOT(rest) D("'firmware':{'kernelBoot':{" rest "}}")

/* `has`: is in the outcome of `with`, or with a "!" in front is not; NULL: the outcome is another
 * than that of `without`. */
static const struct row {
    const char *path, *without, *with, *has;
} rows[] = {
    {"domain.clock.utc", NULL, D("'clock':{'utc':{}}"), "<clock offset=\"utc\"/>"},
    {"domain.cpu.cores", CPU("'cores':1"), CPU("'cores':2"), NULL},
    {"domain.cpu.sockets", CPU("'sockets':1"), CPU("'sockets':2"), NULL},
    {"domain.cpu.threads", CPU("'threads':1"), CPU("'threads':2"), NULL},
    {"domain.cpu.model", "{}", CPU("'model':'Nehalem'"), NULL},
    {"domain.cpu.features[].name", CPU("'features':[{'name':'a'}]"),
     CPU("'features':[{'name':'b'}]"), NULL},
    {"domain.cpu.features[].policy", CPU("'features':[{'name':'a'}]"),
     CPU("'features':[{'name':'a','policy':'forbid'}]"), NULL},
    {"domain.features.acpi", NULL, FEATURE("'acpi':{}"), "<acpi/>"},
    {"domain.features.acpi.enabled", "{}", FEATURE("'acpi':{'enabled':false}"), NULL},
    /* what QEMU has unless it is taken away by name */
    {"domain.features.apic", NULL, FEATURE("'apic':{}"), "!apic"},
    {"domain.features.apic.enabled", NULL, FEATURE("'apic':{'enabled':true}"), "!apic"},
    {"domain.firmware.bootloader.bios", NULL, D("'firmware':{'bootloader':{'bios':{}}}"),
     "!<loader"},
    {"domain.firmware.kernelBoot.container.image", NULL, "{}", "<kernel>/guest/h.elf"},
    {"domain.firmware.kernelBoot.container.initrdPath", "{}",
     BOOT("'container':{'initrdPath':'/i'}"), NULL},
    {"domain.firmware.kernelBoot.container.kernelPath", "{}",
     BOOT("'container':{'kernelPath':'/k'}"), NULL},
    {"domain.firmware.kernelBoot.kernelArgs", "{}", BOOT("'kernelArgs':'x=1'"), NULL},
    {"domain.firmware.uuid", "{}", D("'firmware':{'uuid':'5d307ca9-b3ef-428c-8861-06e72d69f223'}"),
     NULL},
    {"domain.machine.type", "{}", D("'machine':{'type':'q35'}"), NULL},
    {"domain.memory.guest", "{}", D("'memory':{'guest':'65Mi'}"), NULL},
    {"domain.memory.hugepages.pageSize", "{}", D("'memory':{'hugepages':{'pageSize':'2Mi'}}"),
     NULL},
    {"domain.rebootPolicy", NULL, D("'rebootPolicy':'Reboot'"), "<on_reboot>restart"},
    {"domain.resources.limits", "{}", D("'resources':{'limits':{'memory':'1Gi'}}"), NULL},
    {"domain.resources.requests", "{}", D("'resources':{'requests':{'cpu':'2'}}"), NULL},
    {"domain.devices.autoattachGraphicsDevice", NULL, DEV("'autoattachGraphicsDevice':false"),
     "!<graphics"},
    {"domain.devices.autoattachInputDevice", NULL, DEV("'autoattachInputDevice':false"), "!<input"},
    {"domain.devices.autoattachMemBalloon", NULL, DEV("'autoattachMemBalloon':false"),
     "<memballoon model=\"none\"/>"},
    {"domain.devices.autoattachPodInterface", NULL, DEV("'autoattachPodInterface':false"),
     "!<interface"},
    {"domain.devices.autoattachSerialConsole", "{}", DEV("'autoattachSerialConsole':false"), NULL},
    {"domain.devices.logSerialConsole", NULL, DEV("'logSerialConsole':true"),
     "<log file=\"/console/serial.log\""},
    {"domain.devices.disks[].bootOrder", PLAIN, DISK("'bootOrder':1"), NULL},
    {"domain.devices.disks[].cache", PLAIN, DISK("'cache':'writeback'"), NULL},
    {"domain.devices.disks[].cdrom", PLAIN, DISK("'cdrom':{}"), NULL},
    {"domain.devices.disks[].cdrom.bus", NULL, DISK("'cdrom':{'bus':'sata'}"), "bus=\"sata\""},
    {"domain.devices.disks[].cdrom.readonly", NULL, DISK("'cdrom':{'readonly':true}"),
     "<readonly/>"},
    {"domain.devices.disks[].cdrom.tray", NULL, DISK("'cdrom':{'tray':'closed'}"), "!tray="},
    {"domain.devices.disks[].disk", NULL, DISK("'disk':{}"), "device=\"disk\""},
    {"domain.devices.disks[].disk.bus", DISK("'disk':{'bus':'virtio'}"),
     DISK("'disk':{'bus':'sata'}"), NULL},
    {"domain.devices.disks[].disk.readonly", PLAIN, DISK("'disk':{'readonly':true}"), NULL},
    {"domain.devices.disks[].errorPolicy", NULL, DISK("'errorPolicy':'stop'"),
     "error_policy=\"stop\""},
    {"domain.devices.disks[].io", PLAIN, DISK("'io':'native'"), NULL},
    {"domain.devices.disks[].name", NULL, PLAIN, "/disks/a/disk.img"},
    {"domain.devices.hostDevices[].deviceName", DEVICE("x", "b/c"), DEVICE("x", "b/d"), NULL},
    {"domain.devices.hostDevices[].name", DEVICE("x", "b/c"), DEVICE("y", "b/c"), NULL},
    {"domain.devices.interfaces[].bootOrder", NIC(""), NIC(",'bootOrder':1"), NULL},
    {"domain.devices.interfaces[].bridge", "{}", NIC(",'bridge':{}"), NULL},
    {"domain.devices.interfaces[].macAddress", NIC(""), NIC(",'macAddress':'02:00:00:00:00:09'"),
     NULL},
    {"domain.devices.interfaces[].model", NIC(""), NIC(",'model':'e1000'"), NULL},
    {"domain.devices.interfaces[].name", NULL, NIC(""), "name=\"ua-n\""},
    {"domain.devices.interfaces[].pciAddress", NIC(""), NIC(",'pciAddress':'0000:00:09.0'"), NULL},
    {"domain.devices.interfaces[].sriov", NIC(""), NIC(",'sriov':{}"), NULL},
    {"domain.devices.interfaces[].state", NIC(",'state':'up'"), NIC(",'state':'down'"), NULL},
    {"networks[].multus.networkName", NULL, NIC(""), "ns/x"},
    {"networks[].name", NULL, NIC(""), "name=\"ua-n\""},
    {"volumes[].cloudInitNoCloud", PLAIN, SEED(""), NULL},
    {"volumes[].cloudInitNoCloud.networkData", SEED(""), SEED(",'networkData':'n'"), NULL},
    {"volumes[].cloudInitNoCloud.networkDataBase64", SEED(""), SEED(",'networkDataBase64':'eHl6'"),
     NULL},
    {"volumes[].cloudInitNoCloud.networkDataSecretRef.name",
     SEED(",'networkDataSecretRef':{'name':'s'}"), SEED(",'networkDataSecretRef':{'name':'t'}"),
     NULL},
    {"volumes[].cloudInitNoCloud.secretRef.name",
     OF("'cloudInitNoCloud':{'secretRef':{'name':'s'}}"),
     OF("'cloudInitNoCloud':{'secretRef':{'name':'t'}}"), NULL},
    {"volumes[].cloudInitNoCloud.userData", SEED(""), OF("'cloudInitNoCloud':{'userData':'v'}"),
     NULL},
    {"volumes[].cloudInitNoCloud.userDataBase64", NULL,
     OF("'cloudInitNoCloud':{'userDataBase64':'eHl6'}"), "SEED xyz"},
    {"volumes[].dataVolume", PLAIN, OF("'dataVolume':{'name':'d'}"), NULL},
    {"volumes[].dataVolume.name", OF("'dataVolume':{'name':'d'}"), OF("'dataVolume':{'name':'e'}"),
     NULL},
    {"volumes[].emptyDisk", PLAIN, OF("'emptyDisk':{'capacity':'1Mi'}"), NULL},
    {"volumes[].emptyDisk.capacity", OF("'emptyDisk':{'capacity':'1Mi'}"),
     OF("'emptyDisk':{'capacity':'2Mi'}"), NULL},
    {"volumes[].hostDisk", PLAIN, HOST(""), NULL},
    {"volumes[].hostDisk.capacity", HOST(",'capacity':'1Mi'"), HOST(",'capacity':'2Mi'"), NULL},
    {"volumes[].hostDisk.path", HOST(""),
     OF("'hostDisk':{'path':'/e/disk.img','type':'DiskOrCreate'}"), NULL},
    {"volumes[].hostDisk.shared", HOST(""), HOST(",'shared':true"), NULL},
    {"volumes[].hostDisk.type", HOST(",'capacity':'1Mi'"),
     OF("'hostDisk':{'path':'/d/disk.img','type':'Disk','capacity':'1Mi'}"), NULL},
    {"volumes[].name", NULL, PLAIN, "/disks/a/disk.img"},
    {"volumes[].persistentVolumeClaim", HOST(""), PLAIN, NULL},
    {"volumes[].persistentVolumeClaim.claimName", PLAIN,
     OF("'persistentVolumeClaim':{'claimName':'e'}"), NULL},
    {"affinity", "{}", S("'affinity':{'nodeAffinity':{}}"), NULL},
    {"architecture", NULL, S("'architecture':'amd64'"), "arch=\"x86_64\""},
    {"evictionStrategy", "{}", S("'evictionStrategy':'None'"), NULL},
    {"hostname", SEED(""),
     S("'hostname':'other','domain':{'devices':{'disks':[{'name':'a'}]}}," VOLUME(
         "'cloudInitNoCloud':{'userData':'u'}")),
     NULL},
    {"nodeSelector", "{}", S("'nodeSelector':{'a':'b'}"), NULL},
    {"priorityClassName", "{}", S("'priorityClassName':'a'"), NULL},
    {"schedulerName", "{}", S("'schedulerName':'a'"), NULL},
    {"terminationGracePeriodSeconds", "{}", S("'terminationGracePeriodSeconds':5"), NULL},
    {"tolerations", "{}", S("'tolerations':[{'key':'a'}]"), NULL},
    {"topologySpreadConstraints", "{}", S("'topologySpreadConstraints':[{'maxSkew':1}]"), NULL},
};

#define TEMPLATE(rest) S("'template':{'metadata':{" rest "}}")
static const struct row vm_rows[] = {
    {"template.metadata.annotations", "{}", TEMPLATE("'annotations':{'a':'b'}"), NULL},
    {"template.metadata.labels", "{}", TEMPLATE("'labels':{'a':'b'}"), NULL},
};
/* What an instance does not show, and where it is seen. */
static const struct {
    const char *path, *where;
} elsewhere[] = {
    {"runStrategy", "test_control_vm"},
    {"running", "test_control_vm"},
    {"updateVolumesStrategy", "test_control_volume"},
    {"instancetype.kind", "the controller's tests of instance types"},
    {"instancetype.name", "the controller's tests of instance types"},
    {"instancetype.revisionName", "the controller's tests of instance types"},
    {"preference.kind", "the controller's tests of instance types"},
    {"preference.name", "the controller's tests of instance types"},
    {"preference.revisionName", "the controller's tests of instance types"},
};

static void check_row(const struct row *r, char *(*make)(const char *merge))
{
    ferry_cleanup_free char *with = make(r->with);

    if (r->has) {
        bool not = *r->has == '!';
        bool found = strstr(with, r->has + not ) != NULL;

        if (found == not ) {
            fail_msg("%s: %s\n%s", r->path, r->has, with);
        }
        return;
    }
    ferry_cleanup_free char *without = make(r->without);
    if (strcmp(with, without) == 0) {
        fail_msg("%s: makes no difference:\n%s", r->path, with);
    }
}

static void each_makes_a_difference(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_row(&rows[i], outcome);
    }
    for (size_t i = 0; i < COUNT_OF(vm_rows); i++) {
        check_row(&vm_rows[i], vm_outcome);
    }
}

static bool has_case(const char *path, const struct row *list, size_t n)
{
    bool found = false;

    for (size_t i = 0; i < n && !found; i++) {
        found = strcmp(list[i].path, path) == 0;
    }
    for (size_t i = 0; i < COUNT_OF(elsewhere) && !found; i++) {
        found = strcmp(elsewhere[i].path, path) == 0;
    }
    return found;
}

static void check_table(const struct vmi_fields *t, const struct row *list, size_t n)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].verdict == VMI_FIELD_HONOURED && !has_case(t->rows[i].path, list, n)) {
            fail_msg("%s: is said to be honoured, and no case shows it", t->rows[i].path);
        }
    }
}

static void each_has_a_case(void **state)
{
    (void)state;
    for (const struct vmi_fields *const *t = vmi_fields_of_vmi(); *t; t++) {
        check_table(*t, rows, COUNT_OF(rows));
    }
    check_table(&vmi_fields_vm, vm_rows, COUNT_OF(vm_rows));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct vmi_field *f = vmi_fields_find(VMI_FIELDS_OF_VMI, rows[i].path);

        if (!f || f->verdict != VMI_FIELD_HONOURED) {
            fail_msg("%s: is honoured no more, or never was", rows[i].path);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_makes_a_difference),
        cmocka_unit_test(each_has_a_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
