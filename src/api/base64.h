/* Base64 as the API carries bytes. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Decodes `len` characters of text to new memory, owned by the caller; an empty text is no bytes.
 * Line ends in it and at its end are skipped, as Go's decoder does. False when it is no base64. */
bool api_base64_decode(const char *text, size_t len, char **ret, size_t *ret_n);
