/* Who may stay at a server's door, and how long. Pure: no clock, no lock.
 *
 * A stranger is a connection that has not shown who it is. Strangers have a share of all places,
 * and of that each address has a part: a newcomer beyond it ends the one that has been there
 * longest, never somebody who is known. So whoever holds connections without saying anything loses
 * them to whoever comes and does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct doors_limits {
    size_t share;       /* of all strangers together */
    size_t per_address; /* and of one address */
    int headers_ms;     /* from the accept until the first request's headers are there */
    int body_ms;        /* for a body, from its headers */
    int answer_ms;      /* for the answer to a stranger */
    int idle_ms;        /* of a stranger, between two requests */
};

/* What a server with so many places allows, where `set` says nothing (zero). */
struct doors_limits doors_limits_of(unsigned places, const struct doors_limits *set);

/* Strangers that are there when another one comes, without it and without those that were ended. */
struct doors_crowd {
    size_t all, same_address;
};
enum doors_verdict { DOORS_LET_IN, DOORS_END_OLDEST, DOORS_END_OLDEST_OF_ADDRESS };
enum doors_verdict doors_decide(const struct doors_limits *l, const struct doors_crowd *c);

enum doors_phase {
    DOORS_ARRIVED,   /* handshake and headers of the first request */
    DOORS_BODY,      /* a body is to come that it may send */
    DOORS_ANSWERING, /* all was read */
    DOORS_IDLE,      /* an answer was sent */
    DOORS_PHASE_COUNT
};
/* How long a connection may stay in a phase, however many bytes it sends; 0 = without end. */
int64_t doors_patience_ns(const struct doors_limits *l, enum doors_phase phase, bool known);

/* Where a peer is, as far as it counts: an IPv4 address, or the network of an IPv6 one, of whose
 * addresses one host has as many as it likes. */
struct doors_address {
    uint8_t bytes[8];
};
struct sockaddr;
struct doors_address doors_address_of(const struct sockaddr *sa); /* of NULL: all alike */
bool doors_same_address(const struct doors_address *a, const struct doors_address *b);
