#include "handler/move/memory_map.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* A VMI that is between two caches for a moment, or in none and looked at all the same, is not
 * forgotten. */
enum { SWEEPS_KEPT = 3 };

struct entry {
    struct pass_memory memory; /* the borrower's; first, so that it leads back here */
    struct entry *next;
    char *uid;
    bool lent;  /* the queue gives a VMI to one worker at a time */
    int missed; /* sweeps since it was lent, or known, last */
};
_Static_assert(offsetof(struct entry, memory) == 0, "a lent memory is its entry");

struct memory_map {
    pthread_mutex_t lock; /* guards the list and who has what */
    struct entry *first;
};

struct memory_map *memory_map_new(void)
{
    struct memory_map *m = ferry_xcalloc(1, sizeof(*m));

    pthread_mutex_init(&m->lock, NULL);
    return m;
}

static void entry_free(struct entry *e)
{
    pass_memory_done(&e->memory);
    free(e->uid);
    free(e);
}

void memory_map_free(struct memory_map *m)
{
    if (!m) {
        return;
    }
    for (struct entry *e = m->first, *next; e; e = next) {
        next = e->next;
        entry_free(e);
    }
    pthread_mutex_destroy(&m->lock);
    free(m);
}

struct pass_memory *memory_map_lend(struct memory_map *m, const char *uid)
{
    pthread_mutex_lock(&m->lock);
    struct entry *e = m->first;
    while (e && strcmp(e->uid, uid) != 0) {
        e = e->next;
    }
    if (!e) {
        e = ferry_xcalloc(1, sizeof(*e));
        e->uid = ferry_strdup(uid);
        e->next = m->first;
        m->first = e;
    }
    e->lent = true;
    e->missed = 0;
    pthread_mutex_unlock(&m->lock);
    return &e->memory;
}

void memory_map_give_back(struct memory_map *m, struct pass_memory *lent)
{
    pthread_mutex_lock(&m->lock);
    ((struct entry *)lent)->lent = false;
    pthread_mutex_unlock(&m->lock);
}

void memory_map_sweep(struct memory_map *m, bool (*known)(void *ctx, const char *uid), void *ctx)
{
    pthread_mutex_lock(&m->lock);
    for (struct entry **p = &m->first; *p;) {
        struct entry *e = *p;

        e->missed = e->lent || known(ctx, e->uid) ? 0 : e->missed + 1;
        if (e->missed < SWEEPS_KEPT) {
            p = &e->next;
            continue;
        }
        *p = e->next;
        entry_free(e);
    }
    pthread_mutex_unlock(&m->lock);
}
