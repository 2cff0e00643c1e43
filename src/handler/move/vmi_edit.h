/* Field-level changes of a VMI, collected into one guarded JSON patch. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/object.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_reason.h"

struct vmi_edit {
    const struct api_vmi *vmi;
    int64_t now_ms;
    struct api_patch *patch;
    bool changed;            /* something beyond the guards */
    bool conditions_present; /* the list is there or was added */
};

/* Guarded by the object's UID and resourceVersion: for changes that rest on
 * all of what was read: who owns the guest, how a move ended. */
struct vmi_edit vmi_edit_begin(const struct api_vmi *vmi, int64_t now_ms);
/* Guarded by the UID of object and migration only: for fields of migrationState that have one
 * writer, so that source, target and controller do not get into each other's way. */
struct vmi_edit vmi_edit_begin_move(const struct api_vmi *vmi, int64_t now_ms);
/* The patch, or NULL when nothing was changed. */
struct api_patch *vmi_edit_end(struct vmi_edit *e);

/* `path` is a JSON pointer; a value equal to `old` changes nothing. */
void vmi_edit_str(struct vmi_edit *e, const char *path, const char *old, const char *value);
void vmi_edit_bool(struct vmi_edit *e, const char *path, bool old, bool value);
/* Only when `old_ms` is 0. */
void vmi_edit_time_once(struct vmi_edit *e, const char *path, int64_t old_ms, int64_t value_ms);
void vmi_edit_raw(struct vmi_edit *e, const char *path, const char *json);

void vmi_edit_label(struct vmi_edit *e, const char *key, const char *value); /* NULL removes */
void vmi_edit_annotation(struct vmi_edit *e, const char *key, const char *value);
/* Why the move failed, for whoever reads codes; one that is no failure is not written. */
void vmi_edit_failure(struct vmi_edit *e, enum wire_reason code);
/* Also adds to status.phaseTransitionTimestamps. */
void vmi_edit_phase(struct vmi_edit *e, enum wire_phase phase);
/* `reason` and `message` may be NULL. An equal condition is left alone. */
void vmi_edit_condition(struct vmi_edit *e, const char *type, bool status, const char *reason,
                        const char *message);
void vmi_edit_drop_condition(struct vmi_edit *e, const char *type);

#define VMI_MOVE "/status/migrationState/"
