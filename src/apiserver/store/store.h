/* All objects: on disk in SQLite, in memory for reading. A write is on disk before it is seen or
 * answered. resourceVersion is one growing number over all objects, kept across restarts. Any
 * thread; one transaction is made at a time, many are written together. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "apiserver/store/entry.h"
#include "apiserver/store/hub.h"
#include "base/error.h"

struct store;

/* Opens or makes the database file. Only one process at a time may hold it. */
int store_open(const char *path, struct store **ret, struct ferry_error *err);
void store_close(struct store *s);
struct hub *store_hub(struct store *s);
uint64_t store_version(struct store *s);
/* Of the last change of an object of one of these kinds since the store was opened; 0 = none. */
uint64_t store_changed(struct store *s, const struct api_resource *const *kinds, size_t n);

/* A reference, or NULL. */
struct entry *store_get(struct store *s, const struct api_resource *r, const char *ns,
                        const char *name);
/* `ns` NULL = all namespaces. */
void store_list(struct store *s, const struct api_resource *r, const char *ns,
                struct entry_list *ret);
/* Those that are `about` something (entry.h). */
void store_find(struct store *s, const struct api_resource *r, const char *ns, const char *about,
                struct entry_list *ret);

/* As it was at `version`: -1 when that is no longer (or not yet) known. */
int store_list_at(struct store *s, const struct api_resource *r, const char *ns, uint64_t version,
                  struct entry_list *ret);
/* Everything of one instant. */
void store_list_all(struct store *s, struct entry_list *ret);

/* A write transaction: begin waits for other writers; what is read with store_get() after it stays
 * true until commit or abort, which end it. */
void store_begin(struct store *s);
/* store_get() and store_list() between begin and the end do not see the transaction's own changes.
 * One object is put or removed at most once in a transaction. */
/* Stores an object: sets metadata.resourceVersion in `doc` and writes it. */
int store_put(struct store *s, const struct api_resource *r, const char *ns, const char *name,
              yyjson_mut_doc *doc, struct ferry_error *err);
/* Removes `e`; `doc` is its last state, for watchers. */
int store_remove(struct store *s, const struct entry *e, yyjson_mut_doc *doc,
                 struct ferry_error *err);
/* Durable when it returns 0; FERRY_RETRY: the disk is full. `ret` (may be NULL) is a reference to
 * what the last put or remove wrote. */
int store_commit(struct store *s, struct entry **ret, struct ferry_error *err);
/* Ends it without a change. When it returns 0, what was read in it is on disk and readers see it;
 * otherwise it never will be, and nothing may be answered by it. */
int store_abort(struct store *s, struct ferry_error *err);
