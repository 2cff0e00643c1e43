/* How this process was started, for the one that follows it.
 *
 * Kept because options are moved about while they are parsed and the file may be replaced. The
 * directory of the file is kept open: a relay that gave root away may not be able to walk there
 * again (a build under /root), and its successor needs it, too.
 *
 * One thread. */
#pragma once

struct relay_self {
    char *exe;
    char **argv;
    int dir; /* where `exe` lies, or -1 */
};

/* Call it before privileges are given away. Takes the directory that a predecessor passed on. */
void relay_self_init(struct relay_self *self, int argc, char **argv);
void relay_self_done(struct relay_self *self);

/* What LISTEN_FDNAMES says when the hand-over's socket comes with that directory behind it. */
#define RELAY_SELF_FD_NAMES "ferry-handover:ferry-program"
