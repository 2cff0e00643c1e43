#include "cli/verbs/manifest.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"
#include "cli/views/progress.h"
#include "json/doc.h"

enum {
    DEFAULT_HEARTBEAT = 20,
    NAME_MAX_LEN = 63,
    LEAST_BANDWIDTH = 1000000, /* bytes/s: a GiB takes eighteen minutes */
    GUEST_OVERHEAD_MIB = 16,   /* what the guest keeps for itself beside its working set */
};
#define MIB (INT64_C(1) << 20)

int manifest_check_name(const char *what, const char *name, struct ferry_error *err)
{
    size_t n = strlen(name);
    bool good = n > 0 && n <= NAME_MAX_LEN && name[0] != '-' && name[n - 1] != '-';

    for (const char *c = name; *c && good; c++) {
        good = islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '-';
    }
    if (!good) {
        return ferry_fail(err, FERRY_INVALID,
                          "'%s' cannot be the name of a %s: use up to 63 lower-case letters, "
                          "digits and dashes, with a letter or digit at both ends",
                          name, what);
    }
    return 0;
}

/* Adds obj[key] = {} and returns it. */
static yyjson_mut_val *put(yyjson_mut_doc *doc, yyjson_mut_val *obj, const char *key)
{
    yyjson_mut_val *v = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_val(doc, obj, key, v);
    return v;
}

static int working_set(const struct manifest_vm *vm, int64_t memory_mib, int *ret,
                       struct ferry_error *err)
{
    int64_t most = memory_mib - GUEST_OVERHEAD_MIB;

    if (most < 1) {
        return ferry_fail(err, FERRY_INVALID,
                          "--memory: '%s' is too little; the test guest needs %d MiB for itself",
                          vm->memory, GUEST_OVERHEAD_MIB);
    }
    if (vm->working_set > most) {
        return ferry_fail(err, FERRY_INVALID,
                          "--working-set: %d MiB do not fit into %s of memory; at most %d do",
                          vm->working_set, vm->memory, (int)most);
    }
    int64_t quarter = memory_mib / 4 < most ? memory_mib / 4 : most;
    *ret = vm->working_set ? vm->working_set : (int)quarter;
    return 0;
}

static int check_strategy(const char *strategy, struct ferry_error *err)
{
    static const char *const known[] = {"Manual", "Always", "RerunOnFailure", "Once", "Halted"};

    for (size_t i = 0; i < FERRY_COUNT(known) && strategy; i++) {
        if (ferry_streq(strategy, known[i])) {
            return 0;
        }
    }
    return strategy ? ferry_fail(err, FERRY_INVALID,
                                 "--run-strategy: '%s' is none of Manual, Always, RerunOnFailure, "
                                 "Once, Halted",
                                 strategy)
                    : 0;
}

int manifest_vm(const struct manifest_vm *vm, char **ret, struct ferry_error *err)
{
    int64_t bytes;
    int ws = 0;
    int rc = manifest_check_name("virtual machine", vm->name, err);

    if (rc < 0) {
        return rc;
    }
    if (api_quantity(vm->memory, 1, &bytes, err) < 0) {
        return ferry_wrap(err, "--memory");
    }
    rc = working_set(vm, bytes / MIB, &ws, err);
    if (rc < 0 || (rc = check_strategy(vm->run_strategy, err)) < 0) {
        return rc;
    }
    ferry_cleanup_free char *args =
        ferry_asprintf("ws=%d rate=%d hb=%d fill=rand cover=all", ws, vm->dirty_rate,
                       vm->heartbeat ? vm->heartbeat : DEFAULT_HEARTBEAT);
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);
    yyjson_mut_obj_add_str(doc, root, "apiVersion", "kubevirt.io/v1");
    yyjson_mut_obj_add_str(doc, root, "kind", "VirtualMachine");
    yyjson_mut_obj_add_str(doc, put(doc, root, "metadata"), "name", vm->name);
    yyjson_mut_val *outer = put(doc, root, "spec");
    yyjson_mut_obj_add_str(doc, outer, "runStrategy",
                           vm->run_strategy ? vm->run_strategy : "Manual");
    yyjson_mut_val *spec = put(doc, put(doc, outer, "template"), "spec");
    yyjson_mut_obj_add_int(doc, spec, "terminationGracePeriodSeconds", 5);
    yyjson_mut_val *domain = put(doc, spec, "domain");
    yyjson_mut_obj_add_str(doc, put(doc, domain, "memory"), "guest", vm->memory);
    put(doc, domain, "devices");
    yyjson_mut_val *boot = put(doc, put(doc, domain, "firmware"), "kernelBoot");
    yyjson_mut_obj_add_str(doc, boot, "kernelArgs", args);
    yyjson_mut_val *container = put(doc, boot, "container");
    yyjson_mut_obj_add_str(doc, container, "image", IMAGE_BUILTIN);
    yyjson_mut_obj_add_str(doc, container, "kernelPath", "/heartbeat.elf");
    *ret = json_doc_take(doc);
    return 0;
}

