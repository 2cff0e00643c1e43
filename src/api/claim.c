#include "api/claim.h"

#include "api/object.h"
#include "base/str.h"
#include "json/doc.h"

static const char *text_at(const yyjson_val *v, const char *pointer)
{
    const char *s = api_json_str(v, pointer);

    return s ? s : "";
}

static bool has_modes(const yyjson_val *claim, const yyjson_val *volume)
{
    yyjson_val *wanted = yyjson_ptr_get((yyjson_val *)claim, "/spec/accessModes"), *w, *h;
    yyjson_val *had = yyjson_ptr_get((yyjson_val *)volume, "/spec/accessModes");
    size_t i, j, max, max_j;

    yyjson_arr_foreach(wanted, i, max, w)
    {
        bool found = false;

        yyjson_arr_foreach(had, j, max_j, h)
        {
            found = found || yyjson_equals(w, h);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* Whose the volume already is, or is kept for. */
static bool may_have(const yyjson_val *claim, const yyjson_val *volume)
{
    const char *name = text_at(volume, "/spec/claimRef/name");
    const char *uid = text_at(volume, "/spec/claimRef/uid");

    if (!*name) {
        return ferry_streq(text_at(volume, "/status/phase"), "Available") ||
               !*text_at(volume, "/status/phase");
    }
    return ferry_streq(name, text_at(claim, "/metadata/name")) &&
           ferry_streq(text_at(volume, "/spec/claimRef/namespace"),
                       text_at(claim, "/metadata/namespace")) &&
           (!*uid || ferry_streq(uid, text_at(claim, "/metadata/uid")));
}

static bool matches_labels(const yyjson_val *claim, const yyjson_val *volume)
{
    yyjson_val *labels = yyjson_ptr_get((yyjson_val *)claim, "/spec/selector/matchLabels"), *key,
               *v;
    yyjson_val *had = yyjson_ptr_get((yyjson_val *)volume, "/metadata/labels");
    size_t i, max;

    yyjson_obj_foreach(labels, i, max, key, v)
    {
        if (!ferry_streq(yyjson_get_str(yyjson_obj_get(had, yyjson_get_str(key))),
                         yyjson_get_str(v))) {
            return false;
        }
    }
    return true;
}

static bool matches_expressions(const yyjson_val *claim, const yyjson_val *volume)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)claim, "/spec/selector/matchExpressions"), *e;
    yyjson_val *had = yyjson_ptr_get((yyjson_val *)volume, "/metadata/labels");
    size_t i, max;

    yyjson_arr_foreach(list, i, max, e)
    {
        const char *how = text_at(e, "/operator");
        const char *value = yyjson_get_str(yyjson_obj_get(had, text_at(e, "/key")));
        bool listed = value && json_doc_lists(yyjson_obj_get(e, "values"), value);

        if (!(ferry_streq(how, "In")             ? listed
              : ferry_streq(how, "NotIn")        ? !listed
              : ferry_streq(how, "Exists")       ? value != NULL
              : ferry_streq(how, "DoesNotExist") ? value == NULL
                                                 : false)) {
            return false;
        }
    }
    return true;
}

bool api_claim_fits(const yyjson_val *claim, const yyjson_val *volume, int64_t *ret_bytes)
{
    yyjson_val *size = yyjson_ptr_get((yyjson_val *)volume, "/spec/capacity/storage");
    yyjson_val *asked = yyjson_ptr_get((yyjson_val *)claim, "/spec/resources/requests/storage");
    const char *chosen = text_at(claim, "/spec/volumeName");
    const char *mode = text_at(claim, "/spec/volumeMode");
    const char *its_mode = text_at(volume, "/spec/volumeMode");
    int64_t wanted = 0;

    *ret_bytes = 0;
    if (!size || api_quantity_val(size, 1, ret_bytes, NULL) < 0 ||
        (asked && api_quantity_val(asked, 1, &wanted, NULL) < 0)) {
        return false;
    }
    if (*chosen && !ferry_streq(chosen, text_at(volume, "/metadata/name"))) {
        return false;
    }
    return *ret_bytes >= wanted && has_modes(claim, volume) && may_have(claim, volume) &&
           matches_labels(claim, volume) && matches_expressions(claim, volume) &&
           ferry_streq(*mode ? mode : "Filesystem", *its_mode ? its_mode : "Filesystem") &&
           ferry_streq(text_at(claim, "/spec/storageClassName"),
                       text_at(volume, "/spec/storageClassName")) &&
           !api_json_str(volume, "/metadata/deletionTimestamp");
}
