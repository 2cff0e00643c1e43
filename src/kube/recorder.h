/* Events (v1 Event): what happened to an object, for people.
 *
 * Written by threads of the recorder's own, so that a reconcile never waits for them; those of one
 * object in their order. The same reason and message on the same object is counted up instead of
 * written anew. Events are best effort: failures are logged, and when many thousands wait the
 * newest are dropped. */
#pragma once

#include "api/object.h"
#include "kube/client.h"

struct kube_recorder;

/* `component`: "ferry-controller"; `host` may be NULL. */
int kube_recorder_start(struct kube_client *client, const char *component, const char *host,
                        struct kube_recorder **ret, struct ferry_error *err);
/* Writes what waits, for at most a few seconds; takes NULL. */
void kube_recorder_stop(struct kube_recorder *r);

enum kube_event_type { KUBE_EVENT_NORMAL, KUBE_EVENT_WARNING };
/* `r` may be NULL: nothing is recorded. */
void kube_record(struct kube_recorder *r, const struct api_object *about, enum kube_event_type type,
                 const char *reason, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The same about an object of which only kind, namespace, name and UID are at hand, and of a
 * migration the VMI it moves (else NULL) and why it failed, as a code (else NULL): events of a move
 * name it as `related`, because they are what is left when the object is gone. */
void kube_record_about(struct kube_recorder *r, enum api_kind kind, const struct api_meta *about,
                       const char *vmi, enum kube_event_type type, const char *reason,
                       const char *code, const char *message);
/* The VMI that an object is about moving, or NULL. */
const char *kube_record_vmi(const struct api_object *about);
