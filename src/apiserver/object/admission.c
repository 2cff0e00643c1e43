#include "apiserver/object/admission.h"

#include <string.h>

#include "api/admit.h"
#include "api/json.h"
#include "api/wire/wire_error.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "apiserver/object/machine_check.h"
#include "apiserver/object/rbac_object.h"
#include "apiserver/object/sizing_check.h"
#include "apiserver/object/spec_check.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

#define DATA_KEY_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._"
enum { DATA_KEY_MAX = 253, DATA_MAX = 1 << 20 };

static yyjson_val *at(const yyjson_val *object, const char *pointer)
{
    return yyjson_ptr_get((yyjson_val *)object, pointer);
}

static const char *text_at(const yyjson_val *object, const char *pointer)
{
    const char *s = api_json_str(object, pointer);

    return s ? s : "";
}

static const char *name_of(const yyjson_val *object)
{
    const char *name = text_at(object, "/metadata/name");

    return *name ? name : text_at(object, "/metadata/generateName");
}

/* Neither is there, or both and the same. */
static bool is_same(const yyjson_val *a, const yyjson_val *b)
{
    return a && b ? yyjson_equals((yyjson_val *)a, (yyjson_val *)b) : !a && !b;
}

/* ---- migrations ------------------------------------------------------------------------------
 */

static int create_migration(const struct api_resource *r, const yyjson_val *object,
                            const struct admission_view *view, struct status *st)
{
    const char *vmi_name = text_at(object, "/spec/vmiName");
    struct ferry_error err;

    if (!*vmi_name) {
        return status_invalid(st, r, name_of(object), "spec.vmiName", STATUS_VALUE_REQUIRED, "%s",
                              "");
    }
    if (at(object, "/spec/priority") && view->role != AUTH_CONTROLLER) {
        return status_invalid(st, r, name_of(object), "spec.migrationPriority",
                              STATUS_VALUE_FORBIDDEN, "may only be set by the controller");
    }
    if (at(object, "/spec/sendTo") || at(object, "/spec/receive")) {
        return status_invalid(
            st, r, name_of(object), at(object, "/spec/sendTo") ? "spec.sendTo" : "spec.receive",
            STATUS_VALUE_UNSUPPORTED, "migration between clusters is not available");
    }
    if (api_admit_move(vmi_name, view->vmi, view->migrations, view->n_migrations, &err) < 0) {
        status_fail(st, 400, "%s", err.msg);
        st->cause = wire_error_text(wire_error_find(err.reason));
        return -1;
    }
    return 0;
}

static bool spec_changed(const yyjson_val *old, const yyjson_val *object)
{
    return !is_same(at(old, "/spec"), at(object, "/spec"));
}

static int update_migration(const struct api_resource *r, const yyjson_val *old,
                            const yyjson_val *object, struct status *st)
{
    const char *before = wire_label(old, LABEL_VMI_NAME);

    if (spec_changed(old, object)) {
        return status_invalid(st, r, name_of(object), "spec", STATUS_VALUE_INVALID,
                              "the spec of a migration cannot be changed (update of "
                              "Migration object's spec is restricted)");
    }
    if (before && !wire_phase_is_over(api_json_str(old, "/status/phase")) &&
        !ferry_streq(before, wire_label(object, LABEL_VMI_NAME))) {
        return status_invalid(st, r, name_of(object), "metadata.labels", STATUS_VALUE_FORBIDDEN,
                              LABEL_VMI_NAME " cannot be changed while the "
                                             "migration is not over");
    }
    return 0;
}

/* ---- VMIs and pods -----------------------------------------------------------------------------
 */

static int check_eviction(const struct api_resource *r, const yyjson_val *object, struct status *st)
{
    static const char *const known[] = {"None", "LiveMigrate", "LiveMigrateIfPossible", "External"};
    const char *strategy = text_at(object, "/spec/evictionStrategy");

    for (size_t i = 0; i < FERRY_COUNT(known); i++) {
        if (!*strategy || strcmp(strategy, known[i]) == 0) {
            return 0;
        }
    }
    return status_invalid(st, r, name_of(object), "spec.evictionStrategy", STATUS_VALUE_UNSUPPORTED,
                          "\"%.100s\": supported values: \"None\", "
                          "\"LiveMigrate\", \"LiveMigrateIfPossible\", \"External\"",
                          strategy);
}

