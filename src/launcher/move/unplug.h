/* Takes devices of the host out of a guest before a move, and plugs them in where it then runs.
 *
 * What belongs into the guest is in a file, written before the first device is touched (on a
 * target: before the guest comes in) and removed when all is plugged in again: whoever finds it
 * goes on, also a launcher that was restarted. Which devices, and what to do next, says hostdevs.h.
 */
#pragma once

#include "launcher/report/context.h"
#include "launcher/report/record.h"

/* Whether the guest has a device of its host that stays during a move. */
bool unplug_keeps_some(const struct context *c);

/* Whether it has devices that it gives back for a move. */
bool unplug_needed(const struct context *c);
/* Takes all of them out; waits for the guest to let go. CANCELLED when an abort of the move was
 * asked for meanwhile, INVALID when the guest does not let go; what is gone by then comes back by
 * unplug_tend(). */
int unplug_all(const struct context *c, struct record *record, struct ferry_error *err);

/* A guest is expected whose domain here would be `domain_xml`. */
int unplug_expect(const struct context *c, const char *domain_xml, struct ferry_error *err);

/* Plugs in what belongs into a guest that is here and is not being moved. Call it now and then, on
 * one thread; false when it did not work and is worth another try later. */
bool unplug_tend(const struct context *c);
