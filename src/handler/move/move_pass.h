/* What both ends of a move share in a reconcile pass. */
#pragma once

#include <sys/types.h>

#include "handler/move/move_trouble.h"
#include "handler/move/pass.h"

/* No honest course of events needs more steps in one pass. */
enum { MOVE_PASS_STEPS = 6 };

/* The decisions kept asking for more. */
int move_pass_restless(struct pass *pass, struct ferry_error *err);

/* What this pass could not do, for the next decision to see. */
void move_pass_trouble(struct pass *pass, struct move_trouble *t, enum move_part part,
                       const struct ferry_error *err);
/* The same of a launcher that runs and does not answer. */
void move_pass_silence(struct pass *pass, struct move_trouble *t);
/* After the last decision: what works again is not counted any more. */
void move_pass_settled(struct pass *pass, const struct move_trouble *t);

/* The uid of the pod's hypervisor, who has its sockets in this directory of it. */
int move_pass_owner(const char *dir, uid_t *ret, struct ferry_error *err);

/* Tells the source's launcher what became of the guest, where it cannot know. */
void pass_tell_target_state(struct pass *pass);
