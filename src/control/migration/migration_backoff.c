/* How automatic moves of one VM hold back after failures. As KubeVirt, except that the pause counts
 * from the last failure itself. */
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "control/migration/migration_decide.h"
#include "control/plan/facts.h"

enum { FIRST_MS = 20000, LONGEST_MS = 320000 };

static bool is_automatic(const struct api_meta *m)
{
    return api_map_get(&m->annotations, ANNOTATION_EVACUATION) ||
           api_map_get(&m->annotations, ANNOTATION_WORKLOAD_UPDATE);
}

static int newest_first(const void *a, const void *b)
{
    const struct api_meta *x = (*(const struct api_object *const *)a)->meta;
    const struct api_meta *y = (*(const struct api_object *const *)b)->meta;

    return x->created_ms != y->created_ms ? (x->created_ms > y->created_ms ? -1 : 1)
                                          : strcmp(y->uid, x->uid);
}

int64_t migration_backoff_until(const struct migration_view *v)
{
    const struct api_object *self = v->migration;

    if (!is_automatic(self->meta)) {
        return 0;
    }
    ferry_cleanup_free const struct api_object **before =
        ferry_xcalloc(v->n_migrations + 1, sizeof(struct api_object *));
    size_t n = 0;

    for (size_t i = 0; i < v->n_migrations; i++) {
        const struct api_object *o = v->migrations[i];

        if (is_automatic(o->meta) && newest_first(&self, &o) < 0) {
            before[n++] = o;
        }
    }
    qsort(before, n, sizeof(struct api_object *), newest_first);
    int64_t pause_ms = 0, failed_ms = 0;

    for (size_t i = 0; i < n; i++) {
        const struct api_migration *m = &before[i]->u.migration;

        if (wire_phase_is(m->phase, PHASE_SUCCEEDED)) {
            break;
        }
        if (!wire_phase_is(m->phase, PHASE_FAILED) || m->meta.deleted_ms) {
            continue;
        }
        pause_ms = pause_ms ? pause_ms * 2 : FIRST_MS;
        failed_ms = failed_ms ? failed_ms : migration_phase_since(m, PHASE_FAILED);
    }
    return pause_ms ? failed_ms + (pause_ms < LONGEST_MS ? pause_ms : LONGEST_MS) : 0;
}
