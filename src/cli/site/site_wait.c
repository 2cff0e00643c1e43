#include "cli/site/site_wait.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/options.h"
#include "base/str.h"
#include "cli/site/site_state.h"
#include "http/client.h"
#include "kube/client.h"

enum {
    API_WAIT_S = 60,
    NODES_WAIT_S = 90,
    STEP_MS = 50,
    TOO_MANY_RESTARTS = 4, /* by then it is no start-up race any more */
};

/* Last line of a log that is not empty; "" when there is none. */
static char *last_words(const char *path)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    if (ferry_read_file(path, 16 << 20, &b, NULL) < 0 || !b.len) {
        return ferry_strdup("");
    }
    while (b.len && b.data[b.len - 1] == '\n') {
        b.data[--b.len] = '\0';
    }
    const char *nl = strrchr(b.data, '\n');
    return ferry_strdup(nl ? nl + 1 : b.data);
}

static int check_crash_loop(const struct site_plan *p, struct ferry_error *err)
{
    site_cleanup_state struct site_state *state = NULL;

    if (site_state_read(p->state_file, &state, NULL) < 0) {
        return 0;
    }
    for (size_t i = 0; i < state->n_daemons; i++) {
        const struct site_process *d = &state->daemons[i];

        if (d->restarts >= TOO_MANY_RESTARTS) {
            ferry_cleanup_free char *log = ferry_asprintf("%s/%s.log", p->log_dir, d->name);
            ferry_cleanup_free char *words = last_words(log);

            return ferry_fail(err, FERRY_FATAL, "%s keeps ending (code %d); it says: %s", d->name,
                              d->last_exit, words);
        }
    }
    return 0;
}

/* One step of waiting; 0 = look again. `what` completes "waiting for ...". */
static int step(const struct site_plan *p, int64_t deadline_ns, const char *what,
                struct ferry_error *err)
{
    if (ferry_signals_wait(ferry_now_ns() + STEP_MS * FERRY_NS_PER_MS)) {
        return ferry_fail(err, FERRY_CANCELLED, "interrupted while waiting for %s", what);
    }
    if (ferry_ms_left(deadline_ns) == 0) {
        return ferry_fail(err, FERRY_RETRY, "waited too long for %s; the logs are in %s", what,
                          p->log_dir);
    }
    return check_crash_loop(p, err);
}

/* ---- API ----------------------------------------------------------------------------------- */

static bool api_ready(const struct site_plan *p)
{
    kube_cleanup_client struct kube_client *client = NULL;
    http_cleanup_reply struct http_reply reply = {0};

    return access(p->admin_kubeconfig, F_OK) == 0 &&
           kube_client_open(p->admin_kubeconfig, &client, NULL) == 0 &&
           http_client_call(
               kube_client_http(client),
               &(struct http_call){.method = "GET", .path = "/readyz", .timeout_ms = 2000}, &reply,
               NULL) == 0 &&
           reply.status == 200;
}

int site_wait_api(const struct site_plan *p, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + API_WAIT_S * FERRY_NS_PER_S;

    while (!api_ready(p)) {
        int rc = step(p, deadline, "the API server", err);

        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- nodes --------------------------------------------------------------------------------- */

static bool node_ready(const struct kube_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct api_object *o = list->items[i];

        if (ferry_streq(o->meta->name, name)) {
            return api_condition_true(&o->u.node.conditions, CONDITION_READY);
        }
    }
    return false;
}

int site_wait_nodes(const struct site_plan *p, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + NODES_WAIT_S * FERRY_NS_PER_S;
    kube_cleanup_client struct kube_client *client = NULL;
    size_t ready = 0; /* nodes before this one are */
    int rc = kube_client_open(p->admin_kubeconfig, &client, err);

    while (rc == 0 && ready < p->n_nodes) {
        kube_cleanup_list struct kube_list list = {0};
        const struct site_node *n = &p->nodes[ready];

        if (kube_client_list(client, kube_ref(API_KIND_NODE, NULL, NULL), NULL, &list, NULL) == 0 &&
            node_ready(&list, n->name)) {
            printf("%-8s ready at %s, migration network %s\n", n->name, n->address,
                   n->migration_address);
            fflush(stdout);
            ready++;
            continue;
        }
        rc = step(p, deadline, n->name, err);
    }
    return rc;
}
