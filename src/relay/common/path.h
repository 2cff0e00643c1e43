/* Is the network path of a connection dead? Pure: judges samples of what the kernel knows.
 *
 * The kernel's own answers do not do. TCP_USER_TIMEOUT also ends a connection whose peer is well
 * but takes nothing for a while (a window of zero), and a hypervisor that does not read for ten
 * seconds must not cost a migration. Keepalive never counts a probe as lost that was dropped on
 * this machine, as happens when the cable is pulled here. So: whenever an answer is due and nothing
 * at all came for the limit, the path is dead. An answer is due for data, for window probes, and on
 * an idle connection, where keepalive asks every few seconds; it is not due between the probes of a
 * closed window, which come ever more seldom. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct relay_path {
    int64_t looked_ns, quiet_since_ns; /* 0 before the first sample */
};

struct relay_path_sample {
    int64_t now_ns;
    unsigned unacked;  /* segments out and not acknowledged */
    unsigned probes;   /* window or keepalive probes out and not answered */
    bool queued;       /* bytes wait to be sent for the first time */
    unsigned quiet_ms; /* since anything arrived: an acknowledgement or data */
};

/* To be asked about once a second; less often than `limit_ns` / 2 would judge late. */
bool relay_path_dead(struct relay_path *p, const struct relay_path_sample *s, int64_t limit_ns);
