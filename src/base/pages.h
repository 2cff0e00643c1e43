/* Memory that a process has mapped but does not need to hold. */
#pragma once

/* Gives back the pages of code and constants, of the program and its libraries, that were read so
 * far. They stay in the kernel's cache, and those that are used again come back one by one. For a
 * daemon that has started up and now waits: most of what starting needed is never touched again.
 * Any thread. */
void ferry_pages_forget(void);
