/* Strings that most objects have: names of fields, labels and annotations, and some values. Objects
 * share them, because a cache holds tens of thousands of objects and a third of the text of one is
 * such words. A closed list: what comes from outside adds nothing to it. Any thread. */
#pragma once

#include <stddef.h>

/* The shared copy of a text, NUL-terminated and there for ever; NULL when it is none of them. */
const char *api_intern(const char *text, size_t len);