char *manifest_migration(const char *vm, const char *node)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);
    ferry_cleanup_free char *prefix = ferry_asprintf("%s-", vm);

    yyjson_mut_obj_add_str(doc, root, "apiVersion", "kubevirt.io/v1");
    yyjson_mut_obj_add_str(doc, root, "kind", "VirtualMachineInstanceMigration");
    yyjson_mut_obj_add_str(doc, put(doc, root, "metadata"), "generateName", prefix);
    yyjson_mut_val *spec = put(doc, root, "spec");
    yyjson_mut_obj_add_str(doc, spec, "vmiName", vm);
    if (node) {
        yyjson_mut_obj_add_str(doc, put(doc, spec, "addedNodeSelector"), LABEL_HOSTNAME, node);
    }
    return json_doc_take(doc);
}

char *manifest_evacuation(const char *vm, const char *node)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);

    yyjson_mut_obj_add_str(doc, root, "apiVersion", "kubevirt.io/v1");
    yyjson_mut_obj_add_str(doc, root, "kind", "VirtualMachineInstanceMigration");
    yyjson_mut_val *meta = put(doc, root, "metadata");
    yyjson_mut_obj_add_str(doc, meta, "generateName", "kubevirt-evacuation-");
    yyjson_mut_obj_add_str(doc, put(doc, meta, "annotations"), ANNOTATION_EVACUATION, node);
    yyjson_mut_obj_add_str(doc, put(doc, root, "spec"), "vmiName", vm);
    return json_doc_take(doc);
}

static int put_labels(yyjson_mut_doc *doc, yyjson_mut_val *selectors, const char *key,
                      const char *option, const struct ferry_option_list *labels,
                      struct ferry_error *err)
{
    yyjson_mut_val *to = labels->n > 0 ? put(doc, selectors, key) : NULL;

    for (size_t i = 0; i < labels->n; i++) {
        const char *eq = strchr(labels->items[i], '=');

        if (!eq || eq == labels->items[i]) {
            return ferry_fail(err, FERRY_INVALID, "--%s: '%s' is not KEY=VALUE", option,
                              labels->items[i]);
        }
        yyjson_mut_obj_put(
            to, yyjson_mut_strncpy(doc, labels->items[i], (size_t)(eq - labels->items[i])),
            yyjson_mut_str(doc, eq + 1));
    }
    return 0;
}

static void put_settings(yyjson_mut_doc *doc, yyjson_mut_val *spec, const struct manifest_policy *p)
{
    if (p->auto_converge) {
        yyjson_mut_obj_add_bool(doc, spec, "allowAutoConverge", true);
    }
    if (p->post_copy) {
        yyjson_mut_obj_add_bool(doc, spec, "allowPostCopy", true);
    }
    if (p->disruption) {
        yyjson_mut_obj_add_bool(doc, spec, "allowWorkloadDisruption", true);
    }
    if (p->bandwidth) {
        yyjson_mut_obj_add_str(doc, spec, "bandwidthPerMigration", p->bandwidth);
    }
    if (p->completion_timeout_s >= 0) {
        yyjson_mut_obj_add_int(doc, spec, "completionTimeoutPerGiB", p->completion_timeout_s);
    }
    if (p->max_downtime_ms >= 0) {
        yyjson_mut_obj_add_int(doc, spec, "maxDowntimeMs", p->max_downtime_ms);
    }
}

/* A bare number is bytes, and who leaves the unit away hardly means that. 0 is no limit. */
static int check_bandwidth(const char *text, struct ferry_error *err)
{
    int digits = (int)strspn(text, "0123456789.");
    char shown[PROGRESS_TEXT];
    int64_t bytes;

    if (api_quantity(text, 1, &bytes, err) < 0) {
        return ferry_wrap(err, "--bandwidth");
    }
    if (bytes == 0 || bytes >= LEAST_BANDWIDTH) {
        return 0;
    }
    if (bytes < 0) {
        return ferry_fail(err, FERRY_INVALID, "--bandwidth: %s is less than nothing", text);
    }
    return ferry_fail(err, FERRY_INVALID,
                      "--bandwidth: %s is %s in a second, and hardly a move would end; did you "
                      "mean %.*s%s? (at least 1M; 0 is no limit)",
                      text, progress_bytes(bytes, shown), digits, text,
                      text[digits] == 'm' ? "M" : "Mi");
}

int manifest_policy(const struct manifest_policy *p, char **ret, struct ferry_error *err)
{
    int rc = manifest_check_name("policy", p->name, err);

    if (rc < 0 || (p->bandwidth && (rc = check_bandwidth(p->bandwidth, err)) < 0)) {
        return rc;
    }
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);
    yyjson_mut_obj_add_str(doc, root, "apiVersion", "migrations.kubevirt.io/v1alpha1");
    yyjson_mut_obj_add_str(doc, root, "kind", "MigrationPolicy");
    yyjson_mut_obj_add_str(doc, put(doc, root, "metadata"), "name", p->name);
    yyjson_mut_val *spec = put(doc, root, "spec"), *selectors = put(doc, spec, "selectors");
    put_settings(doc, spec, p);
    if ((rc = put_labels(doc, selectors, "virtualMachineInstanceSelector", "vm-label",
                         &p->vm_labels, err)) < 0 ||
        (rc = put_labels(doc, selectors, "namespaceSelector", "namespace-label",
                         &p->namespace_labels, err)) < 0) {
        yyjson_mut_doc_free(doc);
        return rc;
    }
    *ret = json_doc_take(doc);
    return 0;
}
