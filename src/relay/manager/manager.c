#include "relay/manager/manager_priv.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include <yyjson.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "relay/manager/denied.h"
#include "relay/stream/paths.h"
#include "json/doc.h"

/* ---- JSON -------------------------------------------------------------------------------------
 */

struct reply {
    yyjson_mut_doc *doc;
    yyjson_mut_val *root;
};

static struct reply reply_new(void)
{
    struct reply r = {.doc = json_doc_new()};

    r.root = json_doc_object(r.doc);
    return r;
}

static char *reply_text(struct reply *r)
{
    return json_doc_take(r->doc);
}

static char *describe(const struct relay_manager *m, struct relay_group *g)
{
    struct reply r = reply_new();

    yyjson_mut_obj_add_strcpy(r.doc, r.root, "instance", m->instance);
    relay_group_describe(g, r.doc, r.root);
    return reply_text(&r);
}

/* ---- the table --------------------------------------------------------------------------------
 */

/* The link that points to the node, or to NULL at the end. */
static struct manager_node **find_locked(struct relay_manager *m, enum relay_role role,
                                         const char *key)
{
    struct manager_node **at = &m->groups;

    while (*at) {
        const struct relay_spec *s = relay_group_spec((*at)->group);

        if (s->role == role && ferry_streq(s->key, key)) {
            break;
        }
        at = &(*at)->next;
    }
    return at;
}

static void remove_locked(struct relay_manager *m, struct manager_node **at)
{
    struct manager_node *n = *at;
    const struct relay_spec *s = relay_group_spec(n->group);

    *at = n->next;
    manager_predecessors_end(m, s->role, s->key);
    relay_group_stop(n->group);
    free(n);
}

void manager_add(struct relay_manager *m, struct relay_group *g)
{
    struct manager_node *n = ferry_xcalloc(1, sizeof(*n));

    n->group = g;
    n->next = m->groups;
    m->groups = n;
}

static int start_locked(struct relay_manager *m, struct relay_spec *spec_take,
                        struct manager_node **old, char **ret_json, struct ferry_error *err)
{
    bool source = spec_take->role == RELAY_SOURCE;
    const char *what = *old ? "replaced" : "set";
    struct relay_group *g = NULL;

    if (*old && source) {
        remove_locked(m, old);
    }
    int rc = relay_group_start(spec_take, &m->env, &g, err);
    if (rc < 0) {
        return rc;
    }
    if (*old && !source) {
        remove_locked(m, old);
    }
    manager_add(m, g);
    *ret_json = describe(m, g);
    ferry_info(source ? "source set up" : "target set up", F_STR("key", relay_group_spec(g)->key),
               F_STR("move", relay_group_spec(g)->move), F_STR("change", what),
               F_STR("node", relay_spec_peer(relay_group_spec(g))),
               F_STR("address", relay_group_spec(g)->address),
               F_STR("tls", relay_mode_name(relay_group_spec(g)->mode)));
    return 0;
}

int relay_manager_put(struct relay_manager *m, struct relay_spec *spec_take, char **ret_json,
                      struct ferry_error *err)
{
    ferry_cleanup(relay_spec_freep) struct relay_spec *spec = spec_take;
    int rc = 0;

