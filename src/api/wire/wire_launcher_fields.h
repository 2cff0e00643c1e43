/* Members of a JSON object beside those of a struct, in one table that writer and reader both walk:
 * what one end of a control call says is what the other one reads, and cannot be spelled
 * differently. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "api/wire/wire_words.h"
#include "base/error.h"

enum wire_kind {
    WIRE_NUMBER, /* int64_t, from `min` to `max` */
    WIRE_FLAG,   /* bool */
    WIRE_FACTOR, /* double, from `min` to `max`; KubeVirt writes these as strings */
    WIRE_TEXT,   /* char[size]; one that is longer is cut behind a whole character */
    WIRE_WORD,   /* an enum of `words`, or a bool of two */
    WIRE_TIME,   /* int64_t of Unix milliseconds, RFC 3339 outside */
};

/* Beyond these a number is a mistake; JSON's own end. */
#define WIRE_NUMBER_MAX 9e18

struct wire_field {
    const char *name; /* NULL ends a table */
    enum wire_kind kind;
    size_t offset, size; /* of the member */
    double min, max;
    const struct wire_words *words;
    bool needed; /* refused without it */
    bool sparse; /* not written when it has the value `absent` (TEXT: when it is empty) */
    bool open;   /* WORD: texts that are not in the table are read as `other` */
    int64_t absent;
    unsigned other;
};

/* Rows: struct, JSON name, member, then more as designated initialisers. */
#define WIRE_ROW(kind_, struct_, name_, member_, ...)                                              \
    {                                                                                              \
        .name = (name_), .kind = (kind_), .offset = offsetof(struct struct_, member_),             \
        .size = sizeof(((struct struct_ *)0)->member_), __VA_ARGS__                                \
    }
#define WIRE_ANY .min = -WIRE_NUMBER_MAX, .max = WIRE_NUMBER_MAX

/* The members of `base` into `o`, or into an object of their own. */
void wire_fields_add(yyjson_mut_doc *doc, yyjson_mut_val *o, const struct wire_field *fields,
                     const void *base);
yyjson_mut_val *wire_fields_write(yyjson_mut_doc *doc, const struct wire_field *fields,
                                  const void *base);
/* One of them, written whatever it is. */
void wire_field_put(yyjson_mut_doc *doc, yyjson_mut_val *o, const struct wire_field *f,
                    const void *base);

/* From `json` (NULL = an empty object) into `base`; what is absent or null stays as it is there.
 * Fails with `cls` ("WHERE.NAME: must be ..."), and has then changed some of `base`. Members that
 * are not in the table are passed over. */
int wire_fields_read(const yyjson_val *json, const struct wire_field *fields, const char *where,
                     enum ferry_class cls, void *base, struct ferry_error *err);
