/* What a preference fills in. KubeVirt lets ACPI and disableHotplug of a preference win, because it
 * cannot tell whether the machine says them; here the machine's own word counts. It also ignores
 * preferredVirtualGPUOptions, which are given to GPUs without such options here. */
#include "api/instancetype/instancetype_edit.h"

#include <stdio.h>

#include "base/count.h"
#include "json/doc.h"

enum { PATH_SIZE = 160 };

#define DEVICE(preferred, device)                                                                  \
    {                                                                                              \
        "devices/" preferred, "domain/devices/" device                                             \
    }
#define FEATURE(preferred, feature)                                                                \
    {                                                                                              \
        "features/" preferred, "domain/features/" feature                                          \
    }
#define HYPERV(name) FEATURE("preferredHyperv/" name, "hyperv/" name)
static const struct {
    const char *from, *to;
} rows[] = {
    DEVICE("preferredUseVirtioTransitional", "useVirtioTransitional"),
    DEVICE("preferredBlockMultiQueue", "blockMultiQueue"),
    DEVICE("preferredNetworkInterfaceMultiQueue", "networkInterfaceMultiqueue"),
    DEVICE("preferredDisableHotplug", "disableHotplug"),
    DEVICE("preferredRng", "rng"),
    DEVICE("preferredTPM", "tpm"),
    DEVICE("preferredAutoattachGraphicsDevice", "autoattachGraphicsDevice"),
    DEVICE("preferredAutoattachMemBalloon", "autoattachMemBalloon"),
    DEVICE("preferredAutoattachPodInterface", "autoattachPodInterface"),
    DEVICE("preferredAutoattachSerialConsole", "autoattachSerialConsole"),
    DEVICE("preferredAutoattachInputDevice", "autoattachInputDevice"),
    FEATURE("preferredAcpi", "acpi"),
    FEATURE("preferredApic", "apic"),
    FEATURE("preferredKvm", "kvm"),
    FEATURE("preferredPvspinlock", "pvspinlock"),
    FEATURE("preferredSmm", "smm"),
    HYPERV("evmcs"),
    HYPERV("frequencies"),
    HYPERV("ipi"),
    HYPERV("reenlightenment"),
    HYPERV("relaxed"),
    HYPERV("reset"),
    HYPERV("runtime"),
    HYPERV("spinlocks"),
    HYPERV("synic"),
    HYPERV("synictimer"),
    HYPERV("tlbflush"),
    HYPERV("vapic"),
    HYPERV("vpindex"),
    HYPERV("vendorid"),
    {"machine/preferredMachineType", "domain/machine/type"},
    {"clock/preferredTimer", "domain/clock/timer"},
    {"preferredSubdomain", "subdomain"},
    {"preferredTerminationGracePeriodSeconds", "terminationGracePeriodSeconds"},
    {"preferredArchitecture", "architecture"},
};

static bool is_empty(yyjson_mut_val *v)
{
    return !v || yyjson_mut_is_null(v) || (yyjson_mut_is_str(v) && yyjson_mut_get_len(v) == 0);
}

static bool is_wish(const yyjson_val *v)
{
    return v && !(yyjson_is_str((yyjson_val *)v) && yyjson_get_len((yyjson_val *)v) == 0);
}

/* One member of an object that is there. */
static void fill(const struct instancetype_edit *e, yyjson_mut_val *obj, const char *key,
                 const yyjson_val *wish)
{
    if (is_wish(wish) && is_empty(yyjson_mut_obj_get(obj, key))) {
        yyjson_mut_obj_put(obj, yyjson_mut_str(e->doc, key),
                           yyjson_val_mut_copy(e->doc, (yyjson_val *)wish));
    }
}

static const yyjson_val *device_wish(const yyjson_val *preference, const char *name)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "devices/%s", name);
    return instancetype_from(preference, path);
}

/* ---- disks -------------------------------------------------------------------------------------
 */

/* A volume that nothing shows is a disk, which is to be what is preferred, too. */
static void add_disks(const struct instancetype_edit *e)
{
    yyjson_mut_val *filesystems = instancetype_get(e, "domain/devices/filesystems"), *v;
    size_t i, max;

    yyjson_mut_arr_foreach(instancetype_get(e, "volumes"), i, max, v)
    {
        const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(v, "name"));
        yyjson_mut_val *disks = instancetype_get(e, "domain/devices/disks");

        if (!name || json_doc_has_named(disks, name) || json_doc_has_named(filesystems, name)) {
            continue;
        }
        if (!yyjson_mut_is_arr(disks)) {
            disks = yyjson_mut_arr(e->doc);
            instancetype_put(e, "domain/devices/disks", disks);
        }
        yyjson_mut_obj_add_strcpy(e->doc, yyjson_mut_arr_add_obj(e->doc, disks), "name", name);
    }
}

