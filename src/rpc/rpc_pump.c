/* Theory of operation. What comes from the client is collected until a message is whole, then
 * judged, then handed to the server; what comes from the server passes as it comes, but its
 * boundaries are watched, because a refusal is an answer among its answers. No more is read from a
 * side than the other takes: memory is bounded by one message and one chunk. */
#include "rpc/rpc_pump.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "rpc/rpc_call.h"
#include "rpc/rpc_frame.h"
#include "rpc/rpc_judge.h"

enum { CHUNK = 16384, LAST_WORD_MS = 2000, GOODBYES_MAX = 8 };

struct pump {
    int client, server;
    const struct rpc_agreement *agreement;
    struct rpc_session session;
    struct ferry_buf call;                 /* what has come of the client's next message */
    struct ferry_buf to_server, to_client; /* what was let through and not taken yet */
    size_t answer_left;                    /* of the server's message that has begun */
    struct ferry_buf answer_head;          /* its first bytes, before its length is known */
    unsigned goodbyes;                     /* answered after a refusal */
    bool over;
};

static void drop(struct ferry_buf *b, size_t n)
{
    if (n > 0) {
        memmove(b->data, b->data + n, b->len - n);
        b->len -= n;
    }
}

/* ---- from the client ---------------------------------------------------------------------------
 */

/* An answer where one can stand: not inside of another, and only to a call. */
static void say_no(struct pump *p, const void *message, const struct ferry_error *why)
{
    const struct rpc_header h = rpc_frame_header(message);

    if (p->answer_left == 0 && p->answer_head.len == 0 && h.type == RPC_TYPE_CALL) {
        rpc_frame_refuse(&h, RPC_REFUSED, why->msg, &p->to_client);
    }
}

/* Lets all whole messages through that may pass. */
static int take_calls(struct pump *p, struct ferry_error *err)
{
    for (;;) {
        size_t length;
        int rc = rpc_frame_length(p->call.data, p->call.len, RPC_CALL_MAX, &length, err);

        if (rc < 0 || length == 0 || length > p->call.len) {
            return rc;
        }
        rc = rpc_judge(&p->session, p->agreement, p->call.data, length, ferry_now_ns(), err);
        if (rc < 0) {
            say_no(p, p->call.data, err);
        } else {
            ferry_buf_append(&p->to_server, p->call.data, length);
        }
        drop(&p->call, length);
        if (rc < 0) {
            return rc;
        }
    }
}

