/* PersistentVolumeClaims and the volumes that were made for them by hand: each claim gets the
 * smallest volume that fits; one whose class waits for the first consumer gets the volume that the
 * scheduler has kept for it. Nothing is provisioned. Part of the collector. */
#pragma once

#include "apiserver/store/store.h"

/* False when something could not be written and is to be tried again. */
bool binder_sweep(struct store *store);