static void prefer_disk(const struct instancetype_edit *e, const yyjson_val *preference,
                        yyjson_mut_val *disk)
{
    yyjson_mut_val *cdrom = yyjson_mut_obj_get(disk, "cdrom"),
                   *lun = yyjson_mut_obj_get(disk, "lun");

    if (yyjson_mut_is_obj(cdrom)) {
        fill(e, cdrom, "bus", device_wish(preference, "preferredCdromBus"));
        return;
    }
    if (yyjson_mut_is_obj(lun)) {
        fill(e, lun, "bus", device_wish(preference, "preferredLunBus"));
        return;
    }
    yyjson_mut_val *target = instancetype_object(e->doc, disk, "disk");
    fill(e, target, "bus", device_wish(preference, "preferredDiskBus"));
    fill(e, disk, "blockSize", device_wish(preference, "preferredDiskBlockSize"));
    fill(e, disk, "cache", device_wish(preference, "preferredDiskCache"));
    fill(e, disk, "io", device_wish(preference, "preferredDiskIO"));
    if (ferry_streq(yyjson_mut_get_str(yyjson_mut_obj_get(target, "bus")), "virtio")) {
        fill(e, disk, "dedicatedIOThread",
             device_wish(preference, "preferredDiskDedicatedIoThread"));
    }
}

static void prefer_disks(const struct instancetype_edit *e, const yyjson_val *preference)
{
    static const char *const wishes[] = {"preferredDiskBus", "preferredDiskBlockSize",
                                         "preferredDiskCache", "preferredDiskIO",
                                         "preferredDiskDedicatedIoThread"};
    yyjson_mut_val *disk;
    size_t i, max;
    bool any = false;

    for (i = 0; i < FERRY_COUNT(wishes); i++) {
        any = any || device_wish(preference, wishes[i]);
    }
    if (any) {
        add_disks(e);
    }
    yyjson_mut_arr_foreach(instancetype_get(e, "domain/devices/disks"), i, max, disk)
    {
        prefer_disk(e, preference, disk);
    }
}

/* ---- other lists of devices --------------------------------------------------------------------
 */

static bool is_on_pod_network(const struct instancetype_edit *e, yyjson_mut_val *interface)
{
    const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(interface, "name"));
    yyjson_mut_val *n;
    size_t i, max;

    yyjson_mut_arr_foreach(instancetype_get(e, "networks"), i, max, n)
    {
        if (ferry_streq(yyjson_mut_get_str(yyjson_mut_obj_get(n, "name")), name)) {
            return yyjson_mut_is_obj(yyjson_mut_obj_get(n, "pod"));
        }
    }
    return false;
}

static bool has_binding(yyjson_mut_val *interface)
{
    static const char *const bindings[] = {"bridge",  "slirp", "masquerade",   "sriov",
                                           "macvtap", "passt", "passtBinding", "binding"};

    for (size_t i = 0; i < FERRY_COUNT(bindings); i++) {
        if (!is_empty(yyjson_mut_obj_get(interface, bindings[i]))) {
            return true;
        }
    }
    return false;
}

static void prefer_interfaces(const struct instancetype_edit *e, const yyjson_val *preference)
{
    yyjson_mut_val *v;
    size_t i, max;

    yyjson_mut_arr_foreach(instancetype_get(e, "domain/devices/interfaces"), i, max, v)
    {
        fill(e, v, "model", device_wish(preference, "preferredInterfaceModel"));
        if (!has_binding(v) && is_on_pod_network(e, v)) {
            fill(e, v, "masquerade", device_wish(preference, "preferredInterfaceMasquerade"));
        }
    }
}

static void prefer_list(const struct instancetype_edit *e, const char *list, const char *key,
                        const yyjson_val *wish)
{
    yyjson_mut_val *v;
    size_t i, max;

    yyjson_mut_arr_foreach(instancetype_get(e, list), i, max, v)
    {
        fill(e, v, key, wish);
    }
}