/* Bytes that were there; 0 = none now, -1 = the side is over. */
static ssize_t read_some(int fd, char chunk[CHUNK])
{
    ssize_t n = recv(fd, chunk, CHUNK, MSG_DONTWAIT);

    if (n > 0) {
        return n;
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static int from_client(struct pump *p, struct ferry_error *err)
{
    char chunk[CHUNK];
    ssize_t n = read_some(p->client, chunk);

    if (n <= 0) {
        p->over = p->over || n < 0;
        return 0;
    }
    ferry_buf_append(&p->call, chunk, (size_t)n);
    return take_calls(p, err);
}

/* ---- from the server ---------------------------------------------------------------------------
 */

/* Where the server's messages begin and end. */
static int watch_answers(struct pump *p, const char *data, size_t n, struct ferry_error *err)
{
    while (n > 0) {
        size_t length, step = n;
        int rc;

        if (p->answer_left > 0) {
            step = n < p->answer_left ? n : p->answer_left;
            p->answer_left -= step;
            data += step;
            n -= step;
            continue;
        }
        ferry_buf_append(&p->answer_head, data++, 1);
        n--;
        rc =
            rpc_frame_length(p->answer_head.data, p->answer_head.len, RPC_ANSWER_MAX, &length, err);
        if (rc < 0) {
            err->cls = FERRY_FATAL; /* ours to mend, not the source's fault */
            return -FERRY_FATAL;
        }
        if (length > 0) {
            p->answer_left = length - p->answer_head.len;
            p->answer_head.len = 0;
        }
    }
    return 0;
}

static int from_server(struct pump *p, struct ferry_error *err)
{
    char chunk[CHUNK];
    ssize_t n = read_some(p->server, chunk);

    if (n <= 0) {
        p->over = p->over || n < 0;
        return 0;
    }
    ferry_buf_append(&p->to_client, chunk, (size_t)n);
    return watch_answers(p, chunk, (size_t)n, err);
}

/* ---- the loop ----------------------------------------------------------------------------------
 */

static void write_some(struct pump *p, int fd, struct ferry_buf *b)
{
    ssize_t n = b->len ? send(fd, b->data, b->len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

    if (n > 0) {
        drop(b, (size_t)n);
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        b->len = 0;
        p->over = true;
    }
}

/* Reads from a side only while the other keeps up. */
static short wanted(const struct ferry_buf *onward, const struct ferry_buf *back)
{
    return (short)((onward->len == 0 ? POLLIN : 0) | (back->len ? POLLOUT : 0));
}

static int step(struct pump *p, struct ferry_error *err)
{
    struct pollfd fds[2] = {{p->client, wanted(&p->to_server, &p->to_client), 0},
                            {p->server, wanted(&p->to_client, &p->to_server), 0}};
    int rc = 0;

    if (poll(fds, 2, -1) < 0) {
        return errno == EINTR ? 0 : ferry_fail_errno(err, errno, "waiting for a message");
    }
    if (fds[1].revents & POLLIN) {
        rc = from_server(p, err);
    }
    if (rc == 0 && fds[0].revents & POLLIN) {
        rc = from_client(p, err);
    }
    for (int i = 0; i < 2; i++) { /* with nothing more to read: gone */
        p->over = p->over || (fds[i].revents & (POLLHUP | POLLERR) && !(fds[i].revents & POLLIN));
    }
    write_some(p, p->client, &p->to_client);
    write_some(p, p->server, &p->to_server);
    return rc;
}

/* ---- the end -----------------------------------------------------------------------------------
 */

/* What was let through still arrives. */
static void flush(struct pump *p, int64_t deadline)
{
    for (p->over = false; !p->over && (p->to_client.len || p->to_server.len);) {
        struct pollfd fds[2] = {{p->client, p->to_client.len ? POLLOUT : 0, 0},
                                {p->server, p->to_server.len ? POLLOUT : 0, 0}};

        if (poll(fds, 2, ferry_ms_left(deadline)) <= 0) {
            break;
        }
        write_some(p, p->client, &p->to_client);
        write_some(p, p->server, &p->to_server);
    }
}

/* libvirt closes what it has opened, and what becomes of that is what its caller is told: so it is
 * let go in peace. All else is refused as before. False when it has left.
 */
static bool answer_goodbye(struct pump *p, const void *message, const struct ferry_error *why)
{
    const struct rpc_header h = rpc_frame_header(message);
    bool calls = h.program == RPC_PROGRAM_REMOTE && h.type == RPC_TYPE_CALL;

    if (calls && (h.procedure == RPC_CONNECT_CLOSE ||
                  h.procedure == RPC_CONNECT_UNREGISTER_CLOSE_CALLBACK)) {
        rpc_frame_done(&h, &p->to_client);
    } else {
        say_no(p, message, why);
    }
    return !calls || h.procedure != RPC_CONNECT_CLOSE;
}

/* False when there is no more to be said. */
static bool answer_goodbyes(struct pump *p, const struct ferry_error *why)
{
    size_t length;

    while (rpc_frame_length(p->call.data, p->call.len, RPC_CALL_MAX, &length, NULL) == 0) {
        if (length == 0 || length > p->call.len) {
            return true;
        }
        bool more = p->goodbyes++ < GOODBYES_MAX && answer_goodbye(p, p->call.data, why);
        drop(&p->call, length);
        if (!more) {
            return false;
        }
    }
    return false;
}

static void say_goodbye(struct pump *p, const struct ferry_error *why, int64_t deadline)
{
    char chunk[CHUNK];

    shutdown(p->server, SHUT_RDWR);
    p->to_server.len = 0;
    for (bool more = answer_goodbyes(p, why); more || p->to_client.len;) {
        struct pollfd fd = {p->client, (short)(POLLIN | (p->to_client.len ? POLLOUT : 0)), 0};
        ssize_t n = 0;

        if (poll(&fd, 1, ferry_ms_left(deadline)) <= 0) {
            return;
        }
        if (fd.revents & (POLLIN | POLLHUP) && (n = read_some(p->client, chunk)) < 0) {
            return;
        }
        if (n > 0 && more) {
            ferry_buf_append(&p->call, chunk, (size_t)n);
            more = answer_goodbyes(p, why);
        }
        write_some(p, p->client, &p->to_client);
    }
}

/* A connection that ends with bytes unread takes back what was written. */
static void hang_up(struct pump *p, int64_t deadline)
{
    char chunk[CHUNK];

    shutdown(p->server, SHUT_RDWR);
    shutdown(p->client, SHUT_WR);
    for (struct pollfd fd = {p->client, POLLIN, 0};
         poll(&fd, 1, ferry_ms_left(deadline)) > 0 && read_some(p->client, chunk) >= 0;) {
    }
}

int rpc_pump(int client, int server, const struct rpc_agreement *a, const char *refused,
             rpc_report *report, struct ferry_error *err)
{
    struct pump p = {
        .client = client, .server = server, .agreement = a, .session = {.refused = refused}};
    int rc = 0;

    while (rc == 0 && !p.over) {
        rc = step(&p, err);
    }
    int64_t deadline = ferry_now_ns() + LAST_WORD_MS * FERRY_NS_PER_MS;
    if (rc == -FERRY_DENIED || rc == -FERRY_PEER) {
        report(err);
    }
    if (rc == -FERRY_DENIED) {
        say_goodbye(&p, err, deadline);
    } else {
        flush(&p, deadline);
    }
    hang_up(&p, deadline);
    ferry_buf_done(&p.call);
    ferry_buf_done(&p.to_server);
    ferry_buf_done(&p.to_client);
    ferry_buf_done(&p.answer_head);
    return rc;
}
