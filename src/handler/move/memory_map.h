/* What passes over VMIs remember, by the VMI's uid. An entry that is lent out belongs to the worker
 * that has the VMI's key and stays whole however often is swept meanwhile. Any thread. */
#pragma once

#include <stdbool.h>

#include "handler/move/pass.h"

struct memory_map;

struct memory_map *memory_map_new(void);
void memory_map_free(struct memory_map *m);

/* Lends the memory of a VMI, empty when there was none; to be given back. */
struct pass_memory *memory_map_lend(struct memory_map *m, const char *uid);
void memory_map_give_back(struct memory_map *m, struct pass_memory *lent);

/* Forgets the VMIs of which `known(ctx, uid)` says false in several sweeps, and which were not lent
 * meanwhile. */
void memory_map_sweep(struct memory_map *m, bool (*known)(void *ctx, const char *uid), void *ctx);
