/* ferry-handler: the agent of one node. */
#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/daemon.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "handler/handler.h"
#include "handler/node/cpu_probe.h"
#include "handler/node/renewal.h"
#include "kube/client.h"
#include "kvm/kvm_cache.h"
#include "kvm/kvm_probe.h"

#define PROGRAM "ferry-handler"

/* The most that a relay holds streams for, and its default. */
enum { RESUME_WINDOW_MAX_S = 240 };

/* Of a certificate's life, then it is renewed: time enough for an API server that is away. */
enum { RENEW_PERCENT = 66 };

struct settings {
    const char *root, *node, *kubeconfig, *address, *interface, *kvm_device;
    int api_port, resume_window_s, renew_percent;
};

static int check(void *ctx, struct ferry_error *err)
{
    const struct settings *s = ctx;
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
    return ferry_daemon_check_root(s->root, err);
}

static bool has_kvm(const char *root, const char *device)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/var/lib/ferry/kvm", root);
    struct kvm_answer answer;
    char why[KVM_WHY_BYTES];

    ferry_cleanup_free char *cpu = cpu_probe_identity();
    ferry_cleanup_free char *key = kvm_cache_key(cpu, device);
    bool kept = kvm_cache_probe(path, key, device, &answer);
    bool yes = kvm_judge(&answer, device, why);
    ferry_info(yes ? "guests can be run by the hardware" : "guests are emulated here",
               F_STR("why", why), F_STR("found", kept ? "earlier" : "now"));
    return yes;
}

static int run(void *ctx, struct ferry_error *err)
{
    const struct settings *s = ctx;
    ferry_cleanup_free char *run_dir = ferry_asprintf("%s/run/ferry", s->root);
    ferry_cleanup_free char *pods_dir = ferry_asprintf("%s/pods", run_dir);
    ferry_cleanup_free char *relay = ferry_asprintf("%s/relay.sock", run_dir);
    ferry_cleanup_free char *socket = ferry_asprintf("%s/handler.sock", run_dir);
    ferry_cleanup_free char *pki = ferry_asprintf("%s/var/lib/ferry/pki", s->root);
    ferry_cleanup_free char *records = ferry_asprintf("%s/var/lib/ferry/records", s->root);
    ferry_cleanup_free char *kubeconfig =
        s->kubeconfig ? ferry_strdup(s->kubeconfig)
                      : ferry_asprintf("%s/var/lib/ferry/node.kubeconfig", s->root);
    ferry_cleanup_free char *launcher = ferry_daemon_beside("ferry-launcher");
    ferry_cleanup_free char *cpu_cache = ferry_asprintf("%s/var/lib/ferry/cpu.json", s->root);
    kube_cleanup_client struct kube_client *client = NULL;
    struct handler *handler = NULL;

    umask(022);
    bool kvm = has_kvm(s->root, s->kvm_device);
    /* Two would tell the same launchers different things. */
    ferry_cleanup_fd int lock = ferry_daemon_lock(s->root, "handler.lock", PROGRAM, err);
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
                                                    .kvm = kvm,
                                                    .renew_percent = s->renew_percent,
                                                    .resume_window_s = s->resume_window_s},
                           ferry_daemon_stopping, &handler, err);
    }
    if (rc < 0) {
        return rc;
    }
    ferry_info("reconciling this node's VMIs", F_STR("node", s->node),
               F_STR("address", s->address));
    ferry_signals_wait(INT64_MAX);
    ferry_info("stopping; guests and moves keep running");
    handler_stop(handler);
    return 0;
}

int main(int argc, char **argv)
{
    struct settings s = {.root = "",
                         .interface = "migration0",
                         .kvm_device = KVM_DEVICE,
                         .resume_window_s = RESUME_WINDOW_MAX_S,
                         .renew_percent = RENEW_PERCENT};
    struct ferry_log_options lo = {0};
    const struct ferry_option options[] = {
        {"node", 0, FERRY_OPTION_STRING, &s.node, "NAME", "name of this node (required)"},
        {"node-address", 0, FERRY_OPTION_STRING, &s.address, "IP",
         "numeric address of this node (required)"},
        {"migration-interface", 0, FERRY_OPTION_STRING, &s.interface, "NAME",
         "moves come in on its address if it exists (default: migration0)"},
        {"api-port", 0, FERRY_OPTION_INT, &s.api_port, "PORT",
         "of the node API on that address (default: any; the Node object tells)"},
        {"kvm-device", 0, FERRY_OPTION_STRING, &s.kvm_device, "PATH",
         "tried with a tiny guest at the start; where that fails guests are emulated\n"
         "(default: " KVM_DEVICE "; /dev/null emulates all)"},
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
    const struct ferry_daemon daemon = {
        .program = PROGRAM,
        .command = &cmd,
        .log = &lo,
        .root_for = "it talks to launchers and relay of this node",
        .check = check,
        .run = run,
        .ctx = &s,
    };

    return ferry_daemon_main(&daemon, argc, argv);
}