static int create_vmi(const struct api_resource *r, const yyjson_val *object, struct status *st)
{
    static const char *const memory[] = {"/spec/domain/memory/guest",
                                         "/spec/domain/resources/requests/memory"};
    bool found = false;

    if (!yyjson_is_obj(at(object, "/spec/domain"))) {
        return status_invalid(st, r, name_of(object), "spec.domain", STATUS_VALUE_REQUIRED, "%s",
                              "");
    }
    for (size_t i = 0; i < 2; i++) {
        yyjson_val *v = at(object, memory[i]);
        int64_t bytes = 0;

        if (!v) {
            continue;
        }
        found = true;
        if (api_quantity_val(v, 1, &bytes, NULL) < 0 || bytes <= 0) {
            return status_invalid(st, r, name_of(object),
                                  i ? "spec.domain.resources.requests.memory"
                                    : "spec.domain.memory.guest",
                                  STATUS_VALUE_INVALID, "must be greater than zero");
        }
    }
    if (!found) {
        return status_invalid(st, r, name_of(object), "spec.domain.memory.guest",
                              STATUS_VALUE_REQUIRED,
                              "no memory requested, at least one of "
                              "'memory.guest' or 'resources.requests.memory' must be set");
    }
    return check_eviction(r, object, st);
}

/* The controller makes of a machine that was let in before what it says. */
static int check_machine(const struct api_resource *r, const yyjson_val *old,
                         const yyjson_val *object, const struct admission_view *view,
                         struct status *st)
{
    return view->role == AUTH_CONTROLLER ? 0 : machine_check(r, name_of(object), old, object, st);
}

static int create_machine(const struct api_resource *r, const yyjson_val *object,
                          const struct admission_view *view, struct status *st)
{
    if (r->kind == API_KIND_VMI && create_vmi(r, object, st) < 0) {
        return -1;
    }
    return check_machine(r, NULL, object, view, st);
}

static int update_vmi(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                      const struct admission_view *view, struct status *st)
{
    if (view->role != AUTH_CONTROLLER && spec_changed(old, object)) {
        return status_invalid(st, r, name_of(object), "spec", STATUS_VALUE_FORBIDDEN,
                              "update of VMI object is restricted");
    }
    return 0;
}

/* A copy of a pod's spec without what may change, as Kubernetes has it. */
static yyjson_mut_val *fixed_part(yyjson_mut_doc *into, const yyjson_val *pod)
{
    static const char *const lists[] = {"containers", "initContainers"};
    yyjson_mut_val *copy = yyjson_val_mut_copy(into, at(pod, "/spec")), *c;
    size_t i, max;

    yyjson_mut_obj_remove_key(copy, "activeDeadlineSeconds");
    for (size_t l = 0; l < 2; l++) {
        yyjson_mut_val *list = yyjson_mut_obj_get(copy, lists[l]);

        yyjson_mut_arr_foreach(list, i, max, c)
        {
            yyjson_mut_obj_remove_key(c, "image");
        }
    }
    return copy;
}

static int update_pod(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                      struct status *st)
{
    if (!spec_changed(old, object)) {
        return 0;
    }
    api_cleanup_mut_doc yyjson_mut_doc *copies = json_doc_new();
    if (!yyjson_mut_equals(fixed_part(copies, old), fixed_part(copies, object))) {
        return status_invalid(st, r, name_of(object), "spec", STATUS_VALUE_FORBIDDEN,
                              "pod updates may not change fields other than "
                              "`spec.containers[*].image`,`spec.initContainers[*].image`,"
                              "`spec.activeDeadlineSeconds`");
    }
    return 0;
}

