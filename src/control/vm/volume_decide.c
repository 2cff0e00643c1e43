#include "control/vm/volume_decide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "control/plan/facts.h"

static struct volume_verdict refuse(const char *fmt, const char *what)
{
    struct volume_verdict v = {.answer = VOLUMES_REFUSED};

    snprintf(v.message, sizeof(v.message), "volume %.100s %s", what, fmt);
    return v;
}

static const struct api_machine *wanted(const struct volume_view *v)
{
    return &v->vm->u.vm.machine;
}

static const struct api_machine *present(const struct volume_view *v)
{
    return &v->vmi->u.vmi.machine;
}

static const struct api_vmi_volume *find(const struct api_machine *m, const char *name)
{
    for (size_t i = 0; i < m->n_volumes; i++) {
        if (ferry_streq(m->volumes[i].name, name)) {
            return &m->volumes[i];
        }
    }
    return NULL;
}

static bool same_volume(const struct api_vmi_volume *a, const struct api_vmi_volume *b)
{
    return a->source == b->source && ferry_streq(a->claim, b->claim) &&
           ferry_streq(a->path, b->path) && ferry_streq(a->image, b->image) &&
           a->capacity_bytes == b->capacity_bytes;
}

/* A claim may take the place of a data volume, and the other way round. */
static bool same_claim(const struct api_vmi_volume *a, const struct api_vmi_volume *b)
{
    const char *x = storage_claim_name(a), *y = storage_claim_name(b);

    return x && y ? ferry_streq(x, y) : same_volume(a, b);
}

/* ---- what may be exchanged -------------------------------------------------------------------
 */

static bool is_filesystem(const struct api_machine *m, const char *volume)
{
    for (size_t i = 0; i < m->n_filesystems; i++) {
        if (ferry_streq(m->filesystems[i].name, volume)) {
            return true;
        }
    }
    return false;
}

static struct volume_verdict check_changed(const struct volume_view *v,
                                           const struct api_vmi_volume *to)
{
    const struct api_machine *m = present(v);
    const struct api_claim *claim = storage_claim(v->storage, storage_claim_name(to));

    if (!storage_claim_name(to) || !storage_claim_name(find(m, to->name))) {
        return refuse("is no claim, before and after", to->name);
    }
    if (is_filesystem(m, to->name)) {
        return refuse("is shared as a filesystem", to->name);
    }
    for (size_t i = 0; i < m->n_disks; i++) {
        if (ferry_streq(m->disks[i].name, to->name) &&
            (m->disks[i].kind == API_DISK_LUN || m->disks[i].shareable)) {
            return refuse(m->disks[i].shareable ? "is shareable" : "is a LUN", to->name);
        }
    }
    if (!claim) {
        return refuse("goes to a claim that does not exist", to->name);
    }
    if (to->source == API_VOLUME_DATA_VOLUME && !ferry_streq(claim->phase, "Bound") &&
        !storage_claim_waits_for_pod(v->storage, claim)) {
        return refuse("goes to a data volume that is not ready", to->name);
    }
    return (struct volume_verdict){0};
}

/* One that stays must be within reach of both nodes. */
static struct volume_verdict check_kept(const struct volume_view *v,
                                        const struct api_vmi_volume *kept)
{
    const char *name = storage_claim_name(kept);
    const struct api_claim *claim = name ? storage_claim(v->storage, name) : NULL;

    if (name && !(claim && storage_claim_is_shared(claim))) {
        return refuse("is not ReadWriteMany and not part of the change", kept->name);
    }
    return (struct volume_verdict){0};
}

static struct volume_verdict check_all(const struct volume_view *v)
{
    const struct api_condition *c =
        api_condition_find(&v->vmi->u.vmi.conditions, CONDITION_LIVE_MIGRATABLE);
    struct volume_verdict one = {0};

