#include "relay/stream/local.h"

#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "relay/common/net.h"

#define DIAL_NS (5 * FERRY_NS_PER_S)
#define DIAL_SLICE_NS (100 * FERRY_NS_PER_MS)
/* The connection before may be about to end: a client that reconnects is not turned away for it. */
#define SLOT_NS (1 * FERRY_NS_PER_S)
#define SLOT_RETRY_NS (10 * FERRY_NS_PER_MS)

int relay_local_check(const struct relay_spec *spec, int fd, struct ferry_error *err)
{
    struct ferry_peer peer;
    int rc = ferry_unix_peer(fd, &peer, err);

    if (rc < 0 || !spec->has_owner || peer.uid == spec->owner || peer.uid == 0 ||
        peer.uid == getuid()) {
        return rc;
    }
    return ferry_fail(err, FERRY_DENIED, "uid %u (pid %d) may not connect here", peer.uid,
                      (int)peer.pid);
}

int relay_local_take_slot(atomic_bool *slot, int stop_fd, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + SLOT_NS;

    if (!slot) {
        return 0;
    }
    for (;;) {
        bool taken = false;

        if (atomic_compare_exchange_strong(slot, &taken, true)) {
            return 0;
        }
        int64_t next = ferry_now_ns() + SLOT_RETRY_NS;
        if (next > deadline) {
            return ferry_fail(err, FERRY_CONFLICT, "the control channel is busy");
        }
        int rc = relay_net_wait(-1, 0, stop_fd, next, err);
        if (rc < 0 && rc != -FERRY_RETRY) {
            return rc;
        }
    }
}

void relay_local_leave_slot(atomic_bool *slot, bool *has)
{
    if (slot && *has) {
        atomic_store(slot, false);
    }
    *has = false;
}

static bool worth_another_try(const struct ferry_error *err)
{
    /* A backlog that stays full shows as a time-out of the slice. */
    return err->sys == ETIMEDOUT || err->sys == EMFILE || err->sys == ENFILE;
}

int relay_local_dial(const struct relay_spec *spec, const char *path, int stop_fd,
                     struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + DIAL_NS;

    for (;;) {
        int64_t slice = ferry_now_ns() + DIAL_SLICE_NS;
        ferry_cleanup_fd int fd = spec->has_owner
                                      ? ferry_unix_connect_owned(path, spec->owner, slice, err)
                                      : ferry_unix_connect(path, slice, err);

        if (fd >= 0) {
            int rc = ferry_set_nonblock(fd, true, err);

            return rc < 0 ? rc : ferry_take_fd(&fd);
        }
        if (!worth_another_try(err) || slice > deadline) {
            return fd;
        }
        int rc = relay_net_wait(-1, 0, stop_fd, slice, err);
        if (rc < 0 && rc != -FERRY_RETRY) {
            return rc;
        }
    }
}
