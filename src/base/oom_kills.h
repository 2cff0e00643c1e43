/* How often the kernel killed a process of a control group because its memory was used up. Pure. */
#pragma once

#include <stdint.h>

/* From the text of memory.events, or of the older memory.oom_control; 0 when it does not say. */
int64_t ferry_oom_kills(const char *text);