    pthread_mutex_lock(&m->lock);
    struct manager_node **at = find_locked(m, spec->role, spec->key);
    struct relay_group *old = *at ? (*at)->group : NULL;
    switch (relay_spec_decide(old ? relay_group_spec(old) : NULL, spec, m->draining)) {
    case RELAY_REFUSE:
        rc = ferry_fail(err, FERRY_RETRY, "this relay is draining: it takes no new moves");
        break;
    case RELAY_KEEP:
        *ret_json = describe(m, old);
        break;
    case RELAY_ADJUST:
        relay_group_set_rate(old, spec->rate);
        *ret_json = describe(m, old);
        break;
    case RELAY_REPLACE:
    case RELAY_CREATE:
        rc = start_locked(m, ferry_take_ptr(spec), at, ret_json, err);
        break;
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

int relay_manager_add(struct relay_manager *m, struct relay_spec *spec_take,
                      struct ferry_error *err)
{
    struct relay_group *g = NULL;
    int rc = relay_group_start(spec_take, &m->env, &g, err);

    if (rc == 0) {
        pthread_mutex_lock(&m->lock);
        manager_add(m, g);
        pthread_mutex_unlock(&m->lock);
    }
    return rc;
}

int relay_manager_get(struct relay_manager *m, enum relay_role role, const char *key,
                      char **ret_json, struct ferry_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&m->lock);
    struct manager_node *n = *find_locked(m, role, key);
    if (n) {
        *ret_json = describe(m, n->group);
    } else {
        rc = ferry_fail(err, FERRY_NOT_FOUND, "no %s with key '%s'", relay_role_name(role), key);
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

bool relay_manager_delete(struct relay_manager *m, enum relay_role role, const char *key)
{
    pthread_mutex_lock(&m->lock);
    struct manager_node **at = find_locked(m, role, key);
    bool found = *at != NULL;
    if (found) {
        remove_locked(m, at);
        ferry_info(role == RELAY_SOURCE ? "source removed" : "target removed", F_STR("key", key));
    }
    pthread_mutex_unlock(&m->lock);
    return found;
}

/* ---- overviews --------------------------------------------------------------------------------
 */

char *relay_manager_list(struct relay_manager *m, enum relay_role role)
{
    struct reply r = reply_new();
    yyjson_mut_val *list =
        yyjson_mut_obj_add_arr(r.doc, r.root, role == RELAY_TARGET ? "targets" : "sources");

    pthread_mutex_lock(&m->lock);
    yyjson_mut_obj_add_strcpy(r.doc, r.root, "instance", m->instance);
    for (struct manager_node *n = m->groups; n; n = n->next) {
        if (relay_group_spec(n->group)->role == role) {
            relay_group_describe(n->group, r.doc, yyjson_mut_arr_add_obj(r.doc, list));
        }
    }
    pthread_mutex_unlock(&m->lock);
    return reply_text(&r);
}

char *relay_manager_streams(struct relay_manager *m)
{
    struct reply r = reply_new();
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(r.doc, r.root, "streams");

    pthread_mutex_lock(&m->lock);
    for (struct manager_node *n = m->groups; n; n = n->next) {
        relay_group_describe_streams(n->group, r.doc, list);
    }
    pthread_mutex_unlock(&m->lock);
    return reply_text(&r);
}

char *relay_manager_health(struct relay_manager *m)
{
    struct reply r = reply_new();
    size_t counts[2] = {0, 0}, streams = 0;

    pthread_mutex_lock(&m->lock);
    for (struct manager_node *n = m->groups; n; n = n->next) {
        counts[relay_group_spec(n->group)->role]++;
        streams += relay_group_stream_count(n->group);
    }
    yyjson_mut_obj_add_str(r.doc, r.root, "status", m->draining ? "draining" : "ok");
    pthread_mutex_unlock(&m->lock);
    yyjson_mut_obj_add_strcpy(r.doc, r.root, "instance", m->instance);
    yyjson_mut_obj_add_uint(r.doc, r.root, "targets", counts[RELAY_TARGET]);
    yyjson_mut_obj_add_uint(r.doc, r.root, "sources", counts[RELAY_SOURCE]);
    yyjson_mut_obj_add_uint(r.doc, r.root, "streams", streams);
    yyjson_mut_obj_add_int(r.doc, r.root, "pid", getpid()); /* an upgrade changes it */
    return reply_text(&r);
}

char *relay_manager_path(struct relay_manager *m, const char *node)
{
    struct reply r = reply_new();
    struct relay_group_sums sums = {0};
    uint64_t last_rate = 0;
    int64_t last_rtt = 0, since_s = 0;

    pthread_mutex_lock(&m->lock);
    for (struct manager_node *n = m->groups; n; n = n->next) {
        if (ferry_streq(relay_group_spec(n->group)->peer_node, node)) {
            relay_group_sum(n->group, &sums);
        }
    }
    pthread_mutex_unlock(&m->lock);
    relay_paths_last(m->env.paths, node, &last_rate, &last_rtt);
    if (sums.away) {
        since_s = (ferry_now_ns() - sums.away_ns) / FERRY_NS_PER_S;
    } else if (sums.open) {
        since_s = (ferry_now_unix_ms() - sums.since_ms) / 1000;
    }
    yyjson_mut_obj_add_str(r.doc, r.root, "state", sums.away ? "away" : sums.open ? "up" : "none");
    yyjson_mut_obj_add_uint(r.doc, r.root, "bytesPerS", sums.rate_in + sums.rate_out);
    yyjson_mut_obj_add_uint(r.doc, r.root, "lastBytesPerS", last_rate);
    yyjson_mut_obj_add_int(r.doc, r.root, "rttUs", sums.rtt_us ? sums.rtt_us : last_rtt);
    yyjson_mut_obj_add_int(r.doc, r.root, "sinceS", since_s);
    return reply_text(&r);
}

/* What ended before, then what runs: in this order nothing is counted twice. */
static struct relay_figures figures_of_locked(struct relay_manager *m, enum relay_role role)
{
    struct relay_totals *t = &m->totals[role];
    struct relay_figures f = {
        .streams = atomic_load(&t->streams),
        .bytes_in = atomic_load(&t->bytes_in),
        .bytes_out = atomic_load(&t->bytes_out),
        .replayed = atomic_load(&t->replayed),
        .resumes = atomic_load(&t->resumes),
    };
    struct relay_group_sums sums = {0};

    for (struct manager_node *n = m->groups; n; n = n->next) {
        if (relay_group_spec(n->group)->role == role) {
            f.moves++;
            relay_group_sum(n->group, &sums);
        }
    }
    f.open = sums.open;
    f.away = sums.away;
    f.rate_in = sums.rate_in;
    f.rate_out = sums.rate_out;
    f.streams += sums.streams;
    f.bytes_in += sums.bytes_in;
    f.bytes_out += sums.bytes_out;
    f.replayed += sums.replayed;
    f.resumes += sums.resumes;
    relay_figures_settle(&f, &m->shown[role]);
    return f;
}

char *relay_manager_metrics(struct relay_manager *m)
{
    struct ferry_buf b = {0};
    struct relay_figures figures[2];

    pthread_mutex_lock(&m->lock);
    for (enum relay_role role = RELAY_TARGET; role <= RELAY_SOURCE; role++) {
        figures[role] = figures_of_locked(m, role);
    }
    bool draining = m->draining;
    pthread_mutex_unlock(&m->lock);
    relay_metrics_render(figures, relay_rate_get(m->env.rate), draining, &b);
    return b.data;
}

int relay_manager_set_rate(struct relay_manager *m, const char *json, size_t len, char **ret_json,
                           struct ferry_error *err)
{
    uint64_t rate = 0;
    int rc = relay_spec_parse_rate(json, len, &rate, err);

    if (rc < 0) {
        return rc;
    }
    relay_rate_set(m->env.rate, rate);
    ferry_info("rate limit set", F_UINT("bytesPerS", rate));
    *ret_json = ferry_asprintf("{\"bytesPerS\":%llu}", (unsigned long long)rate);
    return 0;
}

/* A stream whose connection is away asks for no certificate, and one without TLS never does: with
 * nobody at the other end who may come back, the whole move goes. */
static void end_moves_of_removed(struct relay_manager *m)
{
    pthread_mutex_lock(&m->lock);
    for (struct manager_node **at = &m->groups; *at;) {
        const struct relay_spec *s = relay_group_spec((*at)->group);

        if (!s->peer_node || !tls_denials_has_all(m->env.denials, s->peer_node)) {
            at = &(*at)->next;
            continue;
        }
        ferry_warn("move ended: the node at its other end was removed from the site",
                   F_STR("role", relay_role_name(s->role)), F_STR("key", s->key),
                   F_STR("node", s->peer_node));
        remove_locked(m, at);
    }
    pthread_mutex_unlock(&m->lock);
}

int relay_manager_set_denied(struct relay_manager *m, const char *json, size_t len, char **ret_json,
                             struct ferry_error *err)
{
    struct relay_denied d;
    int rc = relay_denied_parse(json, len, &d, err);

    if (rc < 0) {
        return rc;
    }
    if (tls_denials_set(m->env.denials, d.list, d.n)) {
        ferry_info("removed nodes are refused", F_UINT("nodes", d.n));
        end_moves_of_removed(m);
    }
    *ret_json = ferry_asprintf("{\"nodes\":%zu}", d.n);
    relay_denied_done(&d);
    return 0;
}

void relay_manager_set_memory(struct relay_manager *m, uint64_t bytes)
{
    relay_memory_set(m->env.memory, bytes);
}

void relay_manager_drain(struct relay_manager *m)
{
    pthread_mutex_lock(&m->lock);
    m->draining = true;
    pthread_mutex_unlock(&m->lock);
}

size_t relay_manager_stream_count(struct relay_manager *m)
{
    size_t streams = 0;

    pthread_mutex_lock(&m->lock);
    for (struct manager_node *n = m->groups; n; n = n->next) {
        streams += relay_group_stream_count(n->group);
    }
    pthread_mutex_unlock(&m->lock);
    return streams;
}

/* ---- life -------------------------------------------------------------------------------------
 */

void manager_name_instance(struct relay_manager *m)
{
    for (size_t i = 0; i < FRAME_ID; i++) {
        snprintf(m->instance + 2 * i, 3, "%02x", m->env.instance[i]);
    }
}

int relay_manager_new(struct tls_credentials *server, struct tls_credentials *client, uint64_t rate,
                      struct relay_manager **ret, struct ferry_error *err)
{
    struct relay_manager *m = ferry_xcalloc(1, sizeof(*m));

    m->env.server = server;
    m->env.client = client;
    m->env.totals = m->totals;
    if (getrandom(m->env.instance, FRAME_ID, 0) != FRAME_ID) {
        free(m);
        return ferry_fail_errno(err, errno, "reading random bytes");
    }
    manager_name_instance(m);
    m->env.denials = tls_denials_new();
    struct tls_credentials *const both[] = {server, client};
    for (size_t i = 0; i < 2; i++) {
        if (both[i]) {
            tls_credentials_deny(both[i], m->env.denials);
        }
    }
    m->env.rate = relay_rate_new(NULL, rate);
    m->env.paths = relay_paths_new();
    m->env.log_limit = relay_log_limit_new();
    m->env.memory = relay_memory_new(RELAY_MEMORY_DEFAULT);
    pthread_mutex_init(&m->lock, NULL);
    *ret = m;
    return 0;
}

void relay_manager_free(struct relay_manager *m)
{
    if (!m) {
        return;
    }
    pthread_mutex_lock(&m->lock);
    while (m->groups) {
        remove_locked(m, &m->groups);
    }
    pthread_mutex_unlock(&m->lock);
    manager_predecessors_done(m);
    pthread_mutex_destroy(&m->lock);
    relay_rate_free(m->env.rate);
    relay_paths_free(m->env.paths);
    relay_log_limit_free(m->env.log_limit);
    relay_memory_free(m->env.memory);
    tls_denials_free(m->env.denials);
    free(m);
}
