/* Standard output and standard error of the command line. A write that failed is not forgotten, and
 * no text of an object reaches the terminal as a command: all that is printed is made printable
 * (base/printable.h), but for what is written by the two functions below. */
#pragma once

#include <stddef.h>

/* Exit code of a program that wrote for nobody, as if SIGPIPE had ended it. */
enum { SINK_EXIT_PIPE = 128 + 13 };

/* Makes `stdout` a stream that remembers why its first write failed, which stdio does not, and
 * `stderr` one that escapes likewise. Call it once, before anything is written. */
void sink_open(void);

/* To standard output at once and as it is: a command of our own to the terminal; what a guest
 * wrote, for who asked for its console. */
void sink_obey(const char *command);
void sink_raw(const char *data, size_t n);

/* Why it failed, or that its reader has left: an errno; 0 while all is well. Verbs that go on until
 * something happens end when this is not 0: nobody reads them any more. */
int sink_error(void);

/* Writes what is left and closes `stdout`. Returns the exit code when something could not be
 * written, and says so on standard error, unless the reader left: many do (head, less). 0 when all
 * was written. */
int sink_close(void);
