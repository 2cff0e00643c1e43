/* Waiting for a condition variable until a deadline. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* With `lock` held. Until somebody signals `cond`, for no reason, or until `deadline_ns` of the
 * monotonic clock (ferry_now_ns(); INT64_MAX = none): then false. The variable is a plain one, made
 * by pthread_cond_init(&cond, NULL). */
bool ferry_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline_ns);
