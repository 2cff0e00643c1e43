/* What all moves of one relay process share. Borrowed by them; it outlives them. */
#pragma once

#include <stdint.h>

#include "relay/common/log_limit.h"
#include "relay/common/memory.h"
#include "relay/common/metrics.h"
#include "relay/common/rate.h"
#include "relay/protocol/frame.h"
#include "tls/credentials.h"
#include "tls/denials.h"

struct relay_paths;

struct relay_env {
    struct tls_credentials *server, *client; /* may be one; NULL for plain TCP alone */
    struct tls_denials *denials;             /* nodes that were removed; the credentials' too */
    uint8_t instance[FRAME_ID];              /* random, of this process and its successors */
    struct relay_rate *rate;
    struct relay_paths *paths;   /* or NULL */
    struct relay_totals *totals; /* two, by role; or NULL */
    struct relay_log_limit *log_limit;
    struct relay_memory *memory;
};
