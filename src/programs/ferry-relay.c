/* ferry-relay: the encrypted path between a unix socket on one node and one on another. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/daemon.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/options.h"
#include "base/pages.h"
#include "base/str.h"
#include "base/user.h"
#include "programs/ferry-relay-alone.h"
#include "relay/handover/life.h"
#include "relay/handover/takeover.h"
#include "relay/manager/control.h"
#include "relay/manager/manager.h"
#include "relay/stream/endpoint.h"
#include "tls/credentials.h"
#include "tls/gcm.h"
#include "tls/pki.h"

enum { DEFAULT_UID = 61200, CONTROL_BACKLOG = 32 };
static const char program[] = "ferry-relay";
static const char default_user[] = "ferry-relay";

struct serve_options {
    const char *root, *node, *control, *ca, *cert, *key, *client_cert, *client_key, *user, *rate,
        *memory;
    uint64_t bytes_per_s, held_bytes;
    int fd_store;
    const struct relay_self *self;
    struct ferry_user id; /* to become */
    struct ferry_log_options log;
};

static int usage_error(const struct ferry_error *err)
{
    return ferry_die(program, FERRY_EXIT_USAGE, err);
}

static int failed(const struct ferry_error *err)
{
    return ferry_die(program, FERRY_EXIT_FAILED, err);
}

/* ---- serve ------------------------------------------------------------------------------------
 */

static int open_control(const char *path, const struct ferry_user *id, struct ferry_error *err)
{
    ferry_cleanup_fd int other = ferry_unix_connect(path, 0, NULL);
    const char *slash = strrchr(path, '/');
    int rc;

    if (other >= 0) {
        return ferry_fail(err, FERRY_CONFLICT, "control socket %s: another process serves it",
                          path);
    }
    ferry_cleanup_free char *dir = slash ? ferry_strndup(path, (size_t)(slash - path)) : NULL;
    if (dir && *dir && (rc = ferry_mkdir_p(dir, 0711, err)) < 0) {
        return rc;
    }
    ferry_cleanup_fd int fd = ferry_unix_listen(path, 0600, CONTROL_BACKLOG, err);
    if (fd < 0) {
        return fd;
    }
    if (geteuid() == 0 && lchown(path, id->uid, id->gid) < 0) {
        return ferry_fail_errno(err, errno, "giving %s to uid %u", path, id->uid);
    }
    return ferry_take_fd(&fd);
}

/* The manager with what another process left, and the control socket that goes with it. */
static int take_over(struct relay_takeover *t, struct relay_manager *m, int *control_fd,
                     struct ferry_error *err)
{
    int rc;

    if (t->from == RELAY_FROM_NOBODY) {
        return 0;
    }
    if ((rc = relay_takeover_restore(t, false, m, control_fd, err)) < 0 ||
        (rc = relay_takeover_commit(t, m, err)) < 0) {
        return rc;
    }
    relay_manager_resume(m);
    return 0;
}

static int serve_with(struct tls_credentials *credentials, struct tls_credentials *client,
                      int control_fd, struct relay_takeover *t, const struct serve_options *o,
                      struct ferry_error *err)
{
    struct relay_life life = {.self = o->self, .fd_store = (size_t)o->fd_store};
    ferry_cleanup_fd int fd = control_fd;
    int rc;

    if ((rc = ferry_user_become(&o->id, FERRY_NO_GROUP, err)) < 0 ||
        (rc = tls_credentials_load(credentials, err)) < 0 ||
        (client != credentials && (rc = tls_credentials_load(client, err)) < 0) ||
        (rc = relay_manager_new(credentials, client, o->bytes_per_s, &life.manager, err)) < 0) {
        return rc;
    }
    relay_manager_set_memory(life.manager, o->held_bytes);
    if ((rc = take_over(t, life.manager, &fd, err)) == 0 &&
        (rc = relay_control_start(ferry_take_fd(&fd), life.manager, &life.server, err)) == 0) {
        ferry_info("serving", F_STR("node", o->node), F_STR("control", o->control),
                   F_UINT("uid", getuid()), F_STR("aesGcm", tls_gcm_name()));
        ferry_pages_forget();
        relay_life_run(&life);
        http_server_stop(life.server);
    }
    relay_manager_free(life.manager);
    return rc;
}

static int serve_check(void *ctx, struct ferry_error *err)
{
    struct serve_options *o = ctx;

    if (ferry_str_empty(o->node)) {
        return ferry_fail(err, FERRY_INVALID, "--node is missing (see ferry-relay serve --help)");
    }
    if (o->control && !ferry_str_starts(o->control, "unix:/")) {
        return ferry_fail(err, FERRY_INVALID, "--control: '%s' is not unix: and an absolute path",
                          o->control);
    }
    if (!o->client_cert != !o->client_key) {
        return ferry_fail(err, FERRY_INVALID, "--client-cert and --client-key go together");
    }
    int rc = o->rate ? relay_endpoint_bytes("--rate", o->rate, &o->bytes_per_s, err) : 0;
    rc = rc < 0 ? rc : relay_endpoint_memory(o->memory, &o->held_bytes, err);
    return rc < 0 ? rc : ferry_user_find(o->user, "--user", default_user, DEFAULT_UID, &o->id, err);
}

