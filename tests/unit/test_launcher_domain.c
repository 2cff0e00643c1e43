/* Domain XML: golden files and refusals. FERRY_GOLDEN_WRITE=1 writes the golden files anew. Numbers
 * of cases are items of docs/conformance.md. */
#include "lib/unit.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/object.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/domain/disk_image.h"
#include "launcher/domain/disks.h"
#include "launcher/domain/domain_xml.h"

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
    .qmp_session_path = "/var/run/ferry-state/qmp-kept.sock",
};

static int make(const struct api_object *vmi, const struct domain_xml_options *o, char **ret,
                struct ferry_error *err)
{
    struct disks disks;
    int rc = disks_decode(&vmi->u.vmi, &disks, err);

    return rc < 0 ? rc : domain_xml(&vmi->u.vmi, &disks, o, ret, err);
}

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
        make(vmi, &o, &xml, &err) < 0) {
        fail_msg("%s: %s", input, err.msg);
        return;
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
        rc = rc == 0 ? make(vmi, &options, &xml, &err) : rc;
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

/* What was written down when the VMI was to start counts; an alias is QEMU's to resolve. */
static void machines(void **state)
{
    static const struct {
        const char *name, *spec, *status;
        const char *machine; /* in the XML; NULL = refused */
    } cases[] = {
        {"nothing", "", "", "pc"},
        {"an empty one is none", "'type':''", "'type':''", "pc"},
        {"an alias", "'type':'q35'", "", "q35"},
        {"a versioned one", "'type':'pc-q35-8.2'", "", "pc-q35-8.2"},
        {"chosen", "", "'type':'pc-i440fx-9.2'", "pc-i440fx-9.2"},
        {"chosen for an alias", "'type':'q35'", "'type':'pc-q35-9.2'", "pc-q35-9.2"},
        {"not one of QEMU's", "'type':'virt'", "", NULL},
        {"chosen by somebody else", "", "'type':'pc-q35-9.2,x=y'", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *json = ferry_asprintf(
            "{'metadata':{'namespace':'d','name':'v','uid':'6a4fd0bb-5a4b-4a39-8a70-4f9d2f4a7f01'},"
            "'spec':{'domain':{" MEMORY "," KERNEL ",'machine':{%s}}},'status':{'machine':{%s}}}",
            cases[i].spec, cases[i].status);
        ferry_cleanup_free char *wanted = ferry_asprintf(" machine=\"%s\"", cases[i].machine);
        api_cleanup_object struct api_object *vmi = NULL;
        ferry_cleanup_free char *xml = NULL;
        struct ferry_error err = {0};

        for (char *p = json; *p; p++) {
            *p = *p == '\'' ? '"' : *p;
        }
        print_message("  %s\n", cases[i].name);
        assert_int_equal(api_object_parse(API_KIND_VMI, json, strlen(json), &vmi, &err), 0);
        int rc = make(vmi, &options, &xml, &err);
        assert_int_equal(rc == 0, cases[i].machine != NULL);
        assert_true(rc < 0 || strstr(xml, wanted));
        if (rc < 0) {
            assert_non_null(strstr(err.msg, "machine.type: must be pc, q35"));
        }
    }
}

/* One disk of a VMI whose status says how its volume is exchanged; in the pod whose volumes are
 * below `dir`, or in none. */
static int exchanged_in(const char *dir, const char *volume, const char *from, const char *to,
                        const char *qcow2, struct disks *ret, struct ferry_error *err)
{
    ferry_cleanup_free char *json = ferry_asprintf(
        "{'metadata':{'namespace':'d','name':'v','uid':'6a4fd0bb-5a4b-4a39-8a70-4f9d2f4a7f01',"
        "'annotations':{'ferry.io/qcow2':'%s'}},'spec':{'volumes':[{'name':'a',%s}],'domain':{"
        "'devices':{'disks':[{'name':'a'}]}}},'status':{'migratedVolumes':[{'volumeName':'a',"
        "'sourcePVCInfo':{'claimName':'x'%s},'destinationPVCInfo':{'claimName':'y'%s}}],"
        "'volumeStatus':[{'name':'a','persistentVolumeClaimInfo':{'claimName':'y'%s}}]}}",
        qcow2, volume, from, to, to);
    api_cleanup_object struct api_object *vmi = NULL;

    for (char *p = json; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    assert_int_equal(api_object_parse(API_KIND_VMI, json, strlen(json), &vmi, err), 0);
    return dir ? disk_image_find(&vmi->u.vmi, dir, ret, err) : disks_decode(&vmi->u.vmi, ret, err);
}

static int exchanged(const char *volume, const char *from, const char *to, const char *qcow2,
                     struct disks *ret, struct ferry_error *err)
{
    return exchanged_in(NULL, volume, from, to, qcow2, ret, err);
}

#define CLAIM "'persistentVolumeClaim':{'claimName':'y'}"
#define DATA_VOLUME "'dataVolume':{'name':'y'}"
#define HOST_DISK "'hostDisk':{'path':'/x/disk.img'}"
#define FILES ",'volumeMode':'Filesystem'"
#define BLOCK ",'volumeMode':'Block'"
#define FILE_XML "type=\"file\"><source file=\"/d/a/disk.img\">"
#define BLOCK_XML "type=\"block\"><source dev=\"/d/a\">"
#define SLICE                                                                                      \
    "<slices><slice type=\"storage\" offset=\"0\" size=\"7\"/></slices></source><target "          \
    "dev=\"vda\"/>"

/* What libvirt is told of a volume that is exchanged for one of another mode. */
static void modes(void **state)
{
    static const struct {
        const char *name, *volume, *from, *to, *want;
    } cases[] = {
        {"188 fs to fs", CLAIM, FILES, FILES, FILE_XML SLICE},
        {"189 fs to block", CLAIM, FILES, BLOCK, BLOCK_XML SLICE},
        {"190 block to fs", CLAIM, BLOCK, FILES, FILE_XML SLICE},
        {"block to block", CLAIM, BLOCK, BLOCK, BLOCK_XML SLICE},
        {"192 fs to block, data volume", DATA_VOLUME, FILES, BLOCK, BLOCK_XML SLICE},
        {"193 block to fs, data volume", DATA_VOLUME, BLOCK, FILES, FILE_XML SLICE},
        {"194 fs to block, host disk", HOST_DISK, FILES, BLOCK, BLOCK_XML SLICE},
        {"195 block to fs, host disk", HOST_DISK, BLOCK, FILES, FILE_XML SLICE},
        {"where it comes from is not known", CLAIM, "", BLOCK, FILE_XML SLICE},
        {"where it goes is not known, fs", CLAIM, FILES, "", FILE_XML SLICE},
        {"where it goes is not known, block", CLAIM, BLOCK, "", BLOCK_XML SLICE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct disks disks;
        struct ferry_error err = {0};
        ferry_cleanup_free char *out = NULL, *whole = NULL;

        if (exchanged(cases[i].volume, cases[i].from, cases[i].to, "b", &disks, &err) < 0) {
            fail_msg("%s: %s", cases[i].name, err.msg);
        }
        struct disk *d = &disks.list[0];
        ferry_cleanup_free char *path = disks_path("/d", d);
        ferry_cleanup_free char *xml = ferry_asprintf(
            "<domain><devices><disk type='%s'><source %s='%s'/><target dev='vda'/></disk>"
            "<disk type='file'><source file='/d/b'/><target dev='vdb'/></disk></devices></domain>",
            d->block ? "block" : "file", d->block ? "dev" : "file", path);

        assert_int_equal(d->block, strstr(cases[i].from, "Block") != NULL);
        assert_int_equal(disks_edit_xml(xml, "/d", &(struct disks_edit){d, 7}, 1, &out, &err), 0);
        if (!strstr(out, cases[i].want) ||
            !strstr(out, "<disk type=\"file\"><source file=\"/d/b\"/>")) {
            fail_msg("%s: %s", cases[i].name, out);
        }
        /* one that is not copied, a CD-ROM, has no slice */
        assert_int_equal(disks_edit_xml(xml, "/d", &(struct disks_edit){d, 0}, 1, &whole, &err), 0);
        assert_null(strstr(whole, "slices"));
        assert_int_equal(strstr(whole, "dev=\"/d/a\"") != NULL, d->block_there);
        /* the pod at the destination must have the other one */
        assert_int_equal(disks_check_arrival(&disks, &err),
                         d->block == d->block_there ? 0 : -FERRY_INVALID);
        d->block = d->block_there;
        assert_int_equal(disks_check_arrival(&disks, &err), 0);
    }
}

static void mode_of_a_qcow2_image_stays(void **state)
{
    struct disks disks;
    struct ferry_error err = {0};

    (void)state;
    assert_int_equal(exchanged(CLAIM, FILES, FILES, "a", &disks, &err), 0);
    assert_int_equal(exchanged(CLAIM, FILES, BLOCK, "a", &disks, &err), -FERRY_INVALID);
    assert_string_equal(err.msg, "spec.domain.devices.disks[a]: a qcow2 image cannot go from a "
                                 "file system to a block device or back; a raw one can");
    assert_int_equal(exchanged(CLAIM, BLOCK, FILES, "a", &disks, &err), -FERRY_INVALID);
}

/* A link to some block device of this machine; nothing opens it. */
static bool link_device(const char *path)
{
    DIR *dev = opendir("/dev");
    bool done = false;

    for (struct dirent *e = dev ? readdir(dev) : NULL; e && !done; e = readdir(dev)) {
        ferry_cleanup_free char *from = ferry_asprintf("/dev/%s", e->d_name);
        struct stat st;

        done = stat(from, &st) == 0 && S_ISBLK(st.st_mode) && symlink(from, path) == 0;
    }
    if (dev) {
        closedir(dev);
    }
    return done;
}

/* The pod's volume says which side this is, also when the status is behind or ahead. */
static void modes_in_a_pod(void **state)
{
    enum { NOTHING, DIRECTORY, DEVICE };
    static const struct {
        const char *name;
        int pod;
        const char *from, *to;
        bool block, block_there;
    } cases[] = {
        {"fs to block, where it comes from", DIRECTORY, FILES, BLOCK, false, true},
        {"fs to block, where it goes", DEVICE, FILES, BLOCK, true, true},
        {"block to fs, where it comes from", DEVICE, BLOCK, FILES, true, false},
        {"block to fs, where it goes", DIRECTORY, BLOCK, FILES, false, false},
        {"block to fs, where nothing is yet", NOTHING, BLOCK, FILES, false, false},
        {"fs to block, where no device is", NOTHING, FILES, BLOCK, false, true},
        {"a device that the status does not know", DEVICE, "", "", true, true},
        {"a file system that the status takes for a device", DIRECTORY, BLOCK, BLOCK, false, false},
        {"nothing there", NOTHING, BLOCK, BLOCK, true, true},
    };
    char dir[] = "/tmp/ferry-modes-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(dir));
    ferry_cleanup_free char *path = ferry_asprintf("%s/a", dir);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct disks disks;
        struct ferry_error err = {0};

        if (cases[i].pod == DIRECTORY) {
            assert_int_equal(mkdir(path, 0700), 0);
        } else if (cases[i].pod == DEVICE && !link_device(path)) {
            continue; /* this machine shows none */
        }
        int rc = exchanged_in(dir, CLAIM, cases[i].from, cases[i].to, "b", &disks, &err);
        remove(path);
        if (rc < 0 || disks.list[0].block != cases[i].block ||
            disks.list[0].block_there != cases[i].block_there) {
            rmdir(dir);
            fail_msg("%s: %d %d %s", cases[i].name, disks.list[0].block, disks.list[0].block_there,
                     err.msg);
        }
    }
    rmdir(dir);
}

/* A seed is made by each side itself: never copied, never written to. */
static void seeds(void **state)
{
    static const struct {
        const char *disk, *status;
        bool cdrom;
    } cases[] = {
        {"", "{}", false},
        {",\"disk\":{\"readonly\":false}", "{}", false},
        {",\"cdrom\":{}", "{}", true},
        {"", "{\"migratedVolumes\":[{\"volumeName\":\"a\"}]}", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *json = ferry_asprintf(
            "{\"metadata\":{\"name\":\"v\",\"annotations\":{\"ferry.io/qcow2\":\"a\"}},\"spec\":{"
            "\"domain\":{\"devices\":{\"disks\":[{\"name\":\"a\"%s}]}},\"volumes\":[{\"name\":"
            "\"a\","
            "\"cloudInitNoCloud\":{\"userData\":\"x\"}}]},\"status\":%s}",
            cases[i].disk, cases[i].status);
        api_cleanup_object struct api_object *vmi = NULL;
        struct disks disks;
        struct ferry_error err = {0};

        assert_int_equal(api_object_parse(API_KIND_VMI, json, strlen(json), &vmi, &err), 0);
        assert_int_equal(disks_decode(&vmi->u.vmi, &disks, &err), 0);
        assert_true(disks.list[0].seed && disks.list[0].readonly && !disks.list[0].copied);
        assert_int_equal(disks.list[0].cdrom, cases[i].cdrom);
        assert_string_equal(disks.list[0].format, "raw");
    }
}

/* 188, 283, 284 */
static void slices(void **state)
{
    static const char xml[] =
        "<domain><devices><disk><source file='/a'/><target dev='vda'/></disk><disk><source "
        "file='/b'>"
        "<slices><slice type='storage' offset='0' size='3'/></slices></source><target dev='vdb'/>"
        "</disk><disk><source file='/c'/><target dev='vdc'/></disk></devices></domain>";
    static const struct disk vda = {.dev = "vda"}, vdb = {.dev = "vdb"};
    static const struct disks_edit edits[] = {{&vda, 7}, {&vdb, 9}};
    ferry_cleanup_free char *out = NULL;

    (void)state;
    assert_int_equal(disks_edit_xml(xml, "/d", edits, 2, &out, NULL), 0);
    assert_non_null(strstr(out, "<source file=\"/a\"><slices><slice type=\"storage\" offset=\"0\" "
                                "size=\"7\"/></slices></source>"));
    assert_non_null(strstr(out, "size=\"3\""));
    assert_null(strstr(out, "size=\"9\""));
    assert_non_null(strstr(out, "<source file=\"/c\"/>"));
    assert_int_equal(disks_edit_xml("<x", "/d", edits, 2, &out, NULL), -FERRY_FATAL);
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
        if ((make(vmi, &options, &xml, NULL) == 0) != cases[i].good) {
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
        assert_int_equal(make(vmi, &options, &xml, &err), -FERRY_INVALID);
        assert_true(ferry_str_starts(err.msg, "metadata"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_files),
        cmocka_unit_test(refusals),
        cmocka_unit_test(machines),
        cmocka_unit_test(copied_disks),
        cmocka_unit_test(slices),
        cmocka_unit_test(seeds),
        cmocka_unit_test(modes),
        cmocka_unit_test(modes_in_a_pod),
        cmocka_unit_test(mode_of_a_qcow2_image_stays),
        cmocka_unit_test(paths_stay_in_the_guest_directory),
        cmocka_unit_test(identity_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