static int create_pod(const struct api_resource *r, const yyjson_val *object, struct status *st)
{
    if (yyjson_arr_size(at(object, "/spec/containers")) == 0) {
        return status_invalid(st, r, name_of(object), "spec.containers", STATUS_VALUE_REQUIRED,
                              "%s", "");
    }
    return 0;
}

/* ---- config maps and secrets -------------------------------------------------------------------
 */

static bool field_changed(const yyjson_val *old, const yyjson_val *object, const char *name)
{
    return !is_same(yyjson_obj_get((yyjson_val *)old, name),
                    yyjson_obj_get((yyjson_val *)object, name));
}

static bool is_data_key(const char *key)
{
    return *key && strlen(key) <= DATA_KEY_MAX && strspn(key, DATA_KEY_CHARS) == strlen(key) &&
           !ferry_streq(key, ".") && !ferry_str_starts(key, "..");
}

static int check_data(const struct api_resource *r, const yyjson_val *object, struct status *st)
{
    static const char *const maps[] = {"data", "binaryData"};
    size_t i, max, bytes = 0;
    yyjson_val *key, *v;

    for (size_t m = 0; m < 2; m++) {
        yyjson_val *map = yyjson_obj_get((yyjson_val *)object, maps[m]);

        yyjson_obj_foreach(map, i, max, key, v)
        {
            if (!is_data_key(yyjson_get_str(key))) {
                return status_invalid(st, r, name_of(object), maps[m], STATUS_VALUE_INVALID,
                                      "\"%.100s\": a valid key must consist of "
                                      "alphanumeric characters, '-', '_' or '.'",
                                      yyjson_get_str(key));
            }
            bytes += yyjson_get_len(v);
        }
    }
    /* What is base64 is a third larger than what it means. */
    if (r->kind == API_KIND_SECRET) {
        bytes = bytes / 4 * 3;
    }
    return bytes <= DATA_MAX ? 0
                             : status_invalid(st, r, name_of(object), "data", STATUS_VALUE_TOO_LONG,
                                              "may not be more than %d bytes", DATA_MAX);
}

static int update_data(const struct api_resource *r, const yyjson_val *old,
                       const yyjson_val *object, struct status *st)
{
    static const char *const fixed[] = {"immutable", "data", "binaryData"};

    for (size_t i = 0; i < 3 && api_json_bool(old, "/immutable", false); i++) {
        if (field_changed(old, object, fixed[i])) {
            return status_invalid(st, r, name_of(object), fixed[i], STATUS_VALUE_FORBIDDEN,
                                  "field is immutable when `immutable` is set");
        }
    }
    return check_data(r, object, st);
}

/* ---- what is chosen once -----------------------------------------------------------------------
 */

static int check_chosen(const struct api_resource *r, const yyjson_val *old,
                        const yyjson_val *object, struct status *st)
{
    static const struct {
        const char *plural, *field;
    } rows[] = {
        {"secrets", "type"},
        {"controllerrevisions", "data"},
        {"storageclasses", "provisioner"},
        {"storageclasses", "parameters"},
        {"storageclasses", "reclaimPolicy"},
        {"storageclasses", "volumeBindingMode"},
    };

    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        if (ferry_streq(r->plural, rows[i].plural) && field_changed(old, object, rows[i].field)) {
            return status_invalid(st, r, name_of(object), rows[i].field, STATUS_VALUE_INVALID,
                                  "field is immutable");
        }
    }
    return 0;
}

/* A claim may be given a volume, once, and one that has its volume may ask for more. */
static int update_claim(const struct api_resource *r, const yyjson_val *old,
                        const yyjson_val *object, struct status *st)
{
    api_cleanup_mut_doc yyjson_mut_doc *copies = json_doc_new();
    yyjson_mut_val *before = yyjson_val_mut_copy(copies, at(old, "/spec"));
    yyjson_mut_val *after = yyjson_val_mut_copy(copies, at(object, "/spec"));
    static const char *const loose[] = {"volumeName", "resources"};
    bool bound = ferry_streq(api_json_str(old, "/status/phase"), "Bound");
    bool may[] = {!api_json_str(old, "/spec/volumeName"), bound};

    for (size_t i = 0; i < 2; i++) {
        if (may[i]) {
            yyjson_mut_obj_remove_key(before, loose[i]);
            yyjson_mut_obj_remove_key(after, loose[i]);
        }
    }
    if (before && after && !yyjson_mut_equals(before, after)) {
        return status_invalid(st, r, name_of(object), "spec", STATUS_VALUE_FORBIDDEN,
                              "spec is immutable after creation except "
                              "resources.requests for bound claims");
    }
    return 0;
}

