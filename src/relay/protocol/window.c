#include "relay/protocol/window.h"

#include "base/clock.h"

enum {
    MEASURE_RTTS = 4,    /* a measurement takes this many round trips, */
    MEASURE_MIN_MS = 10, /* and not less than this */
    MEASURE_MAX_MS = 1000,
    SHRINK_AFTER_MS = 1000,
};

void window_init(struct window *w, uint32_t start, uint32_t max)
{
    *w = (struct window){.start = start < max ? start : max, .max = max};
    w->bytes = w->start;
}

void window_connected(struct window *w)
{
    w->rtt_ns = 0;
    w->from_ns = 0;
    w->low_ns = 0;
}

void window_rtt(struct window *w, int64_t rtt_ns)
{
    if (rtt_ns > 0 && (w->rtt_ns == 0 || rtt_ns < w->rtt_ns)) {
        w->rtt_ns = rtt_ns;
    }
}

static void adjust(struct window *w, double wanted, int64_t now)
{
    if (wanted > w->bytes) {
        double cap = 2.0 * w->bytes;
        double next = wanted < cap ? wanted : cap;

        w->bytes = next < w->max ? (uint32_t)next : w->max;
        w->low_ns = 0;
    } else if (wanted >= w->bytes / 2.0 || w->bytes <= w->start) {
        w->low_ns = 0;
    } else if (w->low_ns == 0) {
        w->low_ns = now;
    } else if (now - w->low_ns >= SHRINK_AFTER_MS * FERRY_NS_PER_MS) {
        uint32_t next = w->bytes - w->bytes / 8;

        w->bytes = next > w->start ? next : w->start;
        w->low_ns = now;
    }
}

void window_delivered(struct window *w, uint64_t n, int64_t now)
{
    int64_t span = MEASURE_RTTS * w->rtt_ns;

    if (span < MEASURE_MIN_MS * FERRY_NS_PER_MS) {
        span = MEASURE_MIN_MS * FERRY_NS_PER_MS;
    } else if (span > MEASURE_MAX_MS * FERRY_NS_PER_MS) {
        span = MEASURE_MAX_MS * FERRY_NS_PER_MS;
    }
    if (w->from_ns == 0) {
        /* The bytes that start a measurement took their time before it. */
        w->from_ns = now;
        w->count = 0;
        return;
    }
    w->count += n;
    int64_t took = now - w->from_ns;

    if (took < span) {
        return;
    }
    w->rate = (double)w->count * FERRY_NS_PER_S / (double)took;
    adjust(w, 2.0 * w->rate * (double)w->rtt_ns / FERRY_NS_PER_S, now);
    w->from_ns = now;
    w->count = 0;
}
