/* Domains and cookies from another host against what was agreed: recorded ones, and each with one
 * thing changed. */
#include "lib/unit.h"

#include <dirent.h>

#include "base/fd.h"
#include "base/str.h"
#include "rpc/rpc_agreement.h"
#include "rpc/rpc_compare.h"
#include "rpc/rpc_value.h"

static struct ferry_buf read_file(const char *dir, const char *name)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s/%s", GOLDEN_DIR, dir, name);
    struct ferry_buf b = {0};

    assert_int_equal(ferry_read_file(path, RPC_XML_MAX, &b, NULL), 0);
    return b;
}

static struct rpc_agreement agreement(void)
{
    ferry_cleanup_buf struct ferry_buf text = read_file("control", "agreed.xml");
    struct rpc_agreement a;
    struct ferry_error err;

    if (rpc_agreement_read(text.data, text.len, &a, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    return a;
}

/* ---- values ------------------------------------------------------------------------------------
 */

static void values(void **state)
{
    static const struct {
        enum rpc_value kind;
        const char *words, *value, *unit, *agreed, *unit_agreed;
        bool ok;
    } cases[] = {
        {RPC_EMPTY, NULL, "", NULL, NULL, NULL, true},
        {RPC_EMPTY, NULL, "x", NULL, NULL, NULL, false},
        {RPC_SAME, NULL, "/a", NULL, "/a", NULL, true},
        {RPC_SAME, NULL, "/A", NULL, "/a", NULL, false},
        {RPC_SAME, NULL, "/a", NULL, NULL, NULL, false},
        {RPC_MAC, NULL, "02:AB:00:00:00:01", NULL, "02:ab:00:00:00:01", NULL, true},
        {RPC_MAC, NULL, "02:ab:00:00:00:02", NULL, "02:ab:00:00:00:01", NULL, false},
        {RPC_SIZE, NULL, "65536", "KiB", "67108864", "b", true},
        {RPC_SIZE, NULL, "65536", NULL, "64", "MiB", true},
        {RPC_SIZE, NULL, "65537", "KiB", "67108864", "b", false},
        {RPC_SIZE, NULL, "65537", "KiB", "67108865", "b", true}, /* rounded up */
        {RPC_SIZE, NULL, "1", "GiB", "1024", "MiB", true},
        {RPC_SIZE, NULL, "1", "TiB", "1024", "GiB", false},
        {RPC_SIZE, NULL, "-1", "KiB", "1", "KiB", false},
        {RPC_SIZE, NULL, "x", "KiB", "x", "KiB", false},
        {RPC_SIZE, NULL, "65536", "KiB", NULL, NULL, false},
        {RPC_TYPE, NULL, "pc-i440fx-10.0", NULL, "pc", NULL, true},
        {RPC_TYPE, NULL, "pc-q35-9.2", NULL, "q35", NULL, true},
        {RPC_TYPE, NULL, "pc-q35-9.2", NULL, "pc", NULL, false},
        {RPC_TYPE, NULL, "pc-i440fx-9.2", NULL, "pc-i440fx-10.0", NULL, false},
        {RPC_TYPE, NULL, "pc-i440fx-10.0,x=y", NULL, "pc", NULL, false},
        {RPC_TYPE, NULL, "microvm", NULL, "pc", NULL, false},
        {RPC_NUMBER, NULL, "0x1f", NULL, NULL, NULL, true},
        {RPC_NUMBER, NULL, "-3", NULL, NULL, NULL, true},
        {RPC_NUMBER, NULL, "0x", NULL, NULL, NULL, false},
        {RPC_NUMBER, NULL, "1;2", NULL, NULL, NULL, false},
        {RPC_NUMBER, NULL, "", NULL, NULL, NULL, false},
        {RPC_NUMBER, NULL, "111111111111111111111", NULL, NULL, NULL, false},
        {RPC_WORD, NULL, "ua-disk0", NULL, NULL, NULL, true},
        {RPC_WORD, NULL, "a,b=c", NULL, NULL, NULL, false},
        {RPC_WORD, NULL, "../x", NULL, NULL, NULL, false},
        {RPC_WORD, NULL, "", NULL, NULL, NULL, false},
        {RPC_UUID, NULL, "148cd98d-9788-4729-8084-e50d0626afd9", NULL, NULL, NULL, true},
        {RPC_UUID, NULL, "148cd98d-9788-4729-8084-e50d0626afd", NULL, NULL, NULL, false},
        {RPC_LABEL, NULL, "+61201:+61201", NULL, NULL, NULL, true},
        {RPC_LABEL, NULL, "a'b", NULL, NULL, NULL, false},
        {RPC_ONE_OF, "yes no", "no", NULL, NULL, NULL, true},
        {RPC_ONE_OF, "yes no", "yes no", NULL, NULL, NULL, false},
        {RPC_ONE_OF, "yes no", "", NULL, NULL, NULL, false},
        {RPC_ONE_OF, "yes no", "ye", NULL, NULL, NULL, false},
        {RPC_SAME_OR_OF, "a b", "none", NULL, "none", NULL, true},
        {RPC_SAME_OR_OF, "a b", "a", NULL, "none", NULL, false},
        {RPC_SAME_OR_OF, "a b", "a", NULL, NULL, NULL, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct rpc_rule rule = {"x", cases[i].kind, cases[i].words};

        if (rpc_value_allowed(&rule, cases[i].value, cases[i].unit, cases[i].agreed,
                              cases[i].unit_agreed) != cases[i].ok) {
            fail_msg("row %zu: '%s'", i, cases[i].value);
        }
    }
}

static void rules(void **state)
{
    static const struct {
        const char *path;
        bool there;
    } cases[] = {
        {"name", true},
        {"devices/disk/source/@file", true},
        {"devices/disk/driver/@cache", true},
        {"devices/disk/alias/@name", true},
        {"devices/controller/address/@slot", true},
        {"devices/disk/driver/@x/@y", false},
        {"devices/disk/driver/x", false},
        {"devices/filesystem", false},
        {"devices/disk/x/alias", false},
        {"os/loader", false},
        {"", false},
        {"devices/", false},
        {"@type", true},
        {"@", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(rpc_rules_domain(cases[i].path) != NULL, cases[i].there);
    }
    assert_null(rpc_rules_cookie("graphics"));
    assert_null(rpc_rules_cookie("nbd/@port"));
}

/* ---- what is the same --------------------------------------------------------------------------
 */

static void recorded(void **state)
{
    struct rpc_agreement a = agreement();
    ferry_cleanup_buf struct ferry_buf xml = read_file("control", "prepare.xml");
    ferry_cleanup_buf struct ferry_buf prepare = read_file("control", "prepare-cookie.xml");
    ferry_cleanup_buf struct ferry_buf finish = read_file("control", "finish-cookie.xml");
    struct ferry_error err = {0};

    (void)state;
    for (int i = 0; i < 2; i++) { /* nothing is left of one look at it in the next */
        if (rpc_compare_domain(a.domain, xml.data, xml.len, &err) < 0 ||
            rpc_compare_cookie(a.domain, prepare.data, prepare.len, &err) < 0 ||
            rpc_compare_cookie(a.domain, finish.data, finish.len + 1, &err) < 0) {
            fail_msg("%s", err.msg);
        }
    }
    assert_int_equal(rpc_compare_cookie(a.domain, "", 0, NULL), 0);
    rpc_agreement_done(&a);
}

/* Whatever our launchers define is the same as itself: the rules have a row for all of it. */
static void our_own(void **state)
{
    DIR *d = opendir(GOLDEN_DIR "/domain");
    int n = 0;

    (void)state;
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        struct rpc_agreed *a;
        struct ferry_error err = {0};

        if (!ferry_str_ends(e->d_name, ".xml")) {
            continue;
        }
        ferry_cleanup_buf struct ferry_buf xml = read_file("domain", e->d_name);
        if (rpc_agreed_new(xml.data, xml.len, &a, &err) < 0 ||
            rpc_compare_domain(a, xml.data, xml.len, &err) < 0) {
            fail_msg("%s: %s", e->d_name, err.msg);
        }
        rpc_agreed_free(a);
        n++;
    }
    closedir(d);
    assert_true(n > 5);
}

static bool has_rule(const char *path)
{
    static const char cookie[] = "/qemu-migration/", domain[] = "/domain/";
    bool in_cookie = ferry_str_starts(path, cookie);
    const char *rest = path + (in_cookie ? strlen(cookie) - 1 : 0);

    if (ferry_str_starts(rest, domain)) {
        return strstr(rest, "/qemu:") || rpc_rules_domain(rest + strlen(domain));
    }
    rest++;
    return ferry_str_starts(rest, "domain") || (in_cookie && ferry_str_starts(rest, "cpu"))
               ? rpc_rules_domain(rest) || ferry_streq(rest, "domain")
               : rpc_rules_cookie(rest) || ferry_streq(path, "/qemu-migration");
}

/* Whatever was seen in recorded moves has a rule. */
static void check_recorded(const char *name)
{
    ferry_cleanup_buf struct ferry_buf text = read_file("control", name);
    int n = 0;

    for (char *save = NULL, *line = strtok_r(text.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        line[strcspn(line, " ")] = '\0';
        if (line[0] == '/' && !has_rule(line)) {
            fail_msg("no rule for %s", line);
        }
        n += line[0] == '/';
    }
    assert_true(n > 200);
}

static void all_that_was_recorded(void **state)
{
    (void)state;
    check_recorded("recorded.txt");
    check_recorded("recorded-debian13.txt");
}

/* The VMI asks for some, and libvirt says which the model has besides. */
static void more_features(void **state)
{
    ferry_cleanup_buf struct ferry_buf xml = read_file("domain", "full.xml");
    const char *at = strstr(xml.data, "<feature ");
    struct rpc_agreed *a;
    struct ferry_error err = {0};

    (void)state;
    assert_non_null(at);
    ferry_cleanup_free char *more = ferry_asprintf(
        "%.*s<feature policy='require' name='hypervisor'/>%s", (int)(at - xml.data), xml.data, at);
    assert_int_equal(rpc_agreed_new(xml.data, xml.len, &a, &err), 0);
    if (rpc_compare_domain(a, more, strlen(more), &err) < 0) {
        fail_msg("%s", err.msg);
    }
    rpc_agreed_free(a);
}

/* ---- what differs ------------------------------------------------------------------------------
 */

/* `text` with the first `from` replaced. */
static char *edited(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);

    if (!at) {
        fail_msg("there is no %s", from);
        return NULL;
    }
    return ferry_asprintf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

struct edit {
    const char *from, *to;
    const char *why; /* part of the reason; NULL = passes */
};

static const struct edit edits[] = {
    /* what may differ */
    {"slot='0x02'", "slot='0x07'", NULL},
    {"<alias name='ua-root'/>", "<alias name='virtio-disk0'/>", NULL},
    {"<alias name='ua-root'/>", "", NULL},
    {"<boot dev='hd'/>", "<boot dev='network'/>", NULL},
    {"<boot dev='hd'/>", "", NULL},
    {"<domain type='qemu'", "<domain type='qemu' id='17'", NULL},
    {"size='4194304'", "size='4194303'", NULL},
    {"<os>", "<resource><partition>/machine</partition></resource><os>", NULL},
    {"</devices>", "</devices><seclabel type='dynamic' model='dac' relabel='yes'/>", NULL},
    {"<currentMemory unit='KiB'>65536</currentMemory>", "", NULL},
    {"<controller type='usb' index='0' model='none'/>",
     "<controller type='usb' index='0' model='none'/><controller type='pci' index='0' "
     "model='pci-root'/>",
     NULL},
    {"pc-i440fx-10.0", "pc-i440fx-9.2", NULL},
    {"<input type='mouse' bus='ps2'/>", "<input type='keyboard' bus='ps2'/>", NULL},
    /* another domain */
    {"<name>", "<name>x", "/domain/name"},
    {"<uuid>", "<uuid>0", "/domain/uuid"},
    {"<domain type='qemu'", "<domain type='kvm'", "/domain/@type"},
    {"<memory unit='KiB'>65536", "<memory unit='KiB'>65537", "/domain/memory"},
    {"<memory unit='KiB'>65536", "<memory unit='GiB'>65536", "/domain/memory"},
    {"<currentMemory unit='KiB'>65536", "<currentMemory unit='KiB'>1", "/domain/currentMemory"},
    {"'static'>1<", "'static'>64<", "/domain/vcpu"},
    {"cores='1'", "cores='9'", "/domain/cpu/topology/@cores"},
    {"<name>", "<title>x</title><name>", "/domain/title is not part"},
    {"<name>", "<name>default_x</name><name>", "/domain/name"},
    {"</devices>", "</devices><devices/>", "/domain/devices"},
    {"</name>", "</name><uuid>00000000-0000-0000-0000-000000000001</uuid>", "/domain/uuid"},
    /* other programs and files of the host */
    {"/usr/bin/qemu-system-x86_64", "/tmp/mine", "/domain/devices/emulator"},
    {"<emulator>/usr/bin/qemu-system-x86_64</emulator>", "", "/domain/devices/emulator is missing"},
    {"<emulator>", "<emulator>/tmp/mine</emulator><emulator>", "/domain/devices/emulator"},
    {"heartbeat.elf", "../etc/shadow", "/domain/os/kernel"},
    {"<boot dev='hd'/>", "<initrd>/etc/shadow</initrd>", "/domain/os/initrd"},
    {"<boot dev='hd'/>", "<loader type='rom'>/tmp/x</loader>", "/domain/os/loader is not part"},
    {"<boot dev='hd'/>", "<dtb>/etc/shadow</dtb>", "/domain/os/dtb"},
    {"<boot dev='hd'/>", "<nvram>/x</nvram>", "/domain/os/nvram"},
    {"fill=rand", "fill=word", "/domain/os/cmdline"},
    {"disks/root/disk.img", "disks/../../x", "/domain/devices/disk/source/@file"},
    {"file='/var/run/ferry-state/disks/root/disk.img'", "dev='/dev/sda'",
     "/domain/devices/disk/source/@dev"},
    {"<source file='/var/run/ferry-state/disks/root/disk.img'/>",
     "<source file='/var/run/ferry-state/disks/root/disk.img' startupPolicy='optional'/>",
     "/domain/devices/disk/source/@startupPolicy"},
    {"<target dev='vda'",
     "<backingStore type='file'><source file='/etc/shadow'/></backingStore><target dev='vda'",
     "/domain/devices/disk/backingStore/@type"},
    {"type='raw'", "type='qcow2'", "/domain/devices/disk/driver/@type"},
    {" type='raw'", "", "/domain/devices/disk/driver/@type is missing"},
    {"cache='none'", "cache='unsafe'", "/domain/devices/disk/driver/@cache"},
    {"<disk type='file'", "<disk type='network'", "/domain/devices/disk/@type"},
    {"device='disk'", "device='lun'", "/domain/devices/disk/@device"},
    {"dev='vda'", "dev='vdc'", "/domain/devices/disk was not agreed"},
    {"dev='vdb'", "dev='vda'", "/domain/devices/disk was not agreed"},
    {"</devices>", "<controller type='usb'/></devices>", "/domain/devices/controller/@type 'usb'"},
    {"</devices>", "<controller type='scsi'/></devices>", "/domain/devices/controller/@type"},
    {" model='none'/>\n    <serial", "/>\n    <serial",
     "/domain/devices/controller/@model is missing"},
    {"</devices>", "<console/></devices>", "/domain/devices/console was not agreed"},
    {"offset='0'", "offset='4096'", "/domain/devices/disk/source/slices/slice/@offset"},
    {"serial.sock", "other.sock", "/domain/devices/serial/source/@path"},
    {"serial.log", "../ferry-state/state.json", "/domain/devices/serial/log/@file"},
    {"<serial type='unix'>", "<serial type='pty'>", "/domain/devices/serial/@type"},
    {"<console type='unix'>", "<console type='pty'>", "/domain/devices/console/@type"},
    {"<console type='unix'>\n      <source mode='bind' path='/var/run/ferry-console/serial.sock'/>",
     "<console type='unix'>\n      <source mode='bind' path='/tmp/x'/>",
     "/domain/devices/console/source/@path"},
    /* more devices */
    {"</devices>", "<hostdev mode='subsystem' type='pci'/></devices>",
     "/domain/devices/hostdev was not agreed"},
    {"</devices>", "<filesystem><source dir='/'/></filesystem></devices>",
     "/domain/devices/filesystem is not part"},
    {"</devices>",
     "<interface type='ethernet'><mac address='02:00:00:00:00:01'/></interface></devices>",
     "/domain/devices/interface was not agreed"},
    {"</devices>", "<channel type='unix'/></devices>", "/domain/devices/channel"},
    {"</devices>", "<graphics type='vnc' listen='0.0.0.0'/></devices>", "/domain/devices/graphics"},
    {"</devices>", "<tpm model='tpm-tis'/></devices>", "/domain/devices/tpm"},
    {"</devices>",
     "<rng model='virtio'><backend model='random'>/etc/shadow</backend></rng></devices>",
     "/domain/devices/rng"},
    {"</devices>", "<memory model='nvdimm'><source><path>/x</path></source></memory></devices>",
     "/domain/devices/memory"},
    {"</devices>", "<shmem name='x'/></devices>", "/domain/devices/shmem"},
    {"</devices>",
     "<serial type='file'><source path='/tmp/x'/><target port='1'/></serial></devices>",
     "/domain/devices/serial was not agreed"},
    {"</devices>",
     "<disk type='file' device='disk'><source file='/etc/shadow'/><target dev='vdz' "
     "bus='virtio'/></disk></devices>",
     "/domain/devices/disk was not agreed"},
    {"model='none'/>\n    <serial", "model='piix3-uhci'/>\n    <serial",
     "/domain/devices/controller/@model"},
    {"<memballoon model='none'/>", "<memballoon model='virtio'/>",
     "/domain/devices/memballoon/@model"},
    {"<memballoon model='none'/>", "", "/domain/devices/memballoon/@model is missing"},
    {"<input type='mouse' bus='ps2'/>",
     "<input type='passthrough' bus='virtio'><source evdev='/dev/x'/></input>",
     "/domain/devices/input/"},
    {"<alias name='ua-root'/>", "<alias name='x,file=/etc/shadow'/>",
     "/domain/devices/disk/alias/@name"},
    {"slot='0x02'", "slot='0x02,x=y'", "/domain/devices/disk/address/@slot"},
    {"<model fallback='forbid'>qemu64", "<model fallback='forbid'>qemu64,x=y", "/domain/cpu/model"},
    /* rights */
    {"</devices>",
     "</devices><seclabel type='static' model='dac'><label>root:root</label></seclabel>",
     "/domain/seclabel/@type"},
    {"</devices>", "</devices><seclabel type='none' model='apparmor'/>", "/domain/seclabel/@type"},
    {"<clock offset='utc'/>", "<clock offset='utc'><timer name='x'/></clock>",
     "/domain/clock/timer"},
    {"<on_crash>destroy", "<on_crash>coredump-restart", "/domain/on_crash"},
    {"<on_reboot>restart", "<on_reboot>preserve", "/domain/on_reboot"},
    {"<features>", "<features><smm state='on'/>", "/domain/features/smm"},
    {"<acpi/>", "", "/domain/features/acpi is missing"},
    /* QEMU's own arguments */
    {"<qemu:arg value='-chardev'/>", "<qemu:arg value='-plugin'/>",
     "/domain/qemu:commandline/qemu:arg '-plugin'"},
    {"ferry-qmp,path=/var/run/ferry-state/qmp.sock", "ferry-qmp,path=/tmp/x",
     "/domain/qemu:commandline/qemu:arg"},
    {"</qemu:commandline>", "<qemu:arg value='-S'/></qemu:commandline>",
     "/domain/qemu:commandline/qemu:arg '-S'"},
    {"</qemu:commandline>", "<qemu:env name='LD_PRELOAD' value='/tmp/x'/></qemu:commandline>",
     "has more than arguments"},
    {"</qemu:commandline>",
     "</qemu:commandline><qemu:commandline><qemu:arg value='-x'/></qemu:commandline>",
     "/domain/commandline is not part"},
    {"</qemu:commandline>",
     "</qemu:commandline><qemu:capabilities><qemu:add capability='x'/></qemu:capabilities>",
     "/domain/capabilities is not part"},
    {"</qemu:commandline>", "</qemu:commandline><qemu:override/>", "/domain/override is not part"},
    {"<qemu:arg value='-mon'/>\n", "", "qemu:commandline"},
    {"<qemu:arg value='-chardev'/>", "<qemu:arg value='-chardev' x='y'/>",
     "has more than arguments"},
    /* what two readers could read in two ways */
    {"<domain ", "<!DOCTYPE domain [<!ENTITY x 'y'>]><domain ", "not XML as libvirt writes it"},
    {"<domain ", "<?xml version='1.0'?><domain ", "not XML as libvirt writes it"},
    {"<name>", "<!-- x --><name>", "not XML as libvirt writes it"},
    {"<name>", "<![CDATA[x]]><name>", "not XML as libvirt writes it"},
    {"<name>", "text<name>", "holds what libvirt does not write"},
    {"<devices>", "<devices>text", "holds what libvirt does not write"},
    {"xmlns:qemu=", "xmlns:q=", "is not a domain"},
    {"xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'", "xmlns:qemu='http://x/'",
     "is not a domain"},
    {"<devices>", "<devices xmlns='http://x/'>", "/domain/devices is not part"},
    {"<devices>", "<devices xmlns:x='http://x/' x:y='z'>", "/domain/devices is not part"},
    {"<name>", "<qemu:name>x</qemu:name><name>", "/domain/name is not part"},
    {"<domain ", "<d><domain ", "not XML"},
    {"</domain>", "</domain><domain/>", "not XML"},
    {"</domain>", "", "not XML"},
};

static void check_edits(int (*compare)(const struct rpc_agreed *, const char *, size_t,
                                       struct ferry_error *),
                        const char *file, const struct edit *list, size_t n)
{
    struct rpc_agreement a = agreement();
    ferry_cleanup_buf struct ferry_buf text = read_file("control", file);

    for (size_t i = 0; i < n; i++) {
        struct ferry_error err = {0};

        ferry_cleanup_free char *xml = edited(text.data, list[i].from, list[i].to);
        int rc = compare(a.domain, xml, strlen(xml), &err);
        if ((rc == 0) != (list[i].why == NULL) || (rc < 0 && !strstr(err.msg, list[i].why))) {
            fail_msg("%s -> %s: %d %s", list[i].from, list[i].to, rc, err.msg);
        }
    }
    rpc_agreement_done(&a);
}

static void changed_domain(void **state)
{
    (void)state;
    check_edits(rpc_compare_domain, "prepare.xml", edits, COUNT_OF(edits));
}

/* The definition in the cookie is judged as strictly as the domain itself. */
static void changed_cookie(void **state)
{
    static const struct edit in_cookie[] = {
        {"<hostname>", "<hostname>x", NULL},
        {"<sent>", "<sent>1", NULL},
        {"<name>", "<name>x", "/qemu-migration/name"},
        {"<hostuuid>", "<hostuuid>x", "/qemu-migration/hostuuid"},
        {"<feature name='persistent'/>", "<feature name='graphics'/>",
         "/qemu-migration/feature/@name"},
        {"<feature name='persistent'/>", "<graphics type='spice' port='1' listen='x'/>",
         "/qemu-migration/graphics"},
        {"<feature name='persistent'/>",
         "<blockDirtyBitmaps><disk target='vda'/></blockDirtyBitmaps>",
         "/qemu-migration/blockDirtyBitmaps"},
        {"<feature name='persistent'/>", "<nbd port='1'/>", "/qemu-migration/nbd/@port"},
        {"<feature name='persistent'/>", "<network><interface index='0' vporttype='x'/></network>",
         "/qemu-migration/network/interface"},
        {"<sent>", "<sent>x", "/qemu-migration/statistics/sent"},
        {"/usr/bin/qemu-system-x86_64", "/tmp/mine", "/qemu-migration/domain/devices/emulator"},
        {"<qemu:arg value='-chardev'/>", "<qemu:arg value='-plugin'/>",
         "/qemu-migration/domain/qemu:commandline/qemu:arg"},
        {"</devices>", "<filesystem/></devices>", "/qemu-migration/domain/devices/filesystem"},
        {"disks/root/disk.img", "x", "/qemu-migration/domain/devices/disk/source/@file"},
        {"</domain>", "</domain><domain><devices><emulator>/tmp/mine</emulator></devices></domain>",
         "/qemu-migration/domain is not part"},
        {"<qemu-migration>", "<qemu-migration x='y'>", "/qemu-migration/@x"},
        {"<qemu-migration>", "<!DOCTYPE x><qemu-migration>", "not XML as libvirt writes it"},
        {"<qemu-migration>", "<x><qemu-migration>", "not XML"},
    };

    (void)state;
    check_edits(rpc_compare_cookie, "finish-cookie.xml", in_cookie, COUNT_OF(in_cookie));
}

/* A launcher of an older version asked QEMU for one monitor, or for none. */
static void fewer_monitors(void **state)
{
    struct rpc_agreement a = agreement();
    ferry_cleanup_buf struct ferry_buf xml = read_file("control", "prepare.xml");
    const char *all = strstr(xml.data, "<qemu:commandline>"),
               *end = strstr(xml.data, "</qemu:commandline>");
    const char *second = strstr(strstr(all, "-chardev") + 1, "<qemu:arg value='-chardev'/>");

    (void)state;
    ferry_cleanup_free char *one =
        ferry_asprintf("%.*s%s", (int)(second - xml.data), xml.data, end);
    ferry_cleanup_free char *none = ferry_asprintf("%.*s%s", (int)(all - xml.data), xml.data,
                                                   end + strlen("</qemu:commandline>"));
    assert_int_equal(rpc_compare_domain(a.domain, one, strlen(one), NULL), 0);
    assert_int_equal(rpc_compare_domain(a.domain, none, strlen(none), NULL), 0);
    rpc_agreement_done(&a);
}

static void sizes(void **state)
{
    struct rpc_agreement a = agreement();
    ferry_cleanup_buf struct ferry_buf xml = read_file("control", "prepare.xml");
    ferry_cleanup_buf struct ferry_buf many = {0};
    const char *at = strstr(xml.data, "</devices>");

    (void)state;
    ferry_buf_append(&many, xml.data, (size_t)(at - xml.data));
    for (int i = 0; i < 5000; i++) {
        ferry_buf_puts(&many, "<input type='mouse' bus='ps2'/>");
    }
    ferry_buf_puts(&many, at);
    struct ferry_error err = {0};
    assert_int_equal(rpc_compare_domain(a.domain, many.data, many.len, &err), -FERRY_DENIED);
    assert_non_null(strstr(err.msg, "one element too many"));
    while (many.len <= RPC_XML_MAX) {
        ferry_buf_puts(&many, "                                                            ");
    }
    assert_int_equal(rpc_compare_domain(a.domain, many.data, many.len, &err), -FERRY_DENIED);
    assert_non_null(strstr(err.msg, "not XML"));
    assert_int_equal(rpc_compare_domain(a.domain, "<domain/>\0", 10, &err), -FERRY_DENIED);
    rpc_agreement_done(&a);
}

/* ---- the file ----------------------------------------------------------------------------------
 */

static void written_and_read(void **state)
{
    ferry_cleanup_buf struct ferry_buf xml = read_file("domain", "minimal.xml");
    char connect[] = "qemu:///system", memory[] = "unix:///a&b<c", one[] = "vda", two[] = "vdb";
    struct rpc_agreement a = {
        .connect = connect, .memory = memory, .copied = {one, two}, .n_copied = 2};
    struct rpc_agreement back;
    struct ferry_error err = {0};
    ferry_cleanup_free char *text = rpc_agreement_write(&a, xml.data, &err);

    (void)state;
    assert_non_null(text);
    assert_int_equal(rpc_agreement_read(text, strlen(text), &back, &err), 0);
    assert_string_equal(back.memory, a.memory);
    assert_string_equal(back.connect, a.connect);
    assert_null(back.disks);
    assert_int_equal(back.n_copied, 2);
    assert_string_equal(back.copied[1], "vdb");
    assert_int_equal(rpc_compare_domain(back.domain, xml.data, xml.len, &err), 0);
    rpc_agreement_done(&back);
}

static void broken_files(void **state)
{
    static const char *const texts[] = {
        "",
        "<move",
        "<move/>",
        "<move><connect>x</connect><memory>y</memory></move>",
        "<move><connect>x</connect><memory>y</memory><domain/></move>",
        "<move><x/></move>",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct rpc_agreement a;

        assert_int_equal(rpc_agreement_read(texts[i], strlen(texts[i]), &a, NULL), -FERRY_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),           cmocka_unit_test(rules),
        cmocka_unit_test(recorded),         cmocka_unit_test(our_own),
        cmocka_unit_test(more_features),    cmocka_unit_test(all_that_was_recorded),
        cmocka_unit_test(changed_domain),   cmocka_unit_test(changed_cookie),
        cmocka_unit_test(fewer_monitors),   cmocka_unit_test(sizes),
        cmocka_unit_test(written_and_read), cmocka_unit_test(broken_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
