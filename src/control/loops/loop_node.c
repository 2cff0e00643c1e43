#include <pthread.h>

#include "api/wire/wire_keys.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/loops/loops.h"
#include "control/loops/node_decide.h"
#include "control/loops/plan_apply.h"

struct sign {
    char *node;
    int64_t seen_ns;
};

struct loop_node {
    struct cluster *cluster;
    pthread_mutex_t lock; /* guards all below */
    struct sign *signs;
    size_t n;
};

struct loop_node *loop_node_new(struct cluster *c)
{
    struct loop_node *l = ferry_xcalloc(1, sizeof(*l));

    l->cluster = c;
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void loop_node_free(struct loop_node *l)
{
    if (!l) {
        return;
    }
    for (size_t i = 0; i < l->n; i++) {
        free(l->signs[i].node);
    }
    free(l->signs);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static struct sign *find_locked(struct loop_node *l, const char *node)
{
    for (size_t i = 0; i < l->n; i++) {
        if (ferry_streq(l->signs[i].node, node)) {
            return &l->signs[i];
        }
    }
    return NULL;
}

static const char *heartbeat(const struct api_object *node)
{
    return api_map_get(&node->meta->annotations, ANNOTATION_HEARTBEAT);
}

void loop_node_seen(struct loop_node *l, const struct api_object *old, const struct api_object *now)
{
    const char *name = (now ? now : old)->meta->name;
    bool beat = now && (!old || !ferry_streq(heartbeat(old), heartbeat(now)));

    pthread_mutex_lock(&l->lock);
    struct sign *s = find_locked(l, name);
    if (!now && s) {
        free(s->node);
        *s = l->signs[--l->n];
    } else if (beat && s) {
        s->seen_ns = ferry_now_ns();
    } else if (beat) {
        l->signs = ferry_xrealloc(l->signs, l->n + 1, sizeof(*l->signs));
        l->signs[l->n++] = (struct sign){ferry_strdup(name), ferry_now_ns()};
    }
    pthread_mutex_unlock(&l->lock);
}

int loop_node_reconcile(void *ctx, const char *key, struct kube_again *again,
                        struct ferry_error *err)
{
    struct loop_node *l = ctx;
    api_cleanup_object struct api_object *node = kube_informer_get(l->cluster->nodes, NULL, key);

    if (!node) {
        return 0;
    }
    pthread_mutex_lock(&l->lock);
    const struct sign *s = find_locked(l, key);
    int64_t silent_ms = s ? (ferry_now_ns() - s->seen_ns) / FERRY_NS_PER_MS : 0;
    pthread_mutex_unlock(&l->lock);

    plan_cleanup struct plan p = {0};
    node_decide(node, silent_ms, ferry_now_unix_ms(), &p);
    int rc = plan_apply(&p, &l->cluster->writer, err);
    if (rc == 0 && p.n > 0) {
        ferry_warn("node is silent", F_STR("node", key), F_INT("silent_ms", silent_ms));
    }
    if (p.again_ms) {
        *again = (struct kube_again){.wanted = true, .after_ns = p.again_ms * FERRY_NS_PER_MS};
    }
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}
