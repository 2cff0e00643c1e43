#include "launcher/domain/domain_xml.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/machine_type.h"
#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"
#include "launcher/domain/disks.h"
#include "launcher/domain/domain_devices.h"
#include "launcher/domain/xml_write.h"

#define MACHINE_DEFAULT "pc"
#define CPU_EMULATED "qemu64"
#define CPU_NATIVE "host-model"

enum { PATH_IN_IMAGE_MAX = 255, KERNEL_ARGS_MAX = 2048, WORD_MAX = 64 };

/* ---- what is refused ---------------------------------------------------------------------------
 */

/* Admission refuses these and more (api/spec): here they are met by machines of before it did. */

static const struct {
    const char *pointer; /* below spec */
    const char *why;     /* NULL: not supported yet */
} refused[] = {
    {"/domain/devices/filesystems", NULL},
    {"/domain/devices/gpus", NULL},
    {"/domain/devices/inputs", NULL},
    {"/domain/devices/sound", NULL},
    {"/domain/devices/rng", NULL},
    {"/domain/devices/watchdog", NULL},
    {"/domain/devices/clientPassthrough", NULL},
    {"/domain/devices/downwardMetrics", NULL},
    {"/domain/devices/autoattachVSOCK", NULL},
    {"/domain/devices/tpm", "not supported: a TPM's state lives outside the guest and would not "
                            "move with it"},
    {"/domain/firmware/bootloader/efi", "not supported: only BIOS guests can be moved"},
    {"/domain/firmware/acpi", NULL},
    {"/domain/firmware/serial", NULL},
    {"/domain/features/hyperv", NULL},
    {"/domain/features/smm", NULL},
    {"/domain/features/kvm", NULL},
    {"/domain/features/pvspinlock", NULL}, /* api/spec refuses to switch it off, too */
    {"/domain/launchSecurity", NULL},
    {"/domain/clock/timezone", NULL},
    {"/domain/cpu/dedicatedCpuPlacement", NULL},
    {"/domain/cpu/numa", NULL},
    {"/domain/cpu/realtime", NULL},
};

/* Absent, null, false, empty and switched off all mean "not asked for". */
static bool asked_for(yyjson_val *v)
{
    return v && !yyjson_is_null(v) && !yyjson_is_false(v) &&
           !yyjson_is_false(yyjson_obj_get(v, "enabled")) &&
           !(yyjson_is_arr(v) && yyjson_arr_size(v) == 0) &&
           !(yyjson_is_str(v) && yyjson_get_len(v) == 0);
}

static yyjson_val *at(const yyjson_val *spec, const char *pointer)
{
    return yyjson_ptr_get((yyjson_val *)(uintptr_t)spec, pointer);
}

/* "/domain/cpu" to "spec.domain.cpu". */
static char *field_name(const char *pointer)
{
    char *name = ferry_asprintf("spec%s", pointer);

    for (char *p = name; *p; p++) {
        if (*p == '/') {
            *p = '.';
        }
    }
    return name;
}

static int fail_field(struct ferry_error *err, const char *pointer, const char *why)
{
    ferry_cleanup_free char *name = field_name(pointer);

    return ferry_fail(err, FERRY_INVALID, "%s: %s", name, why);
}

static int check_refused(const yyjson_val *spec, struct ferry_error *err)
{
    for (size_t i = 0; i < FERRY_COUNT(refused); i++) {
        if (asked_for(at(spec, refused[i].pointer))) {
            return fail_field(err, refused[i].pointer,
                              refused[i].why ? refused[i].why : "not supported yet");
        }
    }
    return 0;
}

/* ---- values ------------------------------------------------------------------------------------
 */

/* Optional string; NULL when absent or empty. Anything but a string is an error. */
static int get_string(const yyjson_val *spec, const char *pointer, size_t max, const char **ret,
                      struct ferry_error *err)
{
    yyjson_val *v = at(spec, pointer);

    *ret = NULL;
    if (!v || yyjson_is_null(v)) {
        return 0;
    }
    if (!yyjson_is_str(v)) {
        return fail_field(err, pointer, "must be a string");
    }
    const char *s = yyjson_get_str(v);
    size_t len = yyjson_get_len(v);
    if (len > max) {
        return fail_field(err, pointer, "too long");
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f) {
            return fail_field(err, pointer, "must not hold control characters");
        }
    }
    *ret = len ? s : NULL;
    return 0;
}

