/* Theory of operation.
 *
 * Each move is active or waiting. Active ones are counted at the nodes that they leave and enter.
 * Waiting ones are in `waiting`, which gives their position. Those that are ready are also in the
 * queue of the node that they leave; the first of these, as many as the node has places and
 * bandwidth for, are in `fit`. A move may start when it is in `fit` and fewer than the free places
 * of the cluster are before it there. A change touches one or two nodes, and of each no more than
 * its few places. */
#include "control/migration/migration_limits.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_reason.h"
#include "base/count.h"
#include "base/str.h"
#include "control/migration/rank_tree.h"

struct move;

struct site { /* a node, as far as moves go */
    char *name;
    struct rank_tree ready;    /* waiting to leave it, and ready */
    struct rank_tree leaving;  /* active */
    struct rank_tree arriving; /* active */
    struct rank_tree entered;  /* active and handed off */
    struct move **fit;         /* of `ready`, those in the ledger's `fit` */
    size_t n_fit;
    int64_t out_bytes, in_bytes; /* budget used by `leaving` and `entered` */
};

struct move {
    struct limits_move m; /* strings owned */
    bool claimed, claimed_hand_off;
    struct site *source, *target; /* or NULL */
    struct move *next;            /* in its bucket */
    uint32_t hash;                /* of the UID */
    struct rank_node waiting, ready, fit, active, leaving, arriving, entered;
};

struct limits_ledger {
    struct migration_limits limits;
    struct move **buckets; /* moves by the hash of their UID */
    size_t n_buckets, n_moves;
    void *sites; /* tsearch tree by name */
    struct rank_tree waiting, fit, active;
};

/* ---- order -----------------------------------------------------------------------------------
 */

static int by_order(const void *pa, const void *pb)
{
    const struct limits_move *a = &((const struct move *)pa)->m, *b = &((const struct move *)pb)->m;

    if (a->priority != b->priority) {
        return a->priority > b->priority ? -1 : 1;
    }
    if (a->created_ms != b->created_ms) {
        return a->created_ms < b->created_ms ? -1 : 1;
    }
    /* Several in one second, as a drain makes them: the small ones first, so that most are away
     * soonest and what is left when something goes wrong is few; then any order that stays. */
    if (a->memory != b->memory) {
        return a->memory < b->memory ? -1 : 1;
    }
    return strcmp(a->uid, b->uid);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct site *)a)->name, ((const struct site *)b)->name);
}

static uint32_t spread(const char *uid)
{
    uint32_t h = 2166136261u;

    for (; *uid; uid++) {
        h = (h ^ (unsigned char)*uid) * 16777619u;
    }
    h ^= h >> 16;
    return h * 2654435761u;
}

static struct move *find_move(const struct limits_ledger *l, const char *uid)
{
    if (!uid || l->n_moves == 0) {
        return NULL;
    }
    uint32_t hash = spread(uid);
    struct move *m = l->buckets[hash % l->n_buckets];

    while (m && (m->hash != hash || strcmp(m->m.uid, uid) != 0)) {
        m = m->next;
    }
    return m;
}

static void link_move(struct limits_ledger *l, struct move *m)
{
    struct move **at = &l->buckets[m->hash % l->n_buckets];

    m->next = *at;
    *at = m;
}

static void unlink_move(struct limits_ledger *l, struct move *m)
{
    struct move **at = &l->buckets[m->hash % l->n_buckets];

    while (*at != m) {
        at = &(*at)->next;
    }
    *at = m->next;
    l->n_moves--;
}

static void add_move(struct limits_ledger *l, struct move *m)
{
    if (l->n_moves == l->n_buckets) {
        struct move **old = l->buckets;
        size_t n = l->n_buckets;

        l->n_buckets = n ? 2 * n : 64;
        l->buckets = ferry_xcalloc(l->n_buckets, sizeof(struct move *));
        for (size_t i = 0; i < n; i++) {
            for (struct move *next; old[i]; old[i] = next) {
                next = old[i]->next;
                link_move(l, old[i]);
            }
        }
        free(old);
    }
    link_move(l, m);
    l->n_moves++;
}

