#include "rpc/rpc_rules.h"

#include <stddef.h>
#include <string.h>

#include "base/count.h"

/* Grouped as libvirt writes them. To find what a new libvirt adds, see docs/control-channel.md. */
static const struct rpc_rule domain_rules[] = {
    {"@type", RPC_SAME},
    {"@id", RPC_NUMBER},
    {"name", RPC_SAME},
    {"uuid", RPC_SAME},
    {"memory", RPC_SIZE},
    {"memory/@unit", RPC_ONE_OF, "b bytes KiB MiB GiB"},
    {"currentMemory", RPC_AMOUNT},
    {"currentMemory/@unit", RPC_ONE_OF, "b bytes KiB MiB GiB"},
    {"memoryBacking", RPC_EMPTY},
    {"memoryBacking/hugepages", RPC_FLAG},
    {"memoryBacking/hugepages/page", RPC_FLAG},
    {"memoryBacking/hugepages/page/@size", RPC_SIZE},
    {"memoryBacking/hugepages/page/@unit", RPC_ONE_OF, "b bytes KiB MiB GiB"},
    {"vcpu", RPC_SAME},
    {"vcpu/@placement", RPC_ONE_OF, "static"},
    {"resource", RPC_EMPTY},
    {"resource/partition", RPC_ONE_OF, "/machine"},
    {"os", RPC_EMPTY},
    {"os/type", RPC_SAME},
    {"os/type/@arch", RPC_SAME},
    {"os/type/@machine", RPC_TYPE},
    {"os/kernel", RPC_SAME},
    {"os/initrd", RPC_SAME},
    {"os/cmdline", RPC_SAME},
    {"os/boot", RPC_EMPTY},
    {"os/boot/@dev", RPC_ONE_OF, "hd cdrom network fd"},
    {"features", RPC_EMPTY},
    {"features/acpi", RPC_FLAG},
    /* of the accelerator, not of the guest: one of an older launcher has none */
    {"features/kvm", RPC_EMPTY},
    {"features/kvm/dirty-ring", RPC_EMPTY},
    {"features/kvm/dirty-ring/@state", RPC_ONE_OF, "on"},
    {"features/kvm/dirty-ring/@size", RPC_ONE_OF, "4096"},
    {"clock", RPC_EMPTY},
    {"clock/@offset", RPC_SAME},
    {"on_poweroff", RPC_SAME},
    {"on_reboot", RPC_SAME},
    {"on_crash", RPC_SAME},
    {"devices", RPC_EMPTY},
    {"devices/emulator", RPC_SAME},

    /* what the guest's CPU is made of is no danger to the host: names and numbers */
    {"cpu", RPC_EMPTY},
    {"cpu/@mode", RPC_ONE_OF, "custom host-model host-passthrough maximum"},
    {"cpu/@match", RPC_ONE_OF, "exact minimum strict"},
    {"cpu/@check", RPC_ONE_OF, "none partial full"},
    {"cpu/@migratable", RPC_ONE_OF, "on off"},
    {"cpu/arch", RPC_ONE_OF, "x86_64"},
    {"cpu/model", RPC_WORD},
    {"cpu/model/@fallback", RPC_ONE_OF, "allow forbid"},
    {"cpu/model/@vendor_id", RPC_WORD},
    {"cpu/vendor", RPC_WORD},
    {"cpu/microcode", RPC_EMPTY},
    {"cpu/microcode/@version", RPC_NUMBER},
    {"cpu/signature", RPC_EMPTY},
    {"cpu/signature/@*", RPC_NUMBER},
    {"cpu/counter", RPC_EMPTY},
    {"cpu/counter/@name", RPC_ONE_OF, "tsc"},
    {"cpu/counter/@frequency", RPC_NUMBER},
    {"cpu/counter/@scaling", RPC_ONE_OF, "yes no"},
    {"cpu/topology", RPC_EMPTY},
    {"cpu/topology/@sockets", RPC_SAME},
    {"cpu/topology/@cores", RPC_SAME},
    {"cpu/topology/@threads", RPC_SAME},
    {"cpu/topology/@dies", RPC_ONE_OF, "1"},
    {"cpu/topology/@clusters", RPC_ONE_OF, "1"},
    {"cpu/cache", RPC_EMPTY},
    {"cpu/cache/@level", RPC_NUMBER},
    {"cpu/cache/@mode", RPC_ONE_OF, "emulate passthrough disable"},
    {"cpu/maxphysaddr", RPC_EMPTY},
    {"cpu/maxphysaddr/@mode", RPC_ONE_OF, "emulate passthrough"},
    {"cpu/maxphysaddr/@bits", RPC_NUMBER},
    {"cpu/maxphysaddr/@limit", RPC_NUMBER},
    {"cpu/feature", RPC_EMPTY},
    {"cpu/feature/@policy", RPC_ONE_OF, "force require optional disable forbid"},
    {"cpu/feature/@name", RPC_WORD},

    {"devices/disk", RPC_EMPTY},
    {"devices/disk/@type", RPC_SAME},
    {"devices/disk/@device", RPC_SAME},
    {"devices/disk/driver", RPC_EMPTY},
    {"devices/disk/driver/@*", RPC_SAME},
    {"devices/disk/source", RPC_EMPTY}, /* a CD that the guest has ejected has none */
    {"devices/disk/source/@file", RPC_EQUAL},
    {"devices/disk/source/@dev", RPC_EQUAL},
    {"devices/disk/source/@index", RPC_NUMBER},
    {"devices/disk/source/slices", RPC_EMPTY},
    {"devices/disk/source/slices/slice", RPC_EMPTY},
    {"devices/disk/source/slices/slice/@type", RPC_ONE_OF, "storage"},
    {"devices/disk/source/slices/slice/@offset", RPC_ONE_OF, "0"},
    {"devices/disk/source/slices/slice/@size", RPC_NUMBER},
    {"devices/disk/backingStore", RPC_EMPTY}, /* "there is none": one would name another file */
    {"devices/disk/target", RPC_EMPTY},
    {"devices/disk/target/@dev", RPC_SAME},
    {"devices/disk/target/@bus", RPC_SAME},
    {"devices/disk/target/@tray", RPC_ONE_OF, "open closed"},
    {"devices/disk/boot", RPC_EMPTY},
    {"devices/disk/boot/@order", RPC_SAME},
    {"devices/disk/readonly", RPC_FLAG},

    {"devices/interface", RPC_EMPTY},
    {"devices/interface/@type", RPC_SAME},
    {"devices/interface/mac", RPC_EMPTY},
    {"devices/interface/mac/@address", RPC_MAC},
    {"devices/interface/target", RPC_EMPTY},
    {"devices/interface/target/@dev", RPC_SAME},
    {"devices/interface/target/@managed", RPC_SAME},
    {"devices/interface/model", RPC_EMPTY},
    {"devices/interface/model/@type", RPC_SAME},
    {"devices/interface/link", RPC_EMPTY}, /* it may have been changed since the guest started */
    {"devices/interface/link/@state", RPC_ONE_OF, "up down"},
    {"devices/interface/rom", RPC_EMPTY},
    {"devices/interface/rom/@enabled", RPC_SAME},
    {"devices/interface/boot", RPC_EMPTY},
    {"devices/interface/boot/@order", RPC_SAME},

    /* of this host, so given to this pod; most guests give theirs back before a move */
    {"devices/hostdev", RPC_EMPTY},
    {"devices/hostdev/@mode", RPC_EQUAL},
    {"devices/hostdev/@type", RPC_EQUAL},
    {"devices/hostdev/@managed", RPC_EQUAL},
    {"devices/hostdev/driver", RPC_EMPTY},
    {"devices/hostdev/driver/@name", RPC_EQUAL},
    {"devices/hostdev/source", RPC_EMPTY},
    {"devices/hostdev/source/address", RPC_EMPTY},
    {"devices/hostdev/source/address/@*", RPC_EQUAL},

    /* a console is libvirt's second name for the first serial line */
    {"devices/serial", RPC_EMPTY},
    {"devices/serial/target/@type", RPC_ONE_OF, "isa-serial"},
    {"devices/serial/target/model", RPC_EMPTY},
    {"devices/serial/target/model/@name", RPC_ONE_OF, "isa-serial"},
    {"devices/console", RPC_EMPTY},
    {"devices/console/target/@type", RPC_ONE_OF, "serial"},
    {"devices/serial/@type", RPC_SAME},
    {"devices/serial/source", RPC_EMPTY},
    {"devices/serial/source/@mode", RPC_SAME},
    {"devices/serial/source/@path", RPC_SAME},
    {"devices/serial/log", RPC_EMPTY},
    {"devices/serial/log/@file", RPC_SAME},
    {"devices/serial/log/@append", RPC_SAME},
    {"devices/serial/target", RPC_EMPTY},
    {"devices/serial/target/@port", RPC_SAME},
    {"devices/console/@type", RPC_EQUAL},
    {"devices/console/source", RPC_EMPTY},
    {"devices/console/source/@mode", RPC_EQUAL},
    {"devices/console/source/@path", RPC_EQUAL},
    {"devices/console/log", RPC_EMPTY},
    {"devices/console/log/@file", RPC_EQUAL},
    {"devices/console/log/@append", RPC_EQUAL},
    {"devices/console/target", RPC_EMPTY},
    {"devices/console/target/@port", RPC_EQUAL},

    /* what libvirt adds by itself */
    {"devices/controller", RPC_EMPTY},
    {"devices/controller/@type", RPC_SAME_OR_OF, "pci ide sata"},
    {"devices/controller/@index", RPC_NUMBER},
    {"devices/controller/@model", RPC_SAME_OR_OF,
     "pci-root pcie-root pcie-root-port pcie-to-pci-bridge dmi-to-pci-bridge pci-bridge"},
    {"devices/controller/model", RPC_EMPTY},
    {"devices/controller/model/@name", RPC_ONE_OF,
     "pcie-root-port ioh3420 pcie-pci-bridge i82801b11-bridge pci-bridge"},
    {"devices/controller/target", RPC_EMPTY},
    {"devices/controller/target/@chassis", RPC_NUMBER},
    {"devices/controller/target/@chassisNr", RPC_NUMBER},
    {"devices/controller/target/@port", RPC_NUMBER},
    {"devices/controller/target/@busNr", RPC_NUMBER},
    {"devices/input", RPC_EMPTY},
    {"devices/input/@type", RPC_ONE_OF, "mouse keyboard"},
    {"devices/input/@bus", RPC_ONE_OF, "ps2"},
    {"devices/audio", RPC_EMPTY},
    {"devices/audio/@id", RPC_NUMBER},
    {"devices/audio/@type", RPC_ONE_OF, "none"},
    {"devices/watchdog", RPC_EMPTY},
    {"devices/watchdog/@model", RPC_ONE_OF, "itco"},
    {"devices/watchdog/@action", RPC_ONE_OF, "reset"},
    {"devices/memballoon", RPC_EMPTY},
    {"devices/memballoon/@model", RPC_SAME},

    /* where a device is, and how libvirt calls it */
    {"devices/*/alias", RPC_EMPTY},
    {"devices/*/alias/@name", RPC_WORD},
    {"devices/*/address", RPC_EMPTY},
    {"devices/*/address/@type", RPC_ONE_OF, "pci drive isa usb"},
    {"devices/*/address/@multifunction", RPC_ONE_OF, "on off"},
    {"devices/*/address/@*", RPC_NUMBER},

    /* libvirt chooses a dynamic one itself and takes no label of it from here */
    {"seclabel", RPC_EMPTY},
    {"seclabel/@type", RPC_ONE_OF, "dynamic"},
    {"seclabel/@model", RPC_ONE_OF, "dac apparmor selinux"},
    {"seclabel/@relabel", RPC_ONE_OF, "yes"},
    {"seclabel/label", RPC_LABEL},
    {"seclabel/imagelabel", RPC_LABEL},
};

