/* One stored object: its JSON text and what is needed to find it. Immutable and reference-counted,
 * so lists, watchers and the store share one copy. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/object.h"
#include "base/cleanup.h"

struct entry {
    const struct api_resource *resource;
    uint64_t version;      /* metadata.resourceVersion */
    const char *ns, *name; /* ns is "" for what has no namespace */
    const char *json;      /* NUL-terminated */
    size_t json_len;
    const char *about; /* of a migration: spec.vmiName; NULL where there is nothing to find it by */
};

struct entry *entry_new(const struct api_resource *resource, uint64_t version, const char *ns,
                        const char *name, const char *json, size_t json_len);
struct entry *entry_ref(struct entry *e);
void entry_unref(struct entry *e); /* takes NULL */
/* Its deletion was asked for: metadata.deletionTimestamp is set. */
bool entry_is_ending(const struct entry *e);
FERRY_DEFINE_CLEANUP(struct entry *, entry_unref)
#define cleanup_entry ferry_cleanup(entry_unrefp)

/* A snapshot of several objects, in the order of namespace and name. */
struct entry_list {
    struct entry **items;
    size_t n;
    uint64_t version; /* of the store when it was taken */
};
void entry_list_done(struct entry_list *list);
#define cleanup_entry_list ferry_cleanup(entry_list_done)
