#include "api/spec/vmi_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/guest_nic.h"
#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"

/* Of each list: they are held against each other name by name. */
enum { LIST_MAX = 256, NAME_SHOWN = 100, PART_MAX = 4096 };

struct rules {
    const char *where; /* "spec" or "spec.template.spec" */
    struct vmi_findings *found;
};

static yyjson_val *at(const yyjson_val *v, const char *pointer)
{
    return yyjson_ptr_get((yyjson_val *)v, pointer);
}

static const char *name_of(yyjson_val *item)
{
    const char *name = yyjson_get_str(yyjson_obj_get(item, "name"));

    return name ? name : "";
}

static bool has(const yyjson_val *list, const char *name)
{
    yyjson_val *v;
    size_t i, max;

    yyjson_arr_foreach((yyjson_val *)list, i, max, v)
    {
        if (strcmp(name_of(v), name) == 0) {
            return true;
        }
    }
    return false;
}

/* "WHERE.LIST[I]REST" */
static void say(const struct rules *r, enum vmi_finding_kind kind, const char *list, size_t i,
                const char *rest, const char *why)
{
    char field[VMI_FINDING_FIELD];

    snprintf(field, sizeof(field), "%s.%s[%zu]%s", r->where, list, i, rest);
    vmi_findings_add(r->found, kind, field, NULL, NULL, "%s", why);
}

static void say_of(const struct rules *r, enum vmi_finding_kind kind, const char *part,
                   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void say_of(const struct rules *r, enum vmi_finding_kind kind, const char *part,
                   const char *fmt, ...)
{
    char field[VMI_FINDING_FIELD], why[VMI_FINDING_WHY];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    snprintf(field, sizeof(field), "%s.%s", r->where, part);
    vmi_findings_add(r->found, kind, field, NULL, NULL, "%s", why);
}

static void say_name(const struct rules *r, enum vmi_finding_kind kind, const char *list, size_t i,
                     const char *name, const char *why)
{
    char text[VMI_FINDING_WHY];

    snprintf(text, sizeof(text), "\"%.*s\"%s%s", NAME_SHOWN, name, *why ? ": " : "", why);
    say(r, kind, list, i, ".name", text);
}

/* ---- names -------------------------------------------------------------------------------------
 */

#define DISKS "domain.devices.disks"
#define INTERFACES "domain.devices.interfaces"

/* Each of a list has its own name. */
static void check_unique(const struct rules *r, yyjson_val *list, const char *what)
{
    const char *before[LIST_MAX];
    yyjson_val *v;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, v)
    {
        before[i] = name_of(v);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(before[k], before[i]) == 0) {
                say_name(r, VMI_FINDING_DUPLICATE, what, i, before[i], "");
                break;
            }
        }
    }
}

/* Each of a list is named in the other, too. */
static void check_named(const struct rules *r, yyjson_val *list, const yyjson_val *other,
                        const char *what, const char *why)
{
    yyjson_val *v;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, v)
    {
        if (!has(other, name_of(v))) {
            say_name(r, VMI_FINDING_INVALID, what, i, name_of(v), why);
        }
    }
}

static void check_volumes_shown(const struct rules *r, const yyjson_val *spec)
{
    yyjson_val *v, *disks = at(spec, "/domain/devices/disks");
    yyjson_val *filesystems = at(spec, "/domain/devices/filesystems");
    size_t i, max;

    yyjson_arr_foreach(at(spec, "/volumes"), i, max, v)
    {
        if (!yyjson_obj_get(v, "memoryDump") && !has(disks, name_of(v)) &&
            !has(filesystems, name_of(v))) {
            say_name(r, VMI_FINDING_INVALID, "volumes", i, name_of(v),
                     "no disk has this name: list one in domain.devices.disks");
        }
    }
}

/* ---- one of several ----------------------------------------------------------------------------
 */

/* At most one of these, and at least one where `must` says of what. */
static void check_one(const struct rules *r, yyjson_val *list, const char *what,
                      const char *const *choices, const char *must)
{
    yyjson_val *v, *key, *value;
    size_t i, max, k, n;

    yyjson_arr_foreach(list, i, max, v)
    {
        size_t found = 0;

        yyjson_obj_foreach(v, k, n, key, value)
        {
            for (const char *const *c = choices; *c; c++) {
                found += ferry_streq(*c, yyjson_get_str(key)) && !yyjson_is_null(value);
            }
        }
        if (found > 1) {
            say(r, VMI_FINDING_INVALID, what, i, "", "may only be of one kind");
        } else if (!found && must) {
            say(r, VMI_FINDING_REQUIRED, what, i, "", must);
        }
    }
}

static const char *const targets[] = {"disk", "lun", "cdrom", NULL};
static const char *const bindings[] = {"bridge",       "masquerade", "sriov",   "slirp", "passt",
                                       "passtBinding", "macvtap",    "binding", NULL};
