/* What a node cannot do for its side of a move: the VMI's annotations ferry.io/source-trouble and
 * ferry.io/target-trouble, each written by the handler of that side. Pure. */
#pragma once

#include "api/wire/wire_json.h"
#include "api/wire/wire_reason.h"
#include "base/error.h"

enum { WIRE_TROUBLE_TEXT = 257 };

struct wire_trouble {
    enum wire_reason reason; /* one that wire_reason_is_trouble() */
    enum ferry_class cls;    /* of the error */
    char message[WIRE_TROUBLE_TEXT];
};

/* False when nothing is said of the move `uid`. A message that is too long is cut. */
bool wire_trouble_of(const char *text, const char *uid, struct wire_trouble *ret);
/* The text, the caller's; NULL when the message is no text. */
char *wire_trouble_text(const char *uid, const struct wire_trouble *t);
