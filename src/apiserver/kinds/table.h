/* Objects as rows for `kubectl get`: the "Table" of meta.k8s.io/v1. Pure. */
#pragma once

#include <stdint.h>
#include <yyjson.h>

#include "api/object.h"
#include "api/wire/wire_progress.h"
#include "base/str.h"

enum { TABLE_NODE_SIZE = 254 };
enum table_include { TABLE_NONE, TABLE_METADATA, TABLE_OBJECT };

/* A table without rows yet: `{"kind":"Table",...,"rows":[`; close it with table_end(). */
void table_begin(struct ferry_buf *b, const struct api_resource *r, uint64_t version);
/* The same for a page of a list: `metadata` is the text of the whole metadata. */
void table_begin_list(struct ferry_buf *b, const struct api_resource *r, const char *metadata);
/* What the VMI of a migration knows of it; all empty when that is nothing. */
struct table_move {
    char source[TABLE_NODE_SIZE], target[TABLE_NODE_SIZE], mode[WIRE_MODE];
    int64_t total_bytes, remaining_bytes;
};
/* One row; `json` is the object's own text. `first` = no comma before it. `move` may be NULL. */
void table_row(struct ferry_buf *b, const struct api_resource *r, const yyjson_val *object,
               const char *json, const struct table_move *move, enum table_include include,
               int64_t now_ms, bool first);
void table_end(struct ferry_buf *b);

enum { TABLE_AGE_SIZE = 32 };
/* "5m12s", as kubectl writes ages; "<unknown>" for 0. */
char *table_age(int64_t since_ms, int64_t now_ms, char buf[TABLE_AGE_SIZE]);
