/* ferry-handler: the agent of one node. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "handler/handler.h"
#include "handler/node/renewal.h"
#include "kube/client.h"

#define PROGRAM "ferry-handler"

/* The most that a relay holds streams for, and its default. */
enum { RESUME_WINDOW_MAX_S = 240 };

/* Of a certificate's life, then it is renewed: time enough for an API server that is away. */
enum { RENEW_PERCENT = 66 };

struct settings {
    const char *root, *node, *kubeconfig, *address, *interface;
    int api_port, resume_window_s, renew_percent;
};

static int check(const struct settings *s, struct ferry_error *err)
{
    struct in6_addr scratch;

    if (ferry_str_empty(s->node)) {
        return ferry_fail(err, FERRY_INVALID, "--node is missing (see " PROGRAM " --help)");
    }
    if (ferry_str_empty(s->address)) {
        return ferry_fail(err, FERRY_INVALID, "--node-address is missing (see " PROGRAM " --help)");
    }
    if (inet_pton(AF_INET, s->address, &scratch) != 1 &&
        inet_pton(AF_INET6, s->address, &scratch) != 1) {
        return ferry_fail(err, FERRY_INVALID, "--node-address: '%s' is not a numeric address",
                          s->address);
    }
    if (s->api_port > 65535) {
        return ferry_fail(err, FERRY_INVALID, "--api-port: %d is not a port", s->api_port);
    }
    if (s->resume_window_s < 0 || s->resume_window_s > RESUME_WINDOW_MAX_S) {
        return ferry_fail(err, FERRY_INVALID, "--resume-window: %d is not in the range 0 to %d",
                          s->resume_window_s, RESUME_WINDOW_MAX_S);
    }
    if (s->renew_percent > 99) {
        return ferry_fail(err, FERRY_INVALID, "--renew-at: %d is not in the range 0 to 99",
                          s->renew_percent);
    }
    if (*s->root && *s->root != '/') {
        return ferry_fail(err, FERRY_INVALID, "--root: '%s' is not an absolute path", s->root);
    }
    return 0;
}

/* One handler per root: two would tell the same launchers different things. */
static int lock_root(const char *dir, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/handler.lock", dir);
    int rc = ferry_mkdir_p(dir, 0711, err);

    if (rc < 0) {
        return rc;
    }
    ferry_cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return ferry_fail_errno(err, errno, "opening %s", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return ferry_fail(err, FERRY_CONFLICT, "another ferry-handler works on %s already", dir);
    }
    return ferry_take_fd(&fd);
}

/* The launcher as it is installed, beside this program. */
static char *find_launcher(void)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[n < 0 ? 0 : n] = '\0';
    return ferry_asprintf("%s/ferry-launcher", dirname(self));
}

static bool stop_asked(void)
{
    static bool asked;

    asked = asked || ferry_signals_wait(0) != 0;
    return asked;
}

static int run(const struct settings *s, struct ferry_error *err)
{
    ferry_cleanup_free char *run_dir = ferry_asprintf("%s/run/ferry", s->root);
    ferry_cleanup_free char *pods_dir = ferry_asprintf("%s/pods", run_dir);
    ferry_cleanup_free char *relay = ferry_asprintf("%s/relay.sock", run_dir);
    ferry_cleanup_free char *socket = ferry_asprintf("%s/handler.sock", run_dir);
    ferry_cleanup_free char *pki = ferry_asprintf("%s/var/lib/ferry/pki", s->root);
    ferry_cleanup_free char *records = ferry_asprintf("%s/var/lib/ferry/records", s->root);
    ferry_cleanup_free char *kubeconfig =
        s->kubeconfig ? ferry_strdup(s->kubeconfig)
                      : ferry_asprintf("%s/var/lib/ferry/node.kubeconfig", s->root);
    ferry_cleanup_free char *launcher = find_launcher();
    ferry_cleanup_free char *cpu_cache = ferry_asprintf("%s/var/lib/ferry/cpu.json", s->root);
    kube_cleanup_client struct kube_client *client = NULL;
    struct handler *handler = NULL;
    ferry_cleanup_fd int lock = lock_root(run_dir, err);
    int rc = lock < 0 ? lock : renewal_settle(pki, kubeconfig, err);

    if (rc == 0) {
        rc = kube_client_open(kubeconfig, &client, err);
    }
    if (rc == 0) {
        rc = handler_start(&(struct handler_config){.client = client,
                                                    .node = s->node,
                                                    .address = s->address,
                                                    .migration_interface = s->interface,
                                                    .pods_dir = pods_dir,
                                                    .relay_socket = relay,
                                                    .records_dir = records,
                                                    .pki_dir = pki,
                                                    .api_socket = socket,
                                                    .api_port = s->api_port,
                                                    .kubeconfig = kubeconfig,
                                                    .launcher = launcher,
                                                    .cpu_cache = cpu_cache,
                                                    .renew_percent = s->renew_percent,
                                                    .resume_window_s = s->resume_window_s},
                           stop_asked, &handler, err);
    }
    if (rc < 0) {
        return rc == -FERRY_CANCELLED ? 0 : rc;
    }
    ferry_info("looking after this node", F_STR("node", s->node), F_STR("address", s->address));
    ferry_signals_wait(INT64_MAX);
    ferry_info("stopping; guests and moves go on");
    handler_stop(handler);
    return 0;
}

