/* The operator's checklist for one move, as far as this node can see it: pod, launcher, relay, port
 * map, sockets, handshake. Pure: what was seen goes in, JSON comes out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "api/object.h"
#include "handler/face.h"
#include "handler/launcher_status.h"

enum { CHECK_FILES_MAX = 4, CHECK_PROBES_MAX = 4 };

struct check_file { /* a socket that must be there */
    const char *path;
    bool there;
};

struct check_probe { /* a handshake with the target's relay, from the source */
    int logical;
    bool ok;
    const char *message; /* why not; or NULL */
};

struct check_facts {
    const struct api_vmi *vmi; /* in a move */
    const char *node;
    enum face face; /* source, target; or owner when it is over */
    struct launcher_view launcher;
    const yyjson_val *relay;       /* what the relay says of the move, or NULL */
    const char *relay_error;       /* why it says nothing */
    const char *relay_socket_gone; /* no relay at all: its error, or NULL */
    struct check_file files[CHECK_FILES_MAX];
    size_t n_files;
    struct check_probe probes[CHECK_PROBES_MAX];
    size_t n_probes;
};

/* {node, role, vmi, migration, ok, checks: [{name, ok, message}]}; the caller's. The first check
 * that is not ok is the broken link: later ones may follow from it. */
char *node_checks(const struct check_facts *f);
