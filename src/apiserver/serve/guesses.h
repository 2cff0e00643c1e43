/* Tokens that were not good, by the address that they came from. Who has shown GUESSES_MOST of them
 * within a minute is not listened to for the rest of it. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GUESSES_MOST = 20 };

struct guesses;

struct guesses *guesses_new(void);
void guesses_free(struct guesses *g); /* takes NULL */

/* Seconds until `address` (numeric; of IPv6 its network counts) is listened to again; 0 = it is.
 * Takes no lock while nobody is shut out. The clock is the caller's. */
int guesses_wait_s(struct guesses *g, const char *address, int64_t now_ns);
/* One more that was not good. */
void guesses_note(struct guesses *g, const char *address, int64_t now_ns);
