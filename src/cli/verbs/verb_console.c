/* The verb that shows a guest's serial line, and types on it.
 *
 * The main thread follows what the guest writes, through the node that it lives on; when that ends
 * because the guest has moved, it goes on at the new node. A second thread reads the terminal and
 * sends what was typed to where the guest is. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "api/object.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/node_client.h"
#include "cli/session/sink.h"
#include "cli/verbs/verbs.h"

enum {
    ESCAPE = 0x1d /* Ctrl-] */,
    INTERRUPT = 0x03,
    END_OF_TEXT = 0x04,
    RECHECK_MS = 300,
    TYPED = 256,
    TAIL_DEFAULT = 4096
};

struct console {
    struct session *session;
    const char *vm;
    char *path; /* at the node */
    atomic_bool leave;
    pthread_mutex_t lock; /* guards node */
    char *node;
};

static struct termios terminal_was;

static void set_node(struct console *c, const char *node)
{
    pthread_mutex_lock(&c->lock);
    free(c->node);
    c->node = ferry_strdup(node);
    pthread_mutex_unlock(&c->lock);
}

static char *get_node(struct console *c)
{
    pthread_mutex_lock(&c->lock);
    char *node = ferry_strdup(c->node);
    pthread_mutex_unlock(&c->lock);
    return node;
}

/* ---- typing -------------------------------------------------------------------------------- */

/* Whoever cannot find the way out tries Ctrl-C or Ctrl-D, which are the guest's. */
static bool seeks_exit(const char *text, size_t n)
{
    return memchr(text, INTERRUPT, n) || memchr(text, END_OF_TEXT, n);
}

static void say_exit(const struct console *c)
{
    fprintf(stderr, "\r\n[console of %s; Ctrl-] leaves]\r\n", c->vm);
}

static int send_text(struct console *c, const char *text, size_t n, struct ferry_error *err)
{
    ferry_cleanup_free char *node = get_node(c);
    http_cleanup_reply struct http_reply reply = {0};

    return node_client_post(c->session, node, c->path, text, n, &reply, err);
}

static void *type(void *ctx)
{
    struct console *c = ctx;
    char text[TYPED];

    while (!atomic_load(&c->leave)) {
        struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
        struct ferry_error err;

        if (poll(&pfd, 1, RECHECK_MS) <= 0) {
            continue;
        }
        ssize_t n = read(STDIN_FILENO, text, sizeof(text));
        const char *escape = n > 0 ? memchr(text, ESCAPE, (size_t)n) : NULL;
        size_t len = escape ? (size_t)(escape - text) : n > 0 ? (size_t)n : 0;
        if (len > 0 && send_text(c, text, len, &err) < 0) {
            ferry_cleanup_free char *why = ferry_printable_dup(err.msg);

            fprintf(stderr, "\r\n[not typed: %s]\r\n", why);
        }
        if (!escape && seeks_exit(text, len)) {
            say_exit(c);
        }
        if (escape || n == 0 || (n < 0 && errno != EINTR)) {
            atomic_store(&c->leave, true);
        }
    }
    return NULL;
}

static void restore_terminal(void)
{
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal_was);
}

static bool take_terminal(void)
{
    struct termios raw;

    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &terminal_was) < 0) {
        return false;
    }
    raw = terminal_was;
    cfmakeraw(&raw);
    raw.c_oflag |= OPOST; /* a guest that writes only line feeds stays readable */
    return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0 && atexit(restore_terminal) == 0;
}

/* ---- following ------------------------------------------------------------------------------ */

static bool must_stop(void *ctx)
{
    struct console *c = ctx;

    if (ferry_signals_wait(0) || sink_error()) { /* or nobody reads it any more */
        atomic_store(&c->leave, true);
    }
    return atomic_load(&c->leave);
}

static bool on_data(void *ctx, const char *data, size_t n)
{
    struct console *c = ctx;

    sink_raw(data, n); /* a terminal by intent */
    return !must_stop(c);
}

/* Follows the guest on the node where it is, until it leaves that. */
static int follow_here(struct console *c, const char *node, long long tail, struct ferry_error *err)
{
    ferry_cleanup_free char *query = ferry_asprintf("%s?follow=true&tail=%lld", c->path, tail);
    ferry_cleanup_free char *path = node_client_path(node, query);
    ferry_cleanup_buf struct ferry_buf body = {0};
    int status = 0;
    int rc = http_client_stream(
        kube_client_http(c->session->client),
        &(struct http_stream_call){.path = path, .on_data = on_data, .stop = must_stop, .ctx = c},
        &status, &body, err);

    if (rc == 0 && status != 200) {
        kube_status_error(status, body.data, body.len, "asking for the console", err);
        rc = session_explain(err);
    }
    return rc;
}

