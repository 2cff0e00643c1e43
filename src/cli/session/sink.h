/* Standard output of the command line: a write that failed is not forgotten. */
#pragma once

/* Exit code of a program that wrote for nobody, as if SIGPIPE had ended it. */
enum { SINK_EXIT_PIPE = 128 + 13 };

/* Makes `stdout` a stream that remembers why its first write failed, which stdio does not. Call it
 * once, before anything is written. */
void sink_open(void);

/* Why it failed, or that its reader has left: an errno; 0 while all is well. Verbs that go on until
 * something happens end when this is not 0: nobody reads them any more. */
int sink_error(void);

/* Writes what is left and closes `stdout`. Returns the exit code when something could not be
 * written, and says so on standard error, unless the reader left: many do (head, less). 0 when all
 * was written. */
int sink_close(void);
