/* Asks the launchers of all running pods of this node whether they work (readiness_decide.h). */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct readiness;

struct readiness_config {
    const char *pods_dir; /* borrowed as long as it lives */
    /* A pod became ready or ceased to be. Called from a thread of its own, without locks. */
    void (*changed)(void *ctx, const char *uid);
    void *ctx;
};

int readiness_start(const struct readiness_config *cfg, struct readiness **ret,
                    struct ferry_error *err);
void readiness_stop(struct readiness *r); /* NULL is fine */

/* Any thread. Fine when it is watched already, or not. */
void readiness_watch(struct readiness *r, const char *uid);
void readiness_forget(struct readiness *r, const char *uid);
/* False when it is not known yet. */
bool readiness_of(struct readiness *r, const char *uid, bool *ret_ready);
