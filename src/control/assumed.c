#include "control/assumed.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct place {
    const char *uid; /* of the pod */
    struct api_object *pod;
    char *node;
};

struct assumed {
    pthread_mutex_t lock; /* guards all below */
    void *by_uid;         /* tsearch tree of places */
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct place *)a)->uid, ((const struct place *)b)->uid);
}

static void place_free(void *p)
{
    struct place *place = p;

    if (place) {
        api_object_unref(place->pod);
        free(place->node);
        free(place);
    }
}

struct assumed *assumed_new(void)
{
    struct assumed *a = ferry_xcalloc(1, sizeof(*a));

    pthread_mutex_init(&a->lock, NULL);
    return a;
}

void assumed_free(struct assumed *a)
{
    if (a) {
        tdestroy(a->by_uid, place_free);
        pthread_mutex_destroy(&a->lock);
        free(a);
    }
}

static struct place *find_in(void *const *tree, const char *uid)
{
    struct place probe = {.uid = uid};
    struct place **slot = uid ? tfind(&probe, tree, compare) : NULL;

    return slot ? *slot : NULL;
}

static void add_to(void **tree, struct place *p)
{
    if (!tsearch(p, tree, compare)) {
        abort(); /* out of memory */
    }
}

void assumed_put(struct assumed *a, const struct api_object *pod, const char *node)
{
    pthread_mutex_lock(&a->lock);
    if (!find_in(&a->by_uid, pod->meta->uid)) {
        struct place *p = ferry_xcalloc(1, sizeof(*p));

        *p = (struct place){.uid = pod->meta->uid,
                            .pod = api_object_ref((struct api_object *)pod),
                            .node = ferry_strdup(node)};
        add_to(&a->by_uid, p);
    }
    pthread_mutex_unlock(&a->lock);
}

void assumed_drop(struct assumed *a, const char *uid)
{
    pthread_mutex_lock(&a->lock);
    struct place *p = find_in(&a->by_uid, uid);

    if (p) {
        tdelete(p, &a->by_uid, compare);
    }
    pthread_mutex_unlock(&a->lock);
    place_free(p);
}

bool assumed_has(struct assumed *a, const char *uid)
{
    pthread_mutex_lock(&a->lock);
    bool there = find_in(&a->by_uid, uid) != NULL;
    pthread_mutex_unlock(&a->lock);
    return there;
}

struct api_object *assumed_get(struct assumed *a, const char *uid, char **ret_node)
{
    pthread_mutex_lock(&a->lock);
    const struct place *p = find_in(&a->by_uid, uid);
    struct api_object *pod = p ? api_object_ref(p->pod) : NULL;

    *ret_node = p ? ferry_strdup(p->node) : NULL;
    pthread_mutex_unlock(&a->lock);
    return pod;
}

void assumed_settle(struct assumed *a, const struct api_object *const *pods, size_t n)
{
    void *still = NULL;

    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; a->by_uid && i < n; i++) {
        struct place *p = ferry_str_empty(pods[i]->u.pod.node_name)
                              ? find_in(&a->by_uid, pods[i]->meta->uid)
                              : NULL;

        if (p) {
            tdelete(p, &a->by_uid, compare);
            add_to(&still, p);
        }
    }
    void *gone = a->by_uid;
    a->by_uid = still;
    pthread_mutex_unlock(&a->lock);
    tdestroy(gone, place_free);
}
