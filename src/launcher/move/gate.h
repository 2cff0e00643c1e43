/* The gate: whether libvirtd may let the guest's vCPUs run here. libvirtd asks a lock driver of
 * ours (src/gate) before it starts any; this is the side that decides.
 *
 * It is closed while the guest is being moved away, because libvirt lets the source run whenever
 * the target's last answer is lost; when it has left; and when one that was expected has not come
 * in. Any thread. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "launcher/report/state.h"

struct gate;

/* `dir` is made when it is missing. */
int gate_new(const char *dir, struct gate **ret, struct ferry_error *err);
void gate_free(struct gate *g); /* takes NULL */

int gate_open(struct gate *g, struct ferry_error *err);
int gate_close(struct gate *g, struct ferry_error *err);
/* Opens it and forgets that a guest ran here: for one that is to come in. */
int gate_reset(struct gate *g, struct ferry_error *err);
/* Whether a guest may have run since. Asked after gate_close(), a no is a no for good. */
bool gate_started(const struct gate *g);

/* Pure: whether it must be closed in the state `v`. */
bool gate_must_be_closed(const struct state_values *v);
