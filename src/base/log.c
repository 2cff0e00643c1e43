#include "base/log.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/str.h"

static const char *program_name = "ferry";
static enum ferry_log_level threshold = FERRY_LOG_INFO;
static enum ferry_log_format log_format = FERRY_LOG_TEXT;

static const char *const level_names[] = {
    [FERRY_LOG_DEBUG] = "debug",
    [FERRY_LOG_INFO] = "info",
    [FERRY_LOG_WARN] = "warning",
    [FERRY_LOG_ERROR] = "error",
};

void ferry_log_init(const char *program, enum ferry_log_level level, enum ferry_log_format format)
{
    program_name = program;
    threshold = level;
    log_format = format;
}

bool ferry_log_on(enum ferry_log_level level)
{
    return level >= threshold;
}

/* Quotes for both formats: a log line stays one line whatever a peer put into it. */
static void put_quoted(struct ferry_buf *b, const char *s)
{
    ferry_buf_puts(b, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c == '"' || c == '\\') {
            ferry_buf_printf(b, "\\%c", c);
        } else if (c == '\n') {
            ferry_buf_puts(b, "\\n");
        } else {
            size_t n = ferry_utf8_len(s);

            n = n ? n : 1;
            ferry_printable(s, n, "", false, b);
            s += n - 1;
        }
    }
    ferry_buf_puts(b, "\"");
}

static bool plain_word(const char *s)
{
    if (!*s) {
        return false;
    }
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '=') {
            return false;
        }
    }
    return true;
}

static void put_value(struct ferry_buf *b, const struct ferry_field *f)
{
    switch (f->type) {
    case FERRY_FIELD_STR: {
        const char *s = f->v.s ? f->v.s : "";

        if (log_format == FERRY_LOG_TEXT && plain_word(s)) {
            ferry_buf_puts(b, s);
        } else {
            put_quoted(b, s);
        }
        break;
    }
    case FERRY_FIELD_INT:
        ferry_buf_printf(b, "%" PRId64, f->v.i);
        break;
    case FERRY_FIELD_UINT:
        ferry_buf_printf(b, "%" PRIu64, f->v.u);
        break;
    case FERRY_FIELD_END:
        break;
    }
}

static void format_text(struct ferry_buf *b, enum ferry_log_level level, const char *msg,
                        const struct ferry_field *fields)
{
    char when[FERRY_RFC3339_SIZE];

    ferry_rfc3339_micro(ferry_now_unix_ms(), when);
    ferry_buf_printf(b, "%.23sZ %s %s: %s", when, level_names[level], program_name, msg);
    for (const struct ferry_field *f = fields; f->type != FERRY_FIELD_END; f++) {
        ferry_buf_printf(b, " %s=", f->key);
        put_value(b, f);
    }
    ferry_buf_puts(b, "\n");
}

static void format_json(struct ferry_buf *b, enum ferry_log_level level, const char *msg,
                        const struct ferry_field *fields)
{
    char when[FERRY_RFC3339_SIZE];

    ferry_buf_printf(b, "{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\",\"msg\":",
                     ferry_rfc3339_micro(ferry_now_unix_ms(), when), level_names[level],
                     program_name);
    put_quoted(b, msg);
    for (const struct ferry_field *f = fields; f->type != FERRY_FIELD_END; f++) {
        ferry_buf_printf(b, ",\"%s\":", f->key);
        put_value(b, f);
    }
    ferry_buf_puts(b, "}\n");
}

void ferry_log_emit(enum ferry_log_level level, const char *msg, const struct ferry_field *fields)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    if (log_format == FERRY_LOG_JSON) {
        format_json(&b, level, msg, fields);
    } else {
        format_text(&b, level, msg, fields);
    }
    /* One write per line keeps lines of several processes on one descriptor apart. */
    ssize_t n = write(STDERR_FILENO, b.data, b.len);
    (void)n;
}