static struct site *get_site(struct limits_ledger *l, const char *name)
{
    if (!name) {
        return NULL;
    }
    struct site probe = {.name = (char *)(uintptr_t)name};
    struct site **slot = tfind(&probe, &l->sites, by_name);

    if (slot) {
        return *slot;
    }
    struct site *s = ferry_xcalloc(1, sizeof(*s));
    s->name = ferry_strdup(name);
    s->ready.compare = s->leaving.compare = s->arriving.compare = s->entered.compare = by_order;
    if (!tsearch(s, &l->sites, by_name)) {
        abort(); /* out of memory */
    }
    return s;
}

/* ---- who fits --------------------------------------------------------------------------------
 */

/* What a move takes of a budget: without a limit of its own it may take all. */
static int64_t share(const struct limits_ledger *l, const struct move *m)
{
    int64_t budget = l->limits.bandwidth_per_node;

    return m->m.bandwidth > 0 && m->m.bandwidth < budget ? m->m.bandwidth : budget;
}

static bool has_budget(const struct limits_ledger *l, int64_t used, const struct move *m)
{
    return l->limits.bandwidth_per_node == 0 || used + share(l, m) <= l->limits.bandwidth_per_node;
}

static void clear_fit(struct limits_ledger *l, struct site *s)
{
    for (size_t i = 0; i < s->n_fit; i++) {
        rank_tree_remove(&l->fit, &s->fit[i]->fit);
    }
    s->n_fit = 0;
}

/* The first in the node's queue, up to what it has room for. */
static void find_fit(struct limits_ledger *l, struct site *s)
{
    size_t out = rank_tree_size(&s->leaving);
    int64_t bytes = s->out_bytes;

    for (size_t i = 0; out + i < l->limits.outbound_per_node; i++) {
        struct move *m = rank_tree_at(&s->ready, i);

        if (!m || !has_budget(l, bytes, m)) {
            return;
        }
        bytes += share(l, m);
        s->fit = ferry_xrealloc(s->fit, s->n_fit + 1, sizeof(struct move *));
        s->fit[s->n_fit++] = m;
        rank_tree_put(&l->fit, &m->fit);
    }
}

/* ---- in and out ------------------------------------------------------------------------------
 */

static bool is_active(const struct move *m)
{
    return m->m.active || m->claimed;
}

static bool is_handed_off(const struct move *m)
{
    return m->m.handed_off || m->claimed_hand_off;
}

static void enlist(struct limits_ledger *l, struct move *m)
{
    bool active = is_active(m);

    m->source = get_site(l, m->m.source_node);
    m->target = active ? get_site(l, m->m.target_node) : NULL;
    if (m->source) {
        clear_fit(l, m->source);
    }
    if (active) {
        rank_tree_put(&l->active, &m->active);
        if (m->source) {
            rank_tree_put(&m->source->leaving, &m->leaving);
            m->source->out_bytes += share(l, m);
        }
        if (m->target) {
            rank_tree_put(&m->target->arriving, &m->arriving);
        }
        if (m->target && is_handed_off(m)) {
            rank_tree_put(&m->target->entered, &m->entered);
            m->target->in_bytes += share(l, m);
        }
    } else {
        rank_tree_put(&l->waiting, &m->waiting);
        if (m->m.ready && m->source) {
            rank_tree_put(&m->source->ready, &m->ready);
        } else if (m->m.ready) {
            rank_tree_put(&l->fit, &m->fit); /* no node's limit counts */
        }
    }
    if (m->source) {
        find_fit(l, m->source);
    }
}

static void delist(struct limits_ledger *l, struct move *m)
{
    if (m->source) {
        clear_fit(l, m->source);
        if (m->leaving.size) {
            m->source->out_bytes -= share(l, m);
        }
        rank_tree_remove(&m->source->leaving, &m->leaving);
        rank_tree_remove(&m->source->ready, &m->ready);
        find_fit(l, m->source);
    }
    if (m->target) {
        if (m->entered.size) {
            m->target->in_bytes -= share(l, m);
        }
        rank_tree_remove(&m->target->arriving, &m->arriving);
        rank_tree_remove(&m->target->entered, &m->entered);
    }
    rank_tree_remove(&l->waiting, &m->waiting);
    rank_tree_remove(&l->active, &m->active);
    rank_tree_remove(&l->fit, &m->fit);
    m->source = m->target = NULL;
}

