#include "relay/handover/life.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "relay/handover/handover.h"
#include "relay/handover/image.h"
#include "relay/handover/notify.h"
#include "relay/manager/control.h"
#include "relay/manager/predecessor.h"

#define CONTROL_NS                                                                                 \
    (10 * FERRY_NS_PER_S) /* for calls that are under way; streams flow meanwhile                  \
                           */
#define LOOK_NS (100 * FERRY_NS_PER_MS)
#define BOUND_NS (60 * FERRY_NS_PER_S) /* for streams that cannot be stored */

static bool told_to_end(int sig)
{
    return sig == SIGTERM || sig == SIGINT; /* credentials are re-read without being told */
}

/* ---- standing still ---------------------------------------------------------------------------
 */

/* A relay that stands still, and what it has to give away. */
struct still {
    int control, image;
    struct relay_fds fds;
};

static void leave_out_denials(struct relay_state *state)
{
    tls_denials_list_free(state->denials, state->n_denials);
    state->denials = NULL;
    state->n_denials = 0;
}

/* `denials`: whoever goes on knows what to do with the list of removed nodes. */
static int stand_still(struct relay_life *l, bool denials, struct still *s, struct ferry_error *err)
{
    struct relay_state state;

    *s = (struct still){.control = -1, .image = -1};
    if (l->server) {
        s->control = http_server_leave(l->server, ferry_now_ns() + CONTROL_NS);
        l->server = NULL;
    }
    relay_manager_pause(l->manager);
    relay_manager_save(l->manager, &state, &s->fds);
    if (!denials) {
        leave_out_denials(&state);
    }
    state.alone = s->control < 0;
    state.control = relay_fds_add(&s->fds, s->control);
    state.n_fds = s->fds.n;
    s->image = relay_image_write(&state, ferry_now_ns(), err);
    relay_state_done(&state);
    return s->image < 0 ? s->image : 0;
}

static void still_done(struct still *s)
{
    relay_fds_done(&s->fds, false);
    ferry_closep(&s->image);
    ferry_closep(&s->control);
}

static void go_on(struct relay_life *l, struct still *s)
{
    struct ferry_error err;

    relay_manager_resume(l->manager);
    if (s->control >= 0 &&
        relay_control_start(ferry_take_fd(&s->control), l->manager, &l->server, &err) < 0) {
        ferry_error("control socket closed", F_ERR(&err));
    }
    still_done(s);
}

/* ---- the successor ----------------------------------------------------------------------------
 */

/* What is asked of this process while it goes is meant for the one that follows. */
static void pass_signals_on(pid_t pid)
{
    int sig;

    while ((sig = ferry_signals_wait(0)) != 0) {
        kill(pid, sig);
    }
}

/* Until the streams that could not be handed over have ended. */
static void end_last_streams(struct relay_life *l, int successor)
{
    bool gone = false;

    ferry_info("streams without ferry/1 cannot be handed over: they are served to their end",
               F_UINT("streams", relay_manager_stream_count(l->manager)));
    for (unsigned told = 0; relay_manager_stream_count(l->manager) > 0 && told < 2;) {
        enum relay_role role;
        char key[RELAY_KEY_MAX + 1];

        told += told_to_end(ferry_signals_wait(ferry_now_ns() + LOOK_NS));
        switch (gone ? PREDECESSOR_NONE : predecessor_receive(successor, &role, key, &gone)) {
        case PREDECESSOR_NONE:
            break;
        case PREDECESSOR_END_MOVE:
            relay_manager_delete(l->manager, role, key);
            break;
        case PREDECESSOR_END_ALL:
            return;
        }
    }
}

