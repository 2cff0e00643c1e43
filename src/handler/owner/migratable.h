/* Whether a VMI can be moved, and how: KubeVirt's rules, in KubeVirt's order. Pure.
 *
 * Some of the devices they speak of are refused by Ferry's launcher; a VMI that a cluster brings
 * along may name them all the same, and its conditions say what KubeVirt's would. */
#pragma once

#include <stdbool.h>

#include "api/kinds.h"

enum { MIGRATABLE_TEXT = 256, MIGRATABLE_TEXTS = 1024 };

struct migratable {
    bool yes;
    const char *reason;                     /* the first that speaks against it, when not */
    char message[MIGRATABLE_TEXT];          /* when not */
    bool block;                             /* method BlockMigration: some volume must be copied */
    bool storage;                           /* its volumes could be exchanged by a move */
    char storage_message[MIGRATABLE_TEXTS]; /* all that speaks against that, when not */
};

/* `host_model_known`: this node says which CPU host-model is here. */
struct migratable migratable_of(const struct api_vmi *vmi, bool host_model_known);
/* Whether that matters for the VMI. */
bool migratable_needs_host_model(const struct api_vmi *vmi);