static bool is_word(const char *s, const char *extra)
{
    for (; *s; s++) {
        if (!isalnum((unsigned char)*s) && !strchr(extra, *s)) {
            return false;
        }
    }
    return true;
}

static bool is_uuid(const char *s)
{
    if (!s || strlen(s) != 36) {
        return false;
    }
    for (int i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? s[i] != '-' : !isxdigit((unsigned char)s[i])) {
            return false;
        }
    }
    return true;
}

static int machine_type(const struct api_vmi *vmi, const char **ret, struct ferry_error *err)
{
    static const char wrong[] = "must be pc, q35, or a versioned one of these (pc-q35-10.0)";
    const char *type;

    if (!ferry_str_empty(vmi->machine_type)) {
        *ret = vmi->machine_type;
        return api_machine_is_known(*ret)
                   ? 0
                   : ferry_fail(err, FERRY_INVALID, "status.machine.type: %s", wrong);
    }
    if (get_string(vmi->spec, "/domain/machine/type", WORD_MAX, &type, err) < 0) {
        return -FERRY_INVALID;
    }
    *ret = type ? type : MACHINE_DEFAULT;
    return api_machine_is_known(*ret) ? 0 : fail_field(err, "/domain/machine/type", wrong);
}

/* A file of the guest directory; stays inside of it. */
static int guest_file(const yyjson_val *spec, const char *pointer, const char *guest_dir,
                      char **ret, struct ferry_error *err)
{
    const char *path;

    *ret = NULL;
    if (get_string(spec, pointer, PATH_IN_IMAGE_MAX, &path, err) < 0) {
        return -FERRY_INVALID;
    }
    if (!path) {
        return 0;
    }
    if (path[0] != '/') {
        return fail_field(err, pointer, "must start with a slash");
    }
    for (const char *p = path; p; p = strchr(p + 1, '/')) {
        size_t n = strcspn(p + 1, "/");

        if (n == 0 || (n <= 2 && strncmp(p + 1, "..", n) == 0)) {
            return fail_field(err, pointer, "must name a file, without '.' and '..' on the way");
        }
    }
    *ret = ferry_asprintf("%s%s", guest_dir, path);
    return 0;
}

/* ---- sections ----------------------------------------------------------------------------------
 */

static int write_identity(struct xml_write *x, const struct api_vmi *vmi, struct ferry_error *err)
{
    const char *uuid;

    if (get_string(vmi->spec, "/domain/firmware/uuid", WORD_MAX, &uuid, err) < 0) {
        return -FERRY_INVALID;
    }
    if (uuid && !is_uuid(uuid)) {
        return fail_field(err, "/domain/firmware/uuid", "must be a UUID");
    }
    if (ferry_str_empty(vmi->meta.name) || ferry_str_empty(vmi->meta.namespace_) ||
        !is_word(vmi->meta.name, "-.") || !is_word(vmi->meta.namespace_, "-.")) {
        return ferry_fail(err, FERRY_INVALID, "metadata: the VMI has no usable name and namespace");
    }
    if (!is_uuid(vmi->meta.uid)) {
        return ferry_fail(err, FERRY_INVALID, "metadata.uid: must be a UUID");
    }
    ferry_cleanup_free char *name = domain_xml_name(vmi->meta.namespace_, vmi->meta.name);
    xml_write_text_element(x, "name", name);
    xml_write_text_element(x, "uuid", uuid ? uuid : vmi->meta.uid);
    return 0;
}

static int write_size(struct xml_write *x, const struct api_vmi *vmi, struct ferry_error *err)
{
    char text[24];

    if (vmi->memory_bytes < 1 << 20) {
        return ferry_fail(err, FERRY_INVALID,
                          "spec.domain.memory.guest: the guest needs at least 1Mi of memory");
    }
    if (vmi->vcpus < 1 || vmi->vcpus > VMI_CPUS_MAX) {
        return ferry_fail(err, FERRY_INVALID, "spec.domain.cpu: %lld CPUs, must be 1 to %d",
                          (long long)vmi->vcpus, VMI_CPUS_MAX);
    }
    xml_write_start(x, "memory");
    xml_write_attribute(x, "unit", "b");
    snprintf(text, sizeof(text), "%lld", (long long)vmi->memory_bytes);
    xml_write_text(x, text);
    xml_write_end(x);
    xml_write_start(x, "vcpu");
    xml_write_attribute(x, "placement", "static");
    snprintf(text, sizeof(text), "%lld", (long long)vmi->vcpus);
    xml_write_text(x, text);
    xml_write_end(x);
    return 0;
}

