/* Decoding by tables: one row per field that some code reads. Adding a field is one line. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <yyjson.h>

#include "api/arena.h"
#include "base/error.h"

enum api_field_type {
    API_FIELD_STR,      /* const char * */
    API_FIELD_BOOL,     /* bool */
    API_FIELD_INT,      /* int64_t */
    API_FIELD_TIME,     /* int64_t, unix milliseconds, from RFC 3339 */
    API_FIELD_QUANTITY, /* int64_t, in units of 1/arg */
    API_FIELD_MAP,      /* struct api_map: object of strings */
    API_FIELD_STRINGS,  /* struct api_strings */
    API_FIELD_INTS,     /* struct api_ints */
    API_FIELD_PORTS,    /* const struct api_port *, count at `count_offset` */
    API_FIELD_LIST,     /* array of `item_size` decoded by `table`, count at `count_offset` */
    API_FIELD_STRUCT,   /* decoded in place by `table` when it is there */
    API_FIELD_PRESENT,  /* bool: the field is there and not null */
    API_FIELD_MARK,     /* int (an enum): set to `arg` when the field is there and not null */
    API_FIELD_RAW,      /* const yyjson_val *: an object or array, as it is */
};

struct api_table;
struct api_field {
    const char *path; /* "status.migrationState"; NULL ends the table */
    enum api_field_type type;
    size_t offset, count_offset;
    int64_t arg; /* default of INT, scale of QUANTITY, value of MARK */
    struct api_table *table;
    size_t item_size;
};

struct api_table {
    const struct api_field *rows;
    /* What takes more than a row, after the rows; may be NULL. */
    int (*finish)(const yyjson_val *v, void *out, struct ferry_error *err);
    _Atomic(struct api_plan *) plan; /* the rows arranged for reading; made at first use */
};

/* Fills `out` (zeroed) from the object `v`. Absent and null fields leave it alone, except INT with
 * a default. Strings point into `v`'s document, the rest comes from `arena`. A field of another
 * type is an error that begins with its path. Any thread. */
int api_codec_decode(struct api_table *table, const yyjson_val *v, void *out,
                     struct api_arena *arena, struct ferry_error *err);
