/* What became of an abort: KubeVirt's words in the abortStatus of a migration's state and of a
 * launcher's status. Pure. */
#pragma once

#include <stdbool.h>

#include "api/wire/wire_words.h"

enum wire_abort {
    ABORT_NONE, /* "" or absent: there was none */
    ABORT_UNDER_WAY,
    ABORT_SUCCEEDED,
    ABORT_FAILED,
    ABORT_COUNT
};

const char *wire_abort_text(enum wire_abort abort);          /* "" for ABORT_NONE */
bool wire_abort_is(const char *text, enum wire_abort abort); /* `text` may be NULL */
extern const struct wire_words wire_aborts;
