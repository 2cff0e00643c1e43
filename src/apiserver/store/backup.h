/* A site in one text: JSON lines, the first says what it is, then one object each, then the CA's
 * files, and a last line without which it is not whole. It holds secrets and the CA's key. */
#pragma once

#include <stddef.h>

#include "apiserver/store/store.h"
#include "base/error.h"
#include "base/str.h"

/* All objects of one instant. */
void backup_objects(struct store *store, struct ferry_buf *out);
/* The rest, from the site's data directory. */
int backup_finish(const char *data, struct ferry_buf *out, struct ferry_error *err);

/* Makes a site out of it in `data`, which must not hold one. Versions go on far above those of the
 * backup, so that a client that saw later ones lists again instead of missing something. */
int backup_restore(const char *data, const char *text, size_t len, struct ferry_error *err);
