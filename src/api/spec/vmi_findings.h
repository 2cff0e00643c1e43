/* What is wrong with the spec of a machine, field by field, in Kubernetes' words. By value, nothing
 * to free; the first few are kept, and whether there were more. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

enum vmi_finding_kind {
    VMI_FINDING_FORBIDDEN,   /* cannot be had here */
    VMI_FINDING_UNSUPPORTED, /* not with this value */
    VMI_FINDING_INVALID,     /* does not fit the rest */
    VMI_FINDING_DUPLICATE,
    VMI_FINDING_REQUIRED,
    VMI_FINDING_TOO_MANY,
    VMI_FINDING_NO_EFFECT, /* no reason to refuse it: worth a word */
};

struct vmi_field;
enum { VMI_FINDINGS_MAX = 32, VMI_FINDING_FIELD = 160, VMI_FINDING_WHY = 400 };

struct vmi_finding {
    enum vmi_finding_kind kind;
    char field[VMI_FINDING_FIELD]; /* "spec.domain.devices.disks[0].serial" */
    char why[VMI_FINDING_WHY];
    const struct vmi_field *row; /* of the table, or NULL */
    const yyjson_val *value;     /* of the field, in the object that was looked at; or NULL */
};

struct vmi_findings {
    size_t n;
    bool more;
    struct vmi_finding list[VMI_FINDINGS_MAX];
};

/* Any but those without effect. */
bool vmi_findings_refuse(const struct vmi_findings *f);
/* "Forbidden", and "FieldValueForbidden"; NULL for one that refuses nothing. */
const char *vmi_finding_word(enum vmi_finding_kind kind);
const char *vmi_finding_reason(enum vmi_finding_kind kind);

/* Adds one; `fmt` says why. `row` and `value` may be NULL. */
void vmi_findings_add(struct vmi_findings *f, enum vmi_finding_kind kind, const char *field,
                      const struct vmi_field *row, const yyjson_val *value, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* Takes out what was found in the object as it was before, with the same value: such an object goes
 * on. */
void vmi_findings_forgive(struct vmi_findings *f, const struct vmi_findings *before);