static int serve_run(void *ctx, struct ferry_error *err)
{
    struct serve_options *o = ctx;
    ferry_cleanup_free char *control = ferry_asprintf("%s/run/ferry/relay.sock", o->root);
    ferry_cleanup_free char *ca = ferry_asprintf("%s/var/lib/ferry/pki/ca.crt", o->root);
    ferry_cleanup_free char *cert = ferry_asprintf("%s/var/lib/ferry/pki/relay.crt", o->root);
    ferry_cleanup_free char *key = ferry_asprintf("%s/var/lib/ferry/pki/relay.key", o->root);
    const struct tls_credentials_files files = {.ca = o->ca ? o->ca : ca,
                                                .cert = o->cert ? o->cert : cert,
                                                .key = o->key ? o->key : key,
                                                .node = o->node,
                                                .server_only = o->client_cert != NULL};
    const struct tls_credentials_files client_files = {.ca = files.ca,
                                                       .cert = o->client_cert,
                                                       .key = o->client_key,
                                                       .node = o->node,
                                                       .client_only = true};
    struct tls_credentials *credentials = NULL, *client = NULL;
    struct relay_takeover t;

    o->control = o->control ? o->control + strlen("unix:") : control;
    umask(0); /* the mode of each file is given where it is made */
    ferry_daemon_raise_fds();
    relay_takeover_look(&t);
    int rc = tls_credentials_new(&files, &credentials, err);
    if (rc == 0 && o->client_cert) {
        rc = tls_credentials_new(&client_files, &client, err);
    }
    if (rc == 0) {
        bool anew = t.from == RELAY_FROM_NOBODY;
        int fd = anew ? open_control(o->control, &o->id, err) : -1;

        rc = anew && fd < 0
                 ? fd
                 : serve_with(credentials, client ? client : credentials, fd, &t, o, err);
    }
    relay_takeover_done(&t);
    tls_credentials_free(credentials);
    tls_credentials_free(client);
    if (rc == 0) {
        ferry_info("stopped", F_STR("node", o->node));
    }
    return rc;
}

static int serve(int argc, char **argv, const struct relay_self *self)
{
    struct serve_options o = {.root = "", .self = self};
    const struct ferry_option options[] = {
        {"root", 0, FERRY_OPTION_STRING, &o.root, "DIR", "prefix of all default paths"},
        {"node", 0, FERRY_OPTION_STRING, &o.node, "NAME", "name of this node (required)"},
        {"control", 0, FERRY_OPTION_STRING, &o.control, "unix:PATH",
         "control socket (ROOT/run/ferry/relay.sock)"},
        {"ca", 0, FERRY_OPTION_STRING, &o.ca, "FILE",
         "the site's CA (ROOT/var/lib/ferry/pki/ca.crt)"},
        {"cert", 0, FERRY_OPTION_STRING, &o.cert, "FILE", "certificate (.../pki/relay.crt)"},
        {"key", 0, FERRY_OPTION_STRING, &o.key, "FILE", "its key (.../pki/relay.key)"},
        {"client-cert", 0, FERRY_OPTION_STRING, &o.client_cert, "FILE",
         "certificate for dialling, if it is another one"},
        {"client-key", 0, FERRY_OPTION_STRING, &o.client_key, "FILE", "its key"},
        {"rate", 0, FERRY_OPTION_STRING, &o.rate, "BYTES",
         "limit per second of all moves together (K, M, G); none"},
        {"memory", 0, FERRY_OPTION_STRING, &o.memory, "BYTES",
         "what all streams may hold together (K, M, G); 512M"},
        {"user", 0, FERRY_OPTION_STRING, &o.user, "USER",
         "name or UID:GID to run as when started as root"},
        {"fd-store", 0, FERRY_OPTION_INT, &o.fd_store, "N",
         "room in systemd's descriptor store (FileDescriptorStoreMax=); none"},
        FERRY_LOG_OPTION_ROWS(&o.log),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry-relay serve",
        .usage = "--node NAME [OPTION]...",
        .summary =
            "Relays the connections of migrations between this node and others, as the node\n"
            "agent asks for on the control socket.",
        .options = options,
        .config = program,
        .epilogue =
            "SIGTERM drains: no new moves, and the end when no stream is left; a second one\n"
            "stops at once.",
    };
    const struct ferry_daemon daemon = {.program = program,
                                        .command = &cmd,
                                        .log = &o.log,
                                        .signal = SIGUSR2,
                                        .check = serve_check,
                                        .run = serve_run,
                                        .ctx = &o};

    return ferry_daemon_main(&daemon, argc, argv);
}

/* ---- pki --------------------------------------------------------------------------------------
 */

static int pki_init(const char *dir, struct ferry_error *err)
{
    struct pki_ca *ca = NULL;
    int rc = pki_ca_open(dir, true, &ca, err);

    pki_ca_free(ca);
    return rc;
}

