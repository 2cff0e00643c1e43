/* -o: objects as JSON, YAML or names. */
#pragma once

#include <stddef.h>

#include "api/kinds.h"
#include "base/error.h"
#include "base/options.h"
#include "base/str.h"

enum output_format {
    OUTPUT_TABLE,
    OUTPUT_WIDE,
    OUTPUT_JSON,
    OUTPUT_YAML,
    OUTPUT_NAME,
};
#define OUTPUT_OPTION_ROW(dest)                                                                    \
    {                                                                                              \
        "output", 'o', FERRY_OPTION_STRING, dest, "FORMAT", "json, yaml, name or wide"             \
    }

/* NULL is OUTPUT_TABLE. */
int output_parse(const char *text, enum output_format *ret, struct ferry_error *err);

/* Writes a list of objects in one of the formats for programs (not TABLE, not WIDE). */
void output_objects(struct api_object *const *items, size_t n, enum output_format format,
                    struct ferry_buf *out);

/* One object in one of these formats. */
void output_object(struct api_object *o, enum output_format format, struct ferry_buf *out);

/* The same to standard output. */
void output_print(struct api_object *o, enum output_format format);

/* One JSON value as YAML, ends with a newline. */
void output_yaml(const yyjson_val *v, struct ferry_buf *out);

/* A document that was built, as JSON or YAML. */
void output_document(const yyjson_mut_doc *doc, bool yaml, struct ferry_buf *out);
