/* JSON that is made here. Running out of memory for it ends the process, as for all small data
 * (base/str.h): nothing that adds to such a document has to be asked whether it could. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "base/cleanup.h"

/* Empty; freed by yyjson_mut_doc_free(). */
yyjson_mut_doc *json_doc_new(void);
/* What was read, to be changed. */
yyjson_mut_doc *json_doc_copy(const yyjson_doc *doc);
/* Makes an object the root; returns it. */
yyjson_mut_val *json_doc_object(yyjson_mut_doc *doc);

/* Is `text` one of the strings of the array? NULL is an empty one. */
bool json_doc_lists(const yyjson_val *list, const char *text);
/* Has an object of the array this `name`? */
bool json_doc_has_named(const yyjson_mut_val *list, const char *name);
/* The object of the array that has this `name`; added when there is none. */
yyjson_mut_val *json_doc_named(yyjson_mut_doc *doc, yyjson_mut_val *list, const char *name);

/* The text of a document or of a value, for free(). What no JSON can say is said as near to it as
 * possible: bytes that are no UTF-8 become U+FFFD, NaN and infinity null; yyjson_mut_write() is for
 * whoever has to refuse them. NULL for NULL, and for a document without a root. */
char *json_doc_text(const yyjson_mut_doc *doc, yyjson_write_flag flags, size_t *ret_len);
char *json_doc_val_text(const yyjson_val *val, yyjson_write_flag flags, size_t *ret_len);
char *json_doc_mut_text(const yyjson_mut_val *val, yyjson_write_flag flags, size_t *ret_len);
/* The text; the document is freed. */
char *json_doc_take(yyjson_mut_doc *doc_take);

FERRY_DEFINE_CLEANUP(yyjson_doc *, yyjson_doc_free)
FERRY_DEFINE_CLEANUP(yyjson_mut_doc *, yyjson_mut_doc_free)
#define json_cleanup_doc ferry_cleanup(yyjson_doc_freep)
#define json_cleanup_mut_doc ferry_cleanup(yyjson_mut_doc_freep)
