/* A connection that a target accepted: it proves itself, says HELLO, and then becomes a stream,
 * goes to the stream that it belongs to, or is refused. Nothing is dialled on the hypervisor's side
 * before that. */
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "relay/stream/local.h"
#include "relay/stream/session_priv.h"

#define GREET_NS (10 * FERRY_NS_PER_S)

/* The handshake, then the HELLO. */
static int greet(const struct relay_stream *s, struct relay_arrival *a,
                 struct hello_refusal *ret_refusal, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + GREET_NS;
    uint8_t buf[FRAME_HELLO_MAX];
    struct tls_conn_config config;
    size_t have = 0;
    bool proven = false;

    relay_link_tls_config(s->spec, s->env->server, a->fd, &config);
    int rc = tls_conn_new(&config, &a->tls, err);
    while (rc == 0) {
        size_t n = 0, need = hello_need(buf, have);

        if (proven && need == 0) {
            return hello_get(buf, have, &a->hello, ret_refusal) < 0 ? 1 : 0;
        }
        enum tls_io io = proven ? tls_conn_read(a->tls, buf + have, need, &n, err)
                                : tls_conn_handshake(a->tls, err);
        have += n;
        if (io == TLS_EOF) {
            return ferry_fail(err, FERRY_PEER, "the peer closed the connection before its HELLO");
        }
        if (io == TLS_FAILED) {
            return ferry_wrap(err, proven ? "waiting for HELLO" : "TLS handshake");
        }
        proven |= io == TLS_OK;
        if (io != TLS_OK) {
            rc = relay_net_wait(a->fd, io == TLS_WANT_READ ? POLLIN : POLLOUT, s->stop_fd, deadline,
                                err);
        }
    }
    return ferry_wrap(err, proven ? "waiting for HELLO" : "TLS handshake");
}

static void refuse(const struct relay_stream *s, struct relay_arrival *a,
                   const struct hello_refusal *refusal, const uint8_t *answer, size_t n)
{
    ferry_warn("connection refused", RELAY_STREAM_FIELDS(s),
               F_STR("code", frame_refusal_name(refusal->code)), F_STR("error", refusal->text));
    relay_arrival_answer(a, answer, n);
}

/* Paused while the unix socket was being dialled: nothing was answered yet, so the source asks
 * again and it begins anew, here or in a successor. */
static enum relay_leave begin_anew(struct session *x)
{
    relay_local_leave_slot(x->s->slot, &x->has_slot);
    relay_session_abandon(x);
    return RELAY_OVER;
}

static enum relay_leave run_target(const struct relay_stream *s, struct relay_arrival *a,
                                   struct relay_live *live, bool has_slot, struct session **ret)
{
    struct session *x = session_new(s);
    struct protocol_config config;
    struct ferry_error err;

    x->live = live;
    x->has_slot = has_slot;
    session_config(s, &config);
    x->p = protocol_new_target(&config, &a->hello, ferry_now_ns());
    relay_link_adopt(&x->link, a->fd, a->tls);
    int fd = relay_local_dial(s->spec, s->channel->unix_path, s->stop_fd, &err);
    if (fd == -FERRY_CANCELLED && atomic_load(s->pausing)) {
        return begin_anew(x);
    }
    if (fd < 0) {
        protocol_unix_refused(x->p, err.msg, ferry_now_ns());
    } else {
        x->unix_fd = fd;
        protocol_unix_connected(x->p, ferry_now_ns());
    }
    *ret = x;
    return relay_session_go_on(ret);
}

enum relay_leave relay_session_run_target(const struct relay_stream *s, int fd,
                                          struct session **ret)
{
    struct relay_arrival a = {.fd = fd};
    struct hello_facts facts = {.peer_is_source = true};
    struct hello_refusal refusal;
    struct relay_live *live = NULL;
    uint8_t answer[HELLO_ANSWER_MAX];
    struct ferry_error err;
    bool taken = false;
    size_t n = 0;

    relay_net_tune(fd);
    relay_net_peer_name(fd, a.peer);
    int rc = greet(s, &a, &refusal, &err);
    if (rc < 0) {
        if (rc != -FERRY_CANCELLED || !atomic_load(s->pausing)) {
            relay_stream_not_opened(s, &err);
        }
        tls_conn_free(a.tls);
        close(fd);
        return RELAY_OVER;
    }
    if (rc > 0) {
        refuse(s, &a, &refusal, answer, hello_put_refused(answer, &refusal));
        return RELAY_OVER;
    }
    facts.accepting = s->take_place(s->place_ctx);
    facts.move_known = ferry_streq(a.hello.move, s->spec->move);
    facts.channel_open = a.hello.channel == (uint32_t)s->channel->logical;
    bool has_slot = s->slot && atomic_compare_exchange_strong(s->slot, &taken, true);
    facts.channel_taken = s->slot && !has_slot;
    enum hello_verdict verdict = relay_registry_greet(s->registry, &a, &facts, s->env->instance,
                                                      &live, &refusal, answer, &n);
    if (verdict == HELLO_START) {
        return run_target(s, &a, live, has_slot, ret);
    }
    relay_local_leave_slot(s->slot, &has_slot);
    if (verdict == HELLO_REFUSE) {
        refuse(s, &a, &refusal, answer, n);
    } else if (verdict == HELLO_FINISHED) {
        relay_arrival_answer(&a, answer, n);
    }
    return RELAY_OVER;
}
