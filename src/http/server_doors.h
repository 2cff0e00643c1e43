/* The connections of a server that can be reached from outside: those that take too long are ended,
 * and those that have not shown who they are make room for others (doors_decide.h). libmicrohttpd
 * has a limit per connection for the first, but 1.0.1 (Debian 13) does not heed it where each
 * connection has a thread, and counts from the last byte. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/doors_decide.h"

struct doors;

/* Part of a connection's state; zero at first. */
struct visitor {
    atomic_int_fast64_t deadline_ns; /* 0 = none */
    /* Under the lock of the doors: */
    int fd;
    struct doors_address address;
    bool listed, known, ended;
    struct visitor *prev, *next;
};

struct doors *doors_new(const char *name, const struct doors_limits *limits);
/* Nobody may be listed any more. Takes NULL. */
void doors_free(struct doors *d);

/* A connection came, a stranger; `fd` must stay open until doors_leave(). */
void doors_enter(struct doors *d, struct visitor *v, int fd, const struct sockaddr *from);
/* It is gone. A no-op when it is not listed. */
void doors_leave(struct doors *d, struct visitor *v);
/* It has shown who it is; or, when that was for one request alone, it is a stranger again. */
void doors_set_known(struct doors *d, struct visitor *v, bool known);
/* Its clock begins anew, with what this phase allows. Takes no lock; on the connection's thread. */
void doors_set_phase(struct doors *d, struct visitor *v, enum doors_phase phase);