/* ---- policies ----------------------------------------------------------------------------------
 */

/* A number in thousandths within [min, max], with at most three decimals. */
static int check_factor(const struct api_resource *r, const yyjson_val *object, const char *name,
                        int64_t min, int64_t max, struct status *st)
{
    ferry_cleanup_free char *pointer = ferry_asprintf("/spec/experimental/stallDetector/%s", name);
    ferry_cleanup_free char *field = ferry_asprintf("spec.experimental.stallDetector.%s", name);
    yyjson_val *v = at(object, pointer);
    ferry_cleanup_free char *text = v ? json_doc_val_text(v, 0, NULL) : NULL;
    const char *dot = text ? strchr(text, '.') : NULL;
    int64_t milli = 0;

    if (!v) {
        return 0;
    }
    if (dot && strspn(dot + 1, "0123456789") > 3) {
        return status_invalid(st, r, name_of(object), field, STATUS_VALUE_INVALID,
                              "%s: must have at most 3 decimals", text);
    }
    if (api_quantity_val(v, 1000, &milli, NULL) < 0 || milli < min || milli > max) {
        return status_invalid(st, r, name_of(object), field, STATUS_VALUE_INVALID,
                              "%s: out of the range that makes sense", text);
    }
    return 0;
}

/* What needs a gate is refused when it is new or changed, where the site chooses gates at all. */
static int check_gates(const struct api_resource *r, const yyjson_val *old,
                       const yyjson_val *object, const struct admission_view *view,
                       struct status *st)
{
    static const struct {
        const char *plural, *pointer, *field, *gate, *other;
    } rows[] = {
        {"migrationpolicies", "/spec/maxDowntimeMs", "spec.maxDowntimeMs",
         "MigrationDowntimeTuning", "MigrationStallDetection"},
        {"migrationpolicies", "/spec/experimental/downtimeTuning",
         "spec.experimental.downtimeTuning", "MigrationDowntimeTuning", NULL},
        {"migrationpolicies", "/spec/experimental/stallDetector", "spec.experimental.stallDetector",
         "MigrationStallDetection", NULL},
        {"kubevirts", "/spec/configuration/migrations/maxDowntimeMs",
         "spec.configuration.migrations.maxDowntimeMs", "MigrationDowntimeTuning",
         "MigrationStallDetection"},
    };

    for (size_t i = 0; view->gates && i < FERRY_COUNT(rows); i++) {
        yyjson_val *now = at(object, rows[i].pointer);

        if (!now || !ferry_streq(r->plural, rows[i].plural) ||
            json_doc_lists(view->gates, rows[i].gate) ||
            (rows[i].other && json_doc_lists(view->gates, rows[i].other)) ||
            is_same(at(old, rows[i].pointer), now)) {
            continue;
        }
        return status_invalid(st, r, name_of(object), rows[i].field, STATUS_VALUE_FORBIDDEN,
                              "needs the feature gate %s%s%s", rows[i].gate,
                              rows[i].other ? " or " : "", rows[i].other ? rows[i].other : "");
    }
    return 0;
}

static int check_policy(const struct api_resource *r, const yyjson_val *object, struct status *st)
{
    static const struct {
        const char *name;
        int64_t min, max;
    } factors[] = {
        {"ewmaAlpha", 1, 1000},
        {"patienceWindowDecayFactor", 0, 1000},
        {"precopyPossibleFactor", 1000, INT64_MAX},
        {"completionTimeoutFactor", 1000, INT64_MAX},
    };

    if (at(object, "/spec/experimental/stallDetector") &&
        at(object, "/spec/experimental/downtimeTuning")) {
        return status_invalid(st, r, name_of(object), "spec.experimental.downtimeTuning",
                              STATUS_VALUE_FORBIDDEN, "may not be set together with stallDetector");
    }
    for (size_t i = 0; i < FERRY_COUNT(factors); i++) {
        if (check_factor(r, object, factors[i].name, factors[i].min, factors[i].max, st) < 0) {
            return -1;
        }
    }
    return 0;
}

