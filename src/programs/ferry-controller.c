/* ferry-controller: makes pods for VMIs, takes migrations through their phases and, on the embedded
 * engine, places pods on nodes. All its state is in the API. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/daemon.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "base/user.h"
#include "control/loops/controller.h"
#include "kube/lease.h"
#include "programs/ferry-controller-metrics.h"
#include "programs/ferry-controller-webhook.h"

#define PROGRAM "ferry-controller"

#define LEASE_NAMESPACE "kube-system"

enum { WORKERS_MAX = 64, STEP_MS = 100 };

static bool still_held(void *lease)
{
    return kube_lease_held(lease);
}

/* One term: from holding the lease to losing it or being stopped. */
static int serve(struct kube_client *client, const struct controller_config *cfg,
                 struct metrics_server *metrics, struct ferry_error *err)
{
    struct kube_lease_config lease_cfg = {
        .client = client, .ns = LEASE_NAMESPACE, .name = PROGRAM, .stop = ferry_daemon_stopping};
    struct kube_lease *lease = NULL;
    struct controller *controller = NULL;
    int rc = kube_lease_hold(&lease_cfg, &lease, err);

    if (rc < 0) {
        return rc;
    }
    /* The loop below looks now and then; a write must not slip through before it has looked. */
    kube_client_fence(client, still_held, lease);
    rc = controller_start(cfg, &controller, err);
    if (rc == 0) {
        metrics_server_of(metrics, controller);
        ferry_info("controllers run", F_STR("engine", cfg->embedded ? "embedded" : "kubernetes"));
        while (kube_lease_held(lease) && !ferry_daemon_stopping()) {
            ferry_sleep_ms(STEP_MS);
        }
        ferry_info(ferry_daemon_stopping() ? "stopping" : "lease lost, controllers stop");
        metrics_server_of(metrics, NULL);
        controller_stop(controller);
    }
    kube_client_fence(client, NULL, NULL);
    kube_lease_release(lease);
    return rc;
}

/* What is served beside the controllers, whether they act or stand by. */
struct doors {
    const char *metrics;
    struct webhook_config webhook;
};

struct settings {
    const char *kubeconfig, *user;
    struct ferry_user id; /* that `user` names */
    bool prepare;
    struct doors doors;
    struct controller_config controller;
    bool embedded;
    int workers;
};

/* ---- not as root ------------------------------------------------------------------------------
 */

/* A kubeconfig that root left becomes readable for the controller. It lies in a directory of the
 * API server's: a link, and whatever is not one file of root's, is left as it is. */
static int share(const char *path, gid_t gid, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != 0 ||
        st.st_nlink != 1) {
        return 0;
    }
    return fchown(fd, 0, gid) < 0 || fchmod(fd, 0640) < 0
               ? ferry_fail_errno(err, errno, "letting group %u read %s", gid, path)
               : 0;
}

static int leave_root(const struct settings *s, struct ferry_error *err)
{
    if (geteuid() != 0 || (!s->user && !s->prepare)) {
        return s->prepare
                   ? ferry_fail(err, FERRY_DENIED, "--prepare: only root can give files away")
                   : 0;
    }
    int rc = s->id.uid == 0 ? 0 : share(s->kubeconfig, s->id.gid, err);
    return rc < 0 || s->prepare ? rc : ferry_user_become(&s->id, FERRY_NO_GROUP, err);
}

static int check(void *ctx, struct ferry_error *err)
{
    struct settings *s = ctx;
    const struct webhook_config *w = &s->doors.webhook;

    if (s->workers < 1 || s->workers > WORKERS_MAX) {
        return ferry_fail(err, FERRY_INVALID, "--workers: %d is not between 1 and %d", s->workers,
                          WORKERS_MAX);
    }
    if (w->listen && (!w->cert || !w->key)) {
        return ferry_fail(err, FERRY_INVALID, "--webhook needs --webhook-cert and --webhook-key");
    }
    return ferry_user_find(s->user, "--user", FERRY_CONTROLLER_USER, FERRY_CONTROLLER_ID, &s->id,
                           err);
}

