#include "relay/stream/paths.h"

#include <pthread.h>
#include <string.h>

#include "base/str.h"

enum {
    PATHS_MAX = 256,
    FADE = 32,
    /* A stream that has little to say tells nothing about what the path could carry. */
    TELLING_BYTES_PER_S = 1 << 20,
};

struct relay_paths {
    pthread_mutex_t lock;
    struct relay_state_path paths[PATHS_MAX];
    size_t n;
};

struct relay_paths *relay_paths_new(void)
{
    struct relay_paths *p = ferry_xcalloc(1, sizeof(*p));

    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void relay_paths_free(struct relay_paths *p)
{
    if (p) {
        for (size_t i = 0; i < p->n; i++) {
            free(p->paths[i].node);
        }
        pthread_mutex_destroy(&p->lock);
        free(p);
    }
}

static struct relay_state_path *find(struct relay_paths *p, const char *node)
{
    for (size_t i = 0; i < p->n; i++) {
        if (ferry_streq(p->paths[i].node, node)) {
            return &p->paths[i];
        }
    }
    return NULL;
}

size_t relay_paths_save(struct relay_paths *p, struct relay_state_path **ret)
{
    pthread_mutex_lock(&p->lock);
    size_t n = p->n;
    *ret = ferry_xcalloc(n + 1, sizeof(**ret));
    memcpy(*ret, p->paths, n * sizeof(**ret));
    pthread_mutex_unlock(&p->lock);
    return n;
}

void relay_paths_restore(struct relay_paths *p, const struct relay_state_path *from)
{
    pthread_mutex_lock(&p->lock);
    if (p->n < PATHS_MAX && !find(p, from->node)) {
        p->paths[p->n] = *from;
        p->paths[p->n++].node = ferry_strdup(from->node);
    }
    pthread_mutex_unlock(&p->lock);
}

void relay_paths_note(struct relay_paths *p, const char *node, uint64_t bytes_per_s, int64_t rtt_us)
{
    if (!p || !node) {
        return;
    }
    pthread_mutex_lock(&p->lock);
    struct relay_state_path *at = find(p, node);
    if (!at && p->n < PATHS_MAX) {
        at = &p->paths[p->n++];
        *at = (struct relay_state_path){.node = ferry_strdup(node)};
    }
    if (at && bytes_per_s >= TELLING_BYTES_PER_S) {
        /* A peak fades: a path may have become slower for good. */
        uint64_t faded = at->bytes_per_s - at->bytes_per_s / FADE;

        at->bytes_per_s = bytes_per_s > faded ? bytes_per_s : faded;
    }
    if (at && rtt_us > 0) {
        at->rtt_us = rtt_us;
    }
    pthread_mutex_unlock(&p->lock);
}

void relay_paths_last(struct relay_paths *p, const char *node, uint64_t *ret_bytes_per_s,
                      int64_t *ret_rtt_us)
{
    pthread_mutex_lock(&p->lock);
    const struct relay_state_path *at = find(p, node);
    *ret_bytes_per_s = at ? at->bytes_per_s : 0;
    *ret_rtt_us = at ? at->rtt_us : 0;
    pthread_mutex_unlock(&p->lock);
}
