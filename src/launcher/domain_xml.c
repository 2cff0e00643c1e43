#include "launcher/domain_xml.h"

#include <ctype.h>
#include <libxml/xmlwriter.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "launcher/disks.h"

#define BUILTIN_IMAGE "ferry.io/builtin"
#define MACHINE_PC "pc-i440fx-10.0"
#define MACHINE_Q35 "pc-q35-10.0"
#define CPU_EMULATED "qemu64"
#define CPU_NATIVE "host-model"

enum { PATH_IN_IMAGE_MAX = 255, KERNEL_ARGS_MAX = 2048, WORD_MAX = 64, VCPUS_MAX = 255 };

/* ---- what is refused ---------------------------------------------------------------------------
 */

static const struct {
    const char *pointer; /* below spec */
    const char *why;     /* NULL: not supported yet */
} refused[] = {
    {"/domain/devices/interfaces", NULL},
    {"/domain/devices/filesystems", NULL},
    {"/domain/devices/hostDevices", NULL},
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
    {"/domain/features/pvspinlock", NULL},
    {"/domain/launchSecurity", NULL},
    {"/domain/memory/hugepages", NULL},
    {"/domain/clock/timezone", NULL},
    {"/domain/cpu/dedicatedCpuPlacement", NULL},
    {"/domain/cpu/numa", NULL},
    {"/domain/cpu/realtime", NULL},
};

