#include "cli/session/sink.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "base/printable.h"

/* One of the two streams: what waits for the rest of its character. Its FILE has the lock. */
struct stream {
    int fd;
    char begun[4];
    size_t n;
};

static struct stream out = {.fd = STDOUT_FILENO}, complaints = {.fd = STDERR_FILENO};
static atomic_int error;

static void note(int e)
{
    int none = 0;

    (void)atomic_compare_exchange_strong(&error, &none, e);
}

static bool write_all(int fd, const char *data, size_t n)
{
    size_t done = 0;

    while (done < n) {
        ssize_t more = write(fd, data + done, n - done);

        if (more < 0 && errno == EINTR) {
            continue;
        }
        if (more < 0) {
            if (fd == STDOUT_FILENO) {
                note(errno);
            }
            return false;
        }
        done += (size_t)more;
    }
    return true;
}

static bool write_printable(struct stream *s, const char *data, size_t n, bool more)
{
    ferry_cleanup_buf struct ferry_buf in = {0}, text = {0};

    ferry_buf_append(&in, s->begun, s->n);
    ferry_buf_append(&in, data, n);
    size_t taken = ferry_printable(in.data, in.len, "\n\t", more, &text);
    s->n = in.len - taken; /* at most what a character lacks */
    memcpy(s->begun, in.data + taken, s->n);
    return write_all(s->fd, text.data, text.len);
}

static ssize_t write_cookie(void *ctx, const char *data, size_t n)
{
    return write_printable(ctx, data, n, true) ? (ssize_t)n : 0; /* as fopencookie wants it */
}

static int close_cookie(void *ctx)
{
    struct stream *s = ctx;

    write_printable(s, "", 0, false);
    if (close(s->fd) < 0 && errno != EBADF) {
        note(errno);
        return -1;
    }
    return 0;
}

void sink_open(void)
{
    FILE *f = fopencookie(&out, "w",
                          (cookie_io_functions_t){.write = write_cookie, .close = close_cookie});
    FILE *e = fopencookie(&complaints, "w", (cookie_io_functions_t){.write = write_cookie});

    if (f) {
        setvbuf(f, NULL, isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF, BUFSIZ);
        stdout = f;
    }
    if (e) {
        setvbuf(e, NULL, _IONBF, 0);
        stderr = e;
    }
}

void sink_raw(const char *data, size_t n)
{
    fflush(stdout);
    write_all(STDOUT_FILENO, data, n);
}

void sink_obey(const char *command)
{
    sink_raw(command, strlen(command));
}

int sink_error(void)
{
    struct pollfd pfd = {.fd = STDOUT_FILENO};

    if (poll(&pfd, 1, 0) == 1 && (pfd.revents & (POLLERR | POLLHUP))) {
        note(EPIPE); /* the reader left; the next write would tell */
    }
    return atomic_load(&error);
}

int sink_close(void)
{
    bool failed = ferror(stdout) != 0;

    if (fclose(stdout) != 0) {
        note(errno);
    }
    int e = atomic_load(&error); /* all that was to be written decides, not who is still there */
    if (e == EPIPE) {
        return SINK_EXIT_PIPE;
    }
    if (e || failed) {
        fprintf(stderr, "ferry: cannot write to standard output: %s\n", strerror(e ? e : EIO));
        return FERRY_EXIT_FAILED;
    }
    return 0;
}
