/* ferry-apiserver serve: sockets, CA, database, and fresh certificates as long as it runs. */
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/access/site.h"
#include "apiserver/access/site_owner.h"
#include "apiserver/kinds/crds.h"
#include "apiserver/serve/server.h"
#include "apiserver/serve/sockets.h"
#include "base/clock.h"
#include "base/daemon.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "programs/ferry-apiserver.h"

enum {
    CERTIFICATE_LIFE_S = 30 * 86400,
    BOOKMARK_S = 30,
    BOOKMARK_MAX_S = 3600,
    PATIENCE_MAX_S = 3600,
    ALONE_BYTES = 8 << 20, /* such allocations are the kernel's again when they are freed */
    KEPT_BYTES = 8 << 20,
    BODY_MEMORY_LEAST = 160, /* MiB: a person may use half, and send the largest of bodies */
    BODY_MEMORY_MAX = 1 << 20,
};
enum { AUDIT_MIB = 100, AUDIT_MIB_MAX = 1 << 20, AUDIT_BACKUPS = 10, AUDIT_BACKUPS_MAX = 1000 };

struct serve_options {
    struct site_options site;
    const char *crds, *user;
    struct ferry_option_list listen, san;
    int life_s, bookmark_s, controller_gid;
    struct audit_config audit;
    int audit_mib;
    int headers_s, body_s, strangers, strangers_per_address, body_memory; /* 0 = defaults */
    bool prepare;
    struct ferry_user id; /* that `user` names */
};

/* A server that runs. */
struct serving {
    const struct serve_options *o;
    const char *data;
    struct sockets sockets;
    struct pki_ca *ca;
    struct apiserver *server;
};

static void serving_done(struct serving *s)
{
    apiserver_stop(s->server);
    sockets_done(&s->sockets);
    pki_ca_free(s->ca);
    crds_unload();
}

static void key_free(char **key)
{
    pki_key_free(*key);
}
#define cleanup_key ferry_cleanup(key_free)

/* The certificate that is served, the admin's and, where its kubeconfig is beside that, the
 * controller's, which live as long. */
static int issue(const struct serving *s, char **ret_cert, char **ret_key, struct ferry_error *err)
{
    const char *sans[SOCKETS_MAX + FERRY_OPTION_LIST_MAX];
    ferry_cleanup_free char *config = ferry_asprintf("%s/admin.kubeconfig", s->data);
    ferry_cleanup_free char *controller = ferry_asprintf("%s/controller.kubeconfig", s->data);
    ferry_cleanup_free char *url = sockets_url(&s->sockets.items[0]);
    struct ferry_error broken;
    size_t n = 0;

    for (size_t i = 0; i < s->o->san.n; i++) {
        sans[n++] = s->o->san.items[i];
    }
    for (size_t i = 0; i < s->sockets.n; i++) {
        sans[n++] = s->sockets.items[i].address;
    }
    int rc = site_serving(s->ca, sans, n, s->o->life_s, ret_cert, ret_key, err);
    if (site_renew_controller(s->ca, s->o->life_s, controller, &broken) < 0) {
        ferry_warn("cannot renew the controller's certificate", F_ERR(&broken));
    }
    return rc < 0 ? rc : site_admin_kubeconfig(s->ca, url, s->o->life_s, config, err);
}

static struct doors_limits doors_of(const struct serve_options *o)
{
    return (struct doors_limits){.share = (size_t)o->strangers,
                                 .per_address = (size_t)o->strangers_per_address,
                                 .headers_ms = 1000 * o->headers_s,
                                 .body_ms = 1000 * o->body_s};
}

static int start_server(struct serving *s, struct ferry_error *err)
{
    ferry_cleanup_free char *database = ferry_asprintf("%s/api.db", s->data);
    ferry_cleanup_free char *cert = NULL;
    cleanup_key char *key = NULL;
    uint64_t memory = (uint64_t)s->o->body_memory << 20;
    struct audit_config audit = s->o->audit;
    int rc = issue(s, &cert, &key, err);

    audit.max_bytes = (int64_t)s->o->audit_mib << 20;
    return rc < 0 ? rc
                  : apiserver_start(
                        &(struct apiserver_config){.database = database,
                                                   .cert_pem = cert,
                                                   .key_pem = key,
                                                   .ca_pem = pki_ca_pem(s->ca),
                                                   .ca = s->ca,
                                                   .bookmark_s = s->o->bookmark_s,
                                                   .doors = doors_of(s->o),
                                                   .body_memory = memory,
                                                   .audit = s->o->audit.log ? &audit : NULL},
                        &s->server, err);
}

/* What fails is tried again soon: a third of the old certificates' life is left for that. */
static int64_t renew(struct serving *s)
{
    ferry_cleanup_free char *cert = NULL;
    cleanup_key char *key = NULL;
    struct ferry_error err;

    if (issue(s, &cert, &key, &err) < 0 || apiserver_renew(s->server, cert, key, &err) < 0) {
        ferry_warn("cannot renew certificates, retrying", F_ERR(&err));
        return s->o->life_s / 30 + 1;
    }
    ferry_info("serving, admin and controller certificates were renewed");
    return s->o->life_s / 3 * 2;
}

