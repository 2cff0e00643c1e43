/* Theory of operation
 *
 * All that is fixed at the start (spec, listeners, ports, descriptors) is read without a lock. The
 * list of streams is under `lock`. A stream's thread marks its entry as finished and wakes the
 * accepting thread, which joins it and frees the entry; relay_group_stop() joins what is left. One
 * event descriptor tells all streams of the group to end, or to leave their threads so that they
 * can go on elsewhere (group_handover.c); another one tells the accepting thread. */
#include "relay/manager/group_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "relay/stream/session.h"

enum {
    UNIX_BACKLOG = 64,
    /* Whoever reaches the directory may connect; the directory is the gate
       (docs/contracts/paths.md). */
    SOCKET_MODE = 0666,
    OWN_SOCKET_MODE = 0660, /* where an operator named the path there is no such gate */
    STACK_BYTES = 1024 * 1024,
    PAUSE_MS = 100,
};

/* ---- streams ----------------------------------------------------------------------------------
 */

static void list_add(struct relay_group *g, struct group_entry *e)
{
    pthread_mutex_lock(&g->lock);
    e->next = g->streams;
    g->streams = e;
    g->n_streams++;
    pthread_mutex_unlock(&g->lock);
}

/* Takes the first entry off the list that is finished, or any; NULL when there is none. */
static struct group_entry *list_take(struct relay_group *g, bool finished_only)
{
    pthread_mutex_lock(&g->lock);
    struct group_entry **at = &g->streams;
    while (*at && finished_only && !(*at)->finished) {
        at = &(*at)->next;
    }
    struct group_entry *e = *at;
    if (e) {
        *at = e->next;
    }
    pthread_mutex_unlock(&g->lock);
    return e;
}

static void join_streams(struct relay_group *g, bool finished_only)
{
    struct group_entry *e;

    while ((e = list_take(g, finished_only))) {
        if (e->started) {
            pthread_join(e->thread, NULL);
        }
        if (e->session) {
            relay_session_cancel(e->session);
        } else if (!e->started) {
            close(e->fd);
        }
        free(e);
    }
}

static void add_to_totals(const struct group_entry *e)
{
    const struct relay_group *g = e->group;
    struct relay_totals *t = g->env->totals ? &g->env->totals[g->spec->role] : NULL;

    if (t) {
        atomic_fetch_add(&t->streams, 1);
        atomic_fetch_add(&t->bytes_in, atomic_load(&e->stats.bytes.in));
        atomic_fetch_add(&t->bytes_out, atomic_load(&e->stats.bytes.out));
        atomic_fetch_add(&t->replayed, atomic_load(&e->stats.replayed));
        atomic_fetch_add(&t->resumes, atomic_load(&e->stats.resumes));
    }
}

static void *stream_thread(void *arg)
{
    struct group_entry *e = arg;
    struct relay_group *g = e->group;

    if (relay_stream_run(&e->stream, e->fd, &e->session) != RELAY_OVER) {
        return NULL; /* to be gone on with */
    }
    pthread_mutex_lock(&g->lock);
    if (!e->arriving) {
        add_to_totals(e);
    }
    e->finished = true;
    group_leave(g, e);
    pthread_mutex_unlock(&g->lock);
    eventfd_write(g->finished_fd, 1);
    return NULL;
}

int group_start_thread(struct group_entry *e)
{
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int rc = pthread_create(&e->thread, &attr, stream_thread, e);
    pthread_attr_destroy(&attr);
    e->started = rc == 0;
    return rc;
}

void group_drop_entry(struct relay_group *g, struct group_entry *e)
{
    pthread_mutex_lock(&g->lock);
    struct group_entry **at = &g->streams;
    while (*at != e) {
        at = &(*at)->next;
    }
    *at = e->next;
    if (!e->finished) {
        group_leave(g, e);
    }
    pthread_mutex_unlock(&g->lock);
    free(e);
}

static void socket_name(const struct relay_spec *spec, const struct relay_channel *channel,
                        char ret[FERRY_CHANNEL_NAME])
{
    ferry_channel_socket(spec->key, (enum ferry_channel)channel->logical, ret);
}

static void name_local(const struct relay_group *g, const struct relay_channel *channel,
                       char ret[RELAY_LOCAL_NAME])
{
    char name[FERRY_CHANNEL_NAME];

    if (channel->unix_path) {
        snprintf(ret, RELAY_LOCAL_NAME, "%s", channel->unix_path);
    } else {
        socket_name(g->spec, channel, name);
        snprintf(ret, RELAY_LOCAL_NAME, "%s/%s", g->spec->dir, name);
    }
}

