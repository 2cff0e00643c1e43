/* QEMU's own monitor (QMP), for what libvirt cannot do: the domain has a second one beside
 * libvirt's. Every call opens a connection of its own and has a deadline. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/error.h"

/* Runs `command` with `arguments` (JSON text of an object, or NULL). `at_once`: out of band, which
 * works while QEMU's main loop waits for guest memory; few commands allow it. `ret`, when not NULL,
 * gets the answer's document, whose root has the member "return"; yyjson_doc_free() it. An answer
 * of QEMU that says no is class CONFLICT with its words. */
int qmp_call(const char *path, const char *command, const char *arguments, bool at_once,
             int64_t deadline_ns, yyjson_doc **ret, struct ferry_error *err);

/* Status of the migration, "postcopy-paused" and so on; "none" when there is none. */
int qmp_migration_status(const char *path, char *ret, size_t size, int64_t deadline_ns,
                         struct ferry_error *err);
