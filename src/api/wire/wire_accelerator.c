#include "api/wire/wire_accelerator.h"

#include <yyjson.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"

static const char *const texts[] = {
    [ACCELERATOR_NONE] = "",
    [ACCELERATOR_TCG] = "tcg",
    [ACCELERATOR_KVM] = "kvm",
};
_Static_assert(FERRY_COUNT(texts) == ACCELERATOR_COUNT, "one text per accelerator");
const struct wire_words wire_accelerators = {texts, ACCELERATOR_COUNT};

const char *wire_accelerator_text(enum wire_accelerator a)
{
    return texts[a];
}

enum wire_accelerator wire_accelerator_of(const char *text)
{
    for (size_t i = ACCELERATOR_NONE + 1; i < ACCELERATOR_COUNT; i++) {
        if (ferry_streq(texts[i], text)) {
            return (enum wire_accelerator)i;
        }
    }
    return ACCELERATOR_NONE;
}

enum wire_accelerator wire_accelerator_of_vmi(const struct api_meta *vmi)
{
    return wire_accelerator_of(api_map_get(&vmi->annotations, ANNOTATION_ACCELERATOR));
}

enum wire_accelerator wire_accelerator_of_pod(const struct api_pod *pod)
{
    yyjson_val *compute = yyjson_arr_get_first((yyjson_val *)(uintptr_t)pod->containers);
    yyjson_val *limits = yyjson_obj_get(yyjson_obj_get(compute, "resources"), "limits");

    return yyjson_obj_get(limits, RESOURCE_KVM) ? ACCELERATOR_KVM : ACCELERATOR_TCG;
}

bool wire_accelerator_is_offered(const struct api_node *node)
{
    yyjson_val *offered = yyjson_obj_get((yyjson_val *)(uintptr_t)node->allocatable, RESOURCE_KVM);
    int64_t devices = 0;

    return offered && api_quantity_val(offered, 1, &devices, NULL) == 0 && devices > 0;
}
