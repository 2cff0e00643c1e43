/* Domain XML: golden files and refusals. FERRY_GOLDEN_WRITE=1 writes the golden files anew. */
#include "lib/unit.h"

#include <unistd.h>

#include "api/object.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/disks.h"
#include "launcher/domain_xml.h"

static const char *const environment[] = {
    "PATH=/bin",
    "PCI_RESOURCE_VENDOR_EXAMPLE_ACCEL=0000:81:00.0,0000:81:00.1",
    "PCI_RESOURCE_BROKEN=81:00.0",
    "KUBEVIRT_RESOURCE_NAME_fast=openshift.io/sriov-net",
    "KUBEVIRT_RESOURCE_NAME_faster=openshift.io/sriov-net",
    "PCIDEVICE_OPENSHIFT_IO_SRIOV_NET=0000:3b:02.1,0000:3b:02.7",
    NULL,
};

static const struct domain_xml_options options = {
    .environment = environment,
    .emulator = "/usr/bin/qemu-system-x86_64",
    .guest_dir = "/var/run/ferry-guest",
    .console_dir = "/var/run/ferry-console",
    .disk_dir = "/var/run/kubevirt-private/vmi-disks",
    .qmp_path = "/var/run/ferry-state/qmp.sock",
    .qmp_kept_path = "/var/run/ferry-state/qmp-kept.sock",
};

static void same_as_golden(const char *input, const char *output, bool kvm)
{
    ferry_cleanup_free char *from = ferry_asprintf("%s/domain/%s.json", GOLDEN_DIR, input);
    ferry_cleanup_free char *to = ferry_asprintf("%s/domain/%s.xml", GOLDEN_DIR, output);
    ferry_cleanup_buf struct ferry_buf json = {0};
    ferry_cleanup_buf struct ferry_buf want = {0};
    ferry_cleanup_free char *xml = NULL;
    api_cleanup_object struct api_object *vmi = NULL;
    struct domain_xml_options o = options;
    struct ferry_error err = {0};

    o.kvm = kvm;
    assert_int_equal(ferry_read_file(from, 65536, &json, &err), 0);
    if (api_object_parse(API_KIND_VMI, json.data, json.len, &vmi, &err) < 0 ||
        domain_xml(&vmi->u.vmi, &o, &xml, &err) < 0) {
        fail_msg("%s: %s", input, err.msg);
    }
    if (getenv("FERRY_GOLDEN_WRITE")) {
        assert_int_equal(ferry_write_file(to, xml, strlen(xml), 0644, &err), 0);
    }
    assert_int_equal(ferry_read_file(to, 65536, &want, &err), 0);
    assert_string_equal(xml, want.data);
}

/* 181, 182: the device or the file of each volume */
static void golden_files(void **state)
{
    (void)state;
    same_as_golden("minimal", "minimal", false);
    same_as_golden("minimal", "minimal-kvm", true);
    same_as_golden("full", "full", false);
    same_as_golden("full", "full-kvm", true);
    same_as_golden("quiet", "quiet", false);
    same_as_golden("disks", "disks", false);
    same_as_golden("devices", "devices", false);
}

#define KERNEL                                                                                     \
    "'firmware':{'kernelBoot':{'container':{'image':'ferry.io/builtin','kernelPath':'/h.elf'}}}"
#define MEMORY "'memory':{'guest':'64Mi'}"

