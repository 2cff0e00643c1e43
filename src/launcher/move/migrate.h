/* A migration away from here. Any thread. */
#pragma once

#include "api/outcome.h"
#include "launcher/domain/disks.h"
#include "launcher/report/context.h"

struct migrate;

struct migrate *migrate_new(const struct context *c);
/* Waits for a running migration's threads; takes NULL. */
void migrate_free(struct migrate *m);

/* Starts migration `uid`. Again while it runs: fine. After its end, or while another runs: class
 * CONFLICT. `target_disks`: how large the images of the disks that are copied are over
 * there; empty when that is not known. */
int migrate_start(struct migrate *m, const char *uid, const struct api_vmi *vmi,
                  const struct wire_options *options, const struct disks_sizes *target_disks,
                  struct ferry_error *err);
/* Asks for an abort. NOT_FOUND for an unknown UID, CONFLICT when it is over. */
int migrate_cancel(struct migrate *m, const char *uid, struct ferry_error *err);
/* The transport bridges an outage, or no longer does: the monitor's clocks stand still meanwhile.
 * `bytes_per_s`: what it carries of this move; 0 = not known. */
int migrate_set_path(struct migrate *m, const char *uid, bool away, int64_t bytes_per_s,
                     struct ferry_error *err);
/* What the handler found out about the target. It lets a source run again that was left stopped at
 * the switch-over when the target is gone, ends one that came back although the target runs, and
 * ends a move whose target died in post-copy. */
int migrate_set_target(struct migrate *m, const char *uid, enum outcome_target target,
                       struct ferry_error *err);
/* No move is under way, and none begins before migrate_let_in(); else class CONFLICT, and nothing
 * to let in. For short things: who asks for a move meanwhile waits. */
int migrate_keep_out(struct migrate *m, struct ferry_error *err);
void migrate_let_in(struct migrate *m);
/* The latest plan: the record of the next migration begins with it. */
void migrate_note_plan(struct migrate *m, const char *json);
/* After a restart of the launcher, once libvirt is connected: goes on watching a migration that the
 * state file says is running. */
void migrate_reattach(struct migrate *m);
/* The latest look at the current migration. */
void migrate_sample(struct migrate *m, struct launcher_sample *ret);
