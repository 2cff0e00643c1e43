/* The Kubernetes API as calls: one HTTP exchange each, blocking, from any thread.
 *
 * An answer other than 2xx is an error: the message is the server's own, `err->http` the status,
 * the class what a caller does about it: 404 NOT_FOUND; 409 and a failed `test` of a JSON patch
 * CONFLICT; 400 and 422 INVALID; 401 and 403 DENIED; 429, 5xx and no answer at all RETRY. */
#pragma once

#include <stdint.h>

#include "api/object.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "kube/config.h"

struct kube_client;
struct http_client;

/* By the kubeconfig; where there is no such file, in a pod on Kubernetes, as its service account. A
 * certificate that is replaced in the kubeconfig is used within seconds. */
int kube_client_open(const char *kubeconfig, struct kube_client **ret, struct ferry_error *err);
int kube_client_new(const struct kube_config *config, struct kube_client **ret,
                    struct ferry_error *err);
void kube_client_free(struct kube_client *c);
FERRY_DEFINE_CLEANUP(struct kube_client *, kube_client_free)
#define kube_cleanup_client ferry_cleanup(kube_client_freep)
/* From now on every write first asks `may_write`, and is CANCELLED when it says no: who has slept
 * through the end of his lease acts on a world that is gone. NULL takes it away; what `ctx` is must
 * outlive calls under way. */
void kube_client_fence(struct kube_client *c, bool (*may_write)(void *ctx), void *ctx);

/* Who gets the warnings that the server sends with its answers; otherwise they are logged. */
void kube_client_on_warning(struct kube_client *c, void (*warn)(const char *text));

/* The connection below, for streams and calls that are not here. */
struct http_client *kube_client_http(struct kube_client *c);
/* The CA by which the server is known, PEM; NULL for plain http. Lives as long as the client. */
const char *kube_client_ca(const struct kube_client *c);
/* Namespace of the kubeconfig's context, "default" when it names none. */
const char *kube_client_namespace(const struct kube_client *c);

/* What a call is about; borrows its strings. */
struct kube_ref {
    const struct api_resource *resource;
    const char *ns, *name, *subresource;
};
struct kube_ref kube_ref(enum api_kind kind, const char *ns, const char *name);
struct kube_ref kube_ref_of(const struct api_object *o);
/* Where the status of `o` is written: its subresource, or the object when that takes it (VMI), so
 * that one patch may change status and labels together. */
struct kube_ref kube_ref_status(const struct api_object *o);

/* `ret` may be NULL in all of these but get and list; the object is the caller's. */
int kube_client_get(struct kube_client *c, struct kube_ref ref, struct api_object **ret,
                    struct ferry_error *err);
int kube_client_create(struct kube_client *c, struct kube_ref ref, const char *json,
                       struct api_object **ret, struct ferry_error *err);

enum kube_patch_type { KUBE_PATCH_JSON, KUBE_PATCH_MERGE, KUBE_PATCH_APPLY };
int kube_client_patch(struct kube_client *c, struct kube_ref ref, enum kube_patch_type type,
                      const char *body, struct api_object **ret, struct ferry_error *err);

/* Runs `attempt` again while it ends in a CONFLICT, a few times, with a short pause between. Only
 * for what reads the object anew each time and decides by what it finds: a guarded patch as such
 * must not be repeated, because what it was decided by is no longer so. Reconcilers need none of
 * this: their key comes back. */
int kube_retry_conflicts(int (*attempt)(void *ctx, struct ferry_error *err), void *ctx,
                         struct ferry_error *err);

struct kube_delete_options {
    const char *uid; /* only this incarnation; else CONFLICT. NULL = whichever */
    bool has_grace;  /* else the object's own */
    int64_t grace_s;
};
int kube_client_delete(struct kube_client *c, struct kube_ref ref,
                       const struct kube_delete_options *options, struct ferry_error *err);

/* Sets spec.nodeName through the binding subresource; CONFLICT when it is set already. */
int kube_client_bind(struct kube_client *c, const struct api_object *pod, const char *node,
                     struct ferry_error *err);

struct kube_list_options {
    const char *label_selector, *field_selector; /* or NULL */
};
struct kube_list {
    struct api_object **items;
    size_t n;
    char *resource_version;
};
/* `ref.name` NULL; `ref.ns` NULL = all namespaces. Items that do not decode are left out and
 * logged: one malformed object must not blind a controller to the others. */
int kube_client_list(struct kube_client *c, struct kube_ref ref,
                     const struct kube_list_options *options, struct kube_list *ret,
                     struct ferry_error *err);
/* One page of it: adds the items of the answer `text` (used up; YYJSON_PADDING_SIZE bytes of room
 * behind `len`). `*ret_next` is the token of the next page, the caller's, or NULL at the end. */
int kube_list_add_page(struct kube_list *l, const struct api_resource *resource, char *text,
                       size_t len, char **ret_next, struct ferry_error *err);
void kube_list_done(struct kube_list *l);
#define kube_cleanup_list ferry_cleanup(kube_list_done)

/* Error from an answer of the API server; for callers of kube_client_http(). `what` is what was
 * tried: "get pods web". */
int kube_status_error(int status, const char *body, size_t len, const char *what,
                      struct ferry_error *err);
