/* A relay that changes its process: its moves one by one (group_handover.c), what they share, and
 * the predecessors of relays before it. */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "relay/manager/manager_priv.h"
#include "relay/manager/predecessor.h"
#include "relay/stream/paths.h"

void relay_manager_pause(struct relay_manager *m)
{
    for (struct manager_node *n = m->groups; n; n = n->next) {
        relay_group_pause(n->group);
    }
}

void relay_manager_resume(struct relay_manager *m)
{
    for (struct manager_node *n = m->groups; n; n = n->next) {
        relay_group_resume(n->group);
    }
}

/* The counters of what is over, in the order in which they are kept. */
static atomic_uint_fast64_t *total(struct relay_manager *m, size_t i)
{
    struct relay_totals *t = &m->totals[i / 5];
    atomic_uint_fast64_t *const all[] = {&t->streams, &t->bytes_in, &t->bytes_out, &t->replayed,
                                         &t->resumes};

    return all[i % 5];
}

static size_t count_groups(const struct relay_manager *m)
{
    size_t count = 0;

    for (const struct manager_node *n = m->groups; n; n = n->next) {
        count++;
    }
    return count;
}

void relay_manager_save(struct relay_manager *m, struct relay_state *ret, struct relay_fds *fds)
{
    *ret = (struct relay_state){
        .rate = relay_rate_get(m->env.rate), .draining = m->draining, .control = -1};
    memcpy(ret->instance, m->env.instance, sizeof(ret->instance));
    for (size_t i = 0; i < RELAY_STATE_TOTALS; i++) {
        ret->totals[i] = atomic_load(total(m, i));
    }
    ret->predecessors = ferry_xcalloc(m->n_predecessors + 1, sizeof(*ret->predecessors));
    for (size_t i = 0; i < m->n_predecessors; i++) {
        ret->predecessors[ret->n_predecessors++] = relay_fds_add(fds, m->predecessors[i]);
    }
    ret->n_denials = tls_denials_copy(m->env.denials, &ret->denials);
    ret->n_paths = relay_paths_save(m->env.paths, &ret->paths);
    ret->groups = ferry_xcalloc(count_groups(m) + 1, sizeof(*ret->groups));
    for (struct manager_node *n = m->groups; n; n = n->next) {
        relay_group_save(n->group, &ret->groups[ret->n_groups++], fds);
    }
}

static void abandon_all(struct relay_manager *m)
{
    while (m->groups) {
        struct manager_node *n = m->groups;

        m->groups = n->next;
        relay_group_abandon(n->group);
        relay_group_stop(n->group);
        free(n);
    }
}

int relay_manager_restore(struct relay_manager *m, struct relay_state *from, struct relay_fds *fds,
                          struct ferry_error *err)
{
    uint8_t own[FRAME_ID];

    memcpy(own, m->env.instance, FRAME_ID);
    memcpy(m->env.instance, from->instance, FRAME_ID);
    /* The list begins with the last: it comes out in the order in which it was. */
    for (size_t i = from->n_groups; i-- > 0;) {
        struct relay_group *g = NULL;
        int rc = relay_group_restore(&from->groups[i], fds, &m->env, &g, err);

        if (rc < 0) {
            memcpy(m->env.instance, own, FRAME_ID);
            abandon_all(m);
            return rc;
        }
        manager_add(m, g);
    }
    if (from->n_denials) {
        tls_denials_set(m->env.denials, from->denials, from->n_denials);
    }
    manager_name_instance(m);
    relay_rate_set(m->env.rate, from->rate);
    m->draining = from->draining;
    for (size_t i = 0; i < RELAY_STATE_TOTALS; i++) {
        atomic_store(total(m, i), from->totals[i]);
    }
    for (size_t i = 0; i < from->n_paths; i++) {
        relay_paths_restore(m->env.paths, &from->paths[i]);
    }
    for (size_t i = 0; i < from->n_predecessors; i++) {
        relay_manager_add_predecessor(m, relay_fds_take(fds, from->predecessors[i]));
    }
    return 0;
}

void relay_manager_abandon(struct relay_manager *m)
{
    for (struct manager_node *n = m->groups; n; n = n->next) {
        relay_group_abandon(n->group);
    }
    manager_predecessors_done(m);
}

static bool is_bound(const struct manager_node *n)
{
    return relay_group_spec(n->group)->mode != RELAY_FERRY;
}

size_t relay_manager_bound_count(struct relay_manager *m)
{
    size_t streams = 0;

    pthread_mutex_lock(&m->lock);
    for (struct manager_node *n = m->groups; n; n = n->next) {
        streams += is_bound(n) ? relay_group_stream_count(n->group) : 0;
    }
    pthread_mutex_unlock(&m->lock);
    return streams;
}

struct relay_group *relay_manager_first(struct relay_manager *m)
{
    return m->groups ? m->groups->group : NULL;
}

/* ---- predecessors
 * ---------------------------------------------------------------------------------
 */

void relay_manager_add_predecessor(struct relay_manager *m, int fd)
{
    m->predecessors =
        ferry_xrealloc(m->predecessors, m->n_predecessors + 1, sizeof(*m->predecessors));
    m->predecessors[m->n_predecessors++] = fd;
}

size_t relay_manager_predecessor_count(struct relay_manager *m)
{
    size_t keep = 0;

    for (size_t i = 0; i < m->n_predecessors; i++) {
        struct pollfd p = {.fd = m->predecessors[i]};

        if (poll(&p, 1, 0) == 0) {
            m->predecessors[keep++] = m->predecessors[i];
        } else {
            close(m->predecessors[i]);
        }
    }
    m->n_predecessors = keep;
    return keep;
}

static void tell_predecessors(struct relay_manager *m, enum predecessor_order order,
                              enum relay_role role, const char *key)
{
    size_t keep = 0;

    for (size_t i = 0; i < m->n_predecessors; i++) {
        if (predecessor_send(m->predecessors[i], order, role, key)) {
            m->predecessors[keep++] = m->predecessors[i];
        } else {
            close(m->predecessors[i]);
        }
    }
    m->n_predecessors = keep;
}

void manager_predecessors_end(struct relay_manager *m, enum relay_role role, const char *key)
{
    tell_predecessors(m, PREDECESSOR_END_MOVE, role, key);
}

void relay_manager_end_predecessors(struct relay_manager *m)
{
    tell_predecessors(m, PREDECESSOR_END_ALL, RELAY_TARGET, "");
}

void manager_predecessors_done(struct relay_manager *m)
{
    for (size_t i = 0; i < m->n_predecessors; i++) {
        close(m->predecessors[i]);
    }
    free(m->predecessors);
    m->predecessors = NULL;
    m->n_predecessors = 0;
}
