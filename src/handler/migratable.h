/* Whether a VMI can be moved, and how: KubeVirt's rules, as far as Ferry's guests have the devices
 * they speak of. Pure. */
#pragma once

#include <stdbool.h>

#include "api/kinds.h"

struct migratable {
    bool yes;
    const char *reason;  /* KubeVirt's, when not */
    const char *message; /* when not */
    bool block;          /* method BlockMigration: some volume must be copied */
};

struct migratable migratable_of(const struct api_vmi *vmi);
