/* What a service manager is told (systemd's notify socket), and what it keeps for this process
 * while that is started anew (its descriptor store). Without NOTIFY_SOCKET nothing happens. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "relay/state/fds.h"

bool notify_there(void);
/* "READY=1", "MAINPID=…"; lost when nobody listens. */
void notify_say(const char *text);
/* Until everything said before was taken in; RETRY when that takes too long. */
int notify_barrier(struct ferry_error *err);

/* Keeps the image and all of `fds`, which must be fewer than `room`. 0: they are kept. */
int notify_store(int image_fd, const struct relay_fds *fds, size_t room, struct ferry_error *err);
/* What was kept, as passed at the start: 1, with the image and the descriptors in order; 0:
 * nothing. To be called once. What is incomplete is closed and an error. */
int notify_stored(int *ret_image, struct relay_fds *ret, struct ferry_error *err);
/* It has been taken out: nobody may get it again. */
void notify_forget(size_t n_fds);