static int listen_all(struct apiserver *server, struct sockets *sockets, struct ferry_error *err)
{
    for (size_t i = 0; i < sockets->n; i++) {
        ferry_cleanup_free char *url = sockets_url(&sockets->items[i]);
        int rc = apiserver_listen(server, ferry_take_fd(&sockets->items[i].fd), url, err);

        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* 1 when there are none where an installation has them: PREFIX/bin and PREFIX/share/ferry/crds. */
static int load_crds(const struct serve_options *o, struct ferry_error *err)
{
    ferry_cleanup_free char *found =
        o->crds ? ferry_strdup(o->crds) : ferry_daemon_beside("../share/ferry/crds");

    if (!o->crds && (!found || access(found, F_OK) < 0)) {
        return 1;
    }
    return crds_load(found, err);
}

static int run(struct serving *s, struct ferry_error *err)
{
    int64_t renew_ns = ferry_now_ns() + s->o->life_s / 3 * 2 * FERRY_NS_PER_S;

    int rc = listen_all(s->server, &s->sockets, err);
    for (size_t i = 0; rc == 0 && i < s->sockets.n; i++) {
        ferry_cleanup_free char *at = sockets_url(&s->sockets.items[i]);

        printf("listening %s\n", at);
    }
    fflush(stdout);
    while (rc == 0) {
        int signal = ferry_signals_wait(renew_ns);

        if (signal == SIGTERM || signal == SIGINT) {
            break;
        }
        if (ferry_now_ns() >= renew_ns) {
            renew_ns = ferry_now_ns() + renew(s) * FERRY_NS_PER_S;
        }
    }
    return rc;
}

static int check_number(const char *option, int value, int least, int most, struct ferry_error *err)
{
    return value == 0 || (value >= least && value <= most)
               ? 0
               : ferry_fail(err, FERRY_INVALID, "--%s: %d is not from %d to %d", option, value,
                            least, most);
}

static int check(void *ctx, struct ferry_error *err)
{
    struct serve_options *o = ctx;

    if (o->life_s < 3) {
        return ferry_fail(err, FERRY_INVALID, "--certificate-life: %d is less than 3", o->life_s);
    }
    if (o->bookmark_s < 1 || o->bookmark_s > BOOKMARK_MAX_S) {
        return ferry_fail(err, FERRY_INVALID, "--bookmark-interval: %d is not from 1 to %d",
                          o->bookmark_s, BOOKMARK_MAX_S);
    }
    if (o->audit.policy && !o->audit.log) {
        return ferry_fail(err, FERRY_INVALID, "--audit-policy-file takes --audit-log-path");
    }
    if (o->audit_mib < 1 || o->audit_mib > AUDIT_MIB_MAX || o->audit.max_backups < 0 ||
        o->audit.max_backups > AUDIT_BACKUPS_MAX) {
        return ferry_fail(err, FERRY_INVALID,
                          "--audit-log-maxsize: %d is not from 1 to %d, or --audit-log-maxbackup: "
                          "%d not from 0 to %d",
                          o->audit_mib, AUDIT_MIB_MAX, o->audit.max_backups, AUDIT_BACKUPS_MAX);
    }
    int rc = check_number("header-timeout", o->headers_s, 1, PATIENCE_MAX_S, err);
    rc = rc < 0 ? rc : check_number("body-timeout", o->body_s, 1, PATIENCE_MAX_S, err);
    rc = rc < 0 ? rc : check_number("strangers", o->strangers, 2, INT_MAX, err);
    rc = rc < 0 ? rc
                : check_number("strangers-per-address", o->strangers_per_address, 1, INT_MAX, err);
    rc = rc < 0
             ? rc
             : check_number("body-memory", o->body_memory, BODY_MEMORY_LEAST, BODY_MEMORY_MAX, err);
    return rc < 0 ? rc
                  : ferry_user_find(o->user, "--user", FERRY_APISERVER_USER, FERRY_APISERVER_ID,
                                    &o->id, err);
}

/* Root gives the site to the server's user, or knows by the site who that is, and becomes it. */
static int leave_root(const struct serve_options *o, const char *data, struct ferry_error *err)
{
    gid_t controller = apiserver_controller_group(o->controller_gid);
    struct ferry_user to = o->id;

    if (geteuid() != 0) {
        return o->prepare
                   ? ferry_fail(err, FERRY_DENIED, "--prepare: only root can give files away")
                   : site_check_user(data, err);
    }
    if (!o->user && !o->prepare) {
        site_owner(data, &to);
    }
    int rc = to.uid == 0 ? 0 : site_give(data, &to, controller, err);
    return rc < 0 || o->prepare ? rc : ferry_user_become(&to, controller, err);
}

/* glibc would come to keep up to 64 MiB of what was freed for each of its arenas, once somebody has
 * sent something large. */
static void keep_little(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, ALONE_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

static int serve(void *ctx, struct ferry_error *err)
{
    const struct serve_options *o = ctx;
    ferry_cleanup_free char *data = apiserver_site_dir(&o->site);

    if (o->prepare) {
        return leave_root(o, data, err);
    }
    ferry_cleanup(serving_done) struct serving s = {.o = o, .data = data};

    ferry_daemon_raise_fds();
    keep_little();
    int crds = load_crds(o, err);
    int rc = crds < 0 ? crds : 0;

    rc = rc < 0 ? rc : sockets_open(&o->listen, &s.sockets, err);
    rc = rc < 0 ? rc : leave_root(o, data, err);
    rc = rc < 0 ? rc : site_open(data, &s.ca, err);
    rc = rc < 0 ? rc : start_server(&s, err);
    if (rc == 0 && crds) {
        ferry_warn("no definitions of the custom kinds (--crds): their fields are not checked");
    }
    return rc < 0 ? rc : run(&s, err);
}

int apiserver_verb_serve(int argc, char **argv)
{
    struct serve_options o = {.life_s = CERTIFICATE_LIFE_S,
                              .bookmark_s = BOOKMARK_S,
                              .audit_mib = AUDIT_MIB,
                              .audit.max_backups = AUDIT_BACKUPS};
    const struct ferry_option rows[] = {
        SITE_OPTION_ROWS(&o.site, "database, CA, admin.kubeconfig"),
        {"listen", 0, FERRY_OPTION_LIST, &o.listen, "ADDRESS:PORT",
         "where to serve; may be repeated (default 127.0.0.1:6443)"},
        {"crds", 0, FERRY_OPTION_STRING, &o.crds, "DIR",
         "definitions of the custom kinds (default ../share/ferry/crds beside the program)"},
        {"san", 0, FERRY_OPTION_LIST, &o.san, "NAME",
         "one more name or address for the serving certificate"},
        {"certificate-life", 0, FERRY_OPTION_INT, &o.life_s, "SECONDS",
         "of the certificates that it makes for itself, the admin and the controller beside it; "
         "renewed at two thirds "
         "(default 30 days)"},
        {"user", 0, FERRY_OPTION_STRING, &o.user, "USER",
         "name or UID:GID to run as when started as root; the site becomes that user's (default: "
         "whose the site is)"},
        CONTROLLER_GID_ROW(&o.controller_gid),
        {"prepare", 0, FERRY_OPTION_FLAG, &o.prepare, NULL,
         "as root: give the site to USER (ferry-apiserver, or 61202:61202), and end"},
        {"bookmark-interval", 0, FERRY_OPTION_INT, &o.bookmark_s, "SECONDS",
         "how often a watch that asks for bookmarks is told how far it is (default 30)"},
        {"header-timeout", 0, FERRY_OPTION_INT, &o.headers_s, "SECONDS",
         "for the TLS handshake and the headers together (default 10)"},
        {"body-timeout", 0, FERRY_OPTION_INT, &o.body_s, "SECONDS",
         "for the body of a request (default 60)"},
        {"strangers", 0, FERRY_OPTION_INT, &o.strangers, "NUMBER",
         "connections without a certificate at a time, of 2048 (default and most 1024)"},
        {"strangers-per-address", 0, FERRY_OPTION_INT, &o.strangers_per_address, "NUMBER",
         "and of these from one address (default and most half of them)"},
        {"body-memory", 0, FERRY_OPTION_INT, &o.body_memory, "MIB",
         "for the bodies of all requests together (default 256)"},
        {"audit-log-path", 0, FERRY_OPTION_STRING, &o.audit.log, "FILE",
         "events of audit.k8s.io/v1, one to a line (default none)"},
        {"audit-policy-file", 0, FERRY_OPTION_STRING, &o.audit.policy, "FILE",
         "which calls, and how much of each (default: changes, refusals, reads of Secrets)"},
        {"audit-log-maxsize", 0, FERRY_OPTION_INT, &o.audit_mib, "MIB",
         "when a new file is begun (default 100)"},
        {"audit-log-maxbackup", 0, FERRY_OPTION_INT, &o.audit.max_backups, "NUMBER",
         "how many older files are kept (default 10)"},
        {.name = NULL},
    };
    const struct ferry_command command = {
        .name = "ferry-apiserver serve",
        .usage = "[OPTION]... | pki ... | token ... | backup FILE | restore FILE",
        .summary = "Serves the Kubernetes API of a small site from a SQLite database. Makes the "
                   "site's CA and\nDATA/admin.kubeconfig when it starts.",
        .options = rows,
        .config = PROGRAM,
        .epilogue = "Sockets passed by LISTEN_FDS are served too. See ferry-apiserver(8).",
    };
    const struct ferry_daemon daemon = {.program = PROGRAM,
                                        .command = &command,
                                        .log = &o.site.log,
                                        .check = check,
                                        .run = serve,
                                        .ctx = &o};

    return ferry_daemon_main(&daemon, argc, argv);
}
