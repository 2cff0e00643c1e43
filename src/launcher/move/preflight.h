/* What would make libvirt refuse a move, found out before the guest is changed for it.
 *
 * libvirt looks at the same things itself, before it sends anything, and for most moves that is
 * soon enough. A guest that first has to give devices back must not do so for a move that cannot
 * be. */
#pragma once

#include <stdbool.h>

#include "api/wire/wire_reason.h"
#include "launcher/report/context.h"

/* Asks the target's libvirt, over the socket of the move. `*ret_code` is the reason code when it
 * refuses. */
int preflight_run(const struct context *c, enum wire_reason *ret_code, struct ferry_error *err);

/* Pure. The host's UUID in libvirt's capabilities; NULL when there is none. Owned by the caller. */
char *preflight_host(const char *capabilities_xml);
/* Pure. The CPU of a running domain, for libvirt to compare; NULL when it is whatever the host has.
 * Owned by the caller. */
char *preflight_cpu(const char *domain_xml);
