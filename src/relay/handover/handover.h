/* The conversation between a relay and its successor, over a pair of unix datagram sockets.
 *
 *   successor    ready VERSION [denials]  options parsed, certificates read: it could go on
 *                                         (until here its predecessor has not stopped anything);
 *                                         "denials": it takes the list of removed nodes, too
 *   predecessor  state N                  with the image; then all N descriptors, in batches
 *   successor    prepared                 everything is restored, nothing is touched
 *   predecessor  commit
 *   successor    taken                    from now on it is the relay
 *
 * A predecessor that has not read "taken" can be sure that nothing was touched once the successor
 * is dead: it ends it and goes on by itself. A successor that is prepared and finds its predecessor
 * dead takes over: nobody else is left. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "relay/handover/self.h"
#include "relay/state/fds.h"

struct handover {
    int fd;    /* -1 = none */
    pid_t pid; /* predecessor's side: the successor */
    bool takes_denials;
};

/* ---- the predecessor ---- */

/* Starts what `self` is now and waits until it is ready. Else it is gone again. */
int handover_start(struct handover *h, const struct relay_self *self, struct ferry_error *err);
/* Until it has taken everything; on failure it is gone, and has touched nothing. */
int handover_give(struct handover *h, int image_fd, const struct relay_fds *fds,
                  struct ferry_error *err);
void handover_end(struct handover *h); /* kills a successor that has not taken over */

/* ---- the successor ---- */

/* The socket to a predecessor that started this process, or -1. */
int handover_find(void);
/* Says that it is ready and waits for all of it. */
int handover_receive(int fd, int *ret_image, struct relay_fds *ret, struct ferry_error *err);
/* Says that it is prepared. 0: it is the relay now. */
int handover_take(int fd, struct ferry_error *err);
