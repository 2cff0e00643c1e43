/* PersistentVolumeClaims and the PersistentVolumes that were made for them by hand. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

/* Does the volume fit the claim: size, modes, class, labels, and nobody else has it? Both are whole
 * objects; `ret_bytes` is the size of the volume. */
bool api_claim_fits(const yyjson_val *claim, const yyjson_val *volume, int64_t *ret_bytes);