static const char *const networks[] = {"pod", "multus", NULL};
static const char *const sources[] = {"cloudInitConfigDrive",
                                      "cloudInitNoCloud",
                                      "configMap",
                                      "containerDisk",
                                      "containerPath",
                                      "dataVolume",
                                      "downwardAPI",
                                      "ephemeral",
                                      "emptyDisk",
                                      "hostDisk",
                                      "persistentVolumeClaim",
                                      "memoryDump",
                                      "secret",
                                      "serviceAccount",
                                      "sysprep",
                                      "downwardMetrics",
                                      NULL};

/* ---- boot order --------------------------------------------------------------------------------
 */

struct orders {
    size_t n;
    int64_t list[2 * LIST_MAX];
};

static bool is_taken(const struct orders *taken, int64_t order)
{
    for (size_t i = 0; i < taken->n; i++) {
        if (taken->list[i] == order) {
            return true;
        }
    }
    return false;
}

static void check_boot_order(const struct rules *r, yyjson_val *list, const char *what,
                             struct orders *taken)
{
    yyjson_val *v;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, v)
    {
        yyjson_val *order = yyjson_obj_get(v, "bootOrder");
        int64_t n = yyjson_get_sint(order);
        char text[VMI_FINDING_WHY];

        if (!yyjson_is_int(order)) {
            continue;
        }
        snprintf(text, sizeof(text), "%lld: %s", (long long)n,
                 n < 1 ? "must be greater than 0, if there is one"
                       : "another disk or interface has this place already");
        if (n < 1 || is_taken(taken, n)) {
            say(r, n < 1 ? VMI_FINDING_INVALID : VMI_FINDING_DUPLICATE, what, i, ".bootOrder",
                text);
        }
        taken->list[taken->n++] = n;
    }
}

/* ---- all of them -------------------------------------------------------------------------------
 */

/* False: too long to be held against each other. */
static bool check_lengths(const struct rules *r, const yyjson_val *spec)
{
    static const struct {
        const char *pointer, *name;
        size_t most;
    } lists[] = {
        {"/volumes", "volumes", LIST_MAX},
        {"/networks", "networks", LIST_MAX},
        {"/domain/devices/disks", DISKS, VMI_DISKS_MAX},
        {"/domain/devices/interfaces", INTERFACES, VMI_HOST_DEVICES_MAX},
        {"/domain/devices/hostDevices", "domain.devices.hostDevices", VMI_HOST_DEVICES_MAX},
        {"/domain/devices/filesystems", "domain.devices.filesystems", LIST_MAX},
    };
    bool fits = true;

    for (size_t i = 0; i < FERRY_COUNT(lists); i++) {
        if (yyjson_arr_size(at(spec, lists[i].pointer)) > lists[i].most) {
            say_of(r, VMI_FINDING_TOO_MANY, lists[i].name, "must have at most %zu items",
                   lists[i].most);
            fits = false;
        }
    }
    return fits;
}

/* ---- amounts -----------------------------------------------------------------------------------
 */

static int64_t cpu_part(const yyjson_val *spec, const char *pointer)
{
    int64_t n = api_json_int(spec, pointer, 0);

    return n < 1 ? 1 : n > PART_MAX ? PART_MAX : n;
}

static void check_amounts(const struct rules *r, const yyjson_val *spec)
{
    yyjson_val *guest = at(spec, "/domain/memory/guest");
    int64_t bytes = 0, cpus = cpu_part(spec, "/domain/cpu/sockets");

    cpus *= cpu_part(spec, "/domain/cpu/cores");
    cpus *= cpu_part(spec, "/domain/cpu/threads");
    if (cpus > VMI_CPUS_MAX) {
        say_of(r, VMI_FINDING_INVALID, "domain.cpu", "%lld: a guest has at most %d CPUs",
               (long long)cpus, VMI_CPUS_MAX);
    }
    if (guest && api_quantity_val(guest, 1, &bytes, NULL) == 0 && bytes < VMI_MEMORY_MIN) {
        say_of(r, VMI_FINDING_INVALID, "domain.memory.guest", "a guest has at least 1Mi");
    }
}

static void check_taps(const struct rules *r, yyjson_val *interfaces)
{
    yyjson_val *v;
    size_t i, max, taps = 0;

    yyjson_arr_foreach(interfaces, i, max, v)
    {
        taps += !yyjson_obj_get(v, "sriov");
    }
    if (taps > API_GUEST_NICS) {
        say_of(r, VMI_FINDING_TOO_MANY, INTERFACES, "at most %d, besides those of SR-IOV",
               API_GUEST_NICS);
    }
}

