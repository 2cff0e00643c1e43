/* Why a pod finds no node, from the words of a scheduler. Pure. */
#pragma once

/* "VolumeNotReady": a volume is what is missing; "NeverSchedulable": no node matches what the pod
 * asks of nodes, and waiting for room does not change that; else "Unschedulable": nodes are short
 * for now. Understands "0/3 nodes are available: 2 Insufficient memory, 1 node(s) ...". */
const char *pending_reason(const char *message);
