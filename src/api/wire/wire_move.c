#include "api/wire/wire_move.h"

#include <string.h>

#include "api/wire/wire_keys.h"
#include "base/str.h"

/* What stands behind the UID of the present move: "" or "/WORD"; NULL when it is of another. */
static const char *rest_of(const struct api_vmi *vmi, const char *key)
{
    const char *text = api_map_get(&vmi->meta.annotations, key), *uid = vmi->migration.uid;

    return text && !ferry_str_empty(uid) && ferry_str_starts(text, uid) ? text + strlen(uid) : NULL;
}

static const char *uid_of(const struct api_vmi *vmi)
{
    return vmi->migration.uid ? vmi->migration.uid : "";
}

int64_t wire_move_generation(const struct api_vmi *vmi, const char *key)
{
    const char *rest = rest_of(vmi, key);
    long long generation;

    if (!rest || *rest != '/' || ferry_parse_int(rest + 1, 1, INT32_MAX, &generation, NULL) < 0) {
        return 0;
    }
    return generation;
}

char *wire_move_generation_text(const struct api_vmi *vmi, int64_t generation)
{
    return ferry_asprintf("%s/%lld", uid_of(vmi), (long long)generation);
}

bool wire_move_never_ran(const struct api_vmi *vmi)
{
    return ferry_streq(rest_of(vmi, ANNOTATION_TARGET_STATE), "/never-ran");
}

char *wire_move_never_ran_text(const struct api_vmi *vmi)
{
    return ferry_asprintf("%s/never-ran", uid_of(vmi));
}

bool wire_move_is_unconfirmed(const struct api_vmi *vmi)
{
    return ferry_streq(rest_of(vmi, ANNOTATION_UNCONFIRMED), "");
}
