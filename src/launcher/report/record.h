/* Flight records: what a migration did, one line of JSON per sample, decision and event, kept after
 * it is over. One file per migration UID in a directory; size and number are bounded. Any thread.
 */
#pragma once

#include <stdint.h>
#include <yyjson.h>

#include "base/error.h"
#include "base/str.h"

struct record;

/* Opens the record of `uid` for appending and removes the oldest ones beyond the limit. A record
 * that cannot be written must not stop a migration: on failure NULL, after a warning in the log. */
struct record *record_open(const char *dir, const char *uid);
void record_close(struct record *r); /* takes NULL */

/* Appends `{time, type, ...}`; `r` may be NULL. Consumes `doc`, whose root is an object. */
void record_add(struct record *r, const char *type, yyjson_mut_doc *doc_take);
/* A line with one text: `{time, type, text}`. */
void record_note(struct record *r, const char *type, const char *text);

int record_read(const char *dir, const char *uid, struct ferry_buf *ret, struct ferry_error *err);
