/* Base64 as the API carries bytes. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* With its padding; line ends in it and at its end do not count, as with Go's decoder. */
bool api_base64_valid(const char *text, size_t len);
/* Decodes `len` characters of text to new memory, owned by the caller, with a NUL behind it; an
 * empty text is no bytes. False when it is not valid. */
bool api_base64_decode(const char *text, size_t len, char **ret, size_t *ret_n);
