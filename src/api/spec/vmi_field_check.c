#include "api/spec/vmi_field_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/spec/vmi_rules.h"
#include "base/str.h"

/* The largest machine of a sane person has some hundred fields; what is deeper than the table is
 * not in it. */
enum { FIELDS_MAX = 20000, DEPTH_MAX = 24, PATH_SIZE = 256, VALUE_SHOWN = 60 };

struct walk {
    enum vmi_fields_of of;
    size_t fields;
    struct vmi_findings *found;
};

struct place {
    char shown[VMI_FINDING_FIELD]; /* "spec.volumes[1].name" */
    char path[PATH_SIZE];          /* as the table has it: "volumes[].name" */
    int depth;
};

/* ---- values ------------------------------------------------------------------------------------
 */

static bool is_zero(yyjson_val *v)
{
    return yyjson_is_num(v) && fpclassify(yyjson_get_num(v)) == FP_ZERO;
}

static bool is_nothing(yyjson_val *v)
{
    return !v || yyjson_is_null(v) || (yyjson_is_str(v) && yyjson_get_len(v) == 0) ||
           (yyjson_is_arr(v) && yyjson_arr_size(v) == 0);
}

/* What is off, none or zero asks for nothing; {} switches something on. */
static bool asks_for_nothing(yyjson_val *v)
{
    return is_nothing(v) || yyjson_is_false(v) || is_zero(v) ||
           yyjson_is_false(yyjson_obj_get(v, "enabled"));
}

/* As a manifest has it; "" for what has parts. */
static const char *value_text(yyjson_val *v)
{
    if (yyjson_is_str(v)) {
        return yyjson_get_str(v);
    }
    return yyjson_is_true(v) ? "true" : yyjson_is_false(v) ? "false" : "";
}

static bool is_listed(const char *values, const char *value)
{
    size_t len = strlen(value);

    for (const char *p = values; p; p = strchr(p, ' ')) {
        p += *p == ' ';
        if (len && strncmp(p, value, len) == 0 && (p[len] == ' ' || p[len] == '\0')) {
            return true;
        }
    }
    return false;
}

/* ---- single fields -----------------------------------------------------------------------------
 */

static void refuse_value(const struct walk *w, const struct place *at, const struct vmi_field *row,
                         const yyjson_val *v, const char *value)
{
    vmi_findings_add(w->found, VMI_FINDING_UNSUPPORTED, at->shown, row, v,
                     "\"%.*s\": %s; supported: %s", VALUE_SHOWN, value, row->todo, row->values);
}

static void check_values(const struct walk *w, const struct place *at, const struct vmi_field *row,
                         yyjson_val *v)
{
    yyjson_val *key, *value;
    size_t i, max;

    if (is_nothing(v)) {
        return;
    }
    if (!yyjson_is_obj(v)) {
        if (!is_listed(row->values, value_text(v))) {
            refuse_value(w, at, row, v, value_text(v));
        }
        return;
    }
    yyjson_obj_foreach(v, i, max, key, value)
    {
        if (!is_listed(row->values, yyjson_get_str(key))) {
            refuse_value(w, at, row, key, yyjson_get_str(key));
        }
    }
}

static void walk_fields(struct walk *w, const struct place *at, yyjson_val *object);

static void check_field(struct walk *w, const struct place *at, const struct vmi_field *row,
                        yyjson_val *v)
{
    switch (row->verdict) {
    case VMI_FIELD_REFUSED:
        if (row->always ? !is_nothing(v) : !asks_for_nothing(v)) {
            vmi_findings_add(w->found, VMI_FINDING_FORBIDDEN, at->shown, row, v, "%s: %s",
                             row->text, row->todo);
        }
        return;
    case VMI_FIELD_NO_EFFECT:
        if (!is_nothing(v)) {
            vmi_findings_add(w->found, VMI_FINDING_NO_EFFECT, at->shown, row, v, "%s", row->text);
        }
        return;
    case VMI_FIELD_HONOURED:
        if (row->values) {
            check_values(w, at, row, v);
            return;
        }
        break;
    case VMI_FIELD_PARTS:
    case VMI_FIELD_BELOW:
        break;
    }
    if (ferry_streq(row->type, "object")) {
        walk_fields(w, at, v);
    }
}