static void free_texts(struct move *m)
{
    free((char *)(uintptr_t)m->m.uid);
    free((char *)(uintptr_t)m->m.key);
    free((char *)(uintptr_t)m->m.source_node);
    free((char *)(uintptr_t)m->m.target_node);
}

static void copy_texts(struct move *m, const struct limits_move *from)
{
    m->m = *from;
    m->m.uid = ferry_strdup(from->uid);
    m->m.key = ferry_strdup(from->key);
    m->m.source_node = ferry_strdup(from->source_node);
    m->m.target_node = ferry_strdup(from->target_node);
}

static struct move *new_move(struct limits_ledger *l, const struct limits_move *from)
{
    struct move *m = ferry_xcalloc(1, sizeof(*m));
    struct rank_node *const nodes[] = {&m->waiting, &m->ready,    &m->fit,    &m->active,
                                       &m->leaving, &m->arriving, &m->entered};

    copy_texts(m, from);
    for (size_t i = 0; i < FERRY_COUNT(nodes); i++) {
        nodes[i]->item = m;
        nodes[i]->heap = spread(from->uid);
    }
    m->hash = spread(from->uid);
    add_move(l, m);
    return m;
}

static bool is_same(const struct limits_move *a, const struct limits_move *b)
{
    return ferry_streq(a->key, b->key) && ferry_streq(a->source_node, b->source_node) &&
           ferry_streq(a->target_node, b->target_node) && a->priority == b->priority &&
           a->created_ms == b->created_ms && a->memory == b->memory &&
           a->bandwidth == b->bandwidth && a->active == b->active &&
           a->handed_off == b->handed_off && a->ready == b->ready;
}

/* ---- interface -------------------------------------------------------------------------------
 */

struct limits_ledger *limits_ledger_new(const struct migration_limits *limits)
{
    struct limits_ledger *l = ferry_xcalloc(1, sizeof(*l));

    l->limits = *limits;
    l->waiting.compare = l->fit.compare = l->active.compare = by_order;
    return l;
}

static void free_move(struct move *m)
{
    free_texts(m);
    free(m);
}

static void free_site(void *p)
{
    struct site *s = p;

    free(s->name);
    free(s->fit);
    free(s);
}

void limits_ledger_free(struct limits_ledger *l)
{
    if (l) {
        for (size_t i = 0; i < l->n_buckets; i++) {
            for (struct move *next; l->buckets[i]; l->buckets[i] = next) {
                next = l->buckets[i]->next;
                free_move(l->buckets[i]);
            }
        }
        free(l->buckets);
        tdestroy(l->sites, free_site);
        free(l);
    }
}

void limits_ledger_set(struct limits_ledger *l, const struct migration_limits *limits)
{
    struct rank_tree *const all[] = {&l->waiting, &l->active};
    size_t n = 0, total = rank_tree_size(&l->waiting) + rank_tree_size(&l->active);

    if (l->limits.cluster == limits->cluster &&
        l->limits.outbound_per_node == limits->outbound_per_node &&
        l->limits.inbound_per_node == limits->inbound_per_node &&
        l->limits.bandwidth_per_node == limits->bandwidth_per_node) {
        return;
    }
    ferry_cleanup_free struct move **moves = ferry_xcalloc(total + 1, sizeof(*moves));
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < rank_tree_size(all[k]); i++) {
            moves[n++] = rank_tree_at(all[k], i);
        }
    }
    for (size_t i = 0; i < n; i++) {
        delist(l, moves[i]); /* shares of a budget follow from the limits */
    }
    l->limits = *limits;
    for (size_t i = 0; i < n; i++) {
        enlist(l, moves[i]);
    }
}

void limits_ledger_put(struct limits_ledger *l, const struct limits_move *from)
{
    struct move *m = find_move(l, from->uid);

    if (!m) {
        enlist(l, new_move(l, from));
        return;
    }
    if (is_same(&m->m, from)) {
        return;
    }
    delist(l, m);
    /* What was claimed shows now. */
    m->claimed &= !from->active;
    m->claimed_hand_off &= !from->handed_off;
    struct move old = {.m = m->m};
    copy_texts(m, from);
    free_texts(&old);
    enlist(l, m);
}

