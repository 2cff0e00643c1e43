#include "api/policy.h"

#include <string.h>

#include "api/json.h"
#include "api/patch.h"
#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

enum type { BOOL, COUNT, QUANTITY, TEXT };

/* Every field of a migration configuration. */
static const struct field {
    const char *name;
    enum type type;
    int64_t min, max;     /* of a COUNT */
    const char *standard; /* JSON; NULL = absent unless somebody sets it */
    bool in_policy;       /* a MigrationPolicy may set it */
} fields[] = {
    {"nodeDrainTaintKey", TEXT, 0, 0, "\"" TAINT_DRAIN "\"", false},
    {"parallelOutboundMigrationsPerNode", COUNT, 0, UINT32_MAX, "2", false},
    {"parallelMigrationsPerCluster", COUNT, 0, UINT32_MAX, "5", false},
    {"allowAutoConverge", BOOL, 0, 0, "false", true},
    {"bandwidthPerMigration", QUANTITY, 0, 0, "\"0\"", true},
    {"completionTimeoutPerGiB", COUNT, 0, INT64_MAX, "150", true},
    {"progressTimeout", COUNT, 0, INT64_MAX, "150", false},
    {"maxDowntimeMs", COUNT, 1, 2000000, "900", true},
    {"utilityVolumesTimeout", COUNT, 0, INT64_MAX, "150", false},
    {"unsafeMigrationOverride", BOOL, 0, 0, "false", false},
    {"allowPostCopy", BOOL, 0, 0, "false", true},
    {"allowWorkloadDisruption", BOOL, 0, 0, NULL, true},
    {"disableTLS", BOOL, 0, 0, "false", false},
    {"network", TEXT, 0, 0, NULL, false},
    {"matchSELinuxLevelOnMigration", BOOL, 0, 0, NULL, false},
};
enum { N_FIELDS = FERRY_COUNT(fields) };

/* ---- matching --------------------------------------------------------------------------------
 */

/* How many pairs the selector has, or -1 when one of them does not hold. */
static long pairs_that_hold(const yyjson_val *selector, const struct api_map *labels)
{
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)selector);
    long n = 0;

    for (yyjson_val *key; (key = yyjson_obj_iter_next(&it)); n++) {
        const char *want = yyjson_get_str(yyjson_obj_iter_get_val(key));
        const char *have = labels ? api_map_get(labels, yyjson_get_str(key)) : NULL;

        if (!want || !ferry_streq(have, want)) {
            return -1;
        }
    }
    return n;
}

struct score {
    long vmi, ns;
};

static bool score_policy(const struct api_object *policy, const struct policy_sources *s,
                         struct score *ret)
{
    yyjson_val *selectors = yyjson_ptr_get((yyjson_val *)policy->root, "/spec/selectors");

    if (!yyjson_is_obj(selectors)) {
        return false;
    }
    ret->vmi =
        pairs_that_hold(yyjson_obj_get(selectors, "virtualMachineInstanceSelector"), s->vmi_labels);
    ret->ns = pairs_that_hold(yyjson_obj_get(selectors, "namespaceSelector"), s->ns_labels);
    return ret->vmi >= 0 && ret->ns >= 0;
}

/* Is `a` of policy `an` the better fit? */
static bool is_better(struct score a, const char *an, struct score b, const char *bn)
{
    if (a.vmi + a.ns != b.vmi + b.ns) {
        return a.vmi + a.ns > b.vmi + b.ns;
    }
    return a.vmi != b.vmi ? a.vmi > b.vmi : strcmp(an, bn) < 0;
}

const struct api_object *policy_match(const struct policy_sources *s)
{
    const struct api_object *best = NULL;
    struct score best_score = {0};

    for (size_t i = 0; i < s->n_policies; i++) {
        const struct api_object *p = s->policies[i];
        struct score score;

        if (!p->meta->deleted_ms && score_policy(p, s, &score) &&
            (!best || is_better(score, p->meta->name, best_score, best->meta->name))) {
            best = p;
            best_score = score;
        }
    }
    return best;
}

/* ---- merging ---------------------------------------------------------------------------------
 */

static int check_value(const struct field *f, const yyjson_val *v, const struct api_object *of,
                       struct ferry_error *err)
{
    int64_t n = 0;
    const char *want = NULL;

