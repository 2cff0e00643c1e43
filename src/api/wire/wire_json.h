/* What the readers and writers of annotations share: an annotation is a JSON object in a string,
 * from whoever may write to the object it stands on. What is too long, too large, of another type
 * or not JSON is as if it were not there; members that are not known are passed over. Not for
 * others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/json.h"

enum {
    WIRE_TEXT_MAX = 256 << 10, /* of one annotation: what Kubernetes allows them all */
    WIRE_UID = 64,             /* of an object, with its end; Kubernetes' have 36 characters */
};
#define WIRE_BYTES_MAX (INT64_C(1) << 60)
#define WIRE_MS_MAX (INT64_C(1) << 45) /* a thousand years */

/* NULL when `text` is NULL, or no object. */
yyjson_doc *wire_json_read(const char *text);

/* A whole number from `min` to `max`; else `absent`. */
int64_t wire_json_number(const yyjson_val *o, const char *key, int64_t min, int64_t max,
                         int64_t absent);
/* A string of at most `max` bytes; else NULL. Lives as long as the document. */
const char *wire_json_text(const yyjson_val *o, const char *key, size_t max);
/* Into `ret`, of `size` bytes; "" when it is not there, or does not fit. */
void wire_json_copy(const yyjson_val *o, const char *key, char *ret, size_t size);
/* Milliseconds since 1970, from RFC 3339; 0 when it is not there. */
int64_t wire_json_time(const yyjson_val *o, const char *key);

/* A new object as the root. */
yyjson_mut_doc *wire_json_new(yyjson_mut_val **ret_root);
/* Nothing when `text` is NULL or "". Borrows it until the document is written. */
void wire_json_put(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key, const char *text);
void wire_json_put_time(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key, int64_t unix_ms);
/* The text, the caller's; NULL when a string in it is no text. */
char *wire_json_write(yyjson_mut_doc *doc_take);
