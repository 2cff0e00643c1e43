/* How many elements an array has. */
#pragma once

#include <stddef.h>

/* Of an array, not of a pointer: compilers warn about the latter (-Wsizeof-pointer-div). */
#define FERRY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
