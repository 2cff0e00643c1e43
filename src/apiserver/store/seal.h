/* Secrets at rest: their rows are encrypted (AES-256-GCM) with a key that is not in the database,
 * so that a copy of the database gives nothing away. A row is bound to its object: put in another's
 * place it does not open. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

struct seal;

/* The key in file `path`; made there when it is missing and `make` says that nothing needs the old
 * one. */
int seal_open(const char *path, bool make, struct seal **ret, struct ferry_error *err);
void seal_close(struct seal *s); /* takes NULL */

/* `about` names the object. Appends to `ret`. */
int seal_encrypt(const struct seal *s, const char *about, const char *text, size_t n,
                 struct ferry_buf *ret, struct ferry_error *err);
/* -FERRY_INVALID: another key, another object, or changed by somebody. */
int seal_decrypt(const struct seal *s, const char *about, const void *sealed, size_t n,
                 struct ferry_buf *ret, struct ferry_error *err);
