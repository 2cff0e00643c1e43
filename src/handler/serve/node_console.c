/* Theory of operation.
 *
 * QEMU writes all that the guest says to serial.log, whoever else listens, and ferry-pods keeps the
 * end of it, so reading is reading a file; following it is looking again. Typing goes through
 * serial.sock, which takes one client at a time and holds the guest up when that client does not
 * read: whoever types connects, sends, reads until QEMU has taken everything, and leaves. */
#include "handler/serve/node_console.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/serve/node_pod.h"

enum {
    TAIL_MAX = 1 << 20,
    TAIL_DEFAULT = 64 << 10,
    RECHECK_MS = 100,
    TYPED_MAX = 4096,
    TYPING_MS = 5000,
    SETTLE_MS = 20,
};

#define PLAIN_TEXT "text/plain; charset=utf-8"

static char *in_console(const struct node_api_config *cfg, const struct api_object *pod,
                        const char *name)
{
    return ferry_asprintf("%s/%s/console/%s", cfg->node->pods_dir, pod->meta->uid, name);
}

/* ---- reading ----------------------------------------------------------------------------------
 */

struct follower {
    struct http_server *server;
    int fd;
    off_t at;
};

/* Opens the log and places `*at` so that `max` bytes are before its end. The directory is the
 * hypervisor's: the file may be anything. */
static int open_log(const char *path, off_t max, off_t *at, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    if (fd < 0) {
        return ferry_fail_errno(err, errno, "opening the console's log");
    }
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return ferry_fail(err, FERRY_PEER, "the console's log is not a file");
    }
    *at = st.st_size > max ? st.st_size - max : 0;
    return ferry_take_fd(&fd);
}

/* Of a guest that writes without pause only the end is kept, before that is a hole: who was too
 * slow goes on where there is something again. */
static void skip_hole(struct follower *f)
{
    off_t data = lseek(f->fd, f->at, SEEK_DATA);

    f->at = data > f->at ? data : f->at;
}

static ssize_t follow_read(void *ctx, char *buf, size_t max)
{
    struct follower *f = ctx;
    struct stat st;

    skip_hole(f);
    ssize_t n = pread(f->fd, buf, max, f->at);

    if (n > 0) {
        f->at += n;
        return n;
    }
    /* The pod's directory goes when the guest has left. */
    if (n < 0 || http_server_stopping(f->server) || fstat(f->fd, &st) < 0 || st.st_nlink == 0) {
        return -1;
    }
    ferry_sleep_ms(RECHECK_MS);
    return 0;
}

static void follow_done(void *ctx)
{
    struct follower *f = ctx;

    close(f->fd);
    free(f);
}

static void answer_tail(struct http_exchange *x, int fd, off_t at, size_t max)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct ferry_error err;

    ferry_buf_reserve(&text, max + 1);
    ssize_t n = pread(fd, text.data, max, at);
    if (n < 0) {
        ferry_fail_errno(&err, errno, "reading the console's log");
        http_answer_error(x, 0, &err);
        return;
    }
    http_answer(x, 200, PLAIN_TEXT, text.data, (size_t)n);
}

void node_console_read(struct http_exchange *x, const struct node_api_config *cfg, const char *vm)
{
    api_cleanup_object struct api_object *pod = NULL;
    const char *tail = http_query(x, "tail");
    long long max = TAIL_DEFAULT;
    struct ferry_error err;
    off_t at = 0;
    int rc = node_pod_of_vm(cfg, vm, &pod, &err);

    if (rc == 0 && tail) {
        rc = ferry_parse_int(tail, 0, TAIL_MAX, &max, &err);
    }
    ferry_cleanup_free char *path = rc == 0 ? in_console(cfg, pod, "serial.log") : NULL;
    ferry_cleanup_fd int fd = rc == 0 ? open_log(path, (off_t)max, &at, &err) : rc;
    if (fd < 0) {
        http_answer_error(x, 0, &err);
        return;
    }
    if (!ferry_streq(http_query(x, "follow"), "true")) {
        answer_tail(x, fd, at, (size_t)max);
        return;
    }
    struct follower *f = ferry_xcalloc(1, sizeof(*f));
    *f = (struct follower){http_exchange_server(x), ferry_take_fd(&fd), at};
    http_answer_stream(x, 200, PLAIN_TEXT, &(struct http_stream){follow_read, follow_done, f});
}

/* ---- typing -----------------------------------------------------------------------------------
 */

/* Waits until QEMU has taken all of it, reading meanwhile what the guest answers (it is in the log,
 * too). */
static int settle(int fd, int64_t deadline_ns, struct ferry_error *err)
{
    char drop[4096];
    int unread = 1;

    while (unread > 0) {
        struct pollfd pfd = {.fd = fd, .events = POLLIN};

        if (poll(&pfd, 1, SETTLE_MS) > 0 && recv(fd, drop, sizeof(drop), MSG_DONTWAIT) == 0) {
            return ferry_fail(err, FERRY_RETRY, "the guest's serial line was closed");
        }
        if (ioctl(fd, SIOCOUTQ, &unread) < 0) {
            return ferry_fail_errno(err, errno, "asking what QEMU has taken");
        }
        if (unread > 0 && ferry_ms_left(deadline_ns) == 0) {
            return ferry_fail(err, FERRY_RETRY,
                              "the guest does not read its serial line, or another client has it");
        }
    }
    return 0;
}

static int type(const char *path, const char *text, size_t len, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + TYPING_MS * FERRY_NS_PER_MS;
    ferry_cleanup_fd int fd = ferry_unix_connect(path, deadline, err);

    if (fd < 0) {
        return fd;
    }
    int rc = ferry_write_all(fd, text, len, err);
    return rc < 0 ? rc : settle(fd, deadline, err);
}

void node_console_write(struct http_exchange *x, const struct node_api_config *cfg, const char *vm)
{
    api_cleanup_object struct api_object *pod = NULL;
    struct ferry_error err;
    size_t len;
    const char *text = http_body(x, &len);
    int rc = node_pod_of_vm(cfg, vm, &pod, &err);

    if (rc == 0 && len > TYPED_MAX) {
        rc = ferry_fail(&err, FERRY_INVALID, "at most %d bytes at a time", TYPED_MAX);
    }
    if (rc == 0) {
        ferry_cleanup_free char *path = in_console(cfg, pod, "serial.sock");

        rc = type(path, text, len, &err);
    }
    if (rc < 0) {
        http_answer_error(x, 0, &err);
        return;
    }
    http_answer_json(x, 200, "{}");
}
