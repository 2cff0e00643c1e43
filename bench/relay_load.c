/* Load for relay benchmarks, at the two unix sockets that a relay pair connects.
 *
 *   sink PATH                   listens; discards bulk, echoes pings; one thread each
 *   send PATH BYTES WRITE CONNS sends BYTES over CONNS connections, WRITE bytes a call, or until
 *                               SIGTERM
 *   ping PATH COUNT             COUNT round trips of 64 bytes
 *
 * The first byte of a connection says what it is: 'E' echo, or 'B' bulk: a length of 8 bytes and
 * that many bytes, answered by one byte when all have arrived (not by end of file: some relays end
 * both directions at the first one). Results go to standard output as JSON. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum { SINK_BUFFER = 256 * 1024, PING_SIZE = 64 };

static void die(const char *what, const struct ferry_error *err)
{
    fprintf(stderr, "relay_load: %s: %s\n", what, err->msg);
    exit(1);
}

/* A relay whose socket is there may not listen yet. */
static int reach(const char *path, struct ferry_error *err)
{
    int64_t until = ferry_now_ns() + 10 * FERRY_NS_PER_S;

    for (;;) {
        int fd = ferry_unix_connect(path, until, err);

        if (fd >= 0 || err->sys != ECONNREFUSED || ferry_now_ns() >= until) {
            return fd;
        }
        usleep(10 * 1000);
    }
}

/* ---- sink --------------------------------------------------------------------------------------
 */

static void echo(int fd, char *buf)
{
    for (;;) {
        ssize_t n = read(fd, buf, SINK_BUFFER);

        if (n <= 0 || ferry_write_all(fd, buf, (size_t)n, NULL) < 0) {
            return;
        }
    }
}

static void *serve(void *arg)
{
    ferry_cleanup_fd int fd = (int)(intptr_t)arg;
    ferry_cleanup_free char *buf = ferry_xcalloc(1, SINK_BUFFER);
    char kind;

    if (read(fd, &kind, 1) != 1) {
        return NULL;
    }
    if (kind == 'E') {
        echo(fd, buf);
        return NULL;
    }
    uint64_t left;
    if (recv(fd, &left, sizeof(left), MSG_WAITALL) != (ssize_t)sizeof(left)) {
        return NULL;
    }
    while (left > 0) {
        ssize_t n = read(fd, buf, left < SINK_BUFFER ? (size_t)left : SINK_BUFFER);

        if (n <= 0) {
            return NULL;
        }
        left -= (uint64_t)n;
    }
    ferry_write_all(fd, "!", 1, NULL);
    return NULL;
}

__attribute__((noreturn)) static void run_sink(const char *path)
{
    struct ferry_error err;
    ferry_cleanup_fd int listener = ferry_unix_listen(path, 0666, 64, &err);

    if (listener < 0) {
        die("sink", &err);
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        pthread_t t;

        if (fd >= 0 && pthread_create(&t, NULL, serve, (void *)(intptr_t)fd) == 0) {
            pthread_detach(t);
        }
    }
}

/* ---- bulk --------------------------------------------------------------------------------------
 */

struct sender {
    const char *path;
    uint64_t bytes;
    size_t write_size;
    pthread_t thread;
};

static atomic_uint_fast64_t sent;
static int64_t begin_ns;

static void print_sent(void)
{
    printf("{\"seconds\": %.6f, \"bytes\": %llu}\n", (double)(ferry_now_ns() - begin_ns) / 1e9,
           (unsigned long long)atomic_load(&sent));
    fflush(stdout);
}

/* SIGTERM is blocked everywhere else. */
static void *wait_for_term(void *arg)
{
    int number;

    sigwait(arg, &number);
    print_sent();
    _exit(0);
}

static void *send_bulk(void *arg)
{
    struct sender *s = arg;
    struct ferry_error err;
    ferry_cleanup_fd int fd = reach(s->path, &err);
    ferry_cleanup_free char *buf = ferry_xcalloc(1, s->write_size);
    uint32_t x = 1;

    if (fd < 0) {
        die("send", &err);
    }
    for (size_t i = 0; i < s->write_size; i++) {
        x = x * 1664525U + 1013904223U;
        buf[i] = (char)(x >> 24);
    }
    if (ferry_write_all(fd, "B", 1, &err) < 0 ||
        ferry_write_all(fd, &s->bytes, sizeof(s->bytes), &err) < 0) {
        die("send", &err);
    }
    for (uint64_t left = s->bytes; left > 0;) {
        size_t n = left < s->write_size ? (size_t)left : s->write_size;

        if (ferry_write_all(fd, buf, n, &err) < 0) {
            die("send", &err);
        }
        left -= n;
        atomic_fetch_add(&sent, n);
    }
    char done;
    if (read(fd, &done, 1) != 1 || done != '!') {
        fprintf(stderr, "relay_load: the sink did not confirm\n");
        exit(1);
    }
    return NULL;
}

static int run_send(const char *path, uint64_t bytes, size_t write_size, int connections)
{
    struct sender senders[64];
    sigset_t term;
    pthread_t watcher;

    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    pthread_create(&watcher, NULL, wait_for_term, &term);
    begin_ns = ferry_now_ns();

    for (int i = 0; i < connections; i++) {
        senders[i] = (struct sender){path, bytes / (uint64_t)connections, write_size, 0};
        pthread_create(&senders[i].thread, NULL, send_bulk, &senders[i]);
    }
    for (int i = 0; i < connections; i++) {
        pthread_join(senders[i].thread, NULL);
    }
    print_sent();
    return 0;
}

/* ---- round trips -------------------------------------------------------------------------------
 */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int run_ping(const char *path, int count)
{
    struct ferry_error err;
    ferry_cleanup_fd int fd = reach(path, &err);
    ferry_cleanup_free int64_t *ns = ferry_xcalloc((size_t)count, sizeof(*ns));
    char message[PING_SIZE] = {0};

    if (fd < 0 || ferry_write_all(fd, "E", 1, &err) < 0) {
        die("ping", &err);
    }
    for (int i = -50; i < count; i++) { /* the first ones warm the path up */
        int64_t begin = ferry_now_ns();

        if (ferry_write_all(fd, message, sizeof(message), &err) < 0) {
            die("ping", &err);
        }
        for (size_t got = 0; got < sizeof(message);) {
            ssize_t n = read(fd, message + got, sizeof(message) - got);

            if (n <= 0) {
                fprintf(stderr, "relay_load: the echo ended\n");
                return 1;
            }
            got += (size_t)n;
        }
        if (i >= 0) {
            ns[i] = ferry_now_ns() - begin;
        }
    }
    qsort(ns, (size_t)count, sizeof(*ns), by_value);
    printf("{\"p50_us\": %.1f, \"p99_us\": %.1f}\n", (double)ns[count / 2] / 1e3,
           (double)ns[count * 99 / 100] / 1e3);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "sink") == 0) {
        run_sink(argv[2]);
    }
    if (argc == 6 && strcmp(argv[1], "send") == 0 && atoi(argv[5]) >= 1 && atoi(argv[5]) <= 64) {
        return run_send(argv[2], strtoull(argv[3], NULL, 10), strtoul(argv[4], NULL, 10),
                        atoi(argv[5]));
    }
    if (argc == 4 && strcmp(argv[1], "ping") == 0 && atoi(argv[3]) > 0) {
        return run_ping(argv[2], atoi(argv[3]));
    }
    fputs("usage: relay_load sink PATH | send PATH BYTES WRITE CONNECTIONS | ping PATH COUNT\n",
          stderr);
    return 2;
}
