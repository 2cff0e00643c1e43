/* A cache of one kind that follows the API server: list, then watch, for ever.
 *
 * One thread per informer lists and watches; it resumes by resourceVersion after a broken
 * connection, lists again when the server says the version is too old, and waits with growing,
 * jittered pauses while the server is away. A kind of another project that is not installed there
 * counts as synced and empty, and is asked for about once a minute. Objects are immutable and
 * referenced, so readers need no lock while they use one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/object.h"
#include "kube/client.h"

struct kube_informer;

struct kube_informer_config {
    struct kube_client *client;
    enum api_kind kind;
    const struct api_resource *resource;         /* instead of the kind */
    const char *ns;                              /* NULL = all */
    const char *label_selector, *field_selector; /* or NULL */
    /* What kube_informer_find() finds an object by; owned by the caller, NULL = not at all. Pure;
     * may be NULL itself. */
    char *(*index)(const struct api_object *o);
    /* Runs on the informer's thread, in the order of changes, after the cache shows the change:
     * added (old NULL), changed, gone (now NULL). Must not block for long; borrows its objects.
     * May be NULL. */
    void (*on_delta)(void *ctx, struct api_object *old, struct api_object *now);
    void *ctx;
};

int kube_informer_start(const struct kube_informer_config *cfg, struct kube_informer **ret,
                        struct ferry_error *err);
/* The same in two steps, for several whose deltas look into each other's caches: make all, then
 * begin each. */
struct kube_informer *kube_informer_new(const struct kube_informer_config *cfg);
int kube_informer_begin(struct kube_informer *inf, struct ferry_error *err);

/* Asks the thread to end without waiting: call it on several before stopping each. */
void kube_informer_cancel(struct kube_informer *inf);
/* Ends the thread: no delta comes after. The cache can still be read. */
void kube_informer_join(struct kube_informer *inf);
/* Ends the thread and frees; takes NULL. */
void kube_informer_stop(struct kube_informer *inf);

/* True when the first list is in the cache and its deltas are delivered. */
bool kube_informer_synced(struct kube_informer *inf);
/* Waits for it; RETRY past the deadline, with why the last attempt failed. */
int kube_informer_wait_synced(struct kube_informer *inf, int64_t deadline_ns,
                              struct ferry_error *err);

/* Referenced, or NULL. `ns` is NULL or "" for cluster-scoped kinds. */
struct api_object *kube_informer_get(struct kube_informer *inf, const char *ns, const char *name);

struct kube_snapshot {
    struct api_object **items; /* ordered by namespace/name */
    size_t n;
};
struct kube_snapshot kube_informer_list(struct kube_informer *inf);
/* Those whose index is `key`, in no order. */
struct kube_snapshot kube_informer_find(struct kube_informer *inf, const char *key);
void kube_snapshot_done(struct kube_snapshot *s);
#define kube_cleanup_snapshot ferry_cleanup(kube_snapshot_done)
