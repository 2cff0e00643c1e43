/* The SQLite file below the store: objects as rows of JSON text, the newest version, the schema and
 * its upgrades. One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/store/entry.h"
#include "base/error.h"

struct database;

/* Opens or makes the file, brings an old schema up to date, and holds it against other processes
 * (-FERRY_CONFLICT when one has it). */
int database_open(const char *path, struct database **ret, struct ferry_error *err);
void database_close(struct database *d); /* takes NULL */

/* Reads everything, once after opening. `each` gets a reference. */
int database_load(struct database *d, uint64_t *ret_version,
                  void (*each)(void *ctx, struct entry *take), void *ctx, struct ferry_error *err);

/* One row to write or, with `remove`, to delete. */
struct database_row {
    const struct entry *entry;
    bool remove;
};
/* All rows and the version in one transaction: on disk when it returns 0, else nothing of it. When
 * the disk is full the class is FERRY_RETRY. */
int database_write(struct database *d, const struct database_row *rows, size_t n, uint64_t version,
                   struct ferry_error *err);