static void name_address(char ret[RELAY_NET_NAME], const char *address, int port)
{
    snprintf(ret, RELAY_NET_NAME, strchr(address, ':') ? "[%s]:%d" : "%s:%d", address, port);
}

struct group_entry *group_add_entry(struct relay_group *g, size_t index, int fd)
{
    const struct relay_channel *channel = &g->spec->channels[index];
    struct group_entry *e = ferry_xcalloc(1, sizeof(*e));

    e->group = g;
    e->fd = fd;
    e->watch_fd = -1;
    e->stats.since_ms = ferry_now_unix_ms();
    if (g->spec->role == RELAY_TARGET) {
        relay_net_peer_name(fd, e->stats.peer);
        name_address(e->stats.listener, g->spec->address, g->ports[index]);
    } else {
        name_address(e->stats.peer, g->spec->address, channel->port);
    }
    name_local(g, channel, e->stats.local);
    e->stream = (struct relay_stream){
        .spec = g->spec,
        .channel = channel,
        .env = g->env,
        .registry = g->registry,
        .rate = g->spec->role == RELAY_SOURCE ? g->rate : NULL,
        .stop_fd = g->stop_fd,
        .pausing = &g->pausing,
        .slot = channel->logical == FERRY_CHANNEL_CONTROL ? &g->control_busy : NULL,
        .stats = &e->stats,
        .take_place = group_take_place,
        .place_ctx = e,
    };
    list_add(g, e);
    return e;
}

static void add_stream(struct relay_group *g, size_t index, int fd)
{
    struct group_entry *e = group_add_entry(g, index, fd);
    int rc = g->spec->role == RELAY_TARGET ? group_arrive(g, e) : 0;

    rc = rc == 0 ? group_start_thread(e) : rc;
    if (rc != 0) {
        ferry_warn("connection refused: no thread or descriptor", F_STR("key", g->spec->key),
                   F_STR("peer", e->stats.peer), F_STR("error", strerror(rc)));
        close(fd);
        group_drop_entry(g, e);
    }
}

/* ---- accepting --------------------------------------------------------------------------------
 */

static bool out_of_resources(int e)
{
    return e == EMFILE || e == ENFILE || e == ENOBUFS || e == ENOMEM;
}

/* Takes one connection if there is one. Returns false when it must pause first. */
static bool accept_one(struct relay_group *g, size_t index)
{
    int fd = accept4(g->listeners[index], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0) {
        add_stream(g, index, fd);
        return true;
    }
    /* Everything else is about a connection that went away before it was taken. */
    return !out_of_resources(errno);
}

static bool accept_ready(struct relay_group *g, const struct pollfd *p)
{
    /* At a target it is seen later, when somebody has proven to be who may have a stream. */
    if (g->spec->role == RELAY_SOURCE ? relay_group_stream_count(g) >= GROUP_STREAMS_MAX
                                      : !group_arrivals_fit(g)) {
        return false;
    }
    for (size_t i = 0; i < g->spec->n_channels; i++) {
        if (p[i].revents && !accept_one(g, i)) {
            return false;
        }
    }
    return true;
}

static void *accept_thread(void *arg)
{
    struct relay_group *g = arg;
    size_t n = g->spec->n_channels;
    bool paused = false;

    for (;;) {
        struct pollfd p[RELAY_CHANNELS_MAX + 2];
        eventfd_t ignored;

        for (size_t i = 0; i < n; i++) {
            p[i] = (struct pollfd){.fd = g->listeners[i], .events = POLLIN};
        }
        p[n] = (struct pollfd){.fd = g->quiet_fd, .events = POLLIN};
        p[n + 1] = (struct pollfd){.fd = g->finished_fd, .events = POLLIN};
        if (poll(p, n + 2, -1) < 0) {
            continue; /* EINTR */
        }
        if (p[n].revents) {
            return NULL;
        }
        if (p[n + 1].revents) {
            eventfd_read(g->finished_fd, &ignored);
            join_streams(g, true);
        }
        bool good = accept_ready(g, p);
        if (good == paused) {
            FERRY_LOG(good ? FERRY_LOG_INFO : FERRY_LOG_WARN,
                      good ? "accepting goes on" : "accepting pauses: out of resources",
                      F_STR("role", relay_role_name(g->spec->role)), F_STR("key", g->spec->key),
                      F_UINT("streams", relay_group_stream_count(g)));
            paused = !good;
        }
        if (!good && relay_net_wait(-1, 0, g->quiet_fd, ferry_now_ns() + PAUSE_MS * FERRY_NS_PER_MS,
                                    NULL) == -FERRY_CANCELLED) {
            return NULL;
        }
    }
}

