/* A domain's state in the words of docs/contracts/launcher.md, from libvirt's numbers. Pure. */
#pragma once

#include <stdbool.h>

#include "api/wire/wire_launcher_words.h"

struct view {
    enum launcher_domain state;
    enum launcher_reason reason;
    bool migrated; /* shutoff: it went to another host; running: it came from one */
    bool between;  /* paused on its way: switching over, held there, starting up, shutting down */
    bool postcopy; /* part of its memory is on another host */
};

/* `state` is a virDomainState, `reason` of the enum that belongs to it. */
struct view view_of(int state, int reason);
/* No such domain. */
struct view view_none(void);
/* It has a QEMU process. */
bool view_active(const struct view *v);
bool view_equal(const struct view *a, const struct view *b);