static int run(void *ctx, struct ferry_error *err)
{
    const struct settings *s = ctx;
    const struct doors *doors = &s->doors;
    struct webhook_config webhook_config = doors->webhook;
    struct metrics_server *metrics = NULL;
    struct webhook *webhook = NULL;
    struct controller_config cfg = s->controller;
    kube_cleanup_client struct kube_client *client = NULL;
    char host[HOST_NAME_MAX + 1] = "";
    int rc = leave_root(s, err);

    if (rc < 0 || s->prepare) {
        return rc;
    }
    rc = kube_client_open(s->kubeconfig, &client, err);

    gethostname(host, sizeof(host) - 1);
    cfg.client = client;
    cfg.host = host;
    cfg.stop = ferry_daemon_stopping;
    cfg.embedded = s->embedded;
    cfg.workers = (unsigned)s->workers;
    webhook_config.kubeconfig = s->kubeconfig;
    if (rc == 0 && doors->metrics) {
        rc = metrics_server_start(doors->metrics, &metrics, err);
    }
    if (rc == 0 && doors->webhook.listen) {
        rc = webhook_start(&webhook_config, &webhook, err);
    }
    while (rc == 0 && !ferry_daemon_stopping()) {
        rc = serve(client, &cfg, metrics, err);
    }
    webhook_stop(webhook);
    metrics_server_stop(metrics);
    return rc;
}

int main(int argc, char **argv)
{
    struct settings s = {
        .kubeconfig = "/var/lib/ferry/controller.kubeconfig",
        .controller = {.settings = migration_default_settings,
                       .lease_ns = LEASE_NAMESPACE,
                       .lease_name = PROGRAM},
        .workers = 3,
    };
    struct ferry_log_options lo = {0};
    const struct ferry_option options[] = {
        {"kubeconfig", 0, FERRY_OPTION_STRING, &s.kubeconfig, "FILE",
         "how to reach the API (default: /var/lib/ferry/controller.kubeconfig)"},
        {"embedded", 0, FERRY_OPTION_FLAG, &s.embedded, NULL,
         "the API is ferry-apiserver: also place pods and watch over nodes"},
        {"workers", 0, FERRY_OPTION_INT, &s.workers, "N",
         "objects of a kind that are worked on at a time (default: 3)"},
        {"launcher-image", 0, FERRY_OPTION_STRING, &s.controller.settings.pod.launcher_image,
         "IMAGE", "image of launcher pods; only Kubernetes looks at it"},
        {"metrics", 0, FERRY_OPTION_STRING, &s.doors.metrics, "PORT|PATH",
         "serve GET /metrics on this port of 127.0.0.1, or on a unix socket (default: not)"},
        {"webhook", 0, FERRY_OPTION_STRING, &s.doors.webhook.listen, "ADDRESS:PORT",
         "on Kubernetes: review machines, migrations and evictions there (default: not)"},
        {"webhook-cert", 0, FERRY_OPTION_STRING, &s.doors.webhook.cert, "FILE",
         "certificate that the webhook is served with, PEM"},
        {"webhook-key", 0, FERRY_OPTION_STRING, &s.doors.webhook.key, "FILE", "its key, PEM"},
        {"webhook-client-ca", 0, FERRY_OPTION_STRING, &s.doors.webhook.client_ca, "FILE",
         "answer only clients with a certificate of this CA (default: all)"},
        {"user", 0, FERRY_OPTION_STRING, &s.user, "USER",
         "name or UID:GID to run as when started as root (default: root)"},
        {"prepare", 0, FERRY_OPTION_FLAG, &s.prepare, NULL,
         "as root: let USER (ferry-controller, or 61203:61203) read the kubeconfig, and end"},
        FERRY_LOG_OPTION_ROWS(&lo),
        {0},
    };
    const struct ferry_command cmd = {
        .name = PROGRAM,
        .usage = "[--kubeconfig FILE] [--embedded] [OPTION]...",
        .summary = "Makes launcher pods for virtual machine instances and takes migrations through "
                   "their\nphases. It may be killed at any time; a new one goes on from what the "
                   "API holds.",
        .options = options,
        .config = PROGRAM,
    };
    const struct ferry_daemon daemon = {
        .program = PROGRAM, .command = &cmd, .log = &lo, .check = check, .run = run, .ctx = &s};

    return ferry_daemon_main(&daemon, argc, argv);
}
