/* Text of others on a terminal or in a log: nothing in it is obeyed, and a line stays one line.
 *
 * Escaped, as \uXXXX, are control characters (C0, DEL, C1), the characters that turn the direction
 * of a line or end it, and bytes that are no UTF-8. What is a string of JSON stays one, with the
 * same value. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Appends `data` so; returns how many bytes were taken. Characters of `keep` stay what they are,
 * and so does "\r\n" where '\n' is one of them. With `more`, what may be the beginning of a
 * character is left for the next call. */
size_t ferry_printable(const char *data, size_t n, const char *keep, bool more,
                       struct ferry_buf *out);

/* The same of a whole text, newlines too; owned by the caller. NULL stays NULL. */
char *ferry_printable_dup(const char *text);

/* Makes one such line of all that `b` has from `from` on. */
void ferry_buf_one_line(struct ferry_buf *b, size_t from);