static void prefer_devices(const struct instancetype_edit *e, const yyjson_val *preference)
{
    yyjson_mut_val *sound = instancetype_get(e, "domain/devices/sound");

    if (yyjson_mut_is_obj(sound)) {
        fill(e, sound, "model", device_wish(preference, "preferredSoundModel"));
    }
    prefer_disks(e, preference);
    prefer_interfaces(e, preference);
    prefer_list(e, "domain/devices/inputs", "bus", device_wish(preference, "preferredInputBus"));
    prefer_list(e, "domain/devices/inputs", "type", device_wish(preference, "preferredInputType"));
    prefer_list(e, "domain/devices/panicDevices", "model",
                device_wish(preference, "preferredPanicDeviceModel"));
    prefer_list(e, "domain/devices/gpus", "virtualGPUOptions",
                device_wish(preference, "preferredVirtualGPUOptions"));
}

/* ---- CPU, firmware, clock ----------------------------------------------------------------------
 */

static void prefer_cpu_features(const struct instancetype_edit *e, const yyjson_val *preference)
{
    yyjson_val *wishes = (yyjson_val *)instancetype_from(preference, "cpu/preferredCPUFeatures"),
               *f;
    size_t i, max;

    yyjson_arr_foreach(wishes, i, max, f)
    {
        yyjson_mut_val *list = instancetype_get(e, "domain/cpu/features");
        const char *name = api_json_str(f, "/name");

        if (!name || json_doc_has_named(list, name)) {
            continue;
        }
        if (!yyjson_mut_is_arr(list)) {
            list = yyjson_mut_arr(e->doc);
            instancetype_put(e, "domain/cpu/features", list);
        }
        yyjson_mut_arr_append(list, yyjson_val_mut_copy(e->doc, f));
    }
}

#define BIOS "domain/firmware/bootloader/bios"
#define EFI "domain/firmware/bootloader/efi"

/* A machine that says BIOS or UEFI keeps it; of two wishes BIOS goes first. */
static void prefer_firmware(const struct instancetype_edit *e, const yyjson_val *preference)
{
    const yyjson_val *efi = instancetype_from(preference, "firmware/preferredEfi");
    const yyjson_val *serial = instancetype_from(preference, "firmware/preferredUseBiosSerial");
    const yyjson_val *secure = instancetype_from(preference, "firmware/preferredUseSecureBoot");
    bool bios = api_json_bool(preference, "/firmware/preferredUseBios", false);
    bool older = api_json_bool(preference, "/firmware/preferredUseEfi", false);
    bool free = !instancetype_get(e, BIOS) && !instancetype_get(e, EFI);

    if (free && bios) {
        instancetype_put(e, BIOS, yyjson_mut_obj(e->doc));
    }
    if (instancetype_get(e, BIOS)) {
        fill(e, instancetype_get(e, BIOS), "useSerial", serial);
        return;
    }
    if (free && efi) {
        instancetype_put(e, EFI, yyjson_val_mut_copy(e->doc, (yyjson_val *)efi));
        return;
    }
    if (free && older) {
        instancetype_put(e, EFI, yyjson_mut_obj(e->doc));
    }
    if (instancetype_get(e, EFI)) {
        fill(e, instancetype_get(e, EFI), "secureBoot", secure);
    }
}

/* All of the offset or nothing. */
static void prefer_offset(const struct instancetype_edit *e, const yyjson_val *preference)
{
    yyjson_val *key, *value, *wish;
    size_t i, max;

    wish = (yyjson_val *)instancetype_from(preference, "clock/preferredClockOffset");
    if (instancetype_get(e, "domain/clock/utc") || instancetype_get(e, "domain/clock/timezone")) {
        return;
    }
    yyjson_obj_foreach(wish, i, max, key, value)
    {
        char path[PATH_SIZE];

        snprintf(path, sizeof(path), "domain/clock/%s", yyjson_get_str(key));
        instancetype_put(e, path, yyjson_val_mut_copy(e->doc, value));
    }
}

void instancetype_prefer(const struct instancetype_edit *e, const yyjson_val *preference)
{
    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        const yyjson_val *wish = instancetype_from(preference, rows[i].from);

        if (is_wish(wish) && is_empty(instancetype_get(e, rows[i].to))) {
            instancetype_put(e, rows[i].to, yyjson_val_mut_copy(e->doc, (yyjson_val *)wish));
        }
    }
    prefer_cpu_features(e, preference);
    prefer_devices(e, preference);
    prefer_firmware(e, preference);
    prefer_offset(e, preference);
}
