/* The control channel of a move that comes in leads to ferry-rpc-filter, which is started here, and
 * from there to libvirtd (docs/control-channel.md). Any thread.
 *
 * The filter outlives a launcher that dies: it serves its connection to the end, and the next
 * launcher starts another for new ones, by the file that says what was agreed. */
#pragma once

#include <stdbool.h>

#include "launcher/domain/disks.h"
#include "launcher/report/context.h"

enum { CONTROL_FILTER_REASON = 400 }; /* bytes of a reason, its end included */

struct control_filter;

struct control_filter *control_filter_new(const struct context *c);
/* The filter serves its connection to the end, and goes. Takes NULL. */
void control_filter_free(struct control_filter *f);

/* Writes down that `domain_xml` may come in, with the disks of these that are copied. */
int control_filter_agree(struct control_filter *f, const char *domain_xml,
                         const struct disks *disks, struct ferry_error *err);
/* Listens on context.control_socket for what was agreed last; fine when it does already. */
int control_filter_start(struct control_filter *f, struct ferry_error *err);
/* No new connections; one that is open goes on to its end. */
void control_filter_stop(struct control_filter *f);
/* Call it now and then: starts a filter that died anew. True when the source was refused since. */
bool control_filter_tend(struct control_filter *f);
/* Why it was, if it was: procedure, parameter or XML path. Forgotten with the next start. */
bool control_filter_refused(struct control_filter *f, char ret_reason[CONTROL_FILTER_REASON]);
