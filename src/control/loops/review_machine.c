#include "control/loops/review_machine.h"

#include <string.h>

#include "api/json.h"
#include "api/patch.h"
#include "api/spec/vmi_defaults.h"
#include "api/spec/vmi_field_check.h"
#include "base/str.h"
#include "json/doc.h"

enum { UNPROCESSABLE = 422 };

/* ---- defaults ----------------------------------------------------------------------------------
 */

/* The object as it is to be; `*ret_patch`, owned by the caller, brings it there, or is NULL. */
static yyjson_doc *with_defaults(const struct review *r, char **ret_patch)
{
    static const char devices[] = "/spec/domain/devices";
    api_cleanup_mut_doc yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);

    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, (yyjson_val *)r->object));
    bool changed = vmi_defaults(doc, yyjson_mut_doc_get_root(doc));
    yyjson_doc *made = yyjson_mut_doc_imut_copy(doc, NULL);
    if (changed) {
        struct api_patch *p = api_patch_new();

        api_patch_add_val(p, devices, yyjson_ptr_get(yyjson_doc_get_root(made), devices));
        *ret_patch = api_patch_take(p);
    }
    return made;
}

/* ---- answers -----------------------------------------------------------------------------------
 */

static void add_cause(yyjson_mut_doc *doc, yyjson_mut_val *causes, const struct vmi_finding *f)
{
    yyjson_mut_val *c = yyjson_mut_arr_add_obj(doc, causes);
    ferry_cleanup_free char *why = ferry_asprintf("%s: %s", vmi_finding_word(f->kind), f->why);

    yyjson_mut_obj_add_str(doc, c, "reason", vmi_finding_reason(f->kind));
    yyjson_mut_obj_add_strcpy(doc, c, "message", why);
    yyjson_mut_obj_add_strcpy(doc, c, "field", f->field);
}

/* In the words of the API server: `Kind.group "name" is invalid: field: Forbidden: why`. */
static char *message_of(const struct review *r, const struct vmi_findings *found)
{
    struct ferry_buf b = {0};
    size_t refused = 0, said = 0;

    for (size_t i = 0; i < found->n; i++) {
        refused += found->list[i].kind != VMI_FINDING_NO_EFFECT;
    }
    ferry_buf_printf(&b, "%s.kubevirt.io \"%s\" is invalid: %s", r->kind, r->name ? r->name : "",
                     refused > 1 ? "[" : "");
    for (size_t i = 0; i < found->n; i++) {
        const struct vmi_finding *f = &found->list[i];

        if (f->kind != VMI_FINDING_NO_EFFECT) {
            ferry_buf_printf(&b, "%s%s: %s: %s", said++ ? ", " : "", f->field,
                             vmi_finding_word(f->kind), f->why);
        }
    }
    ferry_buf_puts(&b, refused > 1 ? "]" : "");
    return ferry_buf_take(&b);
}

static void refuse(yyjson_mut_doc *doc, const struct review *r, const struct vmi_findings *found)
{
    yyjson_mut_val *response = review_response(doc, r, false);
    yyjson_mut_val *status = yyjson_mut_obj_add_obj(doc, response, "status");
    ferry_cleanup_free char *message = message_of(r, found);

    yyjson_mut_obj_add_int(doc, status, "code", UNPROCESSABLE);
    yyjson_mut_obj_add_str(doc, status, "reason", "Invalid");
    yyjson_mut_obj_add_strcpy(doc, status, "message", message);
    yyjson_mut_val *details = yyjson_mut_obj_add_obj(doc, status, "details");
    yyjson_mut_obj_add_strcpy(doc, details, "name", r->name ? r->name : "");
    yyjson_mut_obj_add_str(doc, details, "group", "kubevirt.io");
    yyjson_mut_obj_add_strcpy(doc, details, "kind", r->kind);
    yyjson_mut_val *causes = yyjson_mut_obj_add_arr(doc, details, "causes");
    for (size_t i = 0; i < found->n; i++) {
        if (found->list[i].kind != VMI_FINDING_NO_EFFECT) {
            add_cause(doc, causes, &found->list[i]);
        }
    }
}

static void allow(yyjson_mut_doc *doc, const struct review *r, const struct vmi_findings *found,
                  const char *patch)
{
    yyjson_mut_val *response = review_response(doc, r, true);

    if (patch) {
        review_add_patch(doc, response, patch);
    }
    if (!found->n) {
        return;
    }
    yyjson_mut_val *warnings = yyjson_mut_obj_add_arr(doc, response, "warnings");
    for (size_t i = 0; i < found->n; i++) {
        ferry_cleanup_free char *text =
            ferry_asprintf("%s has no effect: %s", found->list[i].field, found->list[i].why);

        yyjson_mut_arr_add_strcpy(doc, warnings, text);
    }
}

char *review_machine(const struct review *r)
{
    bool is_vm = ferry_streq(r->kind, "VirtualMachine");
    struct vmi_findings found;
    ferry_cleanup_free char *patch = NULL;

    if (!yyjson_is_obj((yyjson_val *)r->object) ||
        (!is_vm && !ferry_streq(r->kind, "VirtualMachineInstance"))) {
        return review_allow(r);
    }
    api_cleanup_doc yyjson_doc *made = is_vm || r->old ? NULL : with_defaults(r, &patch);
    vmi_field_check(is_vm ? VMI_FIELDS_OF_VM : VMI_FIELDS_OF_VMI,
                    made ? yyjson_doc_get_root(made) : r->object, r->old, &found);
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    if (vmi_findings_refuse(&found)) {
        refuse(doc, r, &found);
    } else {
        allow(doc, r, &found, patch);
    }
    return json_doc_text(doc, 0, NULL);
}