/* Where the guest lives now; NULL with `err` when it is no more. */
static int look_up(struct console *c, char **ret, struct ferry_error *err)
{
    api_cleanup_object struct api_object *vm = NULL;
    int rc = cli_get_vm(c->session, c->vm, &vm, err);

    if (rc < 0) {
        return rc;
    }
    if (!wire_phase_is(vm->u.vmi.phase, PHASE_RUNNING) || ferry_str_empty(vm->u.vmi.node_name)) {
        return ferry_fail(err, FERRY_FATAL, "%s is %s: there is no console", c->vm,
                          wire_phase_shown(vm->u.vmi.phase));
    }
    *ret = ferry_strdup(vm->u.vmi.node_name);
    return 0;
}

static int follow(struct console *c, long long tail, struct ferry_error *err)
{
    ferry_cleanup_free char *last = NULL;

    while (!must_stop(c)) {
        ferry_cleanup_free char *node = NULL;
        int rc = look_up(c, &node, err);

        if (rc < 0) {
            return rc;
        }
        set_node(c, node);
        if (last && !ferry_streq(last, node)) {
            fprintf(stderr, "[%s is on %s now]\n", c->vm, node);
        }
        /* What it wrote before it came is in the log of the node that it left. */
        rc = follow_here(c, node, !last ? tail : ferry_streq(last, node) ? 0 : TAIL_DEFAULT, err);
        if (rc < 0 && !last && err->cls != FERRY_CANCELLED) {
            return rc;
        }
        free(last);
        last = ferry_take_ptr(node);
        if (ferry_signals_wait(ferry_now_ns() + RECHECK_MS * FERRY_NS_PER_MS)) {
            break;
        }
    }
    return FERRY_EXIT_OK;
}

static int run(struct console *c, long long tail, struct ferry_error *err)
{
    pthread_t typist;
    bool terminal = take_terminal();

    if (terminal) {
        say_exit(c);
        set_node(c, "");
        if (pthread_create(&typist, NULL, type, c) != 0) {
            restore_terminal();
            return ferry_fail(err, FERRY_FATAL, "no thread for the keyboard");
        }
    }
    int rc = follow(c, tail, err);
    atomic_store(&c->leave, true);
    if (terminal) {
        pthread_join(typist, NULL);
        restore_terminal();
        fputs("\n", stderr);
    }
    return rc;
}

static int print_once(struct console *c, long long tail, const char *text, struct ferry_error *err)
{
    ferry_cleanup_free char *node = NULL;
    ferry_cleanup_free char *query = ferry_asprintf("%s?tail=%lld", c->path, tail);
    http_cleanup_reply struct http_reply reply = {0};
    int rc = look_up(c, &node, err);

    if (rc < 0) {
        return rc;
    }
    set_node(c, node);
    if (text) {
        ferry_cleanup_free char *line = ferry_asprintf("%s\n", text);

        rc = send_text(c, line, strlen(line), err);
        return rc < 0 ? rc : FERRY_EXIT_OK;
    }
    rc = node_client_get(c->session, node, query, &reply, err);
    if (rc == 0) {
        sink_raw(reply.body.data ? reply.body.data : "", reply.body.len);
    }
    return rc < 0 ? rc : FERRY_EXIT_OK;
}

int verb_vm_console(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const char *text = NULL;
    int tail = TAIL_DEFAULT;
    bool once = false;
    const struct ferry_option options[] = {
        {"tail", 0, FERRY_OPTION_INT, &tail, "BYTES", "begin with the last bytes (4096)"},
        {"once", 0, FERRY_OPTION_FLAG, &once, NULL, "print those and return"},
        {"send", 0, FERRY_OPTION_STRING, &text, "TEXT", "type a line and return"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry vm console",
        .usage = "[OPTION]... VM",
        .summary =
            "Shows what a guest writes on its serial line, on whichever node it is: a move\n"
            "does not end it. On a terminal, what is typed goes to the guest; Ctrl-] leaves.",
        .options = options,
    };
    const struct cli_call call = {&cmd, &so, "the name of a virtual machine"};
    const char *name = NULL;
    session_cleanup struct session s = {0};
    int rc = cli_begin(&call, argc, argv, &name, &s, err);

    if (rc < 0) {
        return rc;
    }
    ferry_signals_block();
    struct console c = {.session = &s, .vm = name};
    c.path = ferry_asprintf("/v1/console/%s/%s", s.ns, name);
    pthread_mutex_init(&c.lock, NULL);
    rc = once || text ? print_once(&c, tail, text, err) : run(&c, tail, err);
    pthread_mutex_destroy(&c.lock);
    free(c.path);
    free(c.node);
    return rc;
}
