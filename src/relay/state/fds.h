/* A list of descriptors that travels beside a state (relay/state): each is known by its place. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct relay_fds {
    int *fd;
    size_t n;
};

/* Returns its place; -1 stays -1. The descriptor still belongs to whoever gave it. */
int relay_fds_add(struct relay_fds *f, int fd);
/* The descriptor at that place, which is the caller's now; -1 for the place -1. */
int relay_fds_take(struct relay_fds *f, int place);
/* Forgets the list; `close_them`: and closes what is left in it. */
void relay_fds_done(struct relay_fds *f, bool close_them);
