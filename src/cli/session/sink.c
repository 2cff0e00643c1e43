#include "cli/session/sink.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"

static atomic_int error;

static void note(int e)
{
    int none = 0;

    (void)atomic_compare_exchange_strong(&error, &none, e);
}

static ssize_t write_all(void *ctx, const char *data, size_t n)
{
    size_t done = 0;

    (void)ctx;
    while (done < n) {
        ssize_t more = write(STDOUT_FILENO, data + done, n - done);

        if (more < 0 && errno == EINTR) {
            continue;
        }
        if (more < 0) {
            note(errno);
            return 0; /* as fopencookie wants it */
        }
        done += (size_t)more;
    }
    return (ssize_t)n;
}

static int close_it(void *ctx)
{
    (void)ctx;
    if (close(STDOUT_FILENO) < 0 && errno != EBADF) {
        note(errno);
        return -1;
    }
    return 0;
}

void sink_open(void)
{
    FILE *f =
        fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_all, .close = close_it});

    if (f) {
        setvbuf(f, NULL, isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF, BUFSIZ);
        stdout = f;
    }
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
