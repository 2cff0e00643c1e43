/* One stored object: its JSON text, what is needed to find it, and where in its text that stands
 * which is asked for all the time, read once when the entry is made. Immutable and
 * reference-counted, so lists, watchers and the store share one copy. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "api/object.h"
#include "base/cleanup.h"
#include "base/str.h"

struct entry {
    const struct api_resource *resource;
    uint64_t version;      /* metadata.resourceVersion */
    const char *ns, *name; /* ns is "" for what has no namespace */
    const char *json;      /* NUL-terminated */
    uint32_t json_len;     /* the database takes no longer text */
    uint32_t n_labels, n_finalizers, n_owners;
    uint16_t n_fields;
    bool ending;      /* its deletion was asked for: metadata.deletionTimestamp is set */
    atomic_uint refs; /* entry.c's own, as what follows */
    uint32_t at[];
};

struct entry *entry_new(const struct api_resource *resource, uint64_t version, const char *ns,
                        const char *name, const char *json, size_t json_len);
struct entry *entry_ref(struct entry *e);
void entry_unref(struct entry *e); /* takes NULL */
FERRY_DEFINE_CLEANUP(struct entry *, entry_unref)
#define cleanup_entry ferry_cleanup(entry_unrefp)

/* ---- what is known without parsing; spans live as long as the entry -----------------------------
 */

struct ferry_span entry_uid(const struct entry *e);
/* The same object, not one that took its name later. */
bool entry_is_same(const struct entry *a, const struct entry *b);
/* None when it has no such label. */
struct ferry_span entry_label(const struct entry *e, const char *key);
bool entry_has_finalizer(const struct entry *e, const char *name);

struct entry_owner {
    struct ferry_span uid; /* none: it names none */
    bool blocks;           /* blockOwnerDeletion */
};
struct entry_owner entry_owner(const struct entry *e, size_t i); /* i < n_owners */
bool entry_is_owned_by(const struct entry *e, struct ferry_span uid, bool *ret_blocks);

/* Fields by which clients may select objects of a resource, beside name and namespace. */
bool entry_field_is_selectable(const struct api_resource *r, const char *path);
/* The value of one of those, or of one that the server itself asks for (entry.c has the table);
 * none when it is absent or empty. Booleans and numbers are text. */
struct ferry_span entry_field(const struct entry *e, const char *path);
/* Of a migration: spec.vmiName; none where there is nothing to find it by. */
struct ferry_span entry_about(const struct entry *e);

/* ---- all of it ----------------------------------------------------------------------------------
 */

/* Parses it, for whoever needs more than the above: free it with api_cleanup_doc. NULL of NULL, and
 * when what is stored is no JSON. */
yyjson_doc *entry_doc(const struct entry *e);
/* The same, decoded. */
int entry_object(const struct entry *e, enum api_kind kind, struct api_object **ret,
                 struct ferry_error *err);
/* Its text as of another version. */
void entry_put_as_of(const struct entry *e, uint64_t version, struct ferry_buf *out);

/* A snapshot of several objects, in the order of namespace and name. */
struct entry_list {
    struct entry **items;
    size_t n;
    uint64_t version; /* of the store when it was taken */
};
void entry_list_done(struct entry_list *list);
#define cleanup_entry_list ferry_cleanup(entry_list_done)
