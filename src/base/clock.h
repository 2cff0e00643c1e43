/* Time. Deadlines and durations use the monotonic clock in nanoseconds; only what people and the
 * API read uses wall-clock time. */
#pragma once

#include <stdint.h>

#define FERRY_NS_PER_MS INT64_C(1000000)
#define FERRY_NS_PER_S INT64_C(1000000000)

int64_t ferry_now_ns(void);      /* monotonic */
int64_t ferry_now_unix_ms(void); /* wall clock */
void ferry_sleep_ms(int64_t ms);

/* Milliseconds left until `deadline_ns`, never below 0, capped to INT_MAX: fits poll(). */
int ferry_ms_left(int64_t deadline_ns);

enum { FERRY_RFC3339_SIZE = 32 };
/* "2026-11-15T13:50:01Z"; returns `buf`. */
char *ferry_rfc3339(int64_t unix_ms, char buf[FERRY_RFC3339_SIZE]);
/* "2026-11-15T13:50:01.123456Z" (metav1.MicroTime); returns `buf`. */
char *ferry_rfc3339_micro(int64_t unix_ms, char buf[FERRY_RFC3339_SIZE]);
