/* Is the network path of a connection dead? Pure: judges samples of what the kernel knows.
 *
 * TCP_USER_TIMEOUT cannot answer it: it also ends a connection whose peer is well but takes
 * nothing for a while (a window of zero), and a hypervisor that does not read for ten seconds must
 * not cost a migration. So the rule is: something is out (data or a window probe) and no
 * acknowledgement of any kind came for the limit. An idle connection is watched by the kernel's
 * keepalive. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct relay_path {
    int64_t looked_ns, quiet_since_ns; /* 0 before the first sample */
};

struct relay_path_sample {
    int64_t now_ns;
    unsigned unacked;     /* segments out and not acknowledged */
    unsigned probes;      /* window or keepalive probes out and not answered */
    unsigned last_ack_ms; /* since the last acknowledgement arrived */
};

/* Whether the peer owes an answer: look again in a while. */
bool relay_path_waiting(const struct relay_path_sample *s);
bool relay_path_dead(struct relay_path *p, const struct relay_path_sample *s, int64_t limit_ns);
