/* ferry-apiserver: the embedded engine, a small Kubernetes API on SQLite, and the site's CA. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/backup.h"
#include "apiserver/crds.h"
#include "apiserver/server.h"
#include "apiserver/site.h"
#include "apiserver/token.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "http/client.h"
#include "kube/client.h"

enum { MAX_SOCKETS = 24, ADDRESS_SIZE = 64, BACKLOG = 256 };
enum { BACKUP_TIMEOUT_MS = 600000, BACKUP_MAX = 1 << 30, JOIN_LIFE_S = 3600 };
static const char program[] = "ferry-apiserver";
static const char default_listen[] = "127.0.0.1:6443";

struct options {
    const char *root, *data, *crds;
    struct ferry_option_list listen, san;
    const char *server, *out, *relay_owner;
    struct ferry_log_options log;
};

/* A listening socket and where it is. */
struct socket {
    int fd;
    char address[ADDRESS_SIZE]; /* numeric */
    bool v6;
    int port;
};
struct sockets {
    struct socket items[MAX_SOCKETS];
    size_t n;
};

static void sockets_done(struct sockets *s)
{
    for (size_t i = 0; i < s->n; i++) {
        ferry_closep(&s->items[i].fd);
    }
}
#define cleanup_sockets ferry_cleanup(sockets_done)

static void ca_free(struct pki_ca **ca)
{
    pki_ca_free(*ca);
}
#define cleanup_ca ferry_cleanup(ca_free)

static void key_free(char **key)
{
    pki_key_free(*key);
}
#define cleanup_key ferry_cleanup(key_free)

static int usage_error(const struct ferry_error *err)
{
    return ferry_die(program, FERRY_EXIT_USAGE, err);
}

static int failed(const struct ferry_error *err)
{
    return ferry_die(program, FERRY_EXIT_FAILED, err);
}

static char *data_dir(const struct options *o)
{
    return o->data ? ferry_strdup(o->data)
                   : ferry_asprintf("%s/var/lib/ferry", o->root ? o->root : "");
}

/* ---- sockets -----------------------------------------------------------------------------------
 */

static int learn_address(struct socket *s, struct ferry_error *err)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);

    if (getsockname(s->fd, (struct sockaddr *)&ss, &len) < 0) {
        return ferry_fail_errno(err, errno, "asking for a socket's address");
    }
    if (ss.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&ss;

        inet_ntop(AF_INET, &in->sin_addr, s->address, sizeof(s->address));
        s->port = ntohs(in->sin_port);
    } else if (ss.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&ss;

        inet_ntop(AF_INET6, &in6->sin6_addr, s->address, sizeof(s->address));
        s->port = ntohs(in6->sin6_port);
        s->v6 = true;
    } else {
        return ferry_fail(err, FERRY_INVALID, "an inherited socket is not a TCP socket");
    }
    return 0;
}

static int bind_address(const struct addrinfo *a, const char *where, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        return ferry_fail_errno(err, errno, "listening on %s", where);
    }
    return ferry_take_fd(&fd);
}

