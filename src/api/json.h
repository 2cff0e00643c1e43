/* Strict JSON: what the functions of object.h are made of. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/error.h"
#include "json/doc.h"

enum {
    API_JSON_DEPTH = 64,         /* of one object */
    API_JSON_ENVELOPE_DEPTH = 4, /* what a list or a watch event adds around it */
    API_JSON_MAX_BYTES = 256 << 20,
    /* Of one object, of one list. Values that can be changed are found by walking, so that merging
     * two takes the product of their sizes. */
    API_JSON_MAX_KEYS = 8192,
    API_JSON_MAX_ITEMS = 65536,
};

/* Duplicate keys, NUL characters and nesting over `max_depth` are refused, naming where. */
int api_json_check(const yyjson_val *v, size_t max_depth, struct ferry_error *err);
/* The same, and how many bytes the strings take, with a NUL behind each. */
int api_json_measure(const yyjson_val *v, size_t max_depth, size_t *ret_bytes,
                     struct ferry_error *err);
/* Parses without the check; for values that go through one later. */
int api_json_read(const char *json, size_t len, yyjson_doc **ret, struct ferry_error *err);
int api_json_parse_depth(const char *json, size_t len, size_t max_depth, yyjson_doc **ret,
                         struct ferry_error *err);

/* The first of several documents, which may have anything behind it, as api_json_parse() takes it;
 * `*ret_used` is where it ends. */
int api_json_parse_first(const char *json, size_t len, yyjson_doc **ret, size_t *ret_used,
                         struct ferry_error *err);

/* Parses what the API server sends around objects (a list, a watch event) in place: `text` is used
 * up, and YYJSON_PADDING_SIZE bytes behind `len` are written to. The member `inner` of the root is
 * not checked: api_object_from_val() does that, object by object. */
int api_json_parse_around(char *text, size_t len, const char *inner, yyjson_doc **ret,
                          struct ferry_error *err);

/* A whole number that fits; false otherwise. */
bool api_json_get_int(const yyjson_val *v, int64_t *ret);

#define api_cleanup_doc json_cleanup_doc
#define api_cleanup_mut_doc json_cleanup_mut_doc
