/* What this node cannot do for its side of a move, as the VMI says it
 * (docs/contracts/annotations.md, ferry.io/source-trouble and ferry.io/target-trouble). Pure. */
#pragma once

#include <stdbool.h>

#include "api/wire/wire_reason.h"
#include "api/wire/wire_trouble.h"
#include "base/error.h"
#include "handler/move/vmi_edit.h"

enum move_part { /* of this node, that did not do what it was asked */
                 MOVE_PART_RELAY,
                 MOVE_PART_LAUNCHER,
                 MOVE_PART_NETWORK,
};

struct move_trouble {
    enum wire_reason reason; /* none = there is no trouble */
    enum ferry_class cls;
    bool for_good; /* waiting would change nothing */
    bool fresh;    /* may pass in a moment: not worth a word yet */
    char message[WIRE_TROUBLE_TEXT];
};

/* `since_ms` is how long the step has not worked. */
struct move_trouble move_trouble_of(enum move_part part, const struct ferry_error *err,
                                    int64_t since_ms);
/* When to try again. */
int64_t move_trouble_again_ms(const struct move_trouble *t);

/* Writes it into the annotation `key` of this side, unless it is fresh. */
void move_trouble_say(struct vmi_edit *e, const char *key, const struct move_trouble *t);

/* `patch_take` (or NULL), which also takes away what was said of this or an older move, if that is
 * still there. */
struct api_patch *move_trouble_forget(const struct api_vmi *vmi, const char *key,
                                      struct api_patch *patch_take, int64_t now_ms);
