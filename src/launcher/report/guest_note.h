/* What is remembered of a guest beyond its state, and how its state reads with it. Pure. */
#pragma once

#include "launcher/libvirt/guest_event.h"
#include "launcher/libvirt/view.h"
#include "launcher/report/state.h"

/* Takes an event into the state; false when it changes nothing. */
bool guest_note(struct state_values *v, const struct guest_event *e, int64_t now_ms);

/* The domain as it is told: libvirt says of every QEMU that died that it crashed. `kills` is how
 * often the kernel has killed something in this pod for its memory. */
struct view guest_view(const struct view *domain, const struct state_values *v, int64_t kills);

/* What there is to tell of a guest in this state: a disk holds it up only while it stands still. */
struct launcher_guest guest_told(const struct view *domain, const struct launcher_guest *g);
