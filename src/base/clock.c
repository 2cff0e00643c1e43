#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

int64_t ferry_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * FERRY_NS_PER_S + t.tv_nsec;
}

int64_t ferry_now_unix_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / FERRY_NS_PER_MS;
}

void ferry_sleep_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * FERRY_NS_PER_MS};

    while (nanosleep(&t, &t) < 0 && errno == EINTR) {
    }
}

int ferry_ms_left(int64_t deadline_ns)
{
    int64_t left = deadline_ns - ferry_now_ns();

    if (left <= 0) {
        return 0;
    }
    left = (left + FERRY_NS_PER_MS - 1) / FERRY_NS_PER_MS;
    return left > INT_MAX ? INT_MAX : (int)left;
}

static void broken_down(int64_t unix_ms, struct tm *tm)
{
    time_t s = (time_t)(unix_ms / 1000);

    gmtime_r(&s, tm);
}

char *ferry_rfc3339(int64_t unix_ms, char buf[FERRY_RFC3339_SIZE])
{
    struct tm tm;

    broken_down(unix_ms, &tm);
    strftime(buf, FERRY_RFC3339_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return buf;
}

char *ferry_rfc3339_micro(int64_t unix_ms, char buf[FERRY_RFC3339_SIZE])
{
    struct tm tm;
    char seconds[FERRY_RFC3339_SIZE - 9];

    broken_down(unix_ms, &tm);
    strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(buf, FERRY_RFC3339_SIZE, "%s.%03d000Z", seconds, (int)(unix_ms % 1000));
    return buf;
}
