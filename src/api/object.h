/* Objects and resources: parse, reference, address. See kinds.h for what an object holds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/kinds.h"
#include "base/cleanup.h"
#include "base/error.h"

/* Parses and decodes. Refuses what is not an object, duplicate keys, nesting over 64 and a wrong
 * type in a known field, naming the field: "status.phase: must be a string". */
int api_object_parse(enum api_kind kind, const char *json, size_t len, struct api_object **ret,
                     struct ferry_error *err);
/* As above from a value inside another document (an item of a list, the object of a watch event);
 * copies, so the other document may go. */
int api_object_from_val(enum api_kind kind, const yyjson_val *val, struct api_object **ret,
                        struct ferry_error *err);
struct api_object *api_object_ref(struct api_object *o);
struct api_object *api_object_unref(struct api_object *o); /* takes NULL, returns NULL */

static inline void api_object_unrefp(struct api_object **o)
{
    api_object_unref(*o);
}
#define api_cleanup_object ferry_cleanup(api_object_unrefp)

/* How a kind is served. */
struct api_resource {
    const char *group, *version, *plural, *singular, *kind_name;
    const char *short_names; /* comma-separated, or "" */
    enum api_kind kind;
    bool namespaced;
    bool has_status;    /* there is a "status" subresource */
    bool status_shared; /* ... and the object itself takes status too (VMI, as KubeVirt has it) */
    bool foreign;       /* of another project, which a Kubernetes cluster may not have */
};
const struct api_resource *api_resource_of_kind(enum api_kind kind);
const struct api_resource *api_resource_find(const char *group, const char *version,
                                             const char *plural);
/* What a manifest is about. A kind that does not exist is refused with the nearest one named, one
 * of another version with the versions there are: "kind: there is no Kubevirt in kubevirt.io/v1;
 * did you mean KubeVirt?" */
int api_resource_of_manifest(const yyjson_val *root, const struct api_resource **ret,
                             struct ferry_error *err);
/* All resources, in a fixed order; ends with a NULL plural. Includes those that are only stored
 * (kind API_KIND_NONE): namespaces, events, KubeVirt, ... */
const struct api_resource *api_resources(void);

/* "/apis/kubevirt.io/v1/namespaces/NS/virtualmachineinstances/NAME/status"; ns, name and
 * subresource may be NULL. Percent-encoded, owned by the caller. */
char *api_path(const struct api_resource *r, const char *ns, const char *name,
               const char *subresource);

/* Parses JSON strictly (as api_object_parse, with room for the list around objects) without
 * decoding. Free with yyjson_doc_free(). */
int api_json_parse(const char *json, size_t len, yyjson_doc **ret, struct ferry_error *err);
/* Value at a JSON pointer ("/metadata/name"); NULL when absent or of another type. */
const char *api_json_str(const yyjson_val *v, const char *pointer);
bool api_json_bool(const yyjson_val *v, const char *pointer, bool absent);
int64_t api_json_int(const yyjson_val *v, const char *pointer, int64_t absent);

/* YAML or JSON, one or several documents, to JSON texts; calls `each` per document that is not
 * empty. JSON documents may stand behind each other as they are. Anchors, aliases and tags other
 * than !!str are refused. Errors name the line.
 */
int api_yaml_each(const char *yaml, size_t len,
                  int (*each)(void *ctx, const char *json, size_t json_len,
                              struct ferry_error *err),
                  void *ctx, struct ferry_error *err);

/* "1.5Gi" -> bytes, "500m" cpu -> milli with scale 1000. Rounds up. */
int api_quantity(const char *text, int64_t scale, int64_t *ret, struct ferry_error *err);
/* As above from JSON: a string or a number. */
int api_quantity_val(const yyjson_val *v, int64_t scale, int64_t *ret, struct ferry_error *err);
int api_time_parse(const char *rfc3339, int64_t *ret_unix_ms, struct ferry_error *err);

/* ---- patches ------------------------------------------------------------------------------------
 */

/* A JSON Patch (RFC 6902) under construction. `path` is a JSON pointer; use api_pointer_escape()
 * for keys with '/' or '~'. */
struct api_patch;
struct api_patch *api_patch_new(void);
void api_patch_free(struct api_patch *p);
bool api_patch_empty(const struct api_patch *p);
/* Whether it adds something at just this path already: an object that is made twice loses what was
 * put into it in between. */
bool api_patch_adds(const struct api_patch *p, const char *path);
void api_patch_test_str(struct api_patch *p, const char *path, const char *value);
void api_patch_test_raw(struct api_patch *p, const char *path, const char *json);
void api_patch_add_str(struct api_patch *p, const char *path, const char *value);
void api_patch_add_int(struct api_patch *p, const char *path, int64_t value);
void api_patch_add_bool(struct api_patch *p, const char *path, bool value);
void api_patch_add_time(struct api_patch *p, const char *path, int64_t unix_ms);
void api_patch_add_raw(struct api_patch *p, const char *path, const char *json);
void api_patch_add_val(struct api_patch *p, const char *path, const yyjson_val *value);
void api_patch_remove(struct api_patch *p, const char *path);
char *api_patch_take(struct api_patch *p); /* JSON text; frees the patch */
char *api_pointer_escape(const char *key);
FERRY_DEFINE_CLEANUP(struct api_patch *, api_patch_free)
#define api_cleanup_patch ferry_cleanup(api_patch_freep)
