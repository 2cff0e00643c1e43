/* ferry-controller: makes pods for VMIs, takes migrations through their phases and, on the embedded
 * engine, places pods on nodes. All its state is in the API. */
#include <limits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "control/loops/controller.h"
#include "kube/lease.h"
#include "programs/ferry-controller-metrics.h"
#include "programs/ferry-controller-webhook.h"

#define PROGRAM "ferry-controller"

#define LEASE_NAMESPACE "kube-system"

enum { WORKERS_MAX = 64, STEP_MS = 100 };

static bool stop_asked(void)
{
    static bool asked;

    asked = asked || ferry_signals_wait(0) != 0;
    return asked;
}

static bool still_held(void *lease)
{
    return kube_lease_held(lease);
}

/* One term: from holding the lease to losing it or being stopped. */
static int serve(struct kube_client *client, const struct controller_config *cfg,
                 struct metrics_server *metrics, struct ferry_error *err)
{
    struct kube_lease_config lease_cfg = {
        .client = client, .ns = LEASE_NAMESPACE, .name = PROGRAM, .stop = stop_asked};
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
        while (kube_lease_held(lease) && !stop_asked()) {
            ferry_sleep_ms(STEP_MS);
        }
        ferry_info(stop_asked() ? "stopping" : "another may act now, controllers stop");
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

static int run(const char *kubeconfig, const struct doors *doors,
               const struct controller_config *settings, struct ferry_error *err)
{
    struct metrics_server *metrics = NULL;
    struct webhook *webhook = NULL;
    struct controller_config cfg = *settings;
    kube_cleanup_client struct kube_client *client = NULL;
    char host[HOST_NAME_MAX + 1] = "";
    int rc = kube_client_open(kubeconfig, &client, err);

    gethostname(host, sizeof(host) - 1);
    cfg.client = client;
    cfg.host = host;
    cfg.stop = stop_asked;
    if (rc == 0 && doors->metrics) {
        rc = metrics_server_start(doors->metrics, &metrics, err);
    }
    if (rc == 0 && doors->webhook.listen) {
        rc = webhook_start(&doors->webhook, &webhook, err);
    }
    while (rc == 0 && !stop_asked()) {
        rc = serve(client, &cfg, metrics, err);
    }
    webhook_stop(webhook);
    metrics_server_stop(metrics);
    return rc == -FERRY_CANCELLED ? 0 : rc;
}

int main(int argc, char **argv)
{
    const char *kubeconfig = "/var/lib/ferry/controller.kubeconfig";
    struct doors doors = {0};
    struct controller_config cfg = {
        .settings = migration_default_settings, .lease_ns = LEASE_NAMESPACE, .lease_name = PROGRAM};
    struct ferry_log_options lo = {0};
    struct ferry_error err;
    bool embedded = false;
    int workers = 3;
    const struct ferry_option options[] = {
        {"kubeconfig", 0, FERRY_OPTION_STRING, &kubeconfig, "FILE",
         "how to reach the API (default: /var/lib/ferry/controller.kubeconfig)"},
        {"embedded", 0, FERRY_OPTION_FLAG, &embedded, NULL,
         "the API is ferry-apiserver: also place pods and watch over nodes"},
        {"workers", 0, FERRY_OPTION_INT, &workers, "N",
         "objects of a kind that are worked on at a time (default: 3)"},
        {"launcher-image", 0, FERRY_OPTION_STRING, &cfg.settings.pod.launcher_image, "IMAGE",
         "image of launcher pods; only Kubernetes looks at it"},
        {"metrics", 0, FERRY_OPTION_STRING, &doors.metrics, "PORT|PATH",
         "serve GET /metrics on this port of 127.0.0.1, or on a unix socket (default: not)"},
        {"webhook", 0, FERRY_OPTION_STRING, &doors.webhook.listen, "ADDRESS:PORT",
         "on Kubernetes: review migrations and evictions there (default: not)"},
        {"webhook-cert", 0, FERRY_OPTION_STRING, &doors.webhook.cert, "FILE",
         "certificate that the webhook is served with, PEM"},
        {"webhook-key", 0, FERRY_OPTION_STRING, &doors.webhook.key, "FILE", "its key, PEM"},
        {"webhook-client-ca", 0, FERRY_OPTION_STRING, &doors.webhook.client_ca, "FILE",
         "answer only clients with a certificate of this CA (default: all)"},
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
    int first = ferry_options_parse(&cmd, argc, argv, &err);

    if (first >= 0 && first < argc) {
        first = ferry_fail(&err, FERRY_INVALID, "unexpected argument '%s'", argv[first]);
    }
    if (first >= 0 && (workers < 1 || workers > WORKERS_MAX)) {
        first = ferry_fail(&err, FERRY_INVALID, "--workers: %d is not between 1 and %d", workers,
                           WORKERS_MAX);
    }
    if (first >= 0 && doors.webhook.listen && (!doors.webhook.cert || !doors.webhook.key)) {
        first = ferry_fail(&err, FERRY_INVALID, "--webhook needs --webhook-cert and --webhook-key");
    }
    if (first < 0 || ferry_log_options_apply(PROGRAM, &lo, &err) < 0) {
        return ferry_die(PROGRAM, FERRY_EXIT_USAGE, &err);
    }
    ferry_signals_block();
    cfg.embedded = embedded;
    cfg.workers = (unsigned)workers;
    doors.webhook.kubeconfig = kubeconfig;
    if (run(kubeconfig, &doors, &cfg, &err) < 0) {
        return ferry_die(PROGRAM, FERRY_EXIT_FAILED, &err);
    }
    return FERRY_EXIT_OK;
}
