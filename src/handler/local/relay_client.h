/* Calls to this node's relay (docs/contracts/relay.md). Blocking, any thread.
 *
 * PUT with the same body changes nothing and answers as before, so callers simply say what they
 * want each time they look: after a restart of the relay that brings the move back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/kinds.h"
#include "base/error.h"
#include "base/str.h"

enum { RELAY_ADDRESS_SIZE = 64 };

enum { TARGET_PORTS_MAX = 4 };

/* What the relay listens on for a move. */
struct target_relay {
    bool listening; /* for this move */
    const char *address;
    struct api_port ports[TARGET_PORTS_MAX];
    size_t n_ports;
};

struct relay_target {
    const char *key, *move, *source_node;
    const char *bind;           /* numeric address */
    const char *control_socket; /* launcher_control_socket() */
    const char *memory_socket;
    const char *disk_socket;    /* NULL = no disks are copied */
    uid_t owner;                /* of these sockets */
    int64_t generation;         /* another one means fresh ports */
    const char *source_address; /* plain TCP from there alone; NULL = encrypted */
    int resume_window_s;
};
/* `ret->address` points to `address`. */
int relay_put_target(const char *socket, const struct relay_target *t,
                     char address[RELAY_ADDRESS_SIZE], struct target_relay *ret,
                     struct ferry_error *err);

struct relay_source {
    const char *key, *move, *target_node, *address;
    const struct api_port *ports;
    size_t n_ports;
    const char *dir; /* the pod's m/ on the host */
    int64_t generation;
    int64_t rate; /* bytes/s that the move may take; 0 = no limit */
    int resume_window_s;
    bool plain;  /* not encrypted */
    uid_t owner; /* who may connect to the sockets in it */
};
int relay_put_source(const char *socket, const struct relay_source *s, struct ferry_error *err);
/* What the peer has confirmed of that source's move, per second and lately; 0 = nothing. */
int relay_get_source_rate(const char *socket, const char *key, int64_t *ret,
                          struct ferry_error *err);

/* What the relay knows of the way to a node. */
struct relay_path {
    bool away;           /* a stream's connection is gone and waited for */
    int64_t bytes_per_s; /* best rate that one stream had lately; 0 = not known */
};
int relay_get_path(const char *socket, const char *node, struct relay_path *ret,
                   struct ferry_error *err);

/* Nodes that were removed from the site, in the API server's own words; NOT_FOUND from a relay that
 * is older. */
int relay_put_denied(const char *socket, const char *json, struct ferry_error *err);

/* `collection`: "targets" or "sources". Unknown keys are fine. */
int relay_delete(const char *socket, const char *collection, const char *key,
                 struct ferry_error *err);
/* Keys of all targets or sources, as lines. */
int relay_keys(const char *socket, const char *collection, struct ferry_buf *ret,
               struct ferry_error *err);
