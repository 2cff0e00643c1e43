/* What looks at VMIs remember, by the VMI's uid. An entry that is lent out belongs to the worker
 * that has the VMI's key and stays whole however often is swept meanwhile. Any thread. */
#pragma once

#include <stdbool.h>

#include "handler/move/look.h"

struct memories;

struct memories *memories_new(void);
void memories_free(struct memories *m);

/* Lends the memory of a VMI, empty when there was none; to be given back. */
struct look_memory *memories_lend(struct memories *m, const char *uid);
void memories_give_back(struct memories *m, struct look_memory *lent);

/* Forgets the VMIs of which `known(ctx, uid)` says false in several sweeps, and which were not lent
 * meanwhile. */
void memories_sweep(struct memories *m, bool (*known)(void *ctx, const char *uid), void *ctx);
