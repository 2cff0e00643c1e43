#include "relay/handover/takeover.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "relay/handover/handover.h"
#include "relay/handover/image.h"
#include "relay/handover/notify.h"

void relay_takeover_look(struct relay_takeover *t)
{
    struct ferry_error err;
    int image = -1;

    *t = (struct relay_takeover){.socket = handover_find()};
    if (t->socket >= 0) {
        t->from = RELAY_FROM_PREDECESSOR;
        return;
    }
    int rc = notify_stored(&image, &t->fds, &err);
    if (rc > 0) {
        t->n_stored = t->fds.n;
        rc = relay_image_read(image, ferry_now_ns(), &t->state, &err);
        close(image);
        if (rc == 0 && t->state.n_fds == t->fds.n) {
            t->from = RELAY_FROM_STORE;
            return;
        }
        if (rc == 0) {
            rc = ferry_fail(&err, FERRY_PEER, "it kept %zu descriptors of %zu", t->fds.n,
                            t->state.n_fds);
        }
        notify_forget(t->n_stored);
    }
    if (rc < 0) {
        ferry_error("streams lost: what the service manager kept cannot be used", F_ERR(&err));
        relay_takeover_done(t);
        relay_fds_done(&t->fds, true);
    }
}

static int receive(struct relay_takeover *t, struct ferry_error *err)
{
    int image = -1;
    int rc = handover_receive(t->socket, &image, &t->fds, err);

    if (rc < 0) {
        return rc;
    }
    rc = relay_image_read(image, ferry_now_ns(), &t->state, err);
    close(image);
    if (rc == 0 && t->state.n_fds != t->fds.n) {
        rc = ferry_fail(err, FERRY_PEER, "%zu descriptors came, not %zu", t->fds.n, t->state.n_fds);
    }
    return rc;
}

int relay_takeover_restore(struct relay_takeover *t, bool alone, struct relay_manager *m,
                           int *ret_control, struct ferry_error *err)
{
    int rc = t->from == RELAY_FROM_PREDECESSOR ? receive(t, err) : 0;

    if (rc == 0 && t->state.alone != alone) {
        rc = ferry_fail(err, FERRY_PEER, "the state is of another kind of relay");
    }
    rc = rc < 0 ? rc : relay_manager_restore(m, &t->state, &t->fds, err);
    if (rc < 0) {
        if (t->from == RELAY_FROM_STORE) {
            notify_forget(t->n_stored); /* it would only fail again */
        }
        return ferry_wrap(err, "taking over");
    }
    *ret_control = relay_fds_take(&t->fds, t->state.control);
    return 0;
}

int relay_takeover_commit(struct relay_takeover *t, struct relay_manager *m,
                          struct ferry_error *err)
{
    ferry_info("takes over",
               F_STR("from", t->from == RELAY_FROM_STORE ? "descriptor store" : "predecessor"),
               F_UINT("moves", t->state.n_groups),
               F_UINT("streams", relay_manager_stream_count(m)));
    if (t->from == RELAY_FROM_STORE) {
        /* Before anything is touched: nobody may begin from this state again. */
        notify_forget(t->n_stored);
        return 0;
    }
    int rc = handover_take(t->socket, err);
    if (rc < 0) {
        relay_manager_abandon(m); /* it is all still another's */
        return rc;
    }
    relay_manager_add_predecessor(m, ferry_take_fd(&t->socket));
    return 0;
}

void relay_takeover_done(struct relay_takeover *t)
{
    relay_state_done(&t->state);
    relay_fds_done(&t->fds, true);
    ferry_closep(&t->socket);
    t->socket = -1;
    t->from = RELAY_FROM_NOBODY;
}
