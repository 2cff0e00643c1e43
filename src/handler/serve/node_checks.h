/* The operator's checklist for one move, as far as this node can see it: pod, launcher, relay, port
 * map, sockets, handshake. Pure: what was seen goes in, JSON comes out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "api/object.h"
#include "handler/local/launcher_status.h"
#include "handler/move/node_role.h"
#include "handler/serve/node_probe.h"

enum { CHECK_CHANNELS = 4 };

struct check_file { /* a socket that must be there */
    int logical;
    const char *path;
    bool there;
};

struct check_listener { /* a port of the target's that must be open */
    int logical, port;
    bool open;
};

struct check_probe { /* a try to talk to the target's relay, from the source */
    int logical;
    enum node_probe_stage stage;
    const char *message; /* why it ended there */
};

struct check_facts {
    const struct api_vmi *vmi; /* in a move */
    const char *node;
    enum node_role role; /* source, target; or owner when it is over */
    struct launcher_view launcher;
    const yyjson_val *relay;       /* what the relay says of the move, or NULL */
    const char *relay_error;       /* why it says nothing */
    const char *relay_socket_gone; /* no relay at all: its error, or NULL */
    struct check_file files[CHECK_CHANNELS];
    size_t n_files;
    struct check_listener listeners[CHECK_CHANNELS];
    size_t n_listeners;
    struct check_probe probes[CHECK_CHANNELS];
    size_t n_probes;
    const char *address;       /* that this node takes moves in on; NULL = not looked at */
    const char *address_error; /* why it has none */
    const char *certificate, *certificate_error; /* of its relay: what it says, or its fault */
};

/* {node, role, vmi, migration, ok, checks: [{name, channel?, ok, message}]}; the caller's. The
 * first check that is not ok is the broken link: later ones may follow from it. */
char *node_checks(const struct check_facts *f);