/* ---- starting and stopping --------------------------------------------------------------------
 */

static int listen_unix(struct relay_group *g, const struct relay_channel *channel,
                       struct ferry_error *err)
{
    char name[FERRY_CHANNEL_NAME], shown[RELAY_LOCAL_NAME];

    socket_name(g->spec, channel, name);
    name_local(g, channel, shown);
    /* By way of the descriptor: what the directory is was settled when it was opened. */
    ferry_cleanup_free char *path = channel->unix_path
                                        ? ferry_strdup(channel->unix_path)
                                        : ferry_asprintf("/proc/self/fd/%d/%s", g->dirfd, name);
    ferry_cleanup_fd int fd = ferry_unix_listen(
        path, channel->unix_path ? OWN_SOCKET_MODE : SOCKET_MODE, UNIX_BACKLOG, err);
    if (fd < 0) {
        return ferry_wrap(err, "%s", shown);
    }
    int rc = ferry_set_nonblock(fd, true, err);
    return rc < 0 ? rc : ferry_take_fd(&fd);
}

/* Where a target will dial. What is not there yet may come; a directory that this user may not pass
 * would end every stream, and nobody would know why. */
static int check_way(const char *path, struct ferry_error *err)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    if (!slash || slash == path) {
        return 0;
    }
    ferry_cleanup_free char *dir = ferry_strndup(path, (size_t)(slash - path));
    if (access(dir, X_OK) < 0 && errno == EACCES) {
        return ferry_fail_errno(err, EACCES, "uid %u cannot pass to %s", getuid(), dir);
    }
    return 0;
}

