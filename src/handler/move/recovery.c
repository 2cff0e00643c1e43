#include "handler/move/recovery.h"

#include <string.h>

#include "base/str.h"

int64_t recovery_generation(const struct api_vmi *vmi, const char *annotation)
{
    const char *text = api_map_get(&vmi->meta.annotations, annotation), *uid = vmi->migration.uid;
    size_t n = uid ? strlen(uid) : 0;
    long long generation;

    if (!text || n == 0 || strncmp(text, uid, n) != 0 || text[n] != '/' ||
        ferry_parse_int(text + n + 1, 1, INT32_MAX, &generation, NULL) < 0) {
        return 0;
    }
    return generation;
}

bool recovery_never_ran(const struct api_vmi *vmi)
{
    const char *text = api_map_get(&vmi->meta.annotations, ANNOTATION_TARGET_STATE);
    ferry_cleanup_free char *wanted = recovery_never_ran_value(vmi);

    return vmi->migration.uid && ferry_streq(text, wanted);
}

char *recovery_never_ran_value(const struct api_vmi *vmi)
{
    return ferry_asprintf("%s/never-ran", vmi->migration.uid ? vmi->migration.uid : "");
}

char *recovery_value(const struct api_vmi *vmi, int64_t generation)
{
    return ferry_asprintf("%s/%lld", vmi->migration.uid, (long long)generation);
}
