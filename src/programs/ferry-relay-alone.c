/* ferry-relay source and ferry-relay target: their options. */
#include "programs/ferry-relay-alone.h"

#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/channels.h"
#include "base/clock.h"
#include "base/daemon.h"
#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "relay/handover/alone.h"
#include "relay/protocol/protocol.h"
#include "relay/stream/endpoint.h"

static const char program[] = "ferry-relay";

struct alone_options {
    const char *listen, *connect, *ca, *cert, *key, *node, *peer_node, *peer_cn, *move, *protocol,
        *peer_address, *rate, *interface, *memory;
    int channel, resume_window, fd_store;
    uint64_t held_bytes;
    bool plain;
    struct ferry_log_options log;
};

/* ---- checking ---------------------------------------------------------------------------------
 */

static int missing(const char *option, struct ferry_error *err)
{
    return ferry_fail(err, FERRY_INVALID, "%s is missing (see --help)", option);
}

static int check_mode(const struct alone_options *o, bool source, struct relay_spec *s,
                      struct ferry_error *err)
{
    bool raw = ferry_streq(o->protocol, "raw");

    if (!raw && !ferry_streq(o->protocol, "ferry")) {
        return ferry_fail(err, FERRY_INVALID, "--protocol: '%s' is neither ferry nor raw",
                          o->protocol);
    }
    s->mode = o->plain ? RELAY_PLAIN : raw ? RELAY_RAW : RELAY_FERRY;
    if (o->plain && !source && !o->peer_address) {
        return ferry_fail(err, FERRY_INVALID,
                          "--plain needs --peer-address: the only one that may connect");
    }
    if (o->plain) {
        s->peer_address = ferry_strdup(source ? NULL : o->peer_address);
        return 0;
    }
    if (!o->ca || !o->cert || !o->key) {
        return missing(!o->ca ? "--ca" : !o->cert ? "--cert" : "--key", err);
    }
    if (!o->peer_node && !o->peer_cn) {
        return missing("--peer-node", err);
    }
    return s->mode == RELAY_FERRY && !o->move ? missing("--move", err) : 0;
}

static int check_sizes(const struct alone_options *o, struct relay_spec *s, struct ferry_error *err)
{
    int most = (int)(PROTOCOL_RESUME_MAX / FERRY_NS_PER_S);

    if (o->resume_window > most) {
        return ferry_fail(err, FERRY_INVALID, "--resume-window: at most %d s", most);
    }
    if (o->channel > 65535 || (o->move && strlen(o->move) > FRAME_MOVE_MAX)) {
        return ferry_fail(err, FERRY_INVALID,
                          o->channel > 65535 ? "--channel: at most 65535"
                                             : "--move: at most 64 bytes");
    }
    s->resume_window_ns = o->resume_window * FERRY_NS_PER_S;
    return o->rate ? relay_endpoint_bytes("--rate", o->rate, &s->rate, err) : 0;
}

/* A target listens on the interface's address: IPv4 if it has one, unless --listen says which. */
static int target_host(const struct alone_options *o, char host[RELAY_HOST_SIZE],
                       struct ferry_error *err)
{
    int family = o->listen[0] == '[' ? AF_INET6 : AF_UNSPEC;

    if (o->listen[0] != '*' && o->listen[0] != ':' && family == AF_UNSPEC) {
        family = strchr(host, ':') ? AF_INET6 : AF_INET;
    }
    return o->interface ? relay_endpoint_interface(o->interface, family, host, err) : 0;
}

/* A source's connections leave by the interface, which must be there now. */
static int source_interface(const struct alone_options *o, struct relay_spec *s,
                            struct ferry_error *err)
{
    if (o->interface && if_nametoindex(o->interface) == 0) {
        return ferry_fail(err, FERRY_NOT_FOUND, "there is no network interface '%s'", o->interface);
    }
    s->interface = ferry_strdup(o->interface);
    return 0;
}

static int check_ends(const struct alone_options *o, bool source, struct relay_spec *s,
                      struct ferry_error *err)
{
    char host[RELAY_HOST_SIZE];
    const char *path = NULL;
    int port = 0, rc;

    if (!o->listen || !o->connect) {
        return missing(o->listen ? "--connect" : "--listen", err);
    }
    if (source) {
        (void)((rc = relay_endpoint_unix("--listen", o->listen, &path, err)) < 0 ||
               (rc = relay_endpoint_tcp("--connect", o->connect, host, &port, err)) < 0 ||
               (rc = source_interface(o, s, err)) < 0);
    } else {
        (void)((rc = relay_endpoint_tcp("--listen", o->listen, host, &port, err)) < 0 ||
               (rc = relay_endpoint_unix("--connect", o->connect, &path, err)) < 0 ||
               (rc = target_host(o, host, err)) < 0);
    }
    if (rc < 0) {
        return rc;
    }
    s->address = ferry_strdup(host);
    s->channels[0] = (struct relay_channel){
        .logical = o->channel, .port = port, .unix_path = ferry_strdup(path)};
    s->n_channels = 1;
    return 0;
}

static int make_spec(const struct alone_options *o, bool source, struct relay_spec *s,
                     struct ferry_error *err)
{
    int rc;

    s->role = source ? RELAY_SOURCE : RELAY_TARGET;
    s->key = ferry_strdup("standalone");
    s->move = ferry_strdup(o->move ? o->move : "standalone");
    s->peer_node = ferry_strdup(o->peer_node);
    s->peer_cn = ferry_strdup(o->peer_cn);
    if ((rc = check_ends(o, source, s, err)) < 0 || (rc = check_mode(o, source, s, err)) < 0) {
        return rc;
    }
    return check_sizes(o, s, err);
}