/* As KubeVirt's proxy knows its peers: by the common names of separate certificates. */
static int pki_kubevirt(const struct pki_ca *ca, const char *dir, const char *node, bool server,
                        struct ferry_error *err)
{
    const char *side = server ? "server" : "client";
    ferry_cleanup_free char *cert = ferry_asprintf("%s/%s-%s.crt", dir, node, side);
    ferry_cleanup_free char *key = ferry_asprintf("%s/%s-%s.key", dir, node, side);
    ferry_cleanup_free char *uri = pki_node_uri(node);
    const char *const uris[] = {uri, NULL};
    const struct pki_leaf leaf = {.common_name = server ? "kubevirt.io:system:node:virt-handler"
                                                        : "kubevirt.io:system:client:migration",
                                  .uris = uris,
                                  .client = !server,
                                  .server = server};

    return pki_issue_files(ca, &leaf, cert, key, err);
}

static int pki_node(const char *dir, const char *node, bool kubevirt, struct ferry_error *err)
{
    ferry_cleanup_free char *cert = ferry_asprintf("%s/%s.crt", dir, node);
    ferry_cleanup_free char *key = ferry_asprintf("%s/%s.key", dir, node);
    struct pki_ca *ca = NULL;
    int rc = pki_ca_open(dir, false, &ca, err);

    if (rc == 0) {
        rc = pki_issue_relay_files(ca, node, cert, key, err);
    }
    if (rc == 0 && kubevirt) {
        (void)((rc = pki_kubevirt(ca, dir, node, true, err)) < 0 ||
               (rc = pki_kubevirt(ca, dir, node, false, err)) < 0);
    }
    pki_ca_free(ca);
    return rc;
}

static int pki(int argc, char **argv)
{
    const char *dir = NULL;
    bool kubevirt = false;
    const struct ferry_option options[] = {
        {"dir", 0, FERRY_OPTION_STRING, &dir, "DIR", "where the files are (required)"},
        {"kubevirt-names", 0, FERRY_OPTION_FLAG, &kubevirt, NULL,
         "also NAME-server.* and NAME-client.* with KubeVirt's common names"},
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry-relay pki",
        .usage = "init --dir DIR | node NAME --dir DIR [--kubevirt-names]",
        .summary =
            "Makes certificates for tests and small sites: 'init' a CA (ca.crt, ca.key) unless\n"
            "it is there, 'node' the certificate and key of a node's relay (NAME.crt, NAME.key).",
        .options = options,
    };
    struct ferry_error err;
    int first = ferry_options_parse(&cmd, argc, argv, &err);
    int rc;

    if (first < 0) {
        return usage_error(&err);
    }
    const char *verb = first < argc ? argv[first] : "";
    const char *node = first + 1 < argc ? argv[first + 1] : "";
    bool init = ferry_streq(verb, "init") && argc - first == 1;
    bool issue = ferry_streq(verb, "node") && argc - first == 2 && *node && !strchr(node, '/');
    if (!dir || (!init && !issue)) {
        ferry_fail(&err, FERRY_INVALID, "usage: %s %s", cmd.name, cmd.usage);
        return usage_error(&err);
    }
    rc = init ? pki_init(dir, &err) : pki_node(dir, node, kubevirt, &err);
    return rc < 0 ? failed(&err) : FERRY_EXIT_OK;
}

/* ---- main -------------------------------------------------------------------------------------
 */

/* A verb that relays, with the whole call for a successor. */
static int relay(int argc, char **argv, int whole_argc, char **whole_argv)
{
    struct relay_self self;

    relay_self_init(&self, whole_argc, whole_argv);
    int code = ferry_streq(argv[0], "serve")
                   ? serve(argc, argv, &self)
                   : ferry_relay_alone(ferry_streq(argv[0], "source"), argc, argv, &self);
    relay_self_done(&self);
    return code;
}

int main(int argc, char **argv)
{
    const struct ferry_option none[] = {{0}};
    const struct ferry_command cmd = {
        .name = program,
        .usage = "serve|source|target|pki [OPTION]...",
        .summary = "The encrypted path of a live migration between two nodes.\n\n"
                   "  serve   run the relay of a node\n"
                   "  source  lead a unix socket to a target elsewhere, without a node agent\n"
                   "  target  lead what comes from a source to a unix socket, likewise\n"
                   "  pki     make certificates for tests and small sites",
        .options = none,
        .epilogue = "Exit status: 0 success, 1 it did not work, 2 the call itself is wrong.",
    };
    struct ferry_error err;

    if (argc > 1 && (ferry_streq(argv[1], "serve") || ferry_streq(argv[1], "source") ||
                     ferry_streq(argv[1], "target"))) {
        return relay(argc - 1, argv + 1, argc, argv);
    }
    if (argc > 1 && ferry_streq(argv[1], "pki")) {
        return pki(argc - 1, argv + 1);
    }
    int first = ferry_options_parse(&cmd, argc, argv, &err);
    if (first >= 0) {
        ferry_fail(&err, FERRY_INVALID, "%s%s%s (see ferry-relay --help)",
                   first < argc ? "unknown verb '" : "a verb is missing",
                   first < argc ? argv[first] : "", first < argc ? "'" : "");
    }
    return usage_error(&err);
}