static void refusals(void **state)
{
    static const struct {
        const char *domain; /* members of spec.domain, single quotes for double ones */
        const char *message;
    } cases[] = {
        {MEMORY "," KERNEL ",'devices':{'disks':[{'name':'a'}]}", /* 186, 187 */
         "spec.domain.devices.disks[a]: there is no volume of that name"},
        {MEMORY "," KERNEL ",'devices':{'disks':[{'name':'../a'}]}",
         "spec.domain.devices.disks: each needs a name of lower-case letters, digits and dashes"},
        {MEMORY "," KERNEL ",'devices':{'disks':[{'name':'a','lun':{}}]}",
         "spec.domain.devices.disks[a]: only disks and CD-ROMs are supported yet"},
        {MEMORY "," KERNEL ",'devices':{'disks':[{'name':'a','cdrom':{'bus':'virtio'}}]}",
         "spec.domain.devices.disks[a]: bus: a CD-ROM must be on sata"},
        {MEMORY "," KERNEL ",'devices':{'disks':[{'name':'a','io':'fast'}]}",
         "spec.domain.devices.disks[a]: io: must be native or threads"},
        {MEMORY "," KERNEL ",'devices':{'disks':[{'name':'a','io':'native','cache':'writeback'}]}",
         "spec.domain.devices.disks[a]: io: native needs cache none"},
        {MEMORY "," KERNEL ",'devices':{'disks':[{'name':'a','disk':{'bus':'ide'}}]}",
         "spec.domain.devices.disks[a]: bus: must be virtio or sata"},
        {MEMORY "," KERNEL ",'devices':{'disks':[{'name':'a','cache':'unsafe'}]}",
         "spec.domain.devices.disks[a]: cache: must be none, writethrough or writeback"},
        {MEMORY "," KERNEL ",'devices':{'interfaces':[{'name':'a'}]}",
         "spec.domain.devices.interfaces[a]: there is no network of that name"},
        {MEMORY "," KERNEL ",'devices':{'interfaces':[{'name':'a b'}]}",
         "spec.domain.devices.interfaces: each needs a name of letters, digits, - and _"},
        {MEMORY "," KERNEL ",'devices':{'interfaces':[{'name':'net','slirp':{}}]}",
         "spec.domain.devices.interfaces[net]: only bridge, masquerade and sriov are supported"},
        {MEMORY "," KERNEL ",'devices':{'interfaces':[{'name':'net','model':'ne3k'}]}",
         "spec.domain.devices.interfaces[net]: model: must be virtio, e1000, e1000e, rtl8139, "
         "pcnet "
         "or ne2k_pci"},
        {MEMORY "," KERNEL
                ",'devices':{'interfaces':[{'name':'net','macAddress':'01:00:00:00:00:01'}]}",
         "spec.domain.devices.interfaces[net]: macAddress: must be a unicast address like "
         "02:00:00:00:00:01"},
        {MEMORY "," KERNEL
                ",'devices':{'interfaces':[{'name':'net','macAddress':'02:00:00:00:00'}]}",
         "spec.domain.devices.interfaces[net]: macAddress: must be a unicast address like "
         "02:00:00:00:00:01"},
        {MEMORY "," KERNEL ",'devices':{'interfaces':[{'name':'net','pciAddress':'1:2'}]}",
         "spec.domain.devices.interfaces[net]: pciAddress: must be like 0000:81:01.0"},
        {MEMORY "," KERNEL ",'devices':{'interfaces':[{'name':'net','sriov':{}}]}",
         "spec.domain.devices.interfaces[net]: no SR-IOV function was given to this pod "
         "(KUBEVIRT_RESOURCE_NAME_net is not set)"},
        {MEMORY "," KERNEL ",'devices':{'hostDevices':[{'name':'a'}]}",
         "spec.domain.devices.hostDevices[a]: deviceName is missing or too long"},
        {MEMORY "," KERNEL ",'devices':{'hostDevices':[{'name':'a','deviceName':'x.y/z'}]}",
         "spec.domain.devices.hostDevices[a]: no device of x.y/z was given to this pod "
         "(PCI_RESOURCE_X_Y_Z)"},
        {MEMORY "," KERNEL ",'devices':{'hostDevices':[{'name':'a','deviceName':'broken'}]}",
         "spec.domain.devices.hostDevices[a]: PCI_RESOURCE_BROKEN does not hold PCI addresses like "
         "0000:81:01.0"},
        {"'memory':{'guest':'64Mi','hugepages':{'pageSize':'4Mi'}}," KERNEL,
         "spec.domain.memory.hugepages.pageSize: must be 2Mi or 1Gi"},
        {MEMORY "," KERNEL ",'devices':{'tpm':{}}",
         "spec.domain.devices.tpm: not supported: a TPM's state lives outside the guest and would "
         "not move with it"},
        {MEMORY ",'firmware':{'bootloader':{'efi':{}}}",
         "spec.domain.firmware.bootloader.efi: not supported: only BIOS guests can be moved"},
        {MEMORY "," KERNEL ",'cpu':{'dedicatedCpuPlacement':true}",
         "spec.domain.cpu.dedicatedCpuPlacement: not supported yet"},
        {MEMORY "," KERNEL ",'cpu':{'model':'host-passthrough'}",
         "spec.domain.cpu.model: the host's CPU can be had with KVM only; host-model is the "
         "nearest that emulation has"},
        {MEMORY "," KERNEL ",'cpu':{'model':'a b'}",
         "spec.domain.cpu.model: is not the name of a CPU model"},
        {MEMORY "," KERNEL ",'cpu':{'model':7}", "spec.domain.cpu.model: must be a string"},
        {MEMORY "," KERNEL ",'cpu':{'features':[{'name':'x','policy':'maybe'}]}",
         "spec.domain.cpu.features: each needs a name, and force, require, optional, disable or "
         "forbid as policy"},
        {MEMORY "," KERNEL ",'machine':{'type':'virt'}",
         "spec.domain.machine.type: must be pc, q35, or a versioned one of these (pc-q35-10.0)"},
        {MEMORY "," KERNEL ",'cpu':{'sockets':300}", "spec.domain.cpu: 300 CPUs, must be 1 to 255"},
        {KERNEL, "spec.domain.memory.guest: the guest needs at least 1Mi of memory"},
        {MEMORY, "spec.domain.firmware.kernelBoot: container.image and container.kernelPath are "
                 "needed: without disks there is nothing else to boot from"},
        {MEMORY ",'firmware':{'kernelBoot':{'container':{'image':'quay.io/x','kernelPath':'/a'}}}",
         "spec.domain.firmware.kernelBoot.container.image: must be ferry.io/builtin: other images "
         "are not supported yet"},
        {MEMORY ",'firmware':{'kernelBoot':{'container':{'image':'ferry.io/builtin',"
                "'kernelPath':'a.elf'}}}",
         "spec.domain.firmware.kernelBoot.container.kernelPath: must start with a slash"},
        {MEMORY ",'firmware':{'kernelBoot':{'kernelArgs':'a\\nb','container':{"
                "'image':'ferry.io/builtin','kernelPath':'/a'}}}",
         "spec.domain.firmware.kernelBoot.kernelArgs: must not hold control characters"},
        {MEMORY ","
                "'firmware':{'uuid':'x'}",
         "spec.domain.firmware.uuid: must be a UUID"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *json = ferry_asprintf(
            "{'metadata':{'namespace':'d','name':'v','uid':'6a4fd0bb-5a4b-4a39-8a70-4f9d2f4a7f01'},"
            "'spec':{'networks':[{'name':'net','pod':{}}],'domain':{%s}}}",
            cases[i].domain);
        ferry_cleanup_free char *xml = NULL;
        api_cleanup_object struct api_object *vmi = NULL;
        struct ferry_error err = {0};

        for (char *p = json; *p; p++) {
            *p = *p == '\'' ? '"' : *p;
        }
        /* a wrong type is refused by the decoder already */
        int rc = api_object_parse(API_KIND_VMI, json, strlen(json), &vmi, &err);
        rc = rc == 0 ? domain_xml(&vmi->u.vmi, &options, &xml, &err) : rc;
        assert_int_equal(rc, -FERRY_INVALID);
        assert_null(xml);
        assert_string_equal(err.msg, cases[i].message);
    }
}

/* Which disks are copied; the numbers are those of KubeVirt's tests. */
static void copied_disks(void **state)
{
    static const struct {
        const char *name, *volume, *disk, *status;
        bool copied;
    } cases[] = {
        {"200 a claim", "'persistentVolumeClaim':{'claimName':'c'}", "", "", false},
        {"200 an ephemeral disk", "'emptyDisk':{'capacity':'1Gi'}", "", "", true},
        {"200 a shared host disk", "'hostDisk':{'path':'/x','shared':true}", "", "", false},
        {"180 a shared host disk that is migrated", "'hostDisk':{'path':'/x','shared':true}", "",
         "'migratedVolumes':[{'volumeName':'a'}]", true},
        {"a host disk", "'hostDisk':{'path':'/x'}", "", "", true},
        {"a read-only host disk", "'hostDisk':{'path':'/x'}", ",'disk':{'readonly':true}", "",
         false},
        {"a claim that is migrated", "'dataVolume':{'name':'c'}", "",
         "'migratedVolumes':[{'volumeName':'b'},{'volumeName':'a'}]", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *json = ferry_asprintf(
            "{'metadata':{'namespace':'d','name':'v','uid':'6a4fd0bb-5a4b-4a39-8a70-4f9d2f4a7f01',"
            "'annotations':{'ferry.io/qcow2':'b,a'}},'spec':{'volumes':[{'name':'a',%s}],"
            "'domain':{'devices':{'disks':[{'name':'a'%s}]}}},'status':{%s}}",
            cases[i].volume, cases[i].disk, cases[i].status);
        api_cleanup_object struct api_object *vmi = NULL;
        struct disks disks;
        struct ferry_error err = {0};

        for (char *p = json; *p; p++) {
            *p = *p == '\'' ? '"' : *p;
        }
        assert_int_equal(api_object_parse(API_KIND_VMI, json, strlen(json), &vmi, &err), 0);
        if (disks_decode(&vmi->u.vmi, &disks, &err) < 0 || disks.n != 1 ||
            disks.list[0].copied != cases[i].copied) {
            fail_msg("%s: %s", cases[i].name, err.msg);
        }
        assert_string_equal(disks.list[0].format, "qcow2");
        assert_string_equal(disks.list[0].dev, "vda");
    }
}

/* 283, 284 */
/* 188, 283, 284 */
static void slices(void **state)
{
    static const char xml[] =
        "<domain><devices><disk><source file='/a'/><target dev='vda'/></disk><disk><source "
        "file='/b'>"
        "<slices><slice type='storage' offset='0' size='3'/></slices></source><target dev='vdb'/>"
        "</disk><disk><source file='/c'/><target dev='vdc'/></disk></devices></domain>";
    static const char *const devs[] = {"vda", "vdb"};
    static const int64_t bytes[] = {7, 9};
    ferry_cleanup_free char *out = NULL;

    (void)state;
    assert_int_equal(disks_add_slices(xml, devs, bytes, 2, &out, NULL), 0);
    assert_non_null(strstr(out, "<source file=\"/a\"><slices><slice type=\"storage\" offset=\"0\" "
                                "size=\"7\"/></slices></source>"));
    assert_non_null(strstr(out, "size=\"3\""));
    assert_null(strstr(out, "size=\"9\""));
    assert_non_null(strstr(out, "<source file=\"/c\"/>"));
    assert_int_equal(disks_add_slices("<x", devs, bytes, 2, &out, NULL), -FERRY_FATAL);
}

static void paths_stay_in_the_guest_directory(void **state)
{
    static const struct {
        const char *path;
        bool good;
    } cases[] = {
        {"/a.elf", true}, {"/a/b", true},     {"/..a", true},   {"/a..", true}, {"/...", true},
        {"/../a", false}, {"/a/../b", false}, {"/a/..", false}, {"/", false},   {"//a", false},
        {"/a/", false},   {"/./a", false},    {"/a/.", false},  {"..", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *json = ferry_asprintf(
            "{\"metadata\":{\"namespace\":\"d\",\"name\":\"v\","
            "\"uid\":\"6a4fd0bb-5a4b-4a39-8a70-4f9d2f4a7f01\"},\"spec\":{\"domain\":{\"memory\":{"
            "\"guest\":\"64Mi\"},\"firmware\":{\"kernelBoot\":{\"container\":{\"image\":"
            "\"ferry.io/builtin\",\"kernelPath\":\"%s\"}}}}}}",
            cases[i].path);
        ferry_cleanup_free char *xml = NULL;
        api_cleanup_object struct api_object *vmi = NULL;

        assert_int_equal(api_object_parse(API_KIND_VMI, json, strlen(json), &vmi, NULL), 0);
        if ((domain_xml(&vmi->u.vmi, &options, &xml, NULL) == 0) != cases[i].good) {
            fail_msg("kernelPath '%s'", cases[i].path);
        }
    }
}

static void identity_is_checked(void **state)
{
    static const char *const bad[] = {
        "{\"namespace\":\"d\",\"name\":\"v\",\"uid\":\"not-a-uuid\"}",
        "{\"namespace\":\"d\",\"name\":\"v\"}",
        "{\"namespace\":\"d\",\"uid\":\"6a4fd0bb-5a4b-4a39-8a70-4f9d2f4a7f01\"}",
        "{\"namespace\":\"d\",\"name\":\"v/1\",\"uid\":\"6a4fd0bb-5a4b-4a39-8a70-4f9d2f4a7f01\"}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ferry_cleanup_free char *json = ferry_asprintf(
            "{\"metadata\":%s,\"spec\":{\"domain\":{\"memory\":{\"guest\":\"64Mi\"},"
            "\"firmware\":{\"kernelBoot\":{\"container\":{\"image\":\"ferry.io/builtin\","
            "\"kernelPath\":\"/h\"}}}}}}",
            bad[i]);
        ferry_cleanup_free char *xml = NULL;
        api_cleanup_object struct api_object *vmi = NULL;
        struct ferry_error err = {0};

        assert_int_equal(api_object_parse(API_KIND_VMI, json, strlen(json), &vmi, NULL), 0);
        assert_int_equal(domain_xml(&vmi->u.vmi, &options, &xml, &err), -FERRY_INVALID);
        assert_true(ferry_str_starts(err.msg, "metadata"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_files),
        cmocka_unit_test(refusals),
        cmocka_unit_test(copied_disks),
        cmocka_unit_test(slices),
        cmocka_unit_test(paths_stay_in_the_guest_directory),
        cmocka_unit_test(identity_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
