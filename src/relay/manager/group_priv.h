/* Inside of relay/group: shared by group.c (a move at work), group_arrive.c (who is not proven yet)
 * and group_handover.c (a move that changes its process). Nobody else includes it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "http/doors_decide.h"
#include "relay/manager/group.h"
#include "relay/stream/stream.h"

enum {
    /* multifd takes up to 255 connections and one; then there are disks and control. */
    GROUP_STREAMS_MAX = 320,
};

struct group_entry {
    struct relay_stream stream;
    struct relay_stream_stats stats;
    struct relay_group *group;
    struct group_entry *next;
    pthread_t thread;
    int fd;       /* as accepted, while nothing was done about it */
    bool started; /* there is a thread to be joined */
    struct doors_address address;
    /* Under the group's lock: */
    bool finished;           /* the thread is done with everything */
    bool arriving;           /* not proven yet: no stream, but counted as arriving */
    bool ended;              /* shut down, to make room */
    int watch_fd;            /* of the same socket, while arriving; else -1 */
    struct session *session; /* of a stream that is parked */
};

struct relay_group {
    struct relay_spec *spec;
    const struct relay_env *env;
    struct relay_registry *registry;
    struct relay_rate *rate;
    int stop_fd, finished_fd, dirfd;
    int quiet_fd;        /* readable = stop accepting */
    atomic_bool pausing; /* `stop_fd` means: leave, to go on elsewhere */
    bool handed_over;    /* the socket files belong to a successor */
    int listeners[RELAY_CHANNELS_MAX], ports[RELAY_CHANNELS_MAX];
    atomic_bool control_busy;
    pthread_t acceptor;
    bool accepting;
    pthread_mutex_t lock; /* over the rest */
    struct group_entry *streams;
    size_t n_streams, n_arriving; /* that are not finished */
};

/* group.c */
struct relay_group *group_new(struct relay_spec *spec_take, const struct relay_env *env);
/* The descriptors by which its threads are told. */
int group_open_events(struct relay_group *g, struct ferry_error *err);
int group_start_accepting(struct relay_group *g, struct ferry_error *err);
void group_stop_accepting(struct relay_group *g);
/* And removes the socket files, unless they belong to a successor. */
void group_close_listeners(struct relay_group *g);
/* group_arrive.c */
/* Whether another connection may be accepted at a target. */
bool group_arrivals_fit(struct relay_group *g);
/* An entry that was just added counts as arriving. 0 or an errno. */
int group_arrive(struct relay_group *g, struct group_entry *e);
/* Under the lock: it counts no more. */
void group_leave(struct relay_group *g, struct group_entry *e);
/* Of a group_entry: it has proven itself and counts as a stream. False: there are as many as may
 * be. */
bool group_take_place(void *ctx);

/* group.c again. A stream of that channel, added to the list; it has no thread yet. */
struct group_entry *group_add_entry(struct relay_group *g, size_t index, int fd);
/* 0 or an errno. */
int group_start_thread(struct group_entry *e);
/* Takes `e` off the list and frees it; its thread is over or never was. */
void group_drop_entry(struct relay_group *g, struct group_entry *e);
