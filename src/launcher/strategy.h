/* What to do with a running migration, from what was measured. Pure.
 *
 * For now two deadlines, so that every move ends: no progress for too long (stuck: transport or
 * QEMU), and longer than the policy grants for a guest of its size (not converging). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/migrate_call.h"
#include "launcher/sample.h"

enum strategy_action { STRATEGY_KEEP, STRATEGY_ABORT_STUCK, STRATEGY_ABORT_NOT_CONVERGING };

/* What is remembered from sample to sample. Zeroed at the start of a migration. */
struct strategy_memory {
    int64_t least_remaining_bytes;
    int64_t progress_ms; /* when it was last reached, or anything was sent */
    int64_t seen_processed_bytes;
    bool started;
};

struct strategy_input {
    const struct migrate_options *policy;
    int64_t guest_bytes;
    int64_t elapsed_ms; /* since the migration was asked for */
    struct sample sample;
};

struct strategy_decision {
    enum strategy_action action;
    char why[256]; /* in words and numbers; "" for keep */
};

void strategy_decide(const struct strategy_input *in, struct strategy_memory *memory,
                     struct strategy_decision *ret);
