/* A relay's state (relay/state) in memory that another process can be handed. */
#pragma once

#include "base/error.h"
#include "relay/state/state.h"

/* A sealed memfd; nobody can change it any more. */
int relay_image_write(const struct relay_state *s, int64_t now, struct ferry_error *err);
/* From such a descriptor, which stays the caller's. */
int relay_image_read(int fd, int64_t now, struct relay_state *ret, struct ferry_error *err);
