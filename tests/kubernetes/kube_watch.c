/* kube_watch PLURAL [LABELS]: an informer on one kind, of the API server that KUBECONFIG names.
 *
 * A line per delta (`+ NS/NAME VERSION`, `~`, `-`) and `synced` after the first list; ends when its
 * standard input does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "kube/informer.h"

static void on_delta(void *ctx, struct api_object *old, struct api_object *now)
{
    const struct api_meta *m = now ? now->meta : old->meta;

    (void)ctx;
    printf("%c %s/%s %s\n",
           !old  ? '+'
           : now ? '~'
                 : '-',
           m->namespace_ ? m->namespace_ : "", m->name, m->resource_version);
    fflush(stdout);
}

static enum api_kind kind_of(const char *plural)
{
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        if (ferry_streq(r->plural, plural)) {
            return r->kind;
        }
    }
    return API_KIND_NONE;
}

int main(int argc, char **argv)
{
    struct ferry_error err = {0};
    struct kube_client *client = NULL;
    struct kube_informer *inf = NULL;
    char byte;

    if (argc < 2 || kind_of(argv[1]) == API_KIND_NONE || !getenv("KUBECONFIG")) {
        fprintf(stderr, "usage: KUBECONFIG=FILE kube_watch PLURAL [LABELS]\n");
        return 2;
    }
    ferry_log_init("kube_watch", FERRY_LOG_DEBUG, FERRY_LOG_TEXT);
    int rc = kube_client_open(getenv("KUBECONFIG"), &client, &err);
    if (rc == 0) {
        rc = kube_informer_start(&(struct kube_informer_config){.client = client,
                                                                .kind = kind_of(argv[1]),
                                                                .label_selector = argv[2],
                                                                .on_delta = on_delta},
                                 &inf, &err);
    }
    if (rc == 0) {
        rc = kube_informer_wait_synced(inf, ferry_now_ns() + 30 * FERRY_NS_PER_S, &err);
    }
    if (rc < 0) {
        fprintf(stderr, "kube_watch: %s\n", err.msg);
    } else {
        puts("synced");
        fflush(stdout);
        while (read(STDIN_FILENO, &byte, 1) > 0) {
        }
    }
    kube_informer_stop(inf);
    kube_client_free(client);
    return rc < 0;
}
