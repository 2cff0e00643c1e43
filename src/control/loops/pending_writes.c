#include "control/loops/pending_writes.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

enum { FORGET_S = 5 };

struct record {
    char *uid;
    long long version; /* 0 = deleted */
    int64_t at_ns;
    struct record *older, *newer; /* in order of time */
};

struct pending_writes {
    pthread_mutex_t lock; /* guards all below */
    void *by_uid;         /* tsearch tree of entries */
    struct record *oldest, *newest;
    size_t n;
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct record *)a)->uid, ((const struct record *)b)->uid);
}

struct pending_writes *pending_writes_new(void)
{
    struct pending_writes *w = ferry_xcalloc(1, sizeof(*w));

    pthread_mutex_init(&w->lock, NULL);
    return w;
}

static void forget_locked(struct pending_writes *w, struct record *e)
{
    tdelete(e, &w->by_uid, compare);
    *(e->older ? &e->older->newer : &w->oldest) = e->newer;
    *(e->newer ? &e->newer->older : &w->newest) = e->older;
    w->n--;
    free(e->uid);
    free(e);
}

void pending_writes_free(struct pending_writes *w)
{
    if (w) {
        while (w->oldest) {
            forget_locked(w, w->oldest);
        }
        pthread_mutex_destroy(&w->lock);
        free(w);
    }
}

static struct record *find_locked(struct pending_writes *w, const char *uid)
{
    struct record probe = {.uid = (char *)(uintptr_t)uid};
    struct record **slot = tfind(&probe, &w->by_uid, compare);

    return slot ? *slot : NULL;
}

static void forget_old_locked(struct pending_writes *w, int64_t now_ns)
{
    while (w->oldest && now_ns - w->oldest->at_ns > FORGET_S * FERRY_NS_PER_S) {
        forget_locked(w, w->oldest);
    }
}

static void remember_locked(struct pending_writes *w, const char *uid, long long version,
                            int64_t now_ns)
{
    struct record *old = find_locked(w, uid);

    if (old) {
        forget_locked(w, old);
    }
    struct record *e = ferry_xcalloc(1, sizeof(*e));
    *e = (struct record){ferry_strdup(uid), version, now_ns, w->newest, NULL};
    *(w->newest ? &w->newest->newer : &w->oldest) = e;
    w->newest = e;
    w->n++;
    if (!tsearch(e, &w->by_uid, compare)) {
        abort(); /* out of memory */
    }
}

void pending_writes_note(struct pending_writes *w, const char *uid, const char *version,
                         int64_t now_ns)
{
    long long number = 0;

    if (ferry_str_empty(uid) ||
        (version && ferry_parse_int(version, 1, INT64_MAX, &number, NULL) < 0)) {
        return; /* versions without an order are not waited for */
    }
    pthread_mutex_lock(&w->lock);
    forget_old_locked(w, now_ns);
    remember_locked(w, uid, number, now_ns);
    pthread_mutex_unlock(&w->lock);
}

bool pending_writes_is_ahead(struct pending_writes *w, const struct api_object *seen,
                             int64_t now_ns)
{
    long long number = 0;

    if (!seen || ferry_str_empty(seen->meta->uid) ||
        ferry_parse_int(seen->meta->resource_version, 0, INT64_MAX, &number, NULL) < 0) {
        return false;
    }
    pthread_mutex_lock(&w->lock);
    forget_old_locked(w, now_ns);
    struct record *e = find_locked(w, seen->meta->uid);
    bool ahead = e && (e->version ? number < e->version : !seen->meta->deleted_ms);

    if (e && !ahead) {
        forget_locked(w, e);
    }
    pthread_mutex_unlock(&w->lock);
    return ahead;
}

size_t pending_writes_count(struct pending_writes *w)
{
    pthread_mutex_lock(&w->lock);
    size_t n = w->n;
    pthread_mutex_unlock(&w->lock);
    return n;
}
