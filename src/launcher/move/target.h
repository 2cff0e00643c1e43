/* A migration that comes in. libvirt does the work; here the ground is prepared, the arrival is
 * noticed, and what a failed attempt left is removed. Any thread. */
#pragma once

#include "launcher/domain/disks.h"
#include "launcher/report/context.h"

struct target;

struct target *target_new(const struct context *c);
void target_free(struct target *t); /* ends the watching thread; takes NULL */

/* Prepares for migration `uid`; idempotent. CONFLICT when a guest lives here or another migration
 * is on its way. */
int target_prepare(struct target *t, const char *uid, const struct api_vmi *vmi,
                   const struct disks_sizes *source_disks, struct ferry_error *err);
/* The launcher leaves for good: what was made for a move that never came goes, too. */
void target_leave(struct target *t);
/* After success: this launcher is an ordinary one now. Idempotent. */
int target_finalize(struct target *t, const char *uid, struct ferry_error *err);
/* The move is given up: the guest will not run here any more, whatever libvirtd still has in hand;
 * idempotent, and without libvirtd. CONFLICT when it may have run here already: then it stays. */
int target_withdraw(struct target *t, const char *uid, struct ferry_error *err);
/* Looks after the filter of the control channel; call it now and then. */
void target_tend(struct target *t);
/* Whether QEMU could take a guest by post-copy here: it needs userfaultfd. */
bool target_can_post_copy(void);
/* After a restart of the launcher, once libvirt is connected. */
void target_reattach(struct target *t);