/* Whether this process has nothing more to do. */
static bool upgrade(struct relay_life *l)
{
    struct handover h;
    struct still s;
    struct ferry_error err;
    char text[64];

    ferry_info("upgrade: starting the successor", F_STR("file", l->self->exe));
    if (handover_start(&h, l->self, &err) < 0) {
        ferry_error("not upgraded: nothing was stopped", F_ERR(&err));
        return false;
    }
    int64_t since = ferry_now_ns();
    int rc = stand_still(l, h.takes_denials, &s, &err);
    pid_t pid = h.pid;
    if (rc == 0) {
        rc = handover_give(&h, s.image, &s.fds, &err);
    }
    if (rc < 0) {
        handover_end(&h);
        go_on(l, &s);
        ferry_error("not upgraded: this process goes on", F_ERR(&err),
                    F_INT("pausedMs", (ferry_now_ns() - since) / FERRY_NS_PER_MS));
        return false;
    }
    relay_manager_abandon(l->manager);
    snprintf(text, sizeof(text), "MAINPID=%d", (int)pid);
    notify_say(text);
    (void)notify_barrier(NULL);
    pass_signals_on(pid);
    ferry_info("upgraded: the successor has taken over", F_INT("pid", pid),
               F_INT("pausedMs", (ferry_now_ns() - since) / FERRY_NS_PER_MS));
    still_done(&s);
    if (relay_manager_stream_count(l->manager) > 0) {
        end_last_streams(l, h.fd);
    }
    ferry_closep(&h.fd);
    return true;
}

/* ---- the descriptor store ---------------------------------------------------------------------
 */

/* Streams that cannot be kept, here or in predecessors: a service manager ends those with this
 * process.
 */
static size_t bound(struct relay_life *l)
{
    return relay_manager_bound_count(l->manager) + relay_manager_predecessor_count(l->manager);
}

static void wait_for_bound(struct relay_life *l)
{
    int64_t deadline = ferry_now_ns() + BOUND_NS;

    if (bound(l) > 0) {
        ferry_info("streams without ferry/1 cannot be kept: waiting for their end",
                   F_UINT("streams", bound(l)));
    }
    while (bound(l) > 0 && ferry_ms_left(deadline) > 0 &&
           !told_to_end(ferry_signals_wait(ferry_now_ns() + LOOK_NS))) {
    }
}

/* Whether everything is with the service manager. */
static bool store_away(struct relay_life *l)
{
    struct ferry_error err;
    struct still s;

    wait_for_bound(l);
    int rc = stand_still(l, false, &s, &err); /* nobody knows yet who that will be */
    rc = rc < 0 ? rc : notify_store(s.image, &s.fds, l->fd_store, &err);
    if (rc < 0) {
        go_on(l, &s);
        ferry_error("the descriptor store does not take the streams", F_ERR(&err));
        return false;
    }
    ferry_info("streams are kept by the service manager",
               F_UINT("streams", relay_manager_stream_count(l->manager)),
               F_UINT("descriptors", s.fds.n));
    relay_manager_abandon(l->manager);
    still_done(&s);
    return true;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static size_t left(struct relay_life *l)
{
    return relay_manager_stream_count(l->manager) + relay_manager_predecessor_count(l->manager);
}

static void drain(struct relay_life *l)
{
    relay_manager_drain(l->manager);
    notify_say("STOPPING=1");
    ferry_info("draining: no new moves", F_UINT("streams", left(l)));
    while (left(l) > 0) {
        if (told_to_end(ferry_signals_wait(ferry_now_ns() + LOOK_NS))) {
            ferry_warn("stopped by a second signal", F_UINT("streams", left(l)));
            relay_manager_end_predecessors(l->manager);
            return;
        }
    }
}

void relay_life_run(struct relay_life *l)
{
    notify_say("READY=1");
    for (;;) {
        int sig = ferry_signals_wait(INT64_MAX);

        if (sig == SIGUSR2) {
            if (upgrade(l)) {
                return;
            }
        } else if (told_to_end(sig)) {
            if (sig != SIGTERM || l->fd_store == 0 || !notify_there() || !store_away(l)) {
                drain(l);
            }
            return;
        }
    }
}