    if (!ferry_streq(v->vm->u.vm.update_volumes_strategy, "Migration")) {
        one.answer = VOLUMES_REFUSED;
        snprintf(one.message, sizeof(one.message),
                 "volumes were changed, and spec.updateVolumesStrategy is not Migration");
        return one;
    }
    if (c && ferry_streq(c->status, "False") && !ferry_streq(c->reason, "DisksNotLiveMigratable")) {
        one.answer = VOLUMES_REFUSED;
        snprintf(one.message, sizeof(one.message), "the VM cannot be moved: %.100s", c->reason);
        return one;
    }
    for (size_t i = 0; i < wanted(v)->n_volumes; i++) {
        const struct api_vmi_volume *to = &wanted(v)->volumes[i];
        const struct api_vmi_volume *from = find(present(v), to->name);

        one = same_claim(from, to) ? check_kept(v, to) : check_changed(v, to);
        if (one.answer) {
            return one;
        }
    }
    bool busy = v->moves_open || vmi_is_migrating(&v->vmi->u.vmi);
    one.answer =
        busy || !vmi_has_phase(&v->vmi->u.vmi, PHASE_RUNNING) ? VOLUMES_WAIT : VOLUMES_UPDATE;
    return one;
}

/* ---- a change that is under way --------------------------------------------------------------
 */

static const struct api_migrated_volume *migrated(const struct api_vmi *vmi, const char *volume)
{
    for (size_t i = 0; i < vmi->n_migrated_volumes; i++) {
        if (ferry_streq(vmi->migrated_volumes[i].volume, volume)) {
            return &vmi->migrated_volumes[i];
        }
    }
    return NULL;
}

/* All that are being copied go back to where they came from, and nothing else is changed. */
static bool all_set_back(const struct volume_view *v)
{
    for (size_t i = 0; i < wanted(v)->n_volumes; i++) {
        const struct api_vmi_volume *to = &wanted(v)->volumes[i];
        const struct api_migrated_volume *m = migrated(&v->vmi->u.vmi, to->name);

        if (m ? !ferry_streq(storage_claim_name(to), m->source.claim)
              : !same_claim(find(present(v), to->name), to)) {
            return false;
        }
    }
    return true;
}

/* A move that began after the change has ended well. */
static bool is_copied(const struct api_vmi *vmi)
{
    const struct api_condition *c = api_condition_find(&vmi->conditions, CONDITION_VOLUMES_CHANGE);
    const struct api_migration_state *s = &vmi->migration;

    return c && s->present && s->completed && !s->failed && s->start_ms &&
           s->start_ms >= c->last_transition_ms;
}

struct volume_verdict volume_judge(const struct volume_view *v)
{
    const struct api_vmi *vmi = &v->vmi->u.vmi;
    bool changed = false;

    for (size_t i = 0; i < wanted(v)->n_volumes; i++) {
        const struct api_vmi_volume *to = &wanted(v)->volumes[i];
        const struct api_vmi_volume *from = find(present(v), to->name);

        if (!from) {
            return refuse("was added; that needs a restart", to->name);
        }
        changed = changed || !same_claim(from, to);
    }
    if (wanted(v)->n_volumes != present(v)->n_volumes) {
        return refuse("was removed; that needs a restart", "of the instance");
    }
    if (vmi->n_migrated_volumes == 0) {
        return changed ? check_all(v) : (struct volume_verdict){0};
    }
    if (is_copied(vmi)) {
        return (struct volume_verdict){.answer = VOLUMES_DONE};
    }
    if (!changed) {
        return (struct volume_verdict){0};
    }
    if (!all_set_back(v)) {
        struct volume_verdict one = {.answer = VOLUMES_REFUSED};

        snprintf(one.message, sizeof(one.message),
                 "while volumes are being migrated they can only all be set back");
        return one;
    }
    return (struct volume_verdict){.answer = VOLUMES_CANCEL};
}

/* ---- what follows ----------------------------------------------------------------------------
 */