int main(int argc, char **argv)
{
    struct settings s = {.root = "",
                         .interface = "migration0",
                         .resume_window_s = RESUME_WINDOW_MAX_S,
                         .renew_percent = RENEW_PERCENT};
    struct ferry_log_options lo = {0};
    struct ferry_error err;
    const struct ferry_option options[] = {
        {"node", 0, FERRY_OPTION_STRING, &s.node, "NAME", "name of this node (required)"},
        {"node-address", 0, FERRY_OPTION_STRING, &s.address, "IP",
         "numeric address of this node (required)"},
        {"migration-interface", 0, FERRY_OPTION_STRING, &s.interface, "NAME",
         "moves come in on its address if it exists (default: migration0)"},
        {"api-port", 0, FERRY_OPTION_INT, &s.api_port, "PORT",
         "of the node API on that address (default: any; the Node object tells)"},
        {"resume-window", 0, FERRY_OPTION_INT, &s.resume_window_s, "SECONDS",
         "a move waits that long for a path that is away (default: 240, the most)"},
        {"renew-at", 0, FERRY_OPTION_INT, &s.renew_percent, "PERCENT",
         "of their life the node's certificates are renewed (default: 66; 0 = at every look)"},
        {"root", 0, FERRY_OPTION_STRING, &s.root, "DIR", "prefix of all paths (default: none)"},
        {"kubeconfig", 0, FERRY_OPTION_STRING, &s.kubeconfig, "FILE",
         "how to reach the API (default: ROOT/var/lib/ferry/node.kubeconfig)"},
        FERRY_LOG_OPTION_ROWS(&lo),
        {0},
    };
    const struct ferry_command cmd = {
        .name = PROGRAM,
        .usage = "--node NAME --node-address IP [OPTION]...",
        .summary = "The agent of one node: starts, watches and stops the VMs that live here, and\n"
                   "works both ends of their moves. Restarting it leaves guests and moves alone.",
        .options = options,
        .config = PROGRAM,
    };
    int first = ferry_options_parse(&cmd, argc, argv, &err);

    if (first >= 0 && first < argc) {
        first = ferry_fail(&err, FERRY_INVALID, "unexpected argument '%s'", argv[first]);
    }
    if (first < 0 || check(&s, &err) < 0 || ferry_log_options_apply(PROGRAM, &lo, &err) < 0) {
        return ferry_die(PROGRAM, FERRY_EXIT_USAGE, &err);
    }
    if (geteuid() != 0) {
        ferry_fail(&err, FERRY_DENIED, "needs root: it talks to launchers and relay of this node");
        return ferry_die(PROGRAM, FERRY_EXIT_FAILED, &err);
    }
    ferry_signals_block();
    umask(022);
    return run(&s, &err) < 0 ? ferry_die(PROGRAM, FERRY_EXIT_FAILED, &err) : FERRY_EXIT_OK;
}
