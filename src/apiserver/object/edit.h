/* A change that the server itself makes to a stored object. */
#pragma once

#include "apiserver/store/store.h"

/* Gives `edit` the object as it is now, unless it is gone or another one by now, and stores (or,
 * when nothing holds it any more, removes) what becomes of it. `edit` returns false for "leave it".
 */
int edit_entry(struct store *store, const struct entry *e,
               bool (*edit)(yyjson_mut_doc *doc, const void *ctx), const void *ctx,
               struct ferry_error *err);
