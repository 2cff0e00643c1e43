/* The VMIs that benches of the API are made with. */
#pragma once

#include "base/str.h"

/* Appends the JSON of the `i`th: a running VMI as a site has it, with disks, networks, conditions
 * and a move behind it. */
void vmi_text_put(struct ferry_buf *b, int i);
