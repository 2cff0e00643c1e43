/* Which lines about connections that did not prove themselves are worth writing: whoever can reach
 * a port can make such lines, as many as it likes, and must not fill the disk with them.
 *
 * A line is known by the host that it is about and by what it says. Of one kind at most HUSH_SAME
 * are written in a minute, of one host HUSH_HOST, of all HUSH_ALL. Any thread; the clock is the
 * caller's. */
#pragma once

#include <stdint.h>

enum { HUSH_SAME = 5, HUSH_HOST = 60, HUSH_ALL = 240 };

struct relay_hush;

struct relay_hush *relay_hush_new(void);
void relay_hush_free(struct relay_hush *h);

/* About `peer` ("ADDRESS:PORT", "[ADDRESS]:PORT"), saying `text`: -1 = do not write it; else how
 * many of its kind were not written before it. */
int64_t relay_hush_ask(struct relay_hush *h, const char *peer, const char *text, int64_t now);