static bool is_policy(const struct api_resource *r)
{
    return ferry_streq(r->plural, "migrationpolicies");
}

/* ---- risks -------------------------------------------------------------------------------------
 */

#define POST_COPY "a guest whose move is in post-copy is lost when either of its two hosts is lost"
#define CLUSTER "/spec/configuration/migrations/"
static const struct {
    const char *plural, *pointer, *text;
} risks[] = {
    {"migrationpolicies", "/spec/allowPostCopy", "spec.allowPostCopy: " POST_COPY},
    {"kubevirts", CLUSTER "allowPostCopy",
     "spec.configuration.migrations.allowPostCopy: " POST_COPY},
    {"kubevirts", CLUSTER "disableTLS",
     "spec.configuration.migrations.disableTLS: the memory of guests crosses the network in the "
     "clear, and whoever can reach a listener can feed a hypervisor"},
    {"kubevirts", CLUSTER "unsafeMigrationOverride",
     "spec.configuration.migrations.unsafeMigrationOverride: disks without shared, coherent "
     "storage may be damaged by a move"},
};

void admission_warn(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                    void (*say)(void *ctx, const char *text), void *ctx)
{
    machine_check_warn(r, old, object, say, ctx);
    for (size_t i = 0; i < FERRY_COUNT(risks); i++) {
        if (ferry_streq(r->plural, risks[i].plural) &&
            yyjson_is_true(at(object, risks[i].pointer))) {
            say(ctx, risks[i].text);
        }
    }
}

int admission_create(const struct api_resource *r, const yyjson_val *object,
                     const struct admission_view *view, struct status *st)
{
    if (spec_check(r, name_of(object), object, st) < 0 ||
        sizing_check(r, name_of(object), NULL, object, view->named, st) < 0) {
        return -1;
    }
    switch (r->kind) {
    case API_KIND_MIGRATION:
        return create_migration(r, object, view, st);
    case API_KIND_VMI:
    case API_KIND_VM:
        return create_machine(r, object, view, st);
    case API_KIND_POD:
        return create_pod(r, object, st);
    case API_KIND_CONFIG_MAP:
    case API_KIND_SECRET:
        return check_data(r, object, st);
    default:
        if (rbac_object_is(r)) {
            return rbac_object_check(r, NULL, object, st);
        }
        if (is_policy(r) && check_policy(r, object, st) < 0) {
            return -1;
        }
        return check_gates(r, NULL, object, view, st);
    }
}

int admission_update(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                     const struct admission_view *view, struct status *st)
{
    if ((spec_changed(old, object) &&
         (spec_check(r, name_of(object), object, st) < 0 ||
          sizing_check(r, name_of(object), old, object, view->named, st) < 0)) ||
        check_chosen(r, old, object, st) < 0) {
        return -1;
    }
    switch (r->kind) {
    case API_KIND_MIGRATION:
        return update_migration(r, old, object, st);
    case API_KIND_VMI:
        return update_vmi(r, old, object, view, st);
    case API_KIND_VM:
        return check_machine(r, old, object, view, st);
    case API_KIND_POD:
        return update_pod(r, old, object, st);
    case API_KIND_CONFIG_MAP:
    case API_KIND_SECRET:
        return update_data(r, old, object, st);
    default:
        if (ferry_streq(r->plural, "persistentvolumeclaims")) {
            return update_claim(r, old, object, st);
        }
        if (rbac_object_is(r)) {
            return rbac_object_check(r, old, object, st);
        }
        if (is_policy(r) && check_policy(r, object, st) < 0) {
            return -1;
        }
        return check_gates(r, old, object, view, st);
    }
}
