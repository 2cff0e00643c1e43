#include "control/loops/guest_users.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_user.h"
#include "base/hash.h"
#include "base/str.h"

struct holder {
    struct ferry_link link; /* by the VMI's UID */
    char *uid;
    uint32_t index; /* of its user, from WIRE_USER_FIRST */
    bool given;     /* here: what its object says otherwise is older, or its author's wish */
};

struct guest_users {
    pthread_mutex_t lock; /* guards all below */
    struct ferry_map holders;
    uint32_t
        n_holders[WIRE_USERS]; /* of each user: more than one where a manifest claims another's */
};

struct guest_users *guest_users_new(void)
{
    struct guest_users *g = ferry_xcalloc(1, sizeof(*g));

    pthread_mutex_init(&g->lock, NULL);
    return g;
}

static void holder_free(struct ferry_link *l)
{
    struct holder *h = (struct holder *)l;

    free(h->uid);
    free(h);
}

void guest_users_free(struct guest_users *g)
{
    if (g) {
        ferry_map_done(&g->holders, holder_free);
        pthread_mutex_destroy(&g->lock);
        free(g);
    }
}

static struct holder *find(struct guest_users *g, const char *uid)
{
    struct ferry_link *l = ferry_map_first(&g->holders, ferry_hash_text(ferry_map_seed(), uid));

    for (; l; l = ferry_map_next(l)) {
        if (strcmp(((struct holder *)l)->uid, uid) == 0) {
            return (struct holder *)l;
        }
    }
    return NULL;
}

static void let_go(struct guest_users *g, const char *uid)
{
    struct holder *h = find(g, uid);

    if (h) {
        g->n_holders[h->index]--;
        ferry_map_remove(&g->holders, &h->link);
        holder_free(&h->link);
    }
}

static void hold(struct guest_users *g, const char *uid, uint32_t index, bool given)
{
    struct holder *h = find(g, uid);

    if (!h) {
        h = ferry_xcalloc(1, sizeof(*h));
        h->uid = ferry_strdup(uid);
        ferry_map_add(&g->holders, &h->link, ferry_hash_text(ferry_map_seed(), uid));
    } else if (h->given && !given) {
        return;
    } else {
        g->n_holders[h->index]--;
    }
    h->index = index;
    h->given = given;
    g->n_holders[index]++;
}

void guest_users_seen(struct guest_users *g, const struct api_object *old,
                      const struct api_object *now)
{
    pthread_mutex_lock(&g->lock);
    if (old && !(now && ferry_streq(now->meta->uid, old->meta->uid))) {
        let_go(g, old->meta->uid);
    }
    /* One without may have been given one just now. */
    if (now && now->u.vmi.has_runtime_user && wire_user_is_guest(now->u.vmi.runtime_user)) {
        hold(g, now->meta->uid, (uint32_t)(now->u.vmi.runtime_user - WIRE_USER_FIRST), false);
    }
    pthread_mutex_unlock(&g->lock);
}

int64_t guest_users_give(struct guest_users *g, const struct api_object *vmi)
{
    const struct api_meta *m = vmi->meta;
    uint64_t hash = ferry_hash_text(
        ferry_hash_text(FERRY_HASH_BASIS, m->namespace_ ? m->namespace_ : ""), m->name);
    int64_t user = 0;

    pthread_mutex_lock(&g->lock);
    struct holder *h = find(g, m->uid);
    if (h && g->n_holders[h->index] == 1) {
        user = WIRE_USER_FIRST + (int64_t)h->index;
    }
    for (uint32_t i = 0; i < WIRE_USERS && !user; i++) {
        uint32_t index = (uint32_t)((hash + i) % WIRE_USERS);

        if (g->n_holders[index] == 0) {
            hold(g, m->uid, index, true);
            user = WIRE_USER_FIRST + (int64_t)index;
        }
    }
    pthread_mutex_unlock(&g->lock);
    return user;
}
