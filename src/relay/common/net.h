/* TCP between relays: listening, dialling, waiting with a deadline, and the options that every
 * connection gets. All sockets are non-blocking and close-on-exec. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "relay/common/path.h"

/* Listens on `*port` of a numeric IPv4 or IPv6 address; 0 = a random one, which is then in `*port`.
 * `bounded`: the kernel's queues are kept small; without, something else bounds what is under
 * way. */
int relay_net_listen(const char *address, int *port, bool bounded, struct ferry_error *err);

/* Where to: a numeric address and a port; by which network interface, or NULL. */
struct relay_net_way {
    const char *address;
    int port;
    const char *interface;
};

/* Begins to connect, without bounded queues; the socket becomes writable when that is through. */
int relay_net_dial_start(const struct relay_net_way *way, struct ferry_error *err);

/* A connected, tuned socket with bounded queues. Ends early with CANCELLED when `stop_fd` becomes
 * readable. */
int relay_net_dial(const struct relay_net_way *way, int stop_fd, int64_t deadline_ns,
                   struct ferry_error *err);

/* For accepted sockets; dialled ones have it. */
void relay_net_tune(int fd);

/* Waits until `fd` (-1 = none) is ready for `events`; CANCELLED when `stop_fd` is readable, RETRY
 * at the deadline. */
int relay_net_wait(int fd, short events, int stop_fd, int64_t deadline_ns, struct ferry_error *err);

/* "192.0.2.1:4711" or "[2001:db8::1]:4711" */
enum { RELAY_NET_NAME = 80, RELAY_LOCAL_NAME = 256 };
void relay_net_peer_name(int fd, char ret[RELAY_NET_NAME]);

/* Whether such a name is of the numeric `address`. */
bool relay_net_same_host(const char *name, const char *address);

/* What the kernel knows about the path; -1 when it cannot say. */
int relay_net_sample(int fd, int64_t now_ns, struct relay_path_sample *ret);

/* Ends the sending side and reads what still comes, to throw it away, until the peer closed: a
 * close() with unread data would reset the connection and take with it what the peer has not read
 * yet. */
void relay_net_linger(int fd, int stop_fd, int64_t deadline_ns);

/* Error waiting on the socket, 0 = none. */
int relay_net_error(int fd);
