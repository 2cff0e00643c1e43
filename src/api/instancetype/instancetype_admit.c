/* What is asked of a VirtualMachine before it is taken, and of instance types and preferences
 * themselves, in KubeVirt's words. */
#include "api/instancetype/instancetype.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/instancetype/instancetype_edit.h"
#include "api/spec/vmi_field_check.h"
#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "json/doc.h"

enum { THREADS_PER_CORE = 2, LIST_MAX = 1024, CPUS_MAX = 1 << 20 };

#define ARCHITECTURE "amd64" /* of a machine that names none */
#define CPU "spec.template.spec.domain.cpu"

static int wrong(struct ferry_error *err, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int wrong(struct ferry_error *err, const char *field, const char *fmt, ...)
{
    char words[FERRY_ERROR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    (void)ferry_fail(err, FERRY_INVALID, "%s", words);
    return ferry_wrap_about(err, "%s", field);
}

/* ---- vCPUs -------------------------------------------------------------------------------------
 */

static int check_spread(const struct instancetype_pair *given, struct ferry_error *err)
{
    struct instancetype_layout l = instancetype_layout(given->preference);
    int64_t n = api_json_int(given->type, "/cpu/guest", 1);

    if (!given->type || l.topology != TOPOLOGY_SPREAD) {
        return 0;
    }
    if (l.across == ACROSS_SOCKETS_CORES && n % l.ratio) {
        return wrong(err, "instancetype.spec.cpu.guest",
                     "%" PRId64 " vCPUs provided by the instance type are not divisible by the "
                     "Spec.PreferSpreadSocketToCoreRatio or Spec.CPU.PreferSpreadOptions.Ratio of "
                     "%" PRId64 " provided by the preference",
                     n, l.ratio);
    }
    if (l.across == ACROSS_CORES_THREADS && n % l.ratio) {
        return wrong(err, "instancetype.spec.cpu.guest",
                     "%" PRId64 " vCPUs provided by the instance type are not divisible by the "
                     "number of threads per core %" PRId64,
                     n, l.ratio);
    }
    if (l.across == ACROSS_SOCKETS_CORES_THREADS &&
        (n % THREADS_PER_CORE || n / THREADS_PER_CORE % l.ratio)) {
        return wrong(err, "instancetype.spec.cpu.guest",
                     "%" PRId64 " vCPUs provided by the instance type are not divisible by the "
                     "number of threads per core %d and Spec.PreferSpreadSocketToCoreRatio or "
                     "Spec.CPU.PreferSpreadOptions.Ratio of %" PRId64,
                     n, THREADS_PER_CORE, l.ratio);
    }
    return 0;
}

/* ---- what a preference requires ----------------------------------------------------------------
 */

#define REQUIRES "failure checking preference requirements: "

/* More than any machine has, and three of them multiplied are still a number. */
static int64_t bounded(int64_t n)
{
    return n < 0 ? 0 : n < CPUS_MAX ? n : CPUS_MAX;
}

static int64_t count_at(const struct instancetype_edit *e, const char *path)
{
    yyjson_mut_val *v = instancetype_get(e, path);

    return yyjson_mut_is_int(v) ? bounded(yyjson_mut_get_sint(v)) : 0;
}

static int64_t whole_cpus(const struct instancetype_edit *e, const char *path)
{
    ferry_cleanup_free char *text = json_doc_mut_text(instancetype_get(e, path), 0, NULL);
    json_cleanup_doc yyjson_doc *doc = text ? yyjson_read(text, strlen(text), 0) : NULL;
    int64_t n = 0;

    return doc && api_quantity_val(yyjson_doc_get_root(doc), 1, &n, NULL) == 0 ? bounded(n) : 0;
}

/* A machine that lays nothing out has a socket for each CPU that it asks for, at least one. */
static void read_topology(const struct instancetype_edit *e, int64_t ret[3])
{
    static const char *const paths[] = {"domain/cpu/sockets", "domain/cpu/cores",
                                        "domain/cpu/threads"};

    for (size_t i = 0; i < 3; i++) {
        ret[i] = count_at(e, paths[i]);
    }
    if (!ret[0] && !ret[1] && !ret[2]) {
        int64_t limit = whole_cpus(e, "domain/resources/limits/cpu");
        int64_t request = whole_cpus(e, "domain/resources/requests/cpu");

        ret[0] = limit ? limit : request ? request : 1;
        ret[1] = ret[2] = 1;
    }
}

/* Which of the three the preference counts, as KubeVirt has it. */
static int64_t counted(const int64_t t[3], struct instancetype_layout l, const char **ret_field,
                       const char **ret_as)
{
    static const struct {
        const char *field, *as;
        bool part[3];
    } ways[] = {
        [TOPOLOGY_SOCKETS] = {CPU ".sockets", "sockets", {true, false, false}},
        [TOPOLOGY_CORES] = {CPU ".cores", "cores", {false, true, false}},
        [TOPOLOGY_THREADS] = {CPU ".threads", "threads", {false, false, true}},
        [TOPOLOGY_ANY] = {CPU ".cores, " CPU ".sockets, " CPU ".threads",
                          "cores, sockets and threads",
                          {true, true, true}},
        [TOPOLOGY_SPREAD + ACROSS_SOCKETS_CORES] = {CPU ".sockets, " CPU ".cores",
                                                    "SocketsCores",
                                                    {true, true, false}},
        [TOPOLOGY_SPREAD + ACROSS_CORES_THREADS] = {CPU ".cores, " CPU ".threads",
                                                    "CoresThreads",
                                                    {false, true, true}},
        [TOPOLOGY_SPREAD + ACROSS_SOCKETS_CORES_THREADS] = {CPU ".sockets, " CPU ".cores, " CPU
                                                                ".threads",
                                                            "SocketsCoresThreads",
                                                            {true, true, true}},
    };
    size_t w = l.topology == TOPOLOGY_SPREAD ? (size_t)TOPOLOGY_SPREAD + l.across : l.topology;
    int64_t n = 1;

    for (size_t i = 0; i < 3; i++) {
        n *= ways[w].part[i] ? t[i] : 1;
    }
    *ret_field = ways[w].field;
    *ret_as = ways[w].as;
    return n;
}

static int require_cpus(const struct instancetype_edit *e, const struct instancetype_pair *given,
                        struct ferry_error *err)
{
    int64_t wanted = api_json_int(given->preference, "/requirements/cpu/guest", 0);
    int64_t type_has = api_json_int(given->type, "/cpu/guest", 0), topology[3];
    const char *field, *as;

    if (given->type) {
        return type_has >= wanted
                   ? 0
                   : wrong(err, "spec.instancetype",
                           REQUIRES "insufficient CPU resources of %" PRId64
                                    " vCPU provided by instance type, preference requires %" PRId64
                                    " vCPU",
                           type_has, wanted);
    }
    read_topology(e, topology);
    int64_t has = counted(topology, instancetype_layout(given->preference), &field, &as);
    return has >= wanted
               ? 0
               : wrong(err, field,
                       REQUIRES "insufficient CPU resources of %" PRId64
                                " vCPU provided by VirtualMachine, preference requires %" PRId64
                                " vCPU provided as %s",
                       has, wanted, as);
}

static char *memory_text(const struct instancetype_edit *e)
{
    yyjson_mut_val *v = instancetype_get(e, "domain/memory/guest");

    v = v ? v : instancetype_get(e, "domain/resources/requests/memory");
    v = v ? v : instancetype_get(e, "domain/resources/limits/memory");
    return v && yyjson_mut_is_str(v) ? ferry_strdup(yyjson_mut_get_str(v))
                                     : json_doc_mut_text(v, 0, NULL);
}

static int require_memory(const struct instancetype_edit *e, const struct instancetype_pair *given,
                          struct ferry_error *err)
{
    const yyjson_val *wanted = instancetype_from(given->preference, "requirements/memory/guest");
    ferry_cleanup_free char *has = memory_text(e);
    int64_t want = 0, bytes = 0;

    if (!wanted || api_quantity_val(wanted, 1, &want, NULL) < 0 ||
        (has && api_quantity(has, 1, &bytes, NULL) < 0) || bytes >= want) {
        return 0; /* what is no amount is refused by others */
    }
    ferry_cleanup_free char *text = json_doc_val_text(wanted, 0, NULL);
    const char *plain = yyjson_get_str((yyjson_val *)wanted);
    return wrong(err, given->type ? "spec.instancetype" : "spec.template.spec.domain.memory",
                 REQUIRES "insufficient Memory resources of %s provided by %s, preference requires "
                          "%s",
                 has ? has : "0", given->type ? "instance type" : "VirtualMachine",
                 plain ? plain : text);
}

static int require_architecture(const struct instancetype_edit *e,
                                const struct instancetype_pair *given, struct ferry_error *err)
{
    const char *wanted = api_json_str(given->preference, "/requirements/architecture");
    const char *has = yyjson_mut_get_str(instancetype_get(e, "architecture"));

    has = ferry_str_empty(has) ? ARCHITECTURE : has;
    if (!wanted || ferry_streq(wanted, has)) {
        return 0;
    }
    return wrong(err, "spec.template.spec.architecture",
                 REQUIRES "preference requires architecture %.60s but %.60s is being requested",
                 wanted, has);
}

/* ---- machines ----------------------------------------------------------------------------------
 */

static int check_conflicts(const struct instancetype_edit *e, const struct instancetype_pair *given,
                           struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf conflicts = {0};

    if (instancetype_apply(e->doc, e->spec, e->metadata, given, "spec.template.spec", &conflicts) ==
        0) {
        return 0;
    }
    ferry_cleanup_free char *first = ferry_strndup(conflicts.data, strcspn(conflicts.data, ","));
    return wrong(err, first, "VM field(s) %s conflicts with selected instance type",
                 conflicts.data);
}

/* Lists are looked through by each other's names, so their lengths have an end. */
static int check_lengths(const struct instancetype_edit *e, const struct instancetype_pair *given,
                         struct ferry_error *err)
{
    static const char *const lists[][2] = {
        {"volumes", "volumes"},
        {"networks", "networks"},
        {"domain/cpu/features", "domain.cpu.features"},
        {"domain/devices/disks", "domain.devices.disks"},
        {"domain/devices/filesystems", "domain.devices.filesystems"},
        {"domain/devices/interfaces", "domain.devices.interfaces"}};
    yyjson_val *features =
        (yyjson_val *)instancetype_from(given->preference, "cpu/preferredCPUFeatures");

    for (size_t i = 0; i < FERRY_COUNT(lists); i++) {
        if (yyjson_mut_arr_size(instancetype_get(e, lists[i][0])) > LIST_MAX) {
            ferry_cleanup_free char *field = ferry_asprintf("spec.template.spec.%s", lists[i][1]);

            return wrong(err, field, "must have at most %d items", LIST_MAX);
        }
    }
    return yyjson_arr_size(features) <= LIST_MAX
               ? 0
               : wrong(err, "spec.preference",
                       "its cpu.preferredCPUFeatures must have at most %d items", LIST_MAX);
}

/* The controller makes instances, and what it writes there is believed: nobody gets there by this
 * way. NULL: none. */
static const char *programs_annotation(const yyjson_val *spec)
{
    yyjson_val *key, *value;
    size_t i, max;

    yyjson_obj_foreach((yyjson_val *)instancetype_from(spec, "annotations"), i, max, key, value)
    {
        if (wire_annotation_is_programs(yyjson_get_str(key))) {
            return yyjson_get_str(key);
        }
    }
    return NULL;
}

#define OF_PROGRAMS "annotations of Ferry's programs may not be set: %.100s"

static int check_annotations(const struct instancetype_pair *given, struct ferry_error *err)
{
    const char *of_type = programs_annotation(given->type);
    const char *of_preference = programs_annotation(given->preference);

    if (of_type) {
        return wrong(err, "spec.instancetype", OF_PROGRAMS, of_type);
    }
    return of_preference ? wrong(err, "spec.preference", OF_PROGRAMS, of_preference) : 0;
}

/* A storage class is for data volumes that are made with the machine. */
static int check_storage_class(const yyjson_val *vm, const struct instancetype_pair *given,
                               struct ferry_error *err)
{
    const char *class = api_json_str(given->preference, "/volumes/preferredStorageClassName");
    yyjson_val *templates = yyjson_ptr_get((yyjson_val *)vm, "/spec/dataVolumeTemplates"), *t;
    size_t i, max;

    yyjson_arr_foreach(templates, i, max, t)
    {
        bool named = api_json_str(t, "/spec/pvc/storageClassName") ||
                     api_json_str(t, "/spec/storage/storageClassName");

        if (!ferry_str_empty(class) && !named) {
            return wrong(err, "spec.dataVolumeTemplates",
                         "the preference's storage class %.100s is not given to data volumes; name "
                         "it in the template of each",
                         class);
        }
    }
    return 0;
}

/* What comes of both is judged as if the machine said it itself: whoever gets a field by a
 * preference is not to get less than he who writes it down. What the template says is judged where
 * the machine is taken. */
static int check_fields(const yyjson_val *template, const yyjson_mut_val *made,
                        struct ferry_error *err)
{
    json_cleanup_doc yyjson_doc *now = yyjson_mut_val_imut_copy((yyjson_mut_val *)made, NULL);
    struct vmi_findings found = {0};

    vmi_field_check(VMI_FIELDS_OF_VMI, yyjson_doc_get_root(now), template, &found);
    for (size_t i = 0; i < found.n; i++) {
        if (found.list[i].kind != VMI_FINDING_NO_EFFECT) {
            ferry_cleanup_free char *field =
                ferry_asprintf("spec.template.%s", found.list[i].field);

            return wrong(err, field, "by the instance type or preference: %s", found.list[i].why);
        }
    }
    return 0;
}

int instancetype_admit(const yyjson_val *vm, const struct instancetype_pair *given,
                       struct ferry_error *err)
{
    yyjson_val *template = yyjson_ptr_get((yyjson_val *)vm, "/spec/template");

    if (!given->type && !given->preference) {
        return 0;
    }
    json_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *copy = template ? yyjson_val_mut_copy(doc, template) : yyjson_mut_obj(doc);
    const struct instancetype_edit e = {.doc = doc,
                                        .spec = instancetype_object(doc, copy, "spec"),
                                        .metadata = instancetype_object(doc, copy, "metadata")};
    int rc = check_lengths(&e, given, err);
    rc = rc < 0 ? rc : check_annotations(given, err);
    rc = rc < 0 ? rc : check_spread(given, err);
    rc = rc < 0 ? rc : check_conflicts(&e, given, err);
    rc = rc < 0 ? rc : require_cpus(&e, given, err);
    rc = rc < 0 ? rc : require_memory(&e, given, err);
    rc = rc < 0 ? rc : require_architecture(&e, given, err);
    rc = rc < 0 ? rc : check_storage_class(vm, given, err);
    return rc < 0 ? rc : check_fields(template, copy, err);
}

/* ---- instance types and preferences themselves -------------------------------------------------
 */

static int check_type(const yyjson_val *spec, struct ferry_error *err)
{
    if (api_json_int(spec, "/memory/overcommitPercent", 0) != 0 &&
        instancetype_from(spec, "memory/hugepages")) {
        return wrong(err, "spec.memory",
                     "spec.memory.overcommitPercent and spec.memory.hugepages should not be "
                     "requested together.");
    }
    return 0;
}

static int check_preference(const yyjson_val *spec, struct ferry_error *err)
{
    struct instancetype_layout l = instancetype_layout(spec);

    if (l.topology == TOPOLOGY_SPREAD && l.across == ACROSS_CORES_THREADS &&
        l.ratio != THREADS_PER_CORE) {
        return wrong(err, "spec",
                     "only a ratio of 2 (1 core 2 threads) is allowed when spreading vCPUs over "
                     "cores and threads");
    }
    return 0;
}

int instancetype_check(const struct api_resource *r, const yyjson_val *object,
                       struct ferry_error *err)
{
    const yyjson_val *spec = yyjson_obj_get((yyjson_val *)object, "spec");

    if (!ferry_streq(r->group, "instancetype.kubevirt.io")) {
        return 0;
    }
    if (programs_annotation(spec)) {
        return wrong(err, "spec.annotations", OF_PROGRAMS, programs_annotation(spec));
    }
    return ferry_str_ends(r->plural, "preferences") ? check_preference(spec, err)
                                                    : check_type(spec, err);
}
