#include "api/wire/wire_launcher_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "base/clock.h"
#include "base/str.h"

/* Others cannot be written as they are read. */
#define TIME_MAX_MS INT64_C(253402300799999)

static unsigned get_word(const struct wire_field *f, const void *at)
{
    return f->size == sizeof(bool) ? *(const bool *)at : *(const unsigned *)at;
}

static void set_word(const struct wire_field *f, void *at, unsigned value)
{
    if (f->size == sizeof(bool)) {
        *(bool *)at = value != 0;
    } else {
        *(unsigned *)at = value;
    }
}

/* ---- writing -----------------------------------------------------------------------------------
 */

static bool is_absent(const struct wire_field *f, const void *at)
{
    switch (f->kind) {
    case WIRE_NUMBER:
    case WIRE_TIME:
        return *(const int64_t *)at == f->absent;
    case WIRE_FLAG:
        return *(const bool *)at == (f->absent != 0);
    case WIRE_TEXT:
        return *(const char *)at == '\0';
    case WIRE_WORD:
        return get_word(f, at) == (unsigned)f->absent;
    case WIRE_FACTOR:
        break;
    }
    return false;
}

void wire_field_put(yyjson_mut_doc *doc, yyjson_mut_val *o, const struct wire_field *f,
                    const void *base)
{
    const void *at = (const char *)base + f->offset;
    char time_text[FERRY_RFC3339_SIZE];

    switch (f->kind) {
    case WIRE_NUMBER:
        yyjson_mut_obj_add_int(doc, o, f->name, *(const int64_t *)at);
        break;
    case WIRE_FLAG:
        yyjson_mut_obj_add_bool(doc, o, f->name, *(const bool *)at);
        break;
    case WIRE_FACTOR:
        yyjson_mut_obj_add_real(doc, o, f->name, *(const double *)at);
        break;
    case WIRE_TEXT:
        yyjson_mut_obj_add_strcpy(doc, o, f->name, at);
        break;
    case WIRE_WORD:
        yyjson_mut_obj_add_str(doc, o, f->name, wire_words_text(f->words, get_word(f, at)));
        break;
    case WIRE_TIME:
        yyjson_mut_obj_add_strcpy(doc, o, f->name, ferry_rfc3339(*(const int64_t *)at, time_text));
        break;
    }
}

void wire_fields_add(yyjson_mut_doc *doc, yyjson_mut_val *o, const struct wire_field *fields,
                     const void *base)
{
    for (const struct wire_field *f = fields; f->name; f++) {
        if (!f->sparse || !is_absent(f, (const char *)base + f->offset)) {
            wire_field_put(doc, o, f, base);
        }
    }
}

