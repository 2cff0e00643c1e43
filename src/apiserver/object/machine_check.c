#include "apiserver/object/machine_check.h"

#include "api/spec/vmi_field_check.h"
#include "base/str.h"

static bool find(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                 struct vmi_findings *ret)
{
    *ret = (struct vmi_findings){0};
    if (r->kind != API_KIND_VM && r->kind != API_KIND_VMI) {
        return false;
    }
    vmi_field_check(r->kind == API_KIND_VM ? VMI_FIELDS_OF_VM : VMI_FIELDS_OF_VMI, object, old,
                    ret);
    return ret->n > 0;
}

static enum status_value value_of(enum vmi_finding_kind kind)
{
    switch (kind) {
    case VMI_FINDING_FORBIDDEN:
        return STATUS_VALUE_FORBIDDEN;
    case VMI_FINDING_UNSUPPORTED:
        return STATUS_VALUE_UNSUPPORTED;
    case VMI_FINDING_DUPLICATE:
        return STATUS_VALUE_DUPLICATE;
    case VMI_FINDING_REQUIRED:
        return STATUS_VALUE_REQUIRED;
    case VMI_FINDING_TOO_MANY:
        return STATUS_VALUE_TOO_MANY;
    case VMI_FINDING_INVALID:
    case VMI_FINDING_NO_EFFECT:
        break;
    }
    return STATUS_VALUE_INVALID;
}

int machine_check(const struct api_resource *r, const char *name, const yyjson_val *old,
                  const yyjson_val *object, struct status *st)
{
    struct vmi_findings found;
    int rc = 0;

    if (!find(r, old, object, &found)) {
        return 0;
    }
    for (size_t i = 0; i < found.n; i++) {
        const struct vmi_finding *f = &found.list[i];

        if (f->kind == VMI_FINDING_NO_EFFECT) {
            continue;
        }
        if (rc < 0) {
            status_invalid_more(st, f->field, value_of(f->kind), f->why);
        } else {
            rc = status_invalid(st, r, name, f->field, value_of(f->kind), "%s", f->why);
        }
    }
    return rc;
}

void machine_check_warn(const struct api_resource *r, const yyjson_val *old,
                        const yyjson_val *object, void (*say)(void *ctx, const char *text),
                        void *ctx)
{
    struct vmi_findings found;

    if (!find(r, old, object, &found)) {
        return;
    }
    for (size_t i = 0; i < found.n; i++) {
        if (found.list[i].kind == VMI_FINDING_NO_EFFECT) {
            ferry_cleanup_free char *text =
                ferry_asprintf("%s has no effect: %s", found.list[i].field, found.list[i].why);

            say(ctx, text);
        }
    }
}