static int write_os(struct xml_write *x, const struct api_vmi *vmi,
                    const struct domain_xml_options *opt, bool bootable, struct ferry_error *err)
{
    const yyjson_val *spec = vmi->spec;
    const char *machine = NULL, *image = NULL, *args = NULL;
    ferry_cleanup_free char *kernel = NULL;
    ferry_cleanup_free char *initrd = NULL;

    if (machine_type(vmi, &machine, err) < 0 ||
        get_string(spec, "/domain/firmware/kernelBoot/kernelArgs", KERNEL_ARGS_MAX, &args, err) <
            0 ||
        get_string(spec, "/domain/firmware/kernelBoot/container/image", PATH_IN_IMAGE_MAX, &image,
                   err) < 0 ||
        guest_file(spec, "/domain/firmware/kernelBoot/container/kernelPath", opt->guest_dir,
                   &kernel, err) < 0 ||
        guest_file(spec, "/domain/firmware/kernelBoot/container/initrdPath", opt->guest_dir,
                   &initrd, err) < 0) {
        return -FERRY_INVALID;
    }
    if (!kernel && !bootable) {
        return fail_field(
            err, "/domain/firmware/kernelBoot",
            "container.image and container.kernelPath are needed: without disks there "
            "is nothing else to boot from");
    }
    if (kernel && !ferry_streq(image, IMAGE_BUILTIN)) {
        return fail_field(err, "/domain/firmware/kernelBoot/container/image",
                          "must be " IMAGE_BUILTIN ": other images are not supported yet");
    }
    xml_write_start(x, "os");
    xml_write_start(x, "type");
    xml_write_attribute(x, "arch", "x86_64");
    xml_write_attribute(x, "machine", machine);
    xml_write_text(x, "hvm");
    xml_write_end(x);
    if (kernel) {
        xml_write_text_element(x, "kernel", kernel);
    }
    if (kernel && initrd) {
        xml_write_text_element(x, "initrd", initrd);
    }
    if (kernel && args) {
        xml_write_text_element(x, "cmdline", args);
    }
    xml_write_end(x);
    return 0;
}

static int write_cpu_features(struct xml_write *x, const yyjson_val *spec, struct ferry_error *err)
{
    yyjson_val *list = at(spec, "/domain/cpu/features"), *item;
    yyjson_arr_iter it = yyjson_arr_iter_with(list);

    while ((item = yyjson_arr_iter_next(&it))) {
        static const char *const policies[] = {"force", "require", "optional", "disable", "forbid"};
        const char *name = yyjson_get_str(yyjson_obj_get(item, "name"));
        const char *policy = yyjson_get_str(yyjson_obj_get(item, "policy"));
        bool known = false;

        policy = ferry_str_empty(policy) ? "require" : policy;
        for (size_t i = 0; i < FERRY_COUNT(policies); i++) {
            known = known || ferry_streq(policy, policies[i]);
        }
        if (ferry_str_empty(name) || strlen(name) > WORD_MAX || !is_word(name, "-_.") || !known) {
            return fail_field(err, "/domain/cpu/features",
                              "each needs a name, and force, require, optional, disable or forbid "
                              "as policy");
        }
        XML_LEAF(x, "feature", "policy", policy, "name", name);
    }
    return 0;
}

static int write_cpu(struct xml_write *x, const struct api_vmi *vmi, bool kvm,
                     struct ferry_error *err)
{
    const char *model;
    int64_t parts[3];
    static const char *const names[3] = {"sockets", "cores", "threads"};

