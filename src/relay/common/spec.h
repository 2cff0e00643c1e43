/* What a node agent asks the relay for: one side of one move. Pure: parsing, validation, comparison
 * and names, no sockets.
 *
 * The two sides share one struct, because everything but the meaning of an address is the same:
 * a target listens on `address` and dials each channel's unix path; a source listens on unix files
 * in `dir` and dials `address` at each channel's port. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/channels.h"
#include "base/cleanup.h"
#include "base/error.h"

/* How the bytes travel. */
enum relay_mode {
    RELAY_FERRY, /* ferry/1 over TLS: a stream survives its connection */
    RELAY_RAW,   /* TLS alone, as KubeVirt's proxy has it */
    RELAY_PLAIN, /* TCP alone */
};

enum relay_role { RELAY_TARGET, RELAY_SOURCE };

enum {
    RELAY_CHANNELS_MAX = FERRY_CHANNELS,
    RELAY_KEY_MAX = FERRY_CHANNEL_KEY_MAX,
};

struct relay_channel {
    int logical;
    int port; /* source: to dial; target: to listen on, 0 = any */
    char *
        unix_path; /* target: to dial; source: to listen on, NULL = as KubeVirt names it in `dir` */
};

struct relay_spec {
    enum relay_role role;
    char *key, *move;
    uint64_t generation;
    enum relay_mode mode;
    int64_t resume_window_ns; /* ferry */
    uint64_t rate;            /* source: bytes per second, 0 = no limit */
    char *peer_node;          /* who must be at the other end; may be NULL with the next */
    char *peer_cn;            /* by its common name, as KubeVirt's proxies do it */
    char *peer_address;       /* plain target: numeric, the only one that may connect */
    char *address;            /* numeric; to bind (target) or to dial (source) */
    char *interface;          /* source: connections leave by this one; NULL = any */
    struct relay_channel channels[RELAY_CHANNELS_MAX]; /* by logical number */
    size_t n_channels;
    char *dir; /* source: where the socket files go */
    /* source: `owner` may connect, beside root and the relay's own user; target: the sockets that
     * it dials are `owner`'s */
    bool has_owner;
    uid_t owner;
};

/* From the body of PUT /v1/targets/KEY or /v1/sources/KEY. Errors name the field. */
int relay_spec_parse(enum relay_role role, const char *key, const char *json, size_t len,
                     struct relay_spec **ret, struct ferry_error *err);
void relay_spec_free(struct relay_spec *s);
FERRY_DEFINE_CLEANUP(struct relay_spec *, relay_spec_free)

/* What to do about a PUT when `old` (or NULL) is what is there. ADJUST: only the rate differs. */
enum relay_change { RELAY_KEEP, RELAY_ADJUST, RELAY_REPLACE, RELAY_CREATE, RELAY_REFUSE };
enum relay_change relay_spec_decide(const struct relay_spec *old, const struct relay_spec *wanted,
                                    bool draining);

/* The body of PUT /v1/rate. */
int relay_spec_parse_rate(const char *json, size_t len, uint64_t *ret, struct ferry_error *err);

/* 1 to RELAY_KEY_MAX letters, digits, '-', '_' or '.', not beginning with '.'. */
bool relay_spec_key_valid(const char *key);

/* Who is at the other end, for messages. */
const char *relay_spec_peer(const struct relay_spec *s);

/* "ferry", "raw" or "plain" */
const char *relay_mode_name(enum relay_mode mode);
/* "target" or "source" */
const char *relay_role_name(enum relay_role role);
