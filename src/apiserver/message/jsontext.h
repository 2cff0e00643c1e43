/* JSON written piece by piece into a buffer. */
#pragma once

#include "base/str.h"

/* `s` in quotes, escaped. */
void jsontext_string(struct ferry_buf *b, const char *s);
