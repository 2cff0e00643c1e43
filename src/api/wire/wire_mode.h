/* How a move sends the guest's memory: KubeVirt's words in the mode of a migration's state, in the
 * launcher's status and in ferry.io/progress. Pure. */
#pragma once

#include <stdbool.h>

#include "api/wire/wire_words.h"

enum wire_mode {
    MODE_NONE,      /* "" or absent: not told */
    MODE_PRE_COPY,  /* the guest runs on the source */
    MODE_PAUSED,    /* it stands still until the rest is sent */
    MODE_POST_COPY, /* it runs on the target, which fetches the rest */
    MODE_COUNT
};

const char *wire_mode_text(enum wire_mode mode);          /* "" for MODE_NONE */
bool wire_mode_is(const char *text, enum wire_mode mode); /* `text` may be NULL */
extern const struct wire_words wire_modes;
