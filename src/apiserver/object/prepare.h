/* What the server does to every object on its way in: metadata, the split between spec and status,
 * names. Pure: time, uid and random letters come from the caller. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "apiserver/message/route.h"
#include "apiserver/message/status.h"

struct prepare_stamp {
    int64_t now_ms;
    const char *uid;    /* of a new object */
    const char *suffix; /* for generateName */
};

/* A new object. Fills in metadata and defaults; `route->name` becomes its name. `ret` is what
 * became of it, for all who look at it from then on: nothing but its version is still to change. */
int prepare_create(struct route *route, yyjson_mut_doc *doc, const struct prepare_stamp *stamp,
                   yyjson_doc **ret, struct status *st);

/* `doc` is the object as the caller wants it, `old` as it is. After this `doc` is what to store,
 * and `ret` the same. */
int prepare_update(const struct route *route, const yyjson_val *old, yyjson_mut_doc *doc,
                   yyjson_doc **ret, struct status *st);

/* Counts the generation up when the spec is another one. */
void prepare_generation(const yyjson_val *old, yyjson_mut_doc *doc);

/* Names, labels, annotations, and the types of all fields that Ferry reads; a copy to look at.
 * `old` is the object as it was, or NULL. */
int prepare_validate(const struct api_resource *r, const yyjson_val *old, yyjson_mut_doc *doc,
                     yyjson_doc **ret, struct status *st);

/* Nothing holds the object back: it is being deleted, has no finalizers and no grace left. */
bool prepare_is_gone(const struct api_resource *r, yyjson_mut_val *root);

struct prepare_deletion {
    bool has_grace;
    int64_t grace_s;
    const char
        *finalizer; /* to add: what shall happen to the things it owns; NULL = nothing first */
};
enum prepare_delete_result { PREPARE_REMOVE, PREPARE_STORE, PREPARE_NOTHING };
/* Marks `doc` for deletion; says whether it goes now, is stored marked, or was marked already. */
enum prepare_delete_result prepare_delete(const struct api_resource *r, yyjson_mut_doc *doc,
                                          const struct prepare_deletion *how, int64_t now_ms);
