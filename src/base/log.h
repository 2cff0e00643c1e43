/* Structured log on standard error: a constant message and typed fields, as text or JSON lines.
 *
 *     ferry_info("stream closed", F_STR("move", uid), F_UINT("bytes", n), F_ERR(&err));
 *
 * Fields are not evaluated when the level is off. Never pass a secret. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum ferry_log_level { FERRY_LOG_DEBUG, FERRY_LOG_INFO, FERRY_LOG_WARN, FERRY_LOG_ERROR };
enum ferry_log_format { FERRY_LOG_TEXT, FERRY_LOG_JSON };

enum ferry_field_type { FERRY_FIELD_END, FERRY_FIELD_STR, FERRY_FIELD_INT, FERRY_FIELD_UINT };

struct ferry_field {
    enum ferry_field_type type;
    const char *key;
    union {
        const char *s;
        int64_t i;
        uint64_t u;
    } v;
};

#define F_STR(k, x)                                                                                \
    {                                                                                              \
        .type = FERRY_FIELD_STR, .key = (k), .v.s = (x)                                            \
    }
#define F_INT(k, x)                                                                                \
    {                                                                                              \
        .type = FERRY_FIELD_INT, .key = (k), .v.i = (x)                                            \
    }
#define F_UINT(k, x)                                                                               \
    {                                                                                              \
        .type = FERRY_FIELD_UINT, .key = (k), .v.u = (x)                                           \
    }
#define F_ERR(e)                                                                                   \
    {                                                                                              \
        .type = FERRY_FIELD_STR, .key = "error", .v.s = (e)->msg                                   \
    }

/* Call once, before threads. `program` must live as long as the process. */
void ferry_log_init(const char *program, enum ferry_log_level level, enum ferry_log_format format);
bool ferry_log_on(enum ferry_log_level level);
void ferry_log_emit(enum ferry_log_level level, const char *msg, const struct ferry_field *fields);

#define FERRY_LOG(level, msg, ...)                                                                 \
    do {                                                                                           \
        if (ferry_log_on(level)) {                                                                 \
            ferry_log_emit(level, msg,                                                             \
                           (const struct ferry_field[]){                                           \
                               __VA_ARGS__ __VA_OPT__(, ){.type = FERRY_FIELD_END}});              \
        }                                                                                          \
    } while (0)

#define ferry_debug(...) FERRY_LOG(FERRY_LOG_DEBUG, __VA_ARGS__)
#define ferry_info(...) FERRY_LOG(FERRY_LOG_INFO, __VA_ARGS__)
#define ferry_warn(...) FERRY_LOG(FERRY_LOG_WARN, __VA_ARGS__)
#define ferry_error(...) FERRY_LOG(FERRY_LOG_ERROR, __VA_ARGS__)