yyjson_mut_val *wire_fields_write(yyjson_mut_doc *doc, const struct wire_field *fields,
                                  const void *base)
{
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    wire_fields_add(doc, o, fields, base);
    return o;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

struct reading {
    const struct wire_field *f;
    const char *where;
    enum ferry_class cls;
    struct ferry_error *err;
};

static int refuse(const struct reading *r, const char *must)
{
    return ferry_fail(r->err, r->cls, "%s.%s: must be %s", r->where, r->f->name, must);
}

static int read_number(const struct reading *r, const yyjson_val *v, int64_t *to)
{
    char must[96];
    int64_t n;

    if (api_json_get_int(v, &n) && (double)n >= r->f->min && (double)n <= r->f->max) {
        *to = n;
        return 0;
    }
    snprintf(must, sizeof(must), "a whole number from %.0f to %.0f", r->f->min, r->f->max);
    return refuse(r, must);
}

static int read_factor(const struct reading *r, const yyjson_val *v, double *to)
{
    const char *text = yyjson_get_str((yyjson_val *)v);
    char *end = NULL, must[96];
    double d = text ? strtod(text, &end) : yyjson_get_num((yyjson_val *)v);
    bool number = text ? end != text && *end == '\0' : yyjson_is_num((yyjson_val *)v);

    if (number && d >= r->f->min && d <= r->f->max) {
        *to = d;
        return 0;
    }
    snprintf(must, sizeof(must), "a number from %g to %g", r->f->min, r->f->max);
    return refuse(r, must);
}

static int read_text(const struct reading *r, const yyjson_val *v, char *to)
{
    const char *text = yyjson_get_str((yyjson_val *)v);

    if (!text) {
        return refuse(r, "a string");
    }
    snprintf(to, r->f->size, "%.*s", (int)ferry_utf8_fit(text, r->f->size - 1), text);
    return 0;
}

static int read_time(const struct reading *r, const yyjson_val *v, int64_t *to)
{
    const char *text = yyjson_get_str((yyjson_val *)v);
    int64_t n;

    if (!text) {
        return refuse(r, "a time");
    }
    if (!*text) {
        return 0;
    }
    if (api_time_parse(text, &n, r->err) < 0) {
        ferry_wrap(r->err, "%s.%s", r->where, r->f->name);
        if (r->err) {
            r->err->cls = r->cls;
        }
        return -(int)r->cls;
    }
    if (n < 0 || n > TIME_MAX_MS) {
        return refuse(r, "a time from 1970 to 9999");
    }
    *to = n;
    return 0;
}

/* "none, zstd or lz4" */
static void list_words(const struct wire_words *words, struct ferry_buf *out)
{
    unsigned first = 0;

    while (first < words->n && !*words->texts[first]) {
        first++;
    }
    for (unsigned i = first; i < words->n; i++) {
        const char *between = i == first ? "" : i + 1 == words->n ? " or " : ", ";

        ferry_buf_printf(out, "%s%s", between, words->texts[i]);
    }
}

static int read_word(const struct reading *r, const yyjson_val *v, void *to)
{
    const char *text = yyjson_get_str((yyjson_val *)v);
    unsigned value = wire_words_find(r->f->words, text);

    if (text && !*text && !r->f->needed) { /* as good as absent */
        return 0;
    }
    if (value == r->f->words->n && text && r->f->open) {
        value = r->f->other;
    } else if (value == r->f->words->n) {
        ferry_cleanup_buf struct ferry_buf known = {0};

        list_words(r->f->words, &known);
        if (r->cls == FERRY_PEER) { /* whoever reads the log cannot see the message */
            ferry_buf_printf(&known, ", not '%.40s'", text ? text : "(no string)");
        }
        return refuse(r, known.data);
    }
    set_word(r->f, to, value);
    return 0;
}

static int read_field(const struct reading *r, const yyjson_val *v, void *base)
{
    void *to = (char *)base + r->f->offset;

    switch (r->f->kind) {
    case WIRE_NUMBER:
        return read_number(r, v, to);
    case WIRE_FLAG:
        if (!yyjson_is_bool((yyjson_val *)v)) {
            return refuse(r, "true or false");
        }
        *(bool *)to = yyjson_get_bool((yyjson_val *)v);
        return 0;
    case WIRE_FACTOR:
        return read_factor(r, v, to);
    case WIRE_TEXT:
        return read_text(r, v, to);
    case WIRE_WORD:
        return read_word(r, v, to);
    case WIRE_TIME:
        return read_time(r, v, to);
    }
    return refuse(r, "of a kind that is known");
}

int wire_fields_read(const yyjson_val *json, const struct wire_field *fields, const char *where,
                     enum ferry_class cls, void *base, struct ferry_error *err)
{
    struct reading r = {.where = where, .cls = cls, .err = err};

    if (json && !yyjson_is_obj((yyjson_val *)json)) {
        return ferry_fail(err, cls, "%s: must be an object", where);
    }
    for (const struct wire_field *f = fields; f->name; f++) {
        yyjson_val *v = yyjson_obj_get((yyjson_val *)json, f->name);
        bool there = v && !yyjson_is_null(v);

        r.f = f;
        if (!there && f->needed) {
            return ferry_fail(err, cls, "%s.%s: is missing", where, f->name);
        }
        if (there && read_field(&r, v, base) < 0) {
            return -(int)cls;
        }
    }
    return 0;
}