/* "127.0.0.1:6443", "[::1]:0", "localhost:6443" */
static int open_socket(const char *where, struct socket *ret, struct ferry_error *err)
{
    const char *colon = strrchr(where, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    long long port;

    if (!colon || colon == where || ferry_parse_int(colon + 1, 0, 65535, &port, NULL) < 0) {
        return ferry_fail(err, FERRY_INVALID, "--listen: '%s' is not ADDRESS:PORT", where);
    }
    bool brackets = where[0] == '[' && colon[-1] == ']';
    ferry_cleanup_free char *host =
        ferry_strndup(where + brackets, (size_t)(colon - where) - 2 * (size_t)brackets);
    int rc = getaddrinfo(host, colon + 1, &hints, &found);
    if (rc != 0) {
        return ferry_fail(err, FERRY_INVALID, "--listen: '%s': %s", where, gai_strerror(rc));
    }
    ret->fd = bind_address(found, where, err);
    freeaddrinfo(found);
    return ret->fd < 0 ? ret->fd : learn_address(ret, err);
}

static int open_sockets(const struct options *o, struct sockets *ret, struct ferry_error *err)
{
    int inherited = ferry_listen_fds();
    size_t n_listen = o->listen.n;

    for (size_t i = 0; i < n_listen || (i == 0 && inherited == 0); i++) {
        struct socket *s = &ret->items[ret->n];
        int rc = open_socket(i < n_listen ? o->listen.items[i] : default_listen, s, err);

        ret->n += s->fd > 0;
        if (rc < 0) {
            return rc;
        }
    }
    for (int i = 0; i < inherited && ret->n < MAX_SOCKETS; i++) {
        struct socket *s = &ret->items[ret->n++];

        s->fd = FERRY_LISTEN_FDS_START + i;
        int rc = learn_address(s, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static char *url_of(const struct socket *s)
{
    const char *host = s->address;

    /* a wildcard is where one listens, not where one goes */
    if (strcmp(host, "0.0.0.0") == 0) {
        host = "127.0.0.1";
    } else if (strcmp(host, "::") == 0) {
        host = "::1";
    }
    return ferry_asprintf("https://%s%s%s:%d", s->v6 ? "[" : "", host, s->v6 ? "]" : "", s->port);
}

/* ---- serve -------------------------------------------------------------------------------------
 */

static void raise_descriptor_limit(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

static int start_server(const struct options *o, const struct sockets *sockets,
                        const struct pki_ca *ca, const char *data, struct apiserver **ret,
                        struct ferry_error *err)
{
    const char *sans[MAX_SOCKETS + FERRY_OPTION_LIST_MAX];
    ferry_cleanup_free char *database = ferry_asprintf("%s/api.db", data);
    ferry_cleanup_free char *cert = NULL;
    cleanup_key char *key = NULL;
    size_t n = 0;

    for (size_t i = 0; i < o->san.n; i++) {
        sans[n++] = o->san.items[i];
    }
    for (size_t i = 0; i < sockets->n; i++) {
        sans[n++] = sockets->items[i].address;
    }
    int rc = site_serving(ca, sans, n, &cert, &key, err);
    if (rc < 0) {
        return rc;
    }
    return apiserver_start(&(struct apiserver_config){.database = database,
                                                      .cert_pem = cert,
                                                      .key_pem = key,
                                                      .ca_pem = pki_ca_pem(ca),
                                                      .ca = ca},
                           ret, err);
}

static int listen_all(struct apiserver *server, struct sockets *sockets, struct ferry_error *err)
{
    for (size_t i = 0; i < sockets->n; i++) {
        ferry_cleanup_free char *url = url_of(&sockets->items[i]);
        int rc = apiserver_listen(server, ferry_take_fd(&sockets->items[i].fd), url, err);

        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Where an installation has them: PREFIX/bin and PREFIX/share/ferry/crds. */
static char *default_crds(void)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n <= 0) {
        return NULL;
    }
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    *slash = '\0';
    return ferry_asprintf("%s/../share/ferry/crds", self);
}

/* 1 when there are none where an installation has them. */
static int load_crds(const struct options *o, struct ferry_error *err)
{
    ferry_cleanup_free char *found = o->crds ? ferry_strdup(o->crds) : default_crds();

    if (!o->crds && (!found || access(found, F_OK) < 0)) {
        return 1;
    }
    return crds_load(found, err);
}

static int serve(const struct options *o, struct ferry_error *err)
{
    ferry_cleanup_free char *data = data_dir(o);
    ferry_cleanup_free char *config = ferry_asprintf("%s/admin.kubeconfig", data);
    cleanup_sockets struct sockets sockets = {0};
    cleanup_ca struct pki_ca *ca = NULL;
    struct apiserver *server = NULL;
    int crds = load_crds(o, err);
    int rc = crds < 0 ? crds : 0;

    rc = rc < 0 ? rc : open_sockets(o, &sockets, err);
    rc = rc < 0 ? rc : site_open(data, &ca, err);
    rc = rc < 0 ? rc : start_server(o, &sockets, ca, data, &server, err);
    if (rc < 0) {
        return rc;
    }
    ferry_cleanup_free char *url = url_of(&sockets.items[0]);
    rc = site_admin_kubeconfig(ca, url, config, err);
    rc = rc < 0 ? rc : listen_all(server, &sockets, err);
    for (size_t i = 0; rc == 0 && i < sockets.n; i++) {
        ferry_cleanup_free char *at = url_of(&sockets.items[i]);

        printf("listening %s\n", at);
    }
    fflush(stdout);
    if (rc == 0 && crds) {
        ferry_warn("no definitions of the custom kinds (--crds): their fields are not checked");
    }
    while (rc == 0) {
        int signal = ferry_signals_wait(ferry_now_ns() + 3600 * FERRY_NS_PER_S);

        if (signal == SIGTERM || signal == SIGINT) {
            break;
        }
    }
    apiserver_stop(server);
    crds_unload();
    return rc;
}

static int main_serve(int argc, char **argv)
{
    struct options o = {0};
    struct ferry_error err;
    const struct ferry_option rows[] = {
        {"root", 0, FERRY_OPTION_STRING, &o.root, "DIR", "prefix of all paths"},
        {"data", 0, FERRY_OPTION_STRING, &o.data, "DIR",
         "database, CA, admin.kubeconfig (default ROOT/var/lib/ferry)"},
        {"listen", 0, FERRY_OPTION_LIST, &o.listen, "ADDRESS:PORT",
         "where to serve; may be repeated (default 127.0.0.1:6443)"},
        {"crds", 0, FERRY_OPTION_STRING, &o.crds, "DIR",
         "definitions of the custom kinds (default ../share/ferry/crds beside the program)"},
        {"san", 0, FERRY_OPTION_LIST, &o.san, "NAME",
         "one more name or address for the serving certificate"},
        FERRY_LOG_OPTION_ROWS(&o.log),
        {.name = NULL},
    };
    const struct ferry_command command = {
        .name = "ferry-apiserver serve",
        .usage = "[OPTION]... | pki ... | token ... | backup FILE | restore FILE",
        .summary = "Serves the Kubernetes API of a small site from a SQLite database. Makes the "
                   "site's CA and\nDATA/admin.kubeconfig when it starts.",
        .options = rows,
        .epilogue = "Sockets passed by LISTEN_FDS are served too. See ferry-apiserver(1).",
    };
    int first = ferry_options_parse(&command, argc, argv, &err);

    if (first < 0 || ferry_log_options_apply(program, &o.log, &err) < 0) {
        return usage_error(&err);
    }
    if (first < argc) {
        ferry_fail(&err, FERRY_INVALID, "'%s' is not understood (see ferry-apiserver --help)",
                   argv[first]);
        return usage_error(&err);
    }
    ferry_signals_block();
    raise_descriptor_limit();
    return serve(&o, &err) < 0 ? failed(&err) : FERRY_EXIT_OK;
}

/* ---- pki ---------------------------------------------------------------------------------------
 */

static int parse_owner(const char *text, struct site_node *node, struct ferry_error *err)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    long long uid, gid;

    node->relay_uid = (uid_t)-1;
    node->relay_gid = (gid_t)-1;
    if (!text) {
        return 0;
    }
    ferry_cleanup_free char *first = colon ? ferry_strndup(text, (size_t)(colon - text)) : NULL;
    if (!colon || ferry_parse_int(first, 0, UINT32_MAX - 1, &uid, NULL) < 0 ||
        ferry_parse_int(colon + 1, 0, UINT32_MAX - 1, &gid, NULL) < 0) {
        return ferry_fail(err, FERRY_INVALID, "--relay-owner: '%s' is not UID:GID", text);
    }
    node->relay_uid = (uid_t)uid;
    node->relay_gid = (gid_t)gid;
    return 0;
}

static int run_pki(const struct options *o, char **words, int n, struct ferry_error *err)
{
    ferry_cleanup_free char *data = data_dir(o);
    cleanup_ca struct pki_ca *ca = NULL;
    bool node = n == 2 && strcmp(words[0], "node") == 0;
    bool controller = n == 1 && strcmp(words[0], "controller") == 0;
    struct site_node what = {.dir = o->out, .server = o->server};

    if (!node && !controller) {
        return ferry_fail(err, FERRY_INVALID,
                          "expected 'pki node NAME' or 'pki controller' (see ferry-apiserver pki "
                          "--help)");
    }
    if (!o->out || !o->server) {
        return ferry_fail(err, FERRY_INVALID, "%s is required", o->out ? "--server" : "--out");
    }
    int rc = parse_owner(o->relay_owner, &what, err);
    rc = rc < 0 ? rc : site_open(data, &ca, err);
    if (rc < 0) {
        return rc;
    }
    if (controller) {
        return site_controller_kubeconfig(ca, o->server, o->out, err);
    }
    what.name = words[1];
    return site_node(ca, &what, err);
}

static int main_pki(int argc, char **argv)
{
    struct options o = {0};
    struct ferry_error err;
    const struct ferry_option rows[] = {
        {"out", 0, FERRY_OPTION_STRING, &o.out, "PATH",
         "node: directory for pki/ and node.kubeconfig; controller: the kubeconfig"},
        {"server", 0, FERRY_OPTION_STRING, &o.server, "URL", "where the API is reached"},
        {"relay-owner", 0, FERRY_OPTION_STRING, &o.relay_owner, "UID:GID",
         "whose the relay's key shall be"},
        {"root", 0, FERRY_OPTION_STRING, &o.root, "DIR", "prefix of all paths"},
        {"data", 0, FERRY_OPTION_STRING, &o.data, "DIR",
         "where the CA is (default ROOT/var/lib/ferry)"},
        FERRY_LOG_OPTION_ROWS(&o.log),
        {.name = NULL},
    };
    const struct ferry_command command = {
        .name = "ferry-apiserver pki",
        .usage = "node NAME|controller --out PATH --server URL [OPTION]...",
        .summary = "Writes certificates signed by the site's CA, which is made when it is not "
                   "there yet.",
        .options = rows,
    };
    int first = ferry_options_parse(&command, argc, argv, &err);

    if (first < 0 || ferry_log_options_apply(program, &o.log, &err) < 0) {
        return usage_error(&err);
    }
    if (run_pki(&o, argv + first, argc - first, &err) < 0) {
        return ferry_die(program, err.cls == FERRY_INVALID ? FERRY_EXIT_USAGE : FERRY_EXIT_FAILED,
                         &err);
    }
    return FERRY_EXIT_OK;
}

/* ---- backup and restore ------------------------------------------------------------------------
 */

/* From the server that runs on this data. */
static int backup_running(const char *data, struct ferry_buf *out, struct ferry_error *err)
{
    ferry_cleanup_free char *config = ferry_asprintf("%s/admin.kubeconfig", data);
    kube_cleanup_client struct kube_client *client = NULL;
    http_cleanup_reply struct http_reply reply = {0};
    int rc = kube_client_open(config, &client, err);

    if (rc == 0) {
        rc = http_client_call(kube_client_http(client),
                              &(struct http_call){.method = "GET",
                                                  .path = "/ferry/v1/backup",
                                                  .timeout_ms = BACKUP_TIMEOUT_MS,
                                                  .max_reply = BACKUP_MAX},
                              &reply, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (reply.status != 200) {
        return kube_status_error(reply.status, reply.body.data, reply.body.len, "backup", err);
    }
    ferry_buf_append(out, reply.body.data, reply.body.len);
    return 0;
}

/* From the database, when no server has it. */
static int backup_stopped(const char *data, struct ferry_buf *out, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/api.db", data);
    struct store *store = NULL;

    if (access(path, F_OK) < 0) {
        return ferry_fail_errno(err, errno, "no site in %s", data);
    }
    int rc = store_open(path, &store, err);
    if (rc == 0) {
        backup_objects(store, out);
    }
    store_close(store);
    return rc;
}

static int run_backup(const struct options *o, const char *file, struct ferry_error *err)
{
    ferry_cleanup_free char *data = data_dir(o);
    ferry_cleanup_buf struct ferry_buf out = {0};
    struct ferry_error why;
    int rc = backup_running(data, &out, &why);

    if (rc < 0) {
        rc = backup_stopped(data, &out, err);
        if (rc == -FERRY_CONFLICT) { /* it runs, and did not answer */
            *err = why;
            return rc;
        }
    }
    rc = rc < 0 ? rc : backup_finish(data, &out, err);
    rc = rc < 0 ? rc : ferry_write_file(file, out.data, out.len, 0600, err);
    if (out.data) {
        explicit_bzero(out.data, out.len);
    }
    return rc;
}

static int run_restore(const struct options *o, const char *file, struct ferry_error *err)
{
    ferry_cleanup_free char *data = data_dir(o);
    ferry_cleanup_buf struct ferry_buf text = {0};
    int rc = ferry_read_file(file, BACKUP_MAX, &text, err);

    rc = rc < 0 ? rc : backup_restore(data, text.data ? text.data : "", text.len, err);
    if (text.data) {
        explicit_bzero(text.data, text.len);
    }
    return rc < 0 ? ferry_wrap(err, "restoring %s", file) : 0;
}

static int main_file(int argc, char **argv, const char *name, const char *summary,
                     int (*run)(const struct options *o, const char *file, struct ferry_error *err))
{
    struct options o = {0};
    struct ferry_error err;
    const struct ferry_option rows[] = {
        {"root", 0, FERRY_OPTION_STRING, &o.root, "DIR", "prefix of all paths"},
        {"data", 0, FERRY_OPTION_STRING, &o.data, "DIR",
         "where the site is (default ROOT/var/lib/ferry)"},
        FERRY_LOG_OPTION_ROWS(&o.log),
        {.name = NULL},
    };
    const struct ferry_command command = {
        .name = name, .usage = "FILE [OPTION]...", .summary = summary, .options = rows};
    int first = ferry_options_parse(&command, argc, argv, &err);

    if (first < 0 || ferry_log_options_apply(program, &o.log, &err) < 0) {
        return usage_error(&err);
    }
    if (argc - first != 1) {
        ferry_fail(&err, FERRY_INVALID, "expected one file (see %s --help)", name);
        return usage_error(&err);
    }
    return run(&o, argv[first], &err) < 0 ? failed(&err) : FERRY_EXIT_OK;
}

static int main_backup(int argc, char **argv)
{
    return main_file(argc, argv, "ferry-apiserver backup",
                     "Writes all objects and the site's CA to FILE (0600), also while the server "
                     "runs. FILE holds\nevery secret of the site.",
                     run_backup);
}

static int main_restore(int argc, char **argv)
{
    return main_file(argc, argv, "ferry-apiserver restore",
                     "Makes the site of a backup in a data directory that holds none.",
                     run_restore);
}

/* ---- tokens ------------------------------------------------------------------------------------
 */

static int run_token(const struct options *o, const struct token_use *use, struct ferry_error *err)
{
    ferry_cleanup_free char *data = data_dir(o);
    ferry_cleanup_free char *config = ferry_asprintf("%s/admin.kubeconfig", data);
    ferry_cleanup_free char *secret = NULL;
    kube_cleanup_client struct kube_client *client = NULL;
    http_cleanup_reply struct http_reply reply = {0};
    char token[TOKEN_TEXT_MAX];
    int rc = token_make(use, token, &secret, err);

    rc = rc < 0 ? rc : kube_client_open(config, &client, err);
    if (rc == 0) {
        rc = http_client_call(kube_client_http(client),
                              &(struct http_call){.method = "POST",
                                                  .path = "/api/v1/namespaces/kube-system/secrets",
                                                  .content_type = "application/json",
                                                  .body = secret,
                                                  .body_len = strlen(secret)},
                              &reply, err);
    }
    if (rc == 0 && reply.status != 201) {
        rc =
            kube_status_error(reply.status, reply.body.data, reply.body.len, "making a token", err);
    }
    if (rc == 0) {
        printf("%s\n", token);
    }
    explicit_bzero(token, sizeof(token));
    return rc;
}

static int main_token(int argc, char **argv)
{
    struct options o = {0};
    struct token_use use = {0};
    struct ferry_error err;
    int life_s = 0;
    const struct ferry_option rows[] = {
        {"node", 0, FERRY_OPTION_STRING, &use.node, "NAME", "for joining as this node, once"},
        {"user", 0, FERRY_OPTION_STRING, &use.user, "NAME", "for calling as this user"},
        {"group", 0, FERRY_OPTION_STRING, &use.group, "GROUP",
         "... in this group: ferry:admins, ferry:viewers"},
        {"life", 0, FERRY_OPTION_INT, &life_s, "SECONDS",
         "how long it is good (default 3600 for joining, no end for users)"},
        {"root", 0, FERRY_OPTION_STRING, &o.root, "DIR", "prefix of all paths"},
        {"data", 0, FERRY_OPTION_STRING, &o.data, "DIR",
         "where the site is (default ROOT/var/lib/ferry)"},
        FERRY_LOG_OPTION_ROWS(&o.log),
        {.name = NULL},
    };
    const struct ferry_command command = {
        .name = "ferry-apiserver token",
        .usage = "--node NAME | --user NAME [--group GROUP] [OPTION]...",
        .summary = "Makes a token at the running server and prints it. It is not kept anywhere: "
                   "the server has a hash.",
        .options = rows,
    };
    int first = ferry_options_parse(&command, argc, argv, &err);

    if (first < 0 || ferry_log_options_apply(program, &o.log, &err) < 0) {
        return usage_error(&err);
    }
    if (first < argc || !use.node == !use.user) {
        ferry_fail(&err, FERRY_INVALID, "expected --node NAME or --user NAME");
        return usage_error(&err);
    }
    use.life_s = life_s ? life_s : use.node ? JOIN_LIFE_S : 0;
    return run_token(&o, &use, &err) < 0 ? failed(&err) : FERRY_EXIT_OK;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } verbs[] = {
        {"serve", main_serve},     {"pki", main_pki},     {"backup", main_backup},
        {"restore", main_restore}, {"token", main_token},
    };

    for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            return verbs[i].run(argc - 1, argv + 1);
        }
    }
    return main_serve(argc, argv);
}