/* QEMU's own way of asynchronous I/O goes past the host's cache. */
static void check_io(const struct rules *r, yyjson_val *disks)
{
    yyjson_val *v;
    size_t i, max;

    yyjson_arr_foreach(disks, i, max, v)
    {
        const char *cache = yyjson_get_str(yyjson_obj_get(v, "cache"));

        if (ferry_streq(yyjson_get_str(yyjson_obj_get(v, "io")), "native") &&
            !ferry_str_empty(cache) && !ferry_streq(cache, "none")) {
            say(r, VMI_FINDING_INVALID, DISKS, i, ".io", "\"native\": needs cache none");
        }
    }
}

/* What cloud-init gets, once at most from each. */
static void check_seed(const struct rules *r, size_t i, yyjson_val *seed)
{
    static const char *const given[][3] = {
        {"userData", "userDataBase64", "secretRef"},
        {"networkData", "networkDataBase64", "networkDataSecretRef"},
    };
    size_t found[2] = {0};

    for (size_t k = 0; k < 6; k++) {
        yyjson_val *v = yyjson_obj_get(seed, given[k / 3][k % 3]);

        found[k / 3] += v && !yyjson_is_null(v);
    }
    if (found[0] > 1 || found[1] > 1) {
        say(r, VMI_FINDING_INVALID, "volumes", i, ".cloudInitNoCloud",
            "may have one of userData, userDataBase64 and secretRef, and one of networkData, "
            "networkDataBase64 and networkDataSecretRef");
    } else if (found[0] + found[1] == 0) {
        say(r, VMI_FINDING_REQUIRED, "volumes", i, ".cloudInitNoCloud",
            "userData or networkData must be there");
    }
}

static void check_seeds(const struct rules *r, yyjson_val *volumes)
{
    yyjson_val *v;
    size_t i, max;

    yyjson_arr_foreach(volumes, i, max, v)
    {
        if (yyjson_is_obj(yyjson_obj_get(v, "cloudInitNoCloud"))) {
            check_seed(r, i, yyjson_obj_get(v, "cloudInitNoCloud"));
        }
    }
}

void vmi_rules(const yyjson_val *spec, const char *where, bool complete, struct vmi_findings *ret)
{
    const struct rules r = {.where = where, .found = ret};
    yyjson_val *disks = at(spec, "/domain/devices/disks"), *volumes = at(spec, "/volumes");
    yyjson_val *interfaces = at(spec, "/domain/devices/interfaces");
    yyjson_val *on = at(spec, "/networks");
    struct orders taken = {0};

    check_amounts(&r, spec);
    if (!check_lengths(&r, spec)) {
        return;
    }
    check_taps(&r, interfaces);
    check_io(&r, disks);
    check_seeds(&r, volumes);
    check_unique(&r, disks, DISKS);
    check_unique(&r, volumes, "volumes");
    check_unique(&r, interfaces, INTERFACES);
    check_unique(&r, on, "networks");
    check_named(&r, disks, volumes, DISKS, "there is no volume of this name");
    check_named(&r, interfaces, on, INTERFACES, "there is no network of this name");
    check_named(&r, on, interfaces, "networks",
                "no interface has this name: list one in domain.devices.interfaces");
    if (complete) {
        check_volumes_shown(&r, spec);
    }
    check_one(&r, disks, DISKS, targets, NULL);
    check_one(&r, interfaces, INTERFACES, bindings, "bridge or sriov must be there");
    check_one(&r, on, "networks", networks, "multus must be there");
    check_one(&r, volumes, "volumes", sources,
              "what it is must be there: persistentVolumeClaim, hostDisk, emptyDisk, ...");
    check_boot_order(&r, disks, DISKS, &taken);
    check_boot_order(&r, interfaces, INTERFACES, &taken);
}

void vmi_rules_annotations(const yyjson_val *metadata, const char *where, struct vmi_findings *ret)
{
    yyjson_val *annotations = yyjson_obj_get((yyjson_val *)metadata, "annotations");
    yyjson_val *hooks = yyjson_obj_get(annotations, ANNOTATION_HOOKS);
    char field[VMI_FINDING_FIELD];

    if (yyjson_get_len(hooks) > 0) {
        snprintf(field, sizeof(field), "%s.annotations[" ANNOTATION_HOOKS "]", where);
        vmi_findings_add(ret, VMI_FINDING_FORBIDDEN, field, NULL, hooks,
                         "programs of yours do not change the domain of a guest: leave it out");
    }
}

void vmi_rules_vm(const yyjson_val *spec, struct vmi_findings *ret)
{
    yyjson_val *running = at(spec, "/running"), *strategy = at(spec, "/runStrategy");

    if (running && strategy && !yyjson_is_null(running) && !yyjson_is_null(strategy)) {
        vmi_findings_add(ret, VMI_FINDING_INVALID, "spec.running", NULL, NULL,
                         "running and runStrategy cannot both be there: use runStrategy");
    }
}