    if (get_string(vmi->spec, "/domain/cpu/model", WORD_MAX, &model, err) < 0) {
        return -FERRY_INVALID;
    }
    model = model ? model : kvm ? CPU_NATIVE : CPU_EMULATED;
    bool of_host = ferry_streq(model, CPU_NATIVE) || ferry_streq(model, "host-passthrough");
    if (!is_word(model, "-_.")) {
        return fail_field(err, "/domain/cpu/model", "is not the name of a CPU model");
    }
    if (ferry_streq(model, "host-passthrough") && !kvm) {
        return fail_field(err, "/domain/cpu/model",
                          "the host's CPU can be had with KVM only; host-model is the nearest "
                          "that emulation has");
    }
    xml_write_start(x, "cpu");
    xml_write_attribute(x, "mode", of_host ? model : "custom");
    if (!of_host) {
        xml_write_attribute(x, "match", "exact");
    }
    xml_write_attribute(x, "check",
                        kvm ? "partial" : "none"); /* emulation leaves out what it cannot do */
    if (!of_host) {
        xml_write_start(x, "model");
        xml_write_attribute(x, "fallback", "forbid");
        xml_write_text(x, model);
        xml_write_end(x);
    }
    for (int i = 0; i < 3; i++) {
        ferry_cleanup_free char *pointer = ferry_asprintf("/domain/cpu/%s", names[i]);
        int64_t n = yyjson_get_sint(at(vmi->spec, pointer));

        parts[i] = n ? n : 1;
    }
    if (parts[0] * parts[1] * parts[2] != vmi->vcpus) {
        parts[0] = vmi->vcpus; /* given in another way: one core a socket, as KubeVirt does */
        parts[1] = parts[2] = 1;
    }
    xml_write_start(x, "topology");
    for (int i = 0; i < 3; i++) {
        xml_write_number(x, names[i], parts[i]);
    }
    xml_write_end(x);
    int rc = write_cpu_features(x, vmi->spec, err);
    xml_write_end(x);
    return rc;
}

static void write_disk(struct xml_write *x, const struct disk *d, const char *dir)
{
    ferry_cleanup_free char *path = disks_path(dir, d);
    ferry_cleanup_free char *alias = ferry_asprintf("ua-%s", d->name);

    xml_write_start(x, "disk");
    xml_write_attribute(x, "type", d->block ? "block" : "file");
    xml_write_attribute(x, "device", d->cdrom ? "cdrom" : "disk");
    xml_write_start(x, "driver");
    xml_write_attribute(x, "name", "qemu");
    xml_write_attribute(x, "type", d->format);
    xml_write_attribute(x, "cache", d->cache);
    if (d->io) {
        xml_write_attribute(x, "io", d->io);
    }
    /* a full or broken disk stops the guest, which is better than an error it cannot handle */
    xml_write_attribute(x, "error_policy", "stop");
    xml_write_attribute(x, "discard", "unmap");
    xml_write_end(x);
    XML_LEAF(x, "source", d->block ? "dev" : "file", path);
    XML_LEAF(x, "target", "dev", d->dev, "bus", d->bus);
    if (d->boot_order > 0) {
        xml_write_start(x, "boot");
        xml_write_number(x, "order", d->boot_order);
        xml_write_end(x);
    }
    if (d->readonly) {
        xml_write_start(x, "readonly");
        xml_write_end(x);
    }
    XML_LEAF(x, "alias", "name", alias);
    xml_write_end(x);
}

static int write_devices(struct xml_write *x, const struct api_vmi *vmi, const struct disks *disks,
                         const struct domain_xml_options *opt, struct ferry_error *err)
{
    const yyjson_val *spec = vmi->spec;
    ferry_cleanup_free char *socket = ferry_asprintf("%s/serial.sock", opt->console_dir);
    ferry_cleanup_free char *log = ferry_asprintf("%s/serial.log", opt->console_dir);

    xml_write_start(x, "devices");
    xml_write_text_element(x, "emulator", opt->emulator);
    for (size_t i = 0; i < disks->n; i++) {
        write_disk(x, &disks->list[i], opt->disk_dir);
    }
    XML_LEAF(x, "controller", "type", "usb", "model", "none");
    if (!yyjson_is_false(at(spec, "/domain/devices/autoattachSerialConsole"))) {
        xml_write_start(x, "serial");
        xml_write_attribute(x, "type", "unix");
        XML_LEAF(x, "source", "mode", "bind", "path", socket);
        XML_LEAF(x, "log", "file", log, "append", "on");
        XML_LEAF(x, "target", "port", "0");
        xml_write_end(x);
    }
    XML_LEAF(x, "memballoon", "model", "none");
    int rc = domain_devices(x, vmi, opt->environment, err);
    xml_write_end(x);
    return rc;
}