void limits_ledger_drop(struct limits_ledger *l, const char *uid)
{
    struct move *m = find_move(l, uid);

    if (m) {
        delist(l, m);
        unlink_move(l, m);
        free_move(m);
    }
}

void limits_ledger_claim(struct limits_ledger *l, const char *uid, bool hand_off)
{
    struct move *m = find_move(l, uid);

    if (m) {
        delist(l, m);
        m->claimed = true;
        m->claimed_hand_off |= hand_off;
        enlist(l, m);
    }
}

void limits_ledger_disclaim(struct limits_ledger *l, const char *uid)
{
    struct move *m = find_move(l, uid);

    if (m) {
        delist(l, m);
        m->claimed = m->claimed_hand_off = false;
        enlist(l, m);
    }
}

bool limits_ledger_is_claimed(const struct limits_ledger *l, const char *uid)
{
    const struct move *m = find_move(l, uid);

    return m && ((m->claimed && !m->m.active) || (m->claimed_hand_off && !m->m.handed_off));
}

static const char *first_key(const struct rank_tree *t)
{
    const struct move *m = rank_tree_at(t, 0);

    return m ? m->m.key : NULL;
}

/* The first of those who have a place; where nobody has, of those who are about to take it. */
static const char *blocker_of(const struct move *m, const struct rank_tree *have,
                              const struct rank_tree *next)
{
    const char *key = first_key(have);

    key = key ? key : first_key(next);
    return ferry_streq(key, m->m.key) ? NULL : key;
}

static size_t free_places(const struct limits_ledger *l)
{
    size_t active = rank_tree_size(&l->active);

    return active < l->limits.cluster ? l->limits.cluster - active : 0;
}

static void check_enter(const struct limits_ledger *l, const struct move *m,
                        struct limits_answer *a)
{
    a->inbound = m->target ? rank_tree_size(&m->target->entered) : 0;
    a->enter = true;
    if (!m->target || is_handed_off(m)) {
        return;
    }
    bool full = a->inbound >= l->limits.inbound_per_node;

    if (full || !has_budget(l, m->target->in_bytes, m)) {
        a->enter = false;
        a->enter_reason = full ? REASON_INBOUND_LIMIT : REASON_BANDWIDTH_BUDGET;
        a->enter_blocker = first_key(&m->target->entered);
    }
}

struct limits_answer limits_ledger_check(const struct limits_ledger *l, const char *uid)
{
    struct limits_answer a = {.running = rank_tree_size(&l->active)};
    const struct move *m = find_move(l, uid);

    if (!m) {
        return a;
    }
    a.outbound = m->source ? rank_tree_size(&m->source->leaving) : 0;
    check_enter(l, m, &a);
    if (is_active(m)) {
        a.start = m->claimed; /* its place is kept, its pod is not seen yet: asking twice is safe */
        return a;
    }
    a.room = free_places(l) > rank_tree_size(&l->fit) &&
             (!m->source || a.outbound + m->source->n_fit < l->limits.outbound_per_node);
    a.position = rank_tree_rank(&l->waiting, &m->waiting) + 1;
    size_t places = free_places(l);
    if (places == 0 || (m->fit.size && rank_tree_rank(&l->fit, &m->fit) >= places)) {
        a.reason = REASON_CLUSTER_LIMIT;
        a.blocker = blocker_of(m, &l->active, &l->fit);
    } else if (m->fit.size) {
        a.start = true;
    } else if (m->m.ready) {
        size_t taken = m->source ? a.outbound + m->source->n_fit : 0;

        a.reason =
            taken >= l->limits.outbound_per_node ? REASON_OUTBOUND_LIMIT : REASON_BANDWIDTH_BUDGET;
        a.blocker = m->source ? blocker_of(m, &m->source->leaving, &m->source->ready) : NULL;
    }
    return a;
}

const char *limits_ledger_next(const struct limits_ledger *l, size_t i)
{
    const struct move *m = i < free_places(l) ? rank_tree_at(&l->fit, i) : NULL;

    return m ? m->m.key : NULL;
}

size_t limits_ledger_waiting(const struct limits_ledger *l)
{
    return rank_tree_size(&l->waiting);
}