    switch (f->type) {
    case BOOL:
        want = yyjson_is_bool((yyjson_val *)(uintptr_t)v) ? NULL : "true or false";
        break;
    case COUNT:
        want = api_json_get_int(v, &n) && n >= f->min && n <= f->max ? NULL : "a number in range";
        break;
    case QUANTITY:
        want = api_quantity_val(v, 1, &n, NULL) == 0 && n >= 0 ? NULL
                                                               : "a quantity that is not negative";
        break;
    case TEXT:
        want = yyjson_is_str((yyjson_val *)(uintptr_t)v) ? NULL : "a string";
        break;
    }
    return !want ? 0
                 : ferry_fail(err, FERRY_INVALID, "%s of '%s' must be %s", f->name, of->meta->name,
                              want);
}

static const yyjson_val *value_of(const yyjson_val *config, const char *name)
{
    yyjson_val *v = yyjson_obj_get((yyjson_val *)(uintptr_t)config, name);

    return yyjson_is_null(v) ? NULL : v;
}

/* What one source says goes over what is there. */
static int overlay(yyjson_mut_doc *doc, const struct api_object *of, const char *pointer,
                   bool policy, struct ferry_error *err)
{
    yyjson_val *config = of ? yyjson_ptr_get((yyjson_val *)of->root, pointer) : NULL;
    yyjson_mut_val *to = yyjson_mut_doc_get_root(doc);

    for (size_t i = 0; config && i < N_FIELDS; i++) {
        const yyjson_val *v =
            policy && !fields[i].in_policy ? NULL : value_of(config, fields[i].name);

        if (!v) {
            continue;
        }
        if (check_value(&fields[i], v, of, err) < 0) {
            return -FERRY_INVALID;
        }
        yyjson_mut_obj_put(to, yyjson_mut_str(doc, fields[i].name),
                           yyjson_val_mut_copy(doc, (yyjson_val *)(uintptr_t)v));
    }
    /* Post-copy without a word on disruption: they go together, whatever was said below. */
    if (config && policy && value_of(config, "allowPostCopy") &&
        !value_of(config, "allowWorkloadDisruption")) {
        yyjson_mut_obj_remove_key(to, "allowWorkloadDisruption");
    }
    return 0;
}

static int overlay_experimental(yyjson_mut_doc *doc, const struct api_object *policy,
                                struct ferry_error *err)
{
    yyjson_val *v =
        policy ? yyjson_ptr_get((yyjson_val *)policy->root, "/spec/experimental") : NULL;

    if (!v || yyjson_is_null(v)) {
        return 0;
    }
    if (!yyjson_is_obj(v)) {
        return ferry_fail(err, FERRY_INVALID, "experimental of '%s' must be an object",
                          policy->meta->name);
    }
    yyjson_mut_obj_put(yyjson_mut_doc_get_root(doc), yyjson_mut_str(doc, "experimental"),
                       yyjson_val_mut_copy(doc, v));
    return 0;
}

static void put_standards(yyjson_mut_doc *doc)
{
    yyjson_mut_val *to = json_doc_object(doc);

    for (size_t i = 0; i < N_FIELDS; i++) {
        const char *json = fields[i].standard;
        api_cleanup_doc yyjson_doc *v = json ? yyjson_read(json, strlen(json), 0) : NULL;

        if (v) {
            yyjson_mut_obj_add_val(doc, to, fields[i].name,
                                   yyjson_val_mut_copy(doc, yyjson_doc_get_root(v)));
        }
    }
}

char *policy_resolve(const struct policy_sources *s, const struct api_object **ret_policy,
                     struct ferry_error *err)
{
    const struct api_object *policy = policy_match(s);
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();

    put_standards(doc);
    if (overlay(doc, s->kubevirt, POLICY_CONFIGURATION, false, err) < 0 ||
        overlay(doc, policy, "/spec", true, err) < 0 ||
        overlay_experimental(doc, policy, err) < 0) {
        return NULL;
    }
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);

    if (!yyjson_mut_obj_get(root, "allowWorkloadDisruption")) {
        bool post_copy = yyjson_mut_get_bool(yyjson_mut_obj_get(root, "allowPostCopy"));

        yyjson_mut_obj_add_bool(doc, root, "allowWorkloadDisruption", post_copy);
    }
    if (ret_policy) {
        *ret_policy = policy;
    }
    return json_doc_text(doc, 0, NULL);
}
