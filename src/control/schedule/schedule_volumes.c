#include "control/schedule/schedule_volumes.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/claim.h"
#include "base/str.h"
#include "control/schedule/schedule_match.h"

static const struct api_object *named(const struct api_object *const *list, size_t n,
                                      const char *ns, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (ferry_streq(list[i]->meta->name, name) &&
            (!ns || ferry_streq(list[i]->meta->namespace_, ns))) {
            return list[i];
        }
    }
    return NULL;
}

static bool waits_for_pod(const struct schedule_view *v, const struct api_claim *c)
{
    const struct api_object *class = named(v->classes, v->n_classes, NULL, c->storage_class);

    return class && ferry_streq(class->u.storage_class.binding_mode, "WaitForFirstConsumer");
}

static void add_claim(struct schedule_claims *c, const struct schedule_view *v, const char *name)
{
    const struct api_object *o = named(v->claims, v->n_claims, v->pod->meta.namespace_, name);
    struct schedule_claim one = {.claim = o};

    if (!o) {
        snprintf(c->why, sizeof(c->why), "persistentvolumeclaim \"%.200s\" not found", name);
        return;
    }
    if (o->meta->deleted_ms) {
        snprintf(c->why, sizeof(c->why), "persistentvolumeclaim \"%.200s\" is being deleted", name);
        return;
    }
    if (ferry_streq(o->u.claim.phase, "Bound")) {
        one.volume = named(v->volumes, v->n_volumes, NULL, o->u.claim.volume_name);
    } else if (waits_for_pod(v, &o->u.claim)) {
        one.state = SCHEDULE_CLAIM_WAITING;
    } else {
        snprintf(c->why, sizeof(c->why), "pod has unbound immediate PersistentVolumeClaims");
        return;
    }
    c->items = ferry_xrealloc(c->items, c->n + 1, sizeof(*c->items));
    c->items[c->n++] = one;
}

bool schedule_names_claim(const struct api_pod *pod)
{
    yyjson_val *v;
    size_t i, max;

    yyjson_arr_foreach((yyjson_val *)pod->volumes, i, max, v)
    {
        if (api_json_str(v, "/persistentVolumeClaim/claimName")) {
            return true;
        }
    }
    return false;
}

void schedule_claims_make(struct schedule_claims *c, const struct schedule_view *view)
{
    yyjson_val *v;
    size_t i, max;

    *c = (struct schedule_claims){0};
    yyjson_arr_foreach((yyjson_val *)view->pod->volumes, i, max, v)
    {
        const char *name = api_json_str(v, "/persistentVolumeClaim/claimName");

        if (name && !c->why[0]) {
            add_claim(c, view, name);
        }
    }
}

void schedule_claims_done(struct schedule_claims *c)
{
    free(c->items);
}

static bool reaches(const struct api_object *volume, const struct api_node *node)
{
    const struct api_volume *v = &volume->u.volume;

    return schedule_terms_hold(v->node_terms, v->n_node_terms, node);
}

static bool is_taken(const struct api_object *volume, const struct api_object *const *by, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (by[i] == volume) {
            return true;
        }
    }
    return false;
}

bool schedule_claims_assign(const struct schedule_claims *c, const struct schedule_view *view,
                            const struct api_node *node, const struct api_object **ret)
{
    for (size_t i = 0; i < c->n; i++) {
        int64_t best = 0, bytes = 0;

        ret[i] = NULL;
        for (size_t k = 0; c->items[i].state == SCHEDULE_CLAIM_WAITING && k < view->n_volumes;
             k++) {
            const struct api_object *volume = view->volumes[k];

            if (reaches(volume, node) &&
                api_claim_fits(c->items[i].claim->root, volume->root, &bytes) &&
                (!ret[i] || bytes < best) && !is_taken(volume, ret, i)) {
                ret[i] = volume;
                best = bytes;
            }
        }
        if (c->items[i].state == SCHEDULE_CLAIM_WAITING && !ret[i]) {
            return false;
        }
    }
    return true;
}

const char *schedule_claims_check(const struct schedule_claims *c, const struct schedule_view *view,
                                  const struct api_node *node)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct schedule_claim *one = &c->items[i];

        if (one->volume && !reaches(one->volume, node)) {
            return "node(s) didn't match PersistentVolume's node affinity";
        }
    }
    if (c->n == 0) {
        return NULL;
    }
    ferry_cleanup_free const struct api_object **assigned =
        ferry_xcalloc(c->n + 1, sizeof(struct api_object *));
    return schedule_claims_assign(c, view, node, assigned)
               ? NULL
               : "node(s) didn't find available persistent volumes to bind";
}
