/* Objects whose deletion was asked for with a word about what they own: "foregroundDeletion" waits
 * until what blocks it is gone, "orphan" cuts it loose. Part of the collector. */
#pragma once

#include "apiserver/store/store.h"

/* False when something could not be written and is to be tried again. */
bool dependents_sweep(struct store *store);
/* The object waits for this. */
bool dependents_hold(const struct entry *e);
