/* How the clock was set, left to a successor as an annotation of the controllers' Lease. */
#pragma once

#include "control/loops/cluster.h"
#include "kube/workers.h"

/* Takes over what a predecessor on this host has left. Best effort: without it deadlines are
 * counted as if the clock had never been set. */
void clock_notes_recall(struct cluster *c);

/* Writes down what was seen; ctx: struct cluster; one worker. */
int clock_notes_reconcile(void *ctx, const char *key, struct kube_again *again,
                          struct ferry_error *err);
