#include "api/spec/vmi_findings.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/count.h"
#include "base/str.h"

static const struct {
    const char *word, *reason;
} kinds[] = {
    [VMI_FINDING_FORBIDDEN] = {"Forbidden", "FieldValueForbidden"},
    [VMI_FINDING_UNSUPPORTED] = {"Unsupported value", "FieldValueNotSupported"},
    [VMI_FINDING_INVALID] = {"Invalid value", "FieldValueInvalid"},
    [VMI_FINDING_DUPLICATE] = {"Duplicate value", "FieldValueDuplicate"},
    [VMI_FINDING_REQUIRED] = {"Required value", "FieldValueRequired"},
    [VMI_FINDING_TOO_MANY] = {"Too many", "FieldValueTooMany"},
    [VMI_FINDING_NO_EFFECT] = {NULL, NULL},
};

const char *vmi_finding_word(enum vmi_finding_kind kind)
{
    return kinds[kind].word;
}

const char *vmi_finding_reason(enum vmi_finding_kind kind)
{
    return kinds[kind].reason;
}

bool vmi_findings_refuse(const struct vmi_findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->list[i].kind != VMI_FINDING_NO_EFFECT) {
            return true;
        }
    }
    return false;
}

/* Where there is no room a refusal takes that of a mere remark. */
static struct vmi_finding *room(struct vmi_findings *f, enum vmi_finding_kind kind)
{
    if (f->n < VMI_FINDINGS_MAX) {
        return &f->list[f->n++];
    }
    f->more = true;
    for (size_t i = 0; i < f->n && kind != VMI_FINDING_NO_EFFECT; i++) {
        if (f->list[i].kind == VMI_FINDING_NO_EFFECT) {
            return &f->list[i];
        }
    }
    return NULL;
}

void vmi_findings_add(struct vmi_findings *f, enum vmi_finding_kind kind, const char *field,
                      const struct vmi_field *row, const yyjson_val *value, const char *fmt, ...)
{
    struct vmi_finding *into = room(f, kind);
    va_list ap;

    if (!into) {
        return;
    }
    *into = (struct vmi_finding){.kind = kind, .row = row, .value = value};
    snprintf(into->field, sizeof(into->field), "%s", field);
    va_start(ap, fmt);
    vsnprintf(into->why, sizeof(into->why), fmt, ap);
    va_end(ap);
}

/* The field of a list may stand elsewhere than before: what it is and says counts, not where. */
static bool is_same(const struct vmi_finding *a, const struct vmi_finding *b)
{
    if (a->kind != b->kind || a->row != b->row || !a->value != !b->value) {
        return false;
    }
    return a->value ? yyjson_equals((yyjson_val *)a->value, (yyjson_val *)b->value)
                    : ferry_streq(a->why, b->why);
}

void vmi_findings_forgive(struct vmi_findings *f, const struct vmi_findings *before)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->n; i++) {
        bool old = false;

        for (size_t k = 0; k < before->n && !old; k++) {
            old = is_same(&f->list[i], &before->list[k]);
        }
        if (!old) {
            f->list[kept++] = f->list[i];
        }
    }
    f->n = kept;
}