struct alone {
    struct alone_options o;
    bool source;
    struct relay_spec *spec;
    const struct relay_self *self;
};

static void alone_done(struct alone *a)
{
    relay_spec_free(a->spec);
}

static int check(void *ctx, struct ferry_error *err)
{
    struct alone *a = ctx;
    int rc = make_spec(&a->o, a->source, a->spec, err);

    return rc < 0 ? rc : relay_endpoint_memory(a->o.memory, &a->o.held_bytes, err);
}

/* ---- running ----------------------------------------------------------------------------------
 */

static int run(void *ctx, struct ferry_error *err)
{
    struct alone *a = ctx;
    const struct alone_options *o = &a->o;
    const struct tls_credentials_files files = {.ca = o->ca,
                                                .cert = o->cert,
                                                .key = o->key,
                                                .node = o->node,
                                                .client_only = a->source,
                                                .server_only = !a->source};
    struct tls_credentials *credentials = NULL;
    int rc = 0;

    umask(0); /* the mode of each file is given where it is made */
    if (!o->plain) {
        rc = tls_credentials_new(&files, &credentials, err);
        rc = rc < 0 ? rc : tls_credentials_load(credentials, err);
    }
    if (rc == 0) {
        rc = relay_alone_run(ferry_take_ptr(a->spec), credentials,
                             &(struct relay_alone){.self = a->self,
                                                   .fd_store = (size_t)o->fd_store,
                                                   .memory = o->held_bytes},
                             err);
    }
    tls_credentials_free(credentials);
    return rc;
}

int ferry_relay_alone(bool source, int argc, char **argv, const struct relay_self *self)
{
    ferry_cleanup(alone_done) struct alone a = {
        .o = {.protocol = "ferry", .channel = FERRY_CHANNEL_MEMORY, .resume_window = 240},
        .source = source,
        .spec = ferry_xcalloc(1, sizeof(*a.spec)),
        .self = self,
    };
    const struct ferry_option options[] = {
        {"listen", 0, FERRY_OPTION_STRING, &a.o.listen, source ? "unix:PATH" : "HOST:PORT",
         source ? "socket to make" : "address to listen on; port 0 = a random one"},
        {"connect", 0, FERRY_OPTION_STRING, &a.o.connect, source ? "HOST:PORT" : "unix:PATH",
         source ? "where the target listens" : "socket to lead connections to"},
        {"bind-interface", 0, FERRY_OPTION_STRING, &a.o.interface, "NAME",
         source ? "connect by this network interface" : "listen on this interface's address"},
        {"ca", 0, FERRY_OPTION_STRING, &a.o.ca, "FILE", "CA certificates"},
        {"cert", 0, FERRY_OPTION_STRING, &a.o.cert, "FILE", "certificate of this side"},
        {"key", 0, FERRY_OPTION_STRING, &a.o.key, "FILE", "its key"},
        {"node", 0, FERRY_OPTION_STRING, &a.o.node, "NAME", "node that the certificate must name"},
        {"peer-node", 0, FERRY_OPTION_STRING, &a.o.peer_node, "NAME",
         "node that the peer's certificate must name"},
        {"peer-cn", 0, FERRY_OPTION_STRING, &a.o.peer_cn, "NAME",
         "common name that it must have, for KubeVirt's certificates"},
        {"move", 0, FERRY_OPTION_STRING, &a.o.move, "UID", "of the move; the same on both sides"},
        {"channel", 0, FERRY_OPTION_INT, &a.o.channel, "N", "0 control, 49152 memory (default)"},
        {"protocol", 0, FERRY_OPTION_STRING, &a.o.protocol, "ferry|raw",
         "ferry/1 (default), or plain bytes in TLS as KubeVirt has them"},
        {"plain", 0, FERRY_OPTION_FLAG, &a.o.plain, NULL, "TCP without TLS"},
        {"peer-address", 0, FERRY_OPTION_STRING, &a.o.peer_address, "ADDRESS",
         "with --plain: the only address that may connect"},
        {"rate", 0, FERRY_OPTION_STRING, &a.o.rate, "BYTES", "per second at most (K, M, G)"},
        {"resume-window", 0, FERRY_OPTION_INT, &a.o.resume_window, "SECONDS",
         "how long a stream is held without a connection (240)"},
        {"memory", 0, FERRY_OPTION_STRING, &a.o.memory, "BYTES",
         "what all streams may hold together (K, M, G); 512M"},
        {"fd-store", 0, FERRY_OPTION_INT, &a.o.fd_store, "N",
         "room in systemd's descriptor store (FileDescriptorStoreMax=); none"},
        FERRY_LOG_OPTION_ROWS(&a.o.log),
        {0},
    };
    const struct ferry_command cmd = {
        .name = source ? "ferry-relay source" : "ferry-relay target",
        .usage = source ? "--listen unix:PATH --connect HOST:PORT [OPTION]..."
                        : "--listen HOST:PORT --connect unix:PATH [OPTION]...",
        .summary = source ? "Leads connections to a unix socket to a ferry-relay target elsewhere."
                          : "Leads connections from a ferry-relay source to a unix socket here.",
        .options = options,
        .epilogue =
            "The first line printed is 'listening' and the address. SIGTERM ends it when no\n"
            "stream is left, a second one at once. SIGUSR2 hands over to a new process.",
    };
    const struct ferry_daemon daemon = {.program = program,
                                        .command = &cmd,
                                        .log = &a.o.log,
                                        .signal = SIGUSR2,
                                        .check = check,
                                        .run = run,
                                        .ctx = &a};

    return ferry_daemon_main(&daemon, argc, argv);
}