/* ---- the walk ----------------------------------------------------------------------------------
 */

/* A list that is refused as a whole is named once. */
static void check_list(struct walk *w, struct place *at, yyjson_val *list)
{
    const struct vmi_field *row = vmi_fields_find(w->of, at->path);
    struct place item = *at;
    yyjson_val *v;
    size_t i, max;

    if (row && row->verdict != VMI_FIELD_PARTS && row->verdict != VMI_FIELD_HONOURED) {
        check_field(w, at, row, list);
        return;
    }
    yyjson_arr_foreach(list, i, max, v)
    {
        if (row && w->fields++ < FIELDS_MAX &&
            snprintf(item.shown, sizeof(item.shown), "%s[%zu]", at->shown, i) <
                (int)sizeof(item.shown)) {
            check_field(w, &item, row, v);
        }
    }
}

/* False: no row is that deep, nor that long. */
static bool go_below(const struct place *at, const char *name, struct place *ret)
{
    ret->depth = at->depth + 1;
    return ret->depth <= DEPTH_MAX &&
           snprintf(ret->path, PATH_SIZE, "%s%s%s", at->path, *at->path ? "." : "", name) <
               PATH_SIZE &&
           snprintf(ret->shown, sizeof(ret->shown), "%s.%s", at->shown, name) <
               (int)sizeof(ret->shown);
}

static void check_named(struct walk *w, const struct place *at, const char *name, yyjson_val *v)
{
    struct place below, list;

    if (w->fields++ >= FIELDS_MAX || !go_below(at, name, &below)) {
        return;
    }
    const struct vmi_field *row = vmi_fields_find(w->of, below.path);
    if (row) {
        check_field(w, &below, row, v);
    } else if (yyjson_is_arr(v)) {
        list = below;
        if (snprintf(list.path, PATH_SIZE, "%s[]", below.path) < PATH_SIZE) {
            check_list(w, &list, v);
        }
    }
}

static void walk_fields(struct walk *w, const struct place *at, yyjson_val *object)
{
    yyjson_val *key, *v;
    size_t i, max;

    yyjson_obj_foreach(object, i, max, key, v)
    {
        check_named(w, at, yyjson_get_str(key), v);
    }
}

static void check_object(enum vmi_fields_of of, const yyjson_val *object, struct vmi_findings *ret)
{
    struct walk w = {.of = of, .found = ret};
    const struct place top = {.shown = "spec"};
    yyjson_val *spec = yyjson_obj_get((yyjson_val *)object, "spec");

    walk_fields(&w, &top, spec);
    if (w.fields > FIELDS_MAX) {
        vmi_findings_add(ret, VMI_FINDING_TOO_MANY, "spec", NULL, NULL, "more than %d fields",
                         FIELDS_MAX);
        return;
    }
    if (of == VMI_FIELDS_OF_VMI) {
        vmi_rules_annotations(yyjson_obj_get((yyjson_val *)object, "metadata"), "metadata", ret);
        vmi_rules(spec, "spec", true, ret);
        return;
    }
    vmi_rules_vm(spec, ret);
    vmi_rules_annotations(yyjson_ptr_get(spec, "/template/metadata"), "spec.template.metadata",
                          ret);
    vmi_rules(yyjson_ptr_get(spec, "/template/spec"), "spec.template.spec", false, ret);
}

void vmi_field_check(enum vmi_fields_of of, const yyjson_val *object, const yyjson_val *before,
                     struct vmi_findings *ret)
{
    *ret = (struct vmi_findings){0};
    if (before && yyjson_equals(yyjson_obj_get((yyjson_val *)before, "spec"),
                                yyjson_obj_get((yyjson_val *)object, "spec"))) {
        return;
    }
    check_object(of, object, ret);
    if (before && ret->n) {
        struct vmi_findings old = {0};

        check_object(of, before, &old);
        vmi_findings_forgive(ret, &old);
    }
}
