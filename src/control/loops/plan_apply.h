/* Carries out plans. */
#pragma once

#include "control/loops/pending_writes.h"
#include "control/plan/plan.h"
#include "kube/client.h"
#include "kube/recorder.h"

/* What plans are carried out with. */
struct plan_writer {
    struct kube_client *client;
    struct kube_recorder *recorder; /* or NULL */
    struct pending_writes *pending; /* or NULL: nobody waits for the caches */
};

/* In order; the first write that fails ends it. Everything a decision needs is in the API, so what
 * was not done is decided again. */
int plan_apply(const struct plan *p, const struct plan_writer *w, struct ferry_error *err);
/* For writes that have nothing to do with each other, each followed by its event: one that fails
 * does not keep the others. The error is the last. */
int plan_apply_each(const struct plan *p, const struct plan_writer *w, struct ferry_error *err);
