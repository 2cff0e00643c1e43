#include "http/doors_decide.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

enum {
    SHARE_LEAST = 8,
    HEADERS_MS = 10000,
    BODY_MS = 60000,
    ANSWER_MS = 60000,
    IDLE_MS = 20000,
};

static int or_default(int set, int otherwise)
{
    return set > 0 ? set : otherwise;
}

struct doors_limits doors_limits_of(unsigned places, const struct doors_limits *set)
{
    size_t half = places / 2 > SHARE_LEAST ? places / 2 : SHARE_LEAST;
    size_t share = set->share > 0 && set->share < half ? set->share : half;
    size_t part = share / 2;

    return (struct doors_limits){
        .share = share,
        .per_address = set->per_address > 0 && set->per_address < part ? set->per_address : part,
        .headers_ms = or_default(set->headers_ms, HEADERS_MS),
        .body_ms = or_default(set->body_ms, BODY_MS),
        .answer_ms = or_default(set->answer_ms, ANSWER_MS),
        .idle_ms = or_default(set->idle_ms, IDLE_MS),
    };
}

enum doors_verdict doors_decide(const struct doors_limits *l, const struct doors_crowd *c)
{
    if (c->same_address >= l->per_address) {
        return DOORS_END_OLDEST_OF_ADDRESS;
    }
    return c->all >= l->share ? DOORS_END_OLDEST : DOORS_LET_IN;
}

int64_t doors_patience_ns(const struct doors_limits *l, enum doors_phase phase, bool known)
{
    int ms = 0;

    switch (phase) {
    case DOORS_ARRIVED:
        ms = l->headers_ms;
        break;
    case DOORS_BODY:
        ms = l->body_ms;
        break;
    case DOORS_ANSWERING:
        ms = known ? 0 : l->answer_ms;
        break;
    case DOORS_IDLE:
        ms = known ? 0 : l->idle_ms;
        break;
    case DOORS_PHASE_COUNT:
        break;
    }
    return ms * FERRY_NS_PER_MS;
}

struct doors_address doors_address_of(const struct sockaddr *sa)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct doors_address ret = {{0}};

    if (sa && sa->sa_family == AF_INET) {
        memcpy(ret.bytes, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
    } else if (sa && sa->sa_family == AF_INET6) {
        const uint8_t *six = ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr.s6_addr;
        bool is_four = memcmp(six, mapped, sizeof(mapped)) == 0;

        memcpy(ret.bytes, is_four ? six + sizeof(mapped) : six, is_four ? 4 : sizeof(ret.bytes));
    }
    return ret;
}

bool doors_same_address(const struct doors_address *a, const struct doors_address *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}
