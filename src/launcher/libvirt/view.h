/* A domain's state in the words of docs/contracts/launcher.md, from libvirt's numbers. Pure. */
#pragma once

#include <stdbool.h>

enum view_state {
    VIEW_NONE,
    VIEW_RUNNING,
    VIEW_PAUSED,
    VIEW_SHUTOFF,
    VIEW_CRASHED,
    VIEW_STATE_COUNT
};

struct view {
    enum view_state state;
    const char *reason; /* "booted", "migrated", ...; static, never NULL */
    bool migrated;      /* shutoff: it went to another host; running: it came from one */
    bool between;  /* paused on its way: switching over, held there, starting up, shutting down */
    bool postcopy; /* part of its memory is on another host */
};

/* `state` is a virDomainState, `reason` of the enum that belongs to it. */
struct view view_of(int state, int reason);
/* No such domain. */
struct view view_none(void);
const char *view_state_name(enum view_state state);
/* It has a QEMU process. */
bool view_active(const struct view *v);
bool view_equal(const struct view *a, const struct view *b);
