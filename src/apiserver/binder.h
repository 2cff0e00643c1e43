/* PersistentVolumeClaims and the volumes that were made for them by hand: each claim gets the
 * smallest volume that fits. Nothing is provisioned. Part of the collector. */
#pragma once

#include "apiserver/store.h"

void binder_sweep(struct store *store);

/* Pure: does the volume fit the claim? `ret_bytes` is its size. */
bool binder_fits(const yyjson_val *claim, const yyjson_val *volume, int64_t *ret_bytes);
