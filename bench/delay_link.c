/* delay_link: a cable between two network namespaces that takes its time. For machines whose kernel
 * has no netem.
 *
 * delay_link NETNS_A NETNS_B DELAY_US
 *
 * Makes an interface eth0 in both (paths of namespaces), carries frames between them, each
 * DELAY_US later, and says "ready" on standard output. Rates are tc's business, on the interfaces.
 * Ends by a signal. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum { FRAMES = 8192, FRAME_MAX = 2048 };

struct direction {
    int from, to;
    unsigned head, tail; /* of the ring: next to send, next free */
    struct {
        int64_t due_ns;
        size_t n;
        unsigned char data[FRAME_MAX];
    } ring[FRAMES];
};

static struct direction directions[2];

static void die(const char *what)
{
    fprintf(stderr, "delay_link: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* The interface stays in the namespace where it was made. */
static int make_interface(const char *netns)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    ferry_cleanup_fd int ns = open(netns, O_RDONLY | O_CLOEXEC);

    if (ns < 0 || setns(ns, CLONE_NEWNET) < 0) {
        die(netns);
    }
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "eth0");
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0) {
        die("making eth0");
    }
    return fd;
}

/* Takes what there is; a full ring leaves it where it is, as a full cable does. */
static void take(struct direction *d, int64_t delay_ns)
{
    while (d->tail - d->head < FRAMES) {
        ssize_t n = read(d->from, d->ring[d->tail % FRAMES].data, FRAME_MAX);

        if (n <= 0) {
            return;
        }
        d->ring[d->tail % FRAMES].n = (size_t)n;
        d->ring[d->tail % FRAMES].due_ns = ferry_now_ns() + delay_ns;
        d->tail++;
    }
}

/* Sends what is due; time of the next, or INT64_MAX. */
static int64_t give(struct direction *d)
{
    int64_t now = ferry_now_ns();

    for (; d->head != d->tail; d->head++) {
        if (d->ring[d->head % FRAMES].due_ns > now) {
            return d->ring[d->head % FRAMES].due_ns;
        }
        /* a frame that the other side does not take is lost, as on any network */
        (void)!write(d->to, d->ring[d->head % FRAMES].data, d->ring[d->head % FRAMES].n);
    }
    return INT64_MAX;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: delay_link NETNS_A NETNS_B DELAY_US\n");
        return 2;
    }
    int64_t delay_ns = atoll(argv[3]) * 1000;
    int a = make_interface(argv[1]), b = make_interface(argv[2]);
    directions[0].from = directions[1].to = a;
    directions[0].to = directions[1].from = b;
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct pollfd fds[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
        int64_t next = INT64_MAX;

        for (int i = 0; i < 2; i++) {
            take(&directions[i], delay_ns);
            int64_t due = give(&directions[i]);
            next = due < next ? due : next;
        }
        int64_t wait = next == INT64_MAX ? 1000000000 : next - ferry_now_ns();
        struct timespec t = {.tv_sec = wait / 1000000000,
                             .tv_nsec = wait > 0 ? wait % 1000000000 : 0};
        if (wait > 0 && ppoll(fds, 2, &t, NULL) < 0 && errno != EINTR) {
            die("poll");
        }
    }
}
