/* Calls to a launcher (docs/contracts/launcher.md). Blocking, any thread. */
#pragma once

#include <stdint.h>

#include "api/object.h"
#include "base/error.h"
#include "handler/local/launcher_status.h"
#include "http/client.h"

/* Each call says for which VMI it is meant, and a launcher of another one refuses it: what somebody
 * wrote into a VMI's status leads to no other guest. */
struct launcher_at {
    const char *socket; /* the pod's launcher.sock */
    const char *vmi;    /* UID of the VMI that the pod is taken for */
};

/* What a launcher said when it refused a call that can never work, as input that is wrong or a file
 * that is not there; NULL when it may work later, or nobody answered. Points into `err`. */
const char *launcher_refused(const struct ferry_error *err);

int launcher_get_status(const struct launcher_at *at, struct launcher_status *ret,
                        struct ferry_error *err);
int launcher_sync(const struct launcher_at *at, const struct api_object *vmi,
                  struct ferry_error *err);
int launcher_stop(const struct launcher_at *at, int64_t grace_s, struct ferry_error *err);
/* CONFLICT when the guest is being moved, or stands still for another reason than its user's. */
int launcher_set_paused(const struct launcher_at *at, bool paused, struct ferry_error *err);
/* `ret` (may be NULL) is the launcher's answer; `source_disks_json` may be NULL. */
int launcher_prepare(const struct launcher_at *at, const char *uid, const struct api_object *vmi,
                     const char *options_json, const char *source_disks_json,
                     struct http_reply *ret, struct ferry_error *err);
/* How large the disks are that a move of the VMI copies. */
int launcher_disks(const struct launcher_at *at, const struct api_object *vmi,
                   struct http_reply *ret, struct ferry_error *err);
int launcher_migrate(const struct launcher_at *at, const char *uid, const struct api_object *vmi,
                     const char *options_json, const char *target_disks_json,
                     struct ferry_error *err);
int launcher_cancel(const struct launcher_at *at, const char *uid, struct ferry_error *err);
/* The flight record of a migration that this launcher worked on. */
int launcher_get_record(const struct launcher_at *at, const char *uid, struct http_reply *ret,
                        struct ferry_error *err);
int launcher_recover(const struct launcher_at *at, const char *uid, enum launcher_role role,
                     struct ferry_error *err);
/* To the source: what is known for sure of the target. */
int launcher_target_state(const struct launcher_at *at, const char *uid, enum outcome_target state,
                          struct ferry_error *err);
/* What a move under these options would be like; takes some seconds. */
int launcher_plan(const struct launcher_at *at, const char *options_json, struct http_reply *ret,
                  struct ferry_error *err);
/* To the source: whether the relay's way to the target is away. */
int launcher_tell_path(const struct launcher_at *at, const char *uid, bool away,
                       int64_t bytes_per_s, struct ferry_error *err);
/* To the target: the guest shall not run there any more. CONFLICT when it did. Needs no libvirtd.
 */
int launcher_withdraw(const struct launcher_at *at, const char *uid, struct ferry_error *err);
int launcher_finalize(const struct launcher_at *at, const char *uid, struct ferry_error *err);