/* libvirt's own monitor is not enough: its recovery of a broken post-copy crashes in some versions.
 */
static void write_monitor(struct xml_write *x, const char *id, const char *path)
{
    ferry_cleanup_free char *chardev =
        ferry_asprintf("socket,id=%s,path=%s,server=on,wait=off", id, path);
    ferry_cleanup_free char *monitor = ferry_asprintf("chardev=%s,mode=control", id);

    XML_LEAF(x, "qemu:arg", "value", "-chardev");
    XML_LEAF(x, "qemu:arg", "value", chardev);
    XML_LEAF(x, "qemu:arg", "value", "-mon");
    XML_LEAF(x, "qemu:arg", "value", monitor);
}

/* Each takes one connection at a time: the second is for the one that is kept. */
static void write_monitors(struct xml_write *x, const struct domain_xml_options *opt)
{
    xml_write_start(x, "qemu:commandline");
    write_monitor(x, "ferry-qmp", opt->qmp_path);
    write_monitor(x, "ferry-qmp-kept", opt->qmp_session_path);
    xml_write_end(x);
}

static int write_domain(struct xml_write *x, const struct api_vmi *vmi, const struct disks *disks,
                        const struct domain_xml_options *opt, struct ferry_error *err)
{
    xml_write_start(x, "domain");
    xml_write_attribute(x, "type", opt->kvm ? "kvm" : "qemu");
    xml_write_attribute(x, "xmlns:qemu", "http://libvirt.org/schemas/domain/qemu/1.0");
    if (write_identity(x, vmi, err) < 0 || write_size(x, vmi, err) < 0 ||
        write_os(x, vmi, opt, disks->n > 0, err) < 0) {
        return -FERRY_INVALID;
    }
    if (domain_devices_backing(x, &vmi->machine, err) < 0) {
        return -FERRY_INVALID;
    }
    xml_write_start(x, "features");
    if (!yyjson_is_false(at(vmi->spec, "/domain/features/acpi/enabled"))) {
        xml_write_start(x, "acpi");
        xml_write_end(x);
    }
    if (opt->kvm) { /* says by page and vCPU what was written; a KVM without it goes on by bitmaps
                     */
        xml_write_start(x, "kvm");
        XML_LEAF(x, "dirty-ring", "state", "on", "size", "4096");
        xml_write_end(x);
    }
    xml_write_end(x);
    if (write_cpu(x, vmi, opt->kvm, err) < 0) {
        return -FERRY_INVALID;
    }
    XML_LEAF(x, "clock", "offset", "utc");
    xml_write_text_element(x, "on_poweroff", "destroy");
    xml_write_text_element(x, "on_reboot", "restart");
    xml_write_text_element(x, "on_crash", "destroy");
    if (write_devices(x, vmi, disks, opt, err) < 0) {
        return -FERRY_INVALID;
    }
    write_monitors(x, opt);
    xml_write_end(x);
    return 0;
}

int domain_xml_kernel(const struct api_vmi *vmi, const struct domain_xml_options *opt, char **ret,
                      struct ferry_error *err)
{
    return guest_file(vmi->spec, "/domain/firmware/kernelBoot/container/kernelPath", opt->guest_dir,
                      ret, err);
}

char *domain_xml_name(const char *namespace_, const char *name)
{
    return ferry_asprintf("%s_%s", namespace_, name);
}

int domain_xml(const struct api_vmi *vmi, const struct disks *disks,
               const struct domain_xml_options *opt, char **ret_xml, struct ferry_error *err)
{
    if (check_refused(vmi->spec, err) < 0) {
        return -FERRY_INVALID;
    }
    struct xml_write x;
    int rc = xml_write_init(&x, err);

    if (rc == 0) {
        rc = write_domain(&x, vmi, disks, opt, err);
    }
    return xml_write_finish(&x, rc, ret_xml, err);
}