static char *migrated_json(const struct volume_view *v)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    for (size_t i = 0; i < wanted(v)->n_volumes; i++) {
        const struct api_vmi_volume *to = &wanted(v)->volumes[i];
        const struct api_vmi_volume *from = find(present(v), to->name);
        const struct api_claim *old = storage_claim(v->storage, storage_claim_name(from));
        const struct api_claim *new = storage_claim(v->storage, storage_claim_name(to));

        if (same_claim(from, to) || !new) {
            continue;
        }
        ferry_cleanup_free char *source =
            old ? storage_claim_info(old) : ferry_asprintf("{\"claimName\":\"%s\"}", from->claim);
        ferry_cleanup_free char *destination = storage_claim_info(new);
        ferry_buf_printf(&b,
                         "%s{\"volumeName\":\"%s\",\"sourcePVCInfo\":%s,\"destinationPVCInfo\":%s}",
                         b.len ? "," : "", to->name, source, destination);
    }
    return ferry_asprintf("[%s]", b.data ? b.data : "");
}

static struct api_patch *guarded(const struct volume_view *v)
{
    struct api_patch *p = api_patch_new();

    plan_guard(p, v->vmi);
    return p;
}

static void take_volumes(const struct volume_view *v, struct api_patch *p)
{
    api_patch_add_val(p, "/spec/volumes",
                      yyjson_ptr_get((yyjson_val *)v->vm->u.vm.template_, "/spec/volumes"));
}

static void set_change(const struct volume_view *v, struct api_patch *p, const char *status,
                       const char *reason, int64_t now_ms)
{
    struct plan_condition c = {CONDITION_VOLUMES_CHANGE, status, reason,
                               status ? "migrate volumes" : NULL};

    plan_set_conditions(p, v->vmi, &v->vmi->u.vmi.conditions, &c, 1, now_ms);
}

/* A move under way is ended first: it works with the claims that it began with. */
static void cancel(const struct volume_view *v, int64_t now_ms, struct plan *plan)
{
    const struct api_vmi *vmi = &v->vmi->u.vmi;
    struct api_patch *p = guarded(v);

    if (v->moves_open || vmi_is_migrating(vmi)) {
        if (!api_condition_true(&vmi->conditions, CONDITION_VOLUMES_CHANGE)) {
            api_patch_free(p);
            return; /* said already */
        }
        set_change(v, p, "False", "VolumesChangeCancellation", now_ms);
        plan_patch_status(plan, v->vmi, p);
        return;
    }
    take_volumes(v, p);
    api_patch_remove(p, "/status/migratedVolumes");
    set_change(v, p, NULL, NULL, now_ms);
    plan_patch_status(plan, v->vmi, p);
    plan_event(plan, v->vm, KUBE_EVENT_NORMAL, "VolumesChangeCancellation",
               "The change of volumes was called off");
}

void volume_decide(const struct volume_view *v, const struct volume_verdict *verdict,
                   int64_t now_ms, struct plan *plan)
{
    struct api_patch *p = NULL;

    if (verdict->answer == VOLUMES_UPDATE) {
        ferry_cleanup_free char *json = migrated_json(v);

        p = guarded(v);
        take_volumes(v, p);
        api_patch_add_raw(p, "/status/migratedVolumes", json);
        set_change(v, p, "True", "VolumesChange", now_ms);
        plan_patch_status(plan, v->vmi, p);
        plan_event(plan, v->vm, KUBE_EVENT_NORMAL, "VolumesChange",
                   "The content of changed volumes goes with the next move");
    } else if (verdict->answer == VOLUMES_CANCEL) {
        cancel(v, now_ms, plan);
    } else if (verdict->answer == VOLUMES_DONE) {
        p = guarded(v);
        api_patch_remove(p, "/status/migratedVolumes");
        set_change(v, p, NULL, NULL, now_ms);
        plan_patch_status(plan, v->vmi, p);
    }
}
