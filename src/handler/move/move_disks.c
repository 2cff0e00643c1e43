#include "handler/move/move_disks.h"

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_disks.h"
#include "api/wire/wire_keys.h"

char *move_disks_publish(const char *uid, const char *answer, size_t len)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    struct wire_disks disks;

    if (!answer || api_json_parse(answer, len, &doc, NULL) < 0 ||
        !wire_disks_read(yyjson_obj_get(yyjson_doc_get_root(doc), "disks"), &disks) ||
        disks.n == 0) {
        return NULL;
    }
    return wire_disks_text(uid, &disks);
}

static bool told(const struct api_vmi *vmi, const char *annotation, struct wire_disks *ret)
{
    return wire_disks_of(api_map_get(&vmi->meta.annotations, annotation), vmi->migration.uid, ret);
}

bool move_disks_awaited(const struct api_vmi *vmi)
{
    struct wire_disks said;

    return vmi->n_migrated_volumes && !told(vmi, ANNOTATION_SOURCE_DISKS, &said);
}

char *move_disks_of(const struct api_vmi *vmi, const char *annotation)
{
    struct wire_disks said;

    return told(vmi, annotation, &said) ? wire_disks_list(&said) : NULL;
}
