#include "base/cond.h"

#include <time.h>

#include "base/clock.h"

bool ferry_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline_ns)
{
    if (deadline_ns == INT64_MAX) {
        return pthread_cond_wait(cond, lock) == 0;
    }
    int64_t at_ns = deadline_ns > 0 ? deadline_ns : 0;
    struct timespec until = {.tv_sec = at_ns / FERRY_NS_PER_S, .tv_nsec = at_ns % FERRY_NS_PER_S};
    return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &until) == 0;
}