/* "domain" and "cpu" below it are judged as what they are. */
static const struct rpc_rule cookie_rules[] = {
    {"name", RPC_SAME},
    {"uuid", RPC_SAME},
    {"hostname", RPC_WORD},
    {"hostuuid", RPC_UUID},
    {"feature", RPC_EMPTY},
    {"feature/@name", RPC_ONE_OF, "lockstate persistent"},
    {"lockstate", RPC_EMPTY},
    {"lockstate/@driver", RPC_WORD},
    {"network", RPC_EMPTY},
    {"nbd", RPC_EMPTY},
    {"nbd/disk", RPC_EMPTY},
    {"nbd/disk/@target", RPC_WORD},
    {"nbd/disk/@capacity", RPC_NUMBER},
    {"statistics", RPC_EMPTY},
    {"statistics/*", RPC_NUMBER},
    {"capabilities", RPC_EMPTY},
    {"capabilities/cap", RPC_EMPTY},
    {"capabilities/cap/@name", RPC_WORD},
    {"capabilities/cap/@auto", RPC_ONE_OF, "yes no"},
};

static const struct rpc_key keys[] = {
    {"devices/disk", "target", "dev", false},     {"devices/interface", "mac", "address", false},
    {"devices/hostdev", "alias", "name", false},  {"devices/serial", "target", "port", false},
    {"devices/console", "target", "port", false}, {"devices/controller", NULL, "type", true},
    {"cpu/feature", NULL, "name", true},
};

/* `*` in `pattern` stands for one name; for that of an attribute behind an @. */
static bool fits(const char *pattern, const char *path)
{
    while (*pattern && *pattern != '*') {
        if (*pattern++ != *path++) {
            return false;
        }
    }
    if (!*pattern) {
        return !*path;
    }
    size_t n = strcspn(path, "/");
    return n > 0 && path[0] != '@' && fits(pattern + 1, path + n);
}

static const struct rpc_rule *find(const struct rpc_rule *rules, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++) {
        if (fits(rules[i].path, path)) {
            return &rules[i];
        }
    }
    return NULL;
}

const struct rpc_rule *rpc_rules_domain(const char *path)
{
    return find(domain_rules, FERRY_COUNT(domain_rules), path);
}

const struct rpc_rule *rpc_rules_cookie(const char *path)
{
    return find(cookie_rules, FERRY_COUNT(cookie_rules), path);
}

const struct rpc_key *rpc_rules_key(const char *path)
{
    for (size_t i = 0; i < FERRY_COUNT(keys); i++) {
        if (strcmp(keys[i].path, path) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}
