/* How a guest's instructions are run: on the annotation ferry.io/accelerator of a VMI, and on the
 * launcher's command line. Pure. */
#pragma once

#include <stdbool.h>

#include "api/kinds.h"
#include "api/wire/wire_words.h"

enum wire_accelerator {
    ACCELERATOR_NONE, /* "" or absent: not chosen yet, or by a version that knew none */
    ACCELERATOR_TCG,  /* emulated by QEMU */
    ACCELERATOR_KVM,  /* by the hardware */
    ACCELERATOR_COUNT
};

const char *wire_accelerator_text(enum wire_accelerator a); /* "" for ACCELERATOR_NONE */
enum wire_accelerator
wire_accelerator_of(const char *text); /* NULL and what is none of them: ACCELERATOR_NONE */
extern const struct wire_words wire_accelerators;

/* What the VMI was given, or its author asked for. */
enum wire_accelerator wire_accelerator_of_vmi(const struct api_meta *vmi);
/* What its pod was made for: hardware, when it asks for the device. */
enum wire_accelerator wire_accelerator_of_pod(const struct api_pod *pod);
/* Whether hardware runs guests on the node. */
bool wire_accelerator_is_offered(const struct api_node *node);
