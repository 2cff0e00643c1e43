/* Connections of who has not shown a certificate yet: one that asks for nothing for too long is
 * ended, so that strangers cannot take all the room there is. libmicrohttpd has a limit per
 * connection for that, but 1.0.1 (Debian 13) does not heed it where each connection has a thread.
 * Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct strangers;

/* Part of a connection's state; zero at first. */
struct stranger {
    int fd;
    int64_t since_ns; /* when it was last served, or came */
    bool listed, busy;
    struct stranger *prev, *next;
};

struct strangers *strangers_new(int patience_s);
/* Nobody may be listed any more. Takes NULL. */
void strangers_free(struct strangers *s);

/* `fd` must stay open until it is removed. */
void strangers_add(struct strangers *s, struct stranger *one, int fd);
/* It has shown who it is, or is gone. A no-op when it is not listed. */
void strangers_remove(struct strangers *s, struct stranger *one);
/* While it is busy, a request of it is read or answered and it is left alone. */
void strangers_set_busy(struct strangers *s, struct stranger *one, bool busy);