static int listen_all(struct relay_group *g, struct ferry_error *err)
{
    const struct relay_spec *s = g->spec;

    if (s->role == RELAY_SOURCE && s->dir) {
        g->dirfd = open(s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (g->dirfd < 0) {
            return ferry_fail_errno(err, errno, "uid %u cannot open directory %s", getuid(),
                                    s->dir);
        }
    }
    for (size_t i = 0; s->role == RELAY_TARGET && i < s->n_channels; i++) {
        int rc = check_way(s->channels[i].unix_path, err);

        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < s->n_channels; i++) {
        g->ports[i] = s->channels[i].port;
        int fd = s->role == RELAY_SOURCE
                     ? listen_unix(g, &s->channels[i], err)
                     : relay_net_listen(s->address, &g->ports[i], s->mode != RELAY_FERRY, err);

        if (fd < 0) {
            return fd;
        }
        g->listeners[i] = fd;
    }
    return 0;
}

void group_close_listeners(struct relay_group *g)
{
    for (size_t i = 0; i < g->spec->n_channels; i++) {
        if (g->listeners[i] < 0) {
            continue;
        }
        if (g->spec->role == RELAY_SOURCE && !g->handed_over) {
            char name[FERRY_CHANNEL_NAME];

            const struct relay_channel *c = &g->spec->channels[i];

            socket_name(g->spec, c, name);
            /* The pod's directory may be gone already. */
            (void)unlinkat(c->unix_path ? AT_FDCWD : g->dirfd, c->unix_path ? c->unix_path : name,
                           0);
        }
        close(g->listeners[i]);
        g->listeners[i] = -1;
    }
}

void relay_group_stop(struct relay_group *g)
{
    if (!g) {
        return;
    }
    if (g->stop_fd >= 0) {
        eventfd_write(g->stop_fd, 1);
    }
    group_stop_accepting(g);
    group_close_listeners(g);
    join_streams(g, false);
    ferry_closep(&g->dirfd);
    ferry_closep(&g->stop_fd);
    ferry_closep(&g->quiet_fd);
    ferry_closep(&g->finished_fd);
    pthread_mutex_destroy(&g->lock);
    relay_registry_free(g->registry);
    relay_rate_free(g->rate);
    relay_spec_free(g->spec);
    free(g);
}
FERRY_DEFINE_CLEANUP(struct relay_group *, relay_group_stop)

struct relay_group *group_new(struct relay_spec *spec_take, const struct relay_env *env)
{
    struct relay_group *g = ferry_xcalloc(1, sizeof(*g));

    g->spec = spec_take;
    g->env = env;
    g->registry = relay_registry_new();
    g->rate = relay_rate_new(env->rate, spec_take->rate);
    g->dirfd = g->stop_fd = g->quiet_fd = g->finished_fd = -1;
    for (size_t i = 0; i < RELAY_CHANNELS_MAX; i++) {
        g->listeners[i] = -1;
    }
    pthread_mutex_init(&g->lock, NULL);
    return g;
}

int group_open_events(struct relay_group *g, struct ferry_error *err)
{
    int *const fds[] = {&g->stop_fd, &g->quiet_fd, &g->finished_fd};

    for (size_t i = 0; i < FERRY_COUNT(fds); i++) {
        *fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (*fds[i] < 0) {
            return ferry_fail_errno(err, errno, "making an event descriptor");
        }
    }
    return 0;
}

int group_start_accepting(struct relay_group *g, struct ferry_error *err)
{
    int e = pthread_create(&g->acceptor, NULL, accept_thread, g);

    if (e != 0) {
        return ferry_fail_errno(err, e, "starting a thread");
    }
    g->accepting = true;
    return 0;
}

void group_stop_accepting(struct relay_group *g)
{
    eventfd_t ignored;

    if (g->accepting) {
        eventfd_write(g->quiet_fd, 1);
        pthread_join(g->acceptor, NULL);
        (void)eventfd_read(g->quiet_fd, &ignored);
        g->accepting = false;
    }
}

int relay_group_start(struct relay_spec *spec_take, const struct relay_env *env,
                      struct relay_group **ret, struct ferry_error *err)
{
    ferry_cleanup(relay_group_stopp) struct relay_group *g = group_new(spec_take, env);
    int rc = group_open_events(g, err);

    if (g->spec->mode == RELAY_PLAIN) {
        ferry_warn(
            "without TLS: whoever can read or forge packets on this path can read and change "
            "the guest's memory",
            F_STR("key", g->spec->key), F_STR("address", g->spec->address));
    }
    if (rc < 0 || (rc = listen_all(g, err)) < 0 || (rc = group_start_accepting(g, err)) < 0) {
        return rc;
    }
    *ret = ferry_take_ptr(g);
    return 0;
}

/* ---- telling ----------------------------------------------------------------------------------
 */

const struct relay_spec *relay_group_spec(const struct relay_group *g)
{
    return g->spec;
}

size_t relay_group_stream_count(struct relay_group *g)
{
    pthread_mutex_lock(&g->lock);
    size_t n = g->n_streams;
    pthread_mutex_unlock(&g->lock);
    return n;
}

static size_t arriving_count(struct relay_group *g)
{
    pthread_mutex_lock(&g->lock);
    size_t n = g->n_arriving;
    pthread_mutex_unlock(&g->lock);
    return n;
}

int relay_group_port(const struct relay_group *g)
{
    return g->ports[0];
}

void relay_group_set_rate(struct relay_group *g, uint64_t bytes_per_s)
{
    g->spec->rate = bytes_per_s;
    relay_rate_set(g->rate, bytes_per_s);
}

void relay_group_sum(struct relay_group *g, struct relay_group_sums *sums)
{
    pthread_mutex_lock(&g->lock);
    for (const struct group_entry *e = g->streams; e; e = e->next) {
        const struct relay_stream_stats *st = &e->stats;
        int state = atomic_load(&st->state);
        int64_t rtt = atomic_load(&st->rtt_us), away = atomic_load(&st->away_ns);

        if (e->finished || e->arriving) {
            continue;
        }
        sums->streams++;
        sums->bytes_in += atomic_load(&st->bytes.in);
        sums->bytes_out += atomic_load(&st->bytes.out);
        sums->replayed += atomic_load(&st->replayed);
        sums->resumes += atomic_load(&st->resumes);
        sums->open += state == RELAY_STREAM_OPEN;
        sums->away += state == RELAY_STREAM_AWAY;
        sums->rate_in += state == RELAY_STREAM_OPEN ? atomic_load(&st->rate_in) : 0;
        sums->rate_out += state == RELAY_STREAM_OPEN ? atomic_load(&st->rate_out) : 0;
        if (rtt > 0 && (sums->rtt_us == 0 || rtt < sums->rtt_us)) {
            sums->rtt_us = rtt;
        }
        if (away > 0 && (sums->away_ns == 0 || away < sums->away_ns)) {
            sums->away_ns = away;
        }
        if (sums->since_ms == 0 || st->since_ms < sums->since_ms) {
            sums->since_ms = st->since_ms;
        }
    }
    pthread_mutex_unlock(&g->lock);
}

void relay_group_describe(struct relay_group *g, yyjson_mut_doc *doc, yyjson_mut_val *obj)
{
    const struct relay_spec *s = g->spec;
    bool target = s->role == RELAY_TARGET;

    yyjson_mut_obj_add_strcpy(doc, obj, "key", s->key);
    yyjson_mut_obj_add_strcpy(doc, obj, "move", s->move);
    yyjson_mut_obj_add_uint(doc, obj, "generation", s->generation);
    yyjson_mut_obj_add_strcpy(doc, obj, target ? "sourceNode" : "targetNode", s->peer_node);
    yyjson_mut_obj_add_strcpy(doc, obj, "address", s->address);
    yyjson_mut_val *ports = yyjson_mut_obj_add_obj(doc, obj, "ports");
    for (size_t i = 0; i < s->n_channels; i++) {
        char port[16];

        snprintf(port, sizeof(port), "%d", g->ports[i]);
        yyjson_mut_obj_add(ports, yyjson_mut_strcpy(doc, port),
                           yyjson_mut_int(doc, s->channels[i].logical));
    }
    if (!target) {
        yyjson_mut_val *files = yyjson_mut_obj_add_arr(doc, obj, "files");

        for (size_t i = 0; i < s->n_channels; i++) {
            char name[FERRY_CHANNEL_NAME];

            socket_name(s, &s->channels[i], name);
            ferry_cleanup_free char *path = ferry_asprintf("%s/%s", s->dir, name);
            yyjson_mut_arr_add_strcpy(doc, files, path);
        }
    }
    yyjson_mut_obj_add_str(doc, obj, "tls", relay_mode_name(s->mode));
    if (s->mode == RELAY_FERRY) {
        yyjson_mut_obj_add_int(doc, obj, "resumeWindowS", s->resume_window_ns / FERRY_NS_PER_S);
    }
    if (!target) {
        struct relay_group_sums sums = {0};

        relay_group_sum(g, &sums);
        yyjson_mut_obj_add_uint(doc, obj, "rateBytesPerS", relay_rate_get(g->rate));
        yyjson_mut_obj_add_uint(doc, obj, "bytesPerS", sums.rate_out);
    }
    yyjson_mut_obj_add_uint(doc, obj, "streams", relay_group_stream_count(g));
    if (target) {
        yyjson_mut_obj_add_uint(doc, obj, "arriving", arriving_count(g));
    }
}

void relay_group_describe_streams(struct relay_group *g, yyjson_mut_doc *doc, yyjson_mut_val *list)
{
    pthread_mutex_lock(&g->lock);
    for (struct group_entry *e = g->streams; e; e = e->next) {
        if (e->finished || e->arriving) {
            continue;
        }
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);

        yyjson_mut_obj_add_strcpy(doc, o, "key", g->spec->key);
        yyjson_mut_obj_add_strcpy(doc, o, "move", g->spec->move);
        yyjson_mut_obj_add_int(doc, o, "channel", e->stream.channel->logical);
        yyjson_mut_obj_add_str(doc, o, "role", relay_role_name(g->spec->role));
        yyjson_mut_obj_add_str(doc, o, "state",
                               relay_stream_state_name(atomic_load(&e->stats.state)));
        yyjson_mut_obj_add_strcpy(doc, o, "peer", e->stats.peer);
        yyjson_mut_obj_add_uint(doc, o, "bytesIn", atomic_load(&e->stats.bytes.in));
        yyjson_mut_obj_add_uint(doc, o, "bytesOut", atomic_load(&e->stats.bytes.out));
        yyjson_mut_obj_add_int(doc, o, "sinceMs", e->stats.since_ms);
        if (g->spec->mode != RELAY_FERRY) {
            continue;
        }
        int64_t away = atomic_load(&e->stats.away_ns);

        yyjson_mut_obj_add_uint(doc, o, "resumes", atomic_load(&e->stats.resumes));
        yyjson_mut_obj_add_int(doc, o, "rttUs", atomic_load(&e->stats.rtt_us));
        yyjson_mut_obj_add_uint(doc, o, "bytesPerSIn", atomic_load(&e->stats.rate_in));
        yyjson_mut_obj_add_uint(doc, o, "bytesPerSOut", atomic_load(&e->stats.rate_out));
        yyjson_mut_obj_add_uint(doc, o, "replayedBytes", atomic_load(&e->stats.replayed));
        yyjson_mut_obj_add_uint(doc, o, "windowBytes", atomic_load(&e->stats.window));
        yyjson_mut_obj_add_uint(doc, o, "heldBytes", atomic_load(&e->stats.held));
        yyjson_mut_obj_add_int(doc, o, "awayMs",
                               away > 0 ? (ferry_now_ns() - away) / FERRY_NS_PER_MS : 0);
    }
    pthread_mutex_unlock(&g->lock);
}
