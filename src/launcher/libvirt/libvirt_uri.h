/* Connection URIs of libvirt: driver[+transport]://[user@][host][:port]/[path][?params]. Pure.
 *
 * Only what a launcher can use is taken: driver qemu, path system or session. Mistakes are said
 * before libvirt is asked, whose own errors for them are hard to read. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct libvirt_uri {
    char *transport; /* "" = none: libvirt's own unix socket */
    char *user, *host;
    int port;     /* 0 = the transport's own */
    bool system;  /* qemu:///system, else session */
    char *socket; /* parameter "socket", decoded; NULL = absent */
};

int libvirt_uri_parse(const char *text, struct libvirt_uri *ret, struct ferry_error *err);
void libvirt_uri_done(struct libvirt_uri *u);

/* Where libvirtd's unix socket is on this machine: given, or libvirt's default (`run_dir` is
 * $XDG_RUNTIME_DIR, needed for session). NULL when it is not reached through one. Owned by the
 * caller. */
char *libvirt_uri_socket(const struct libvirt_uri *u, const char *run_dir);
