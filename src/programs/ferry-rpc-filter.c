/* ferry-rpc-filter: what passes between two libvirts during one move (docs/control-channel.md). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "rpc/rpc_judge.h"
#include "rpc/rpc_pump.h"

enum { LISTENER = FERRY_LISTEN_FDS_START, LAUNCHER = LISTENER + 1, LIBVIRTD_MS = 5000 };

static int read_agreement(const char *path, struct rpc_agreement *ret, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    int rc = ferry_read_file(path, RPC_XML_MAX, &text, err);

    return rc < 0 ? rc : rpc_agreement_read(text.data ? text.data : "", text.len, ret, err);
}

/* Why, when the source was refused once: its later connections get no guest in either. */
static const char *refused;

/* A line for the launcher, who may be gone. */
static void report(const struct ferry_error *why)
{
    ferry_cleanup_free char *line = ferry_asprintf("%s\n", why->msg);

    ferry_warn("the source is refused", F_STR("reason", RPC_REFUSED), F_ERR(why));
    refused = refused ? refused : ferry_strdup(why->msg);
    for (char *p = line; p[1]; p++) {
        *p = (char)(*p >= ' ' && *p <= '~' ? *p : '?');
    }
    send(LAUNCHER, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void serve(int client, const char *libvirt, const struct rpc_agreement *a)
{
    struct ferry_error err;
    ferry_cleanup_fd int server =
        ferry_unix_connect(libvirt, ferry_now_ns() + LIBVIRTD_MS * FERRY_NS_PER_MS, &err);
    int rc = server < 0 ? server : rpc_pump(client, server, a, refused, report, &err);

    ferry_info("control channel of a move closed", F_STR("result", rc < 0 ? err.msg : "ok"));
}

/* Until the launcher is gone, or says that it is enough by closing its end. */
static void run(const char *libvirt, const struct rpc_agreement *a)
{
    struct pollfd fds[2] = {{LISTENER, POLLIN, 0}, {LAUNCHER, POLLIN, 0}};

    while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
        if (fds[1].revents) {
            return;
        }
        ferry_cleanup_fd int client =
            fds[0].revents ? accept4(LISTENER, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (client >= 0) {
            serve(client, libvirt, a);
        }
    }
}

int main(int argc, char **argv)
{
    const char *agreed = NULL, *libvirt = NULL;
    struct rpc_agreement agreement = {0};
    struct ferry_log_options lo = {0};
    struct ferry_error err;
    const struct ferry_option options[] = {
        {"agreed", 0, FERRY_OPTION_STRING, &agreed, "FILE", "what the move may bring here"},
        {"libvirt", 0, FERRY_OPTION_STRING, &libvirt, "SOCKET", "libvirtd's socket"},
        {"refused", 0, FERRY_OPTION_STRING, &refused, "REASON",
         "why the source was refused before, if it was: no guest comes in"},
        FERRY_LOG_OPTION_ROWS(&lo),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry-rpc-filter",
        .usage = "--agreed FILE --libvirt SOCKET [OPTION]...",
        .summary =
            "Passes on to libvirtd what belongs to one move, and ends a connection that asks\n"
            "for anything else. The launcher starts it for each move that comes in.",
        .options = options,
        .epilogue =
            "Descriptor 3 is the socket to listen on, 4 leads to the launcher, who is told of\n"
            "each refusal; when it closes, the program ends with its last connection.",
    };
    int first = ferry_options_parse(&cmd, argc, argv, &err);

    if (first < 0 || ferry_log_options_apply("ferry-rpc-filter", &lo, &err) < 0) {
        return ferry_die("ferry-rpc-filter", FERRY_EXIT_USAGE, &err);
    }
    if (first < argc || !agreed || !libvirt || ferry_listen_fds() != 2) {
        ferry_fail(&err, FERRY_INVALID,
                   "needs --agreed, --libvirt and two sockets (LISTEN_FDS=2), no arguments");
        return ferry_die("ferry-rpc-filter", FERRY_EXIT_USAGE, &err);
    }
    signal(SIGPIPE, SIG_IGN);
    if (read_agreement(agreed, &agreement, &err) < 0) {
        return ferry_die("ferry-rpc-filter", FERRY_EXIT_FAILED, &err);
    }
    run(libvirt, &agreement);
    rpc_agreement_done(&agreement);
    return FERRY_EXIT_OK;
}
