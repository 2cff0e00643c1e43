/* What every unit test includes first: cmocka and the headers that it needs before it. */
#pragma once

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"

#define COUNT_OF(a) FERRY_COUNT(a)
