/* A cluster in memory over virtual time: an API with versions, patches and finalizers, a cache that
 * lags behind it, and nodes that play the part of pods agent and handlers, honestly or not at all.
 * One per process at a time; everything follows from the seed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/object.h"

enum { WORLD_NODES = 4, WORLD_VMS = 5 };

struct world_item {
    enum api_kind kind;
    char *name;
    int64_t born_ms;         /* by the clock that nobody sets */
    struct api_object *now;  /* what the API has; NULL = deleted */
    struct api_object *seen; /* what the cache shows; NULL = nothing */
};

struct world_change { /* on its way to the cache */
    struct world_item *item;
    struct api_object *object; /* or NULL */
};

struct world_guest { /* of VM i: the truth that the objects tell of */
    char *pod_uid;   /* in which it runs; NULL = it does not */
    bool lost;       /* its host died, or its VMI ended */
};

struct world_node {
    bool up, removed;
    bool stays_dead;  /* its object stays, and nobody does anything about it */
    bool cut;         /* it lives, and its guests, but does not reach the API */
    int64_t back_ms;  /* comes back then */
    int64_t quiet_ms; /* since when it has not reported; 0 = it does */
};

struct world {
    uint64_t seed, random;
    int64_t now_ms, wall_offset_ms; /* virtual; the wall clock may step */
    struct world_item **items;
    size_t n_items;
    struct world_change *changes;
    size_t n_changes;
    unsigned version, uids;
    bool storm; /* faults happen */
    struct world_node nodes[WORLD_NODES];
    struct world_guest guests[WORLD_VMS];
    /* Of its last move: the target has closed its listeners; the source has stopped the job. */
    bool unlistened[WORLD_VMS], stopped[WORLD_VMS];
    bool verbose;
};
extern struct world world;

void world_start(uint64_t seed, bool verbose);
void world_end(void);
/* Says what went wrong and how to see it again; does not return. */
_Noreturn void world_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void world_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

uint32_t world_random(uint32_t below);
bool world_chance(uint32_t percent);
int64_t world_wall_ms(void);

struct world_item *world_find(enum api_kind kind, const char *name);
/* Writes; all return 0 or a negative FERRY_ class. */
int world_create(enum api_kind kind, const char *name, const char *json);
int world_patch(enum api_kind kind, const char *name, const char *patch);
int world_delete(enum api_kind kind, const char *name, const char *uid);
void world_remove(struct world_item *item); /* at once, finalizers or not */

/* Nodes do some of what they could do now. */
void world_act(void);
/* Of a VMI that was made anew. */
void world_new_guest(int i);
/* The guest that runs in this pod, or -1. */
int world_guest_in(const char *pod_uid);
