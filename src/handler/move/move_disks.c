#include "handler/move/move_disks.h"

#include <string.h>
#include <yyjson.h>

#include "api/json.h"
#include "api/object.h"
#include "base/str.h"
#include "handler/names.h"
#include "json/doc.h"

char *move_disks_publish(const char *uid, const char *answer, size_t len)
{
    api_cleanup_doc yyjson_doc *doc = NULL;

    if (!answer || api_json_parse(answer, len, &doc, NULL) < 0) {
        return NULL;
    }
    yyjson_val *disks = yyjson_obj_get(yyjson_doc_get_root(doc), "disks");
    if (yyjson_arr_size(disks) == 0) {
        return NULL;
    }
    api_cleanup_mut_doc yyjson_mut_doc *out = json_doc_new();
    yyjson_mut_val *root = json_doc_object(out);
    yyjson_mut_obj_add_str(out, root, "uid", uid);
    yyjson_mut_obj_add_val(out, root, "disks", yyjson_val_mut_copy(out, disks));
    return json_doc_text(out, 0, NULL);
}

bool move_disks_awaited(const struct api_vmi *vmi)
{
    ferry_cleanup_free char *said =
        vmi->n_migrated_volumes ? move_disks_of(vmi, ANNOTATION_SOURCE_DISKS) : NULL;

    return vmi->n_migrated_volumes && !said;
}

char *move_disks_of(const struct api_vmi *vmi, const char *annotation)
{
    const char *text = api_map_get(&vmi->meta.annotations, annotation);
    api_cleanup_doc yyjson_doc *doc = NULL;

    if (!text || api_json_parse(text, strlen(text), &doc, NULL) < 0) {
        return NULL;
    }
    yyjson_val *root = yyjson_doc_get_root(doc), *disks = yyjson_obj_get(root, "disks");
    bool ours = ferry_streq(api_json_str(root, "/uid"), vmi->migration.uid);
    return ours && yyjson_is_arr(disks) ? json_doc_val_text(disks, 0, NULL) : NULL;
}
