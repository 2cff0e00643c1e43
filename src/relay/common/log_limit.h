/* Which lines about connections that did not prove themselves are worth writing: whoever can reach
 * a port can make such lines, as many as it likes, and must not fill the disk with them.
 *
 * A line is known by the host that it is about and by what it says. Of one kind at most
 * LOG_LIMIT_SAME are written in a minute, of one host LOG_LIMIT_HOST, of all LOG_LIMIT_ALL. Any
 * thread; the clock is the caller's. */
#pragma once

#include <stdint.h>

enum { LOG_LIMIT_SAME = 5, LOG_LIMIT_HOST = 60, LOG_LIMIT_ALL = 240 };

struct relay_log_limit;

struct relay_log_limit *relay_log_limit_new(void);
void relay_log_limit_free(struct relay_log_limit *h);

/* About `peer` ("ADDRESS:PORT", "[ADDRESS]:PORT"), saying `text`: -1 = do not write it; else how
 * many of its kind were not written before it. */
int64_t relay_log_limit_ask(struct relay_log_limit *h, const char *peer, const char *text,
                            int64_t now);
