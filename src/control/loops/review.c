#include "control/loops/review.h"

#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/names.h"
#include "api/wire/wire_keys.h"
#include "base/str.h"
#include "json/doc.h"

enum { UNPROCESSABLE = 422, TOO_MANY_REQUESTS = 429 };

int review_parse(const char *body, size_t len, struct review *ret, struct ferry_error *err)
{
    *ret = (struct review){0};
    int rc = api_json_parse(body, len, &ret->doc, err);

    if (rc < 0) {
        return rc;
    }
    const yyjson_val *root = yyjson_doc_get_root(ret->doc);
    const yyjson_val *request = yyjson_obj_get((yyjson_val *)root, "request");
    ret->uid = api_json_str(request, "/uid");
    ret->ns = api_json_str(request, "/namespace");
    ret->name = api_json_str(request, "/name");
    ret->kind = api_json_str(request, "/kind/kind");
    ret->object = yyjson_obj_get((yyjson_val *)request, "object");
    ret->old = yyjson_obj_get((yyjson_val *)request, "oldObject");
    ret->old = yyjson_is_obj((yyjson_val *)ret->old) ? ret->old : NULL;
    ret->dry_run = api_json_bool(request, "/dryRun", false);
    if (!ferry_streq(api_json_str(root, "/apiVersion"), "admission.k8s.io/v1") ||
        !ferry_streq(api_json_str(root, "/kind"), "AdmissionReview") || !ret->uid) {
        review_done(ret);
        return ferry_fail(err, FERRY_INVALID,
                          "not an AdmissionReview of admission.k8s.io/v1 with a request");
    }
    return 0;
}

void review_done(struct review *r)
{
    yyjson_doc_free(r->doc);
    *r = (struct review){0};
}

/* ---- answers -----------------------------------------------------------------------------------
 */

yyjson_mut_val *review_response(yyjson_mut_doc *doc, const struct review *r, bool allowed)
{
    yyjson_mut_val *root = json_doc_object(doc);

    yyjson_mut_obj_add_str(doc, root, "apiVersion", "admission.k8s.io/v1");
    yyjson_mut_obj_add_str(doc, root, "kind", "AdmissionReview");
    yyjson_mut_val *response = yyjson_mut_obj_add_obj(doc, root, "response");
    yyjson_mut_obj_add_strcpy(doc, response, "uid", r->uid);
    yyjson_mut_obj_add_bool(doc, response, "allowed", allowed);
    return response;
}

char *review_allow(const struct review *r)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();

    (void)review_response(doc, r, true);
    return json_doc_text(doc, 0, NULL);
}

static char *base64(const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = (const unsigned char *)text;
    size_t n = strlen(text);
    struct ferry_buf b = {0};

    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)in[i] << 16 | (i + 1 < n ? (unsigned)in[i + 1] << 8 : 0) |
                     (i + 2 < n ? in[i + 2] : 0);
        const char four[] = {digits[v >> 18], digits[v >> 12 & 63],
                             i + 1 < n ? digits[v >> 6 & 63] : '=',
                             i + 2 < n ? digits[v & 63] : '='};

        ferry_buf_append(&b, four, sizeof(four));
    }
    return ferry_buf_take(&b);
}

void review_add_patch(yyjson_mut_doc *doc, yyjson_mut_val *response, const char *patch)
{
    ferry_cleanup_free char *encoded = base64(patch);

    yyjson_mut_obj_add_str(doc, response, "patchType", "JSONPatch");
    yyjson_mut_obj_add_strcpy(doc, response, "patch", encoded);
}

char *review_patch(const struct review *r, const char *patch)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();

    review_add_patch(doc, review_response(doc, r, true), patch);
    return json_doc_text(doc, 0, NULL);
}

/* Where kube-apiserver passes it on: the reason of a Status belongs to its code. */
static void add_cause(yyjson_mut_doc *doc, yyjson_mut_val *status, enum wire_error reason)
{
    yyjson_mut_val *details = yyjson_mut_obj_add_obj(doc, status, "details");
    yyjson_mut_val *causes = yyjson_mut_obj_add_arr(doc, details, "causes");

    yyjson_mut_obj_add_str(doc, yyjson_mut_arr_add_obj(doc, causes), "reason",
                           wire_error_text(reason));
}

char *review_deny(const struct review *r, int code, enum wire_error reason, const char *why)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *status = yyjson_mut_obj_add_obj(doc, review_response(doc, r, false), "status");

    yyjson_mut_obj_add_int(doc, status, "code", code);
    yyjson_mut_obj_add_strcpy(doc, status, "message", why);
    yyjson_mut_obj_add_str(doc, status, "reason",
                           code == TOO_MANY_REQUESTS ? "TooManyRequests"
                           : code == UNPROCESSABLE   ? "Invalid"
                                                     : "BadRequest");
    if (reason != WIRE_ERROR_NONE) {
        add_cause(doc, status, reason);
    }
    return json_doc_text(doc, 0, NULL);
}

/* ---- changes -----------------------------------------------------------------------------------
 */

static void add_pair(struct api_patch *p, const yyjson_val *object, const char *map,
                     const char *key, const char *value)
{
    ferry_cleanup_free char *where = ferry_asprintf("/metadata/%s", map);
    ferry_cleanup_free char *escaped = api_pointer_escape(key);
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", where, escaped);

    if (!yyjson_is_obj(yyjson_ptr_get((yyjson_val *)object, where))) {
        api_patch_add_raw(p, where, "{}");
    }
    api_patch_add_str(p, path, value);
}

char *review_label(const yyjson_val *migration)
{
    const char *vmi = api_json_str(migration, "/spec/vmiName");
    const char *label = wire_label(migration, LABEL_VMI_NAME);

    if (ferry_str_empty(vmi) || ferry_streq(vmi, label) || !api_name_is_label_value(vmi)) {
        return NULL;
    }
    struct api_patch *p = api_patch_new();
    add_pair(p, migration, "labels", LABEL_VMI_NAME, vmi);
    return api_patch_take(p);
}

char *review_mark(const struct api_object *vmi, const char *node, bool by_descheduler)
{
    struct api_patch *p = api_patch_new();

    api_patch_test_str(p, "/metadata/resourceVersion", vmi->meta->resource_version);
    api_patch_add_str(p, "/status/evacuationNodeName", node);
    if (by_descheduler) {
        add_pair(p, vmi->root, "annotations", ANNOTATION_EVICTION_SOURCE, "descheduler");
    }
    return api_patch_take(p);
}
