/* Flight records of moves that were over before their launcher went: DIR/UID.jsonl, the newest
 * kept. Any thread; a record is written once and complete. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"

enum { RECORDS_KEPT = 200, RECORD_MAX = 16 << 20 };

/* True for what may be used as a file name here. */
bool records_uid_valid(const char *uid);
bool records_have(const char *dir, const char *uid);
int records_save(const char *dir, const char *uid, const char *text, size_t n,
                 struct ferry_error *err);
int records_load(const char *dir, const char *uid, struct ferry_buf *ret, struct ferry_error *err);