/* Absent, null, false and empty all mean "not asked for". */
static bool asked_for(yyjson_val *v)
{
    return v && !yyjson_is_null(v) && !yyjson_is_false(v) &&
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
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
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

static int machine_type(const yyjson_val *spec, const char **ret, struct ferry_error *err)
{
    const char *type;

    if (get_string(spec, "/domain/machine/type", WORD_MAX, &type, err) < 0) {
        return -(int)FERRY_INVALID;
    }
    if (!type || ferry_streq(type, "pc")) {
        *ret = MACHINE_PC; /* pinned: "pc" alone means another machine after an upgrade of QEMU */
    } else if (ferry_streq(type, "q35")) {
        *ret = MACHINE_Q35;
    } else if (is_word(type, ".-") &&
               (ferry_str_starts(type, "pc-q35-") || ferry_str_starts(type, "pc-i440fx-"))) {
        *ret = type;
    } else {
        return fail_field(err, "/domain/machine/type",
                          "must be pc, q35, or a versioned one of these (pc-q35-10.0)");
    }
    return 0;
}

/* A file of the guest directory; stays inside of it. */
static int guest_file(const yyjson_val *spec, const char *pointer, const char *guest_dir,
                      char **ret, struct ferry_error *err)
{
    const char *path;

    *ret = NULL;
    if (get_string(spec, pointer, PATH_IN_IMAGE_MAX, &path, err) < 0) {
        return -(int)FERRY_INVALID;
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

/* ---- writing -----------------------------------------------------------------------------------
 */

struct xml {
    xmlTextWriterPtr writer;
    bool failed; /* out of memory or a character that XML cannot carry */
};

static void note(struct xml *x, int rc)
{
    x->failed = x->failed || rc < 0;
}

static void element_start(struct xml *x, const char *name)
{
    note(x, xmlTextWriterStartElement(x->writer, BAD_CAST name));
}

static void element_end(struct xml *x)
{
    note(x, xmlTextWriterEndElement(x->writer));
}

static void attribute(struct xml *x, const char *name, const char *value)
{
    note(x, xmlTextWriterWriteAttribute(x->writer, BAD_CAST name, BAD_CAST value));
}

static void attribute_number(struct xml *x, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    attribute(x, name, text);
}

static void text_element(struct xml *x, const char *name, const char *value)
{
    note(x, xmlTextWriterWriteElement(x->writer, BAD_CAST name, BAD_CAST value));
}

/* An element with attributes only, given as name, value, ..., NULL. */
static void leaf(struct xml *x, const char *name, const char *const *attributes)
{
    element_start(x, name);
    for (; attributes[0]; attributes += 2) {
        attribute(x, attributes[0], attributes[1]);
    }
    element_end(x);
}
#define LEAF(x, name, ...) leaf((x), (name), (const char *const[]){__VA_ARGS__, NULL})

/* ---- sections ----------------------------------------------------------------------------------
 */

static int write_identity(struct xml *x, const struct api_vmi *vmi, struct ferry_error *err)
{
    const char *uuid;

    if (get_string(vmi->spec, "/domain/firmware/uuid", WORD_MAX, &uuid, err) < 0) {
        return -(int)FERRY_INVALID;
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
    text_element(x, "name", name);
    text_element(x, "uuid", uuid ? uuid : vmi->meta.uid);
    return 0;
}

static int write_size(struct xml *x, const struct api_vmi *vmi, struct ferry_error *err)
{
    char text[24];

    if (vmi->memory_bytes < 1 << 20) {
        return ferry_fail(err, FERRY_INVALID,
                          "spec.domain.memory.guest: the guest needs at least 1Mi of memory");
    }
    if (vmi->vcpus < 1 || vmi->vcpus > VCPUS_MAX) {
        return ferry_fail(err, FERRY_INVALID, "spec.domain.cpu: %lld CPUs, must be 1 to %d",
                          (long long)vmi->vcpus, VCPUS_MAX);
    }
    element_start(x, "memory");
    attribute(x, "unit", "b");
    snprintf(text, sizeof(text), "%lld", (long long)vmi->memory_bytes);
    note(x, xmlTextWriterWriteString(x->writer, BAD_CAST text));
    element_end(x);
    element_start(x, "vcpu");
    attribute(x, "placement", "static");
    snprintf(text, sizeof(text), "%lld", (long long)vmi->vcpus);
    note(x, xmlTextWriterWriteString(x->writer, BAD_CAST text));
    element_end(x);
    return 0;
}

static int write_os(struct xml *x, const yyjson_val *spec, const struct domain_xml_options *opt,
                    bool bootable, struct ferry_error *err)
{
    const char *machine = NULL, *image = NULL, *args = NULL;
    ferry_cleanup_free char *kernel = NULL;
    ferry_cleanup_free char *initrd = NULL;

    if (machine_type(spec, &machine, err) < 0 ||
        get_string(spec, "/domain/firmware/kernelBoot/kernelArgs", KERNEL_ARGS_MAX, &args, err) <
            0 ||
        get_string(spec, "/domain/firmware/kernelBoot/container/image", PATH_IN_IMAGE_MAX, &image,
                   err) < 0 ||
        guest_file(spec, "/domain/firmware/kernelBoot/container/kernelPath", opt->guest_dir,
                   &kernel, err) < 0 ||
        guest_file(spec, "/domain/firmware/kernelBoot/container/initrdPath", opt->guest_dir,
                   &initrd, err) < 0) {
        return -(int)FERRY_INVALID;
    }
    if (!kernel && !bootable) {
        return fail_field(
            err, "/domain/firmware/kernelBoot",
            "container.image and container.kernelPath are needed: without disks there "
            "is nothing else to boot from");
    }
    if (kernel && !ferry_streq(image, BUILTIN_IMAGE)) {
        return fail_field(err, "/domain/firmware/kernelBoot/container/image",
                          "must be " BUILTIN_IMAGE ": other images are not supported yet");
    }
    element_start(x, "os");
    element_start(x, "type");
    attribute(x, "arch", "x86_64");
    attribute(x, "machine", machine);
    note(x, xmlTextWriterWriteString(x->writer, BAD_CAST "hvm"));
    element_end(x);
    if (kernel) {
        text_element(x, "kernel", kernel);
    }
    if (kernel && initrd) {
        text_element(x, "initrd", initrd);
    }
    if (kernel && args) {
        text_element(x, "cmdline", args);
    }
    element_end(x);
    return 0;
}

static int write_cpu_features(struct xml *x, const yyjson_val *spec, struct ferry_error *err)
{
    yyjson_val *list = at(spec, "/domain/cpu/features"), *item;
    yyjson_arr_iter it = yyjson_arr_iter_with(list);

    while ((item = yyjson_arr_iter_next(&it))) {
        static const char *const policies[] = {"force", "require", "optional", "disable", "forbid"};
        const char *name = yyjson_get_str(yyjson_obj_get(item, "name"));
        const char *policy = yyjson_get_str(yyjson_obj_get(item, "policy"));
        bool known = false;

        policy = ferry_str_empty(policy) ? "require" : policy;
        for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
            known = known || ferry_streq(policy, policies[i]);
        }
        if (ferry_str_empty(name) || strlen(name) > WORD_MAX || !is_word(name, "-_.") || !known) {
            return fail_field(err, "/domain/cpu/features",
                              "each needs a name, and force, require, optional, disable or forbid "
                              "as policy");
        }
        LEAF(x, "feature", "policy", policy, "name", name);
    }
    return 0;
}

static int write_cpu(struct xml *x, const struct api_vmi *vmi, bool kvm, struct ferry_error *err)
{
    const char *model;
    int64_t parts[3];
    static const char *const names[3] = {"sockets", "cores", "threads"};

    if (get_string(vmi->spec, "/domain/cpu/model", WORD_MAX, &model, err) < 0) {
        return -(int)FERRY_INVALID;
    }
    model = model ? model : kvm ? CPU_NATIVE : CPU_EMULATED;
    bool of_host = ferry_streq(model, "host-model") || ferry_streq(model, "host-passthrough");
    if (!is_word(model, "-_.")) {
        return fail_field(err, "/domain/cpu/model", "is not the name of a CPU model");
    }
    if (of_host && !kvm) {
        return fail_field(err, "/domain/cpu/model",
                          "the host's CPU can be had with KVM only; name a model, e.g. qemu64");
    }
    element_start(x, "cpu");
    attribute(x, "mode", of_host ? model : "custom");
    if (!of_host) {
        attribute(x, "match", "exact");
    }
    attribute(x, "check", kvm ? "partial" : "none"); /* emulation leaves out what it cannot do */
    if (!of_host) {
        element_start(x, "model");
        attribute(x, "fallback", "forbid");
        note(x, xmlTextWriterWriteString(x->writer, BAD_CAST model));
        element_end(x);
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
    element_start(x, "topology");
    for (int i = 0; i < 3; i++) {
        attribute_number(x, names[i], parts[i]);
    }
    element_end(x);
    int rc = write_cpu_features(x, vmi->spec, err);
    element_end(x);
    return rc;
}

static void write_disk(struct xml *x, const struct disk *d, const char *dir)
{
    ferry_cleanup_free char *path = disks_path(dir, d->name);
    ferry_cleanup_free char *alias = ferry_asprintf("ua-%s", d->name);

    element_start(x, "disk");
    attribute(x, "type", "file");
    attribute(x, "device", "disk");
    /* a full or broken disk stops the guest, which is better than an error it cannot handle */
    LEAF(x, "driver", "name", "qemu", "type", d->format, "cache", d->cache, "error_policy", "stop",
         "discard", "unmap");
    LEAF(x, "source", "file", path);
    LEAF(x, "target", "dev", d->dev, "bus", d->bus);
    if (d->boot_order > 0) {
        element_start(x, "boot");
        attribute_number(x, "order", d->boot_order);
        element_end(x);
    }
    if (d->readonly) {
        element_start(x, "readonly");
        element_end(x);
    }
    LEAF(x, "alias", "name", alias);
    element_end(x);
}

static void write_devices(struct xml *x, const yyjson_val *spec, const struct disks *disks,
                          const struct domain_xml_options *opt)
{
    ferry_cleanup_free char *socket = ferry_asprintf("%s/serial.sock", opt->console_dir);
    ferry_cleanup_free char *log = ferry_asprintf("%s/serial.log", opt->console_dir);

    element_start(x, "devices");
    text_element(x, "emulator", opt->emulator);
    for (size_t i = 0; i < disks->n; i++) {
        write_disk(x, &disks->list[i], opt->disk_dir);
    }
    LEAF(x, "controller", "type", "usb", "model", "none");
    if (!yyjson_is_false(at(spec, "/domain/devices/autoattachSerialConsole"))) {
        element_start(x, "serial");
        attribute(x, "type", "unix");
        LEAF(x, "source", "mode", "bind", "path", socket);
        LEAF(x, "log", "file", log, "append", "on");
        LEAF(x, "target", "port", "0");
        element_end(x);
    }
    LEAF(x, "memballoon", "model", "none");
    element_end(x);
}

/* libvirt's own monitor is not enough: its recovery of a broken post-copy crashes in some versions.
 */
static void write_monitor(struct xml *x, const char *id, const char *path)
{
    ferry_cleanup_free char *chardev =
        ferry_asprintf("socket,id=%s,path=%s,server=on,wait=off", id, path);
    ferry_cleanup_free char *monitor = ferry_asprintf("chardev=%s,mode=control", id);

    LEAF(x, "qemu:arg", "value", "-chardev");
    LEAF(x, "qemu:arg", "value", chardev);
    LEAF(x, "qemu:arg", "value", "-mon");
    LEAF(x, "qemu:arg", "value", monitor);
}

/* Each takes one connection at a time: the second is for the one that is kept. */
static void write_monitors(struct xml *x, const struct domain_xml_options *opt)
{
    element_start(x, "qemu:commandline");
    write_monitor(x, "ferry-qmp", opt->qmp_path);
    write_monitor(x, "ferry-qmp-kept", opt->qmp_kept_path);
    element_end(x);
}

static int write_domain(struct xml *x, const struct api_vmi *vmi, const struct disks *disks,
                        const struct domain_xml_options *opt, struct ferry_error *err)
{
    element_start(x, "domain");
    attribute(x, "type", opt->kvm ? "kvm" : "qemu");
    attribute(x, "xmlns:qemu", "http://libvirt.org/schemas/domain/qemu/1.0");
    if (write_identity(x, vmi, err) < 0 || write_size(x, vmi, err) < 0 ||
        write_os(x, vmi->spec, opt, disks->n > 0, err) < 0) {
        return -(int)FERRY_INVALID;
    }
    element_start(x, "features");
    if (!yyjson_is_false(at(vmi->spec, "/domain/features/acpi/enabled"))) {
        element_start(x, "acpi");
        element_end(x);
    }
    element_end(x);
    if (write_cpu(x, vmi, opt->kvm, err) < 0) {
        return -(int)FERRY_INVALID;
    }
    LEAF(x, "clock", "offset", "utc");
    text_element(x, "on_poweroff", "destroy");
    text_element(x, "on_reboot", "restart");
    text_element(x, "on_crash", "destroy");
    write_devices(x, vmi->spec, disks, opt);
    write_monitors(x, opt);
    element_end(x);
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

int domain_xml(const struct api_vmi *vmi, const struct domain_xml_options *opt, char **ret_xml,
               struct ferry_error *err)
{
    struct disks disks;

    if (check_refused(vmi->spec, err) < 0 || disks_decode(vmi, &disks, err) < 0) {
        return -(int)FERRY_INVALID;
    }
    xmlBufferPtr buffer = xmlBufferCreate();
    struct xml x = {.writer = buffer ? xmlNewTextWriterMemory(buffer, 0) : NULL};
    int rc = 0;

    if (!x.writer) {
        xmlBufferFree(buffer);
        return ferry_fail(err, FERRY_FATAL, "making the domain XML: out of memory");
    }
    xmlTextWriterSetIndent(x.writer, 1);
    xmlTextWriterSetIndentString(x.writer, BAD_CAST "  ");
    rc = write_domain(&x, vmi, &disks, opt, err);
    xmlFreeTextWriter(x.writer); /* flushes into the buffer */
    if (rc == 0 && x.failed) {
        rc = ferry_fail(err, FERRY_INVALID, "the VMI holds text that XML cannot carry");
    }
    if (rc == 0) {
        *ret_xml = ferry_strdup((const char *)xmlBufferContent(buffer));
    }
    xmlBufferFree(buffer);
    return rc;
}
