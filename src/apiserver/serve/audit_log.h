/* A file of lines that nobody else can read and that is begun anew when it is full: FILE, then
 * FILE.1 and so on, which are older. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct audit_log;

/* `max_bytes`: of one file; `max_backups`: how many older ones are kept. */
int audit_log_open(const char *path, int64_t max_bytes, int max_backups, struct audit_log **ret,
                   struct ferry_error *err);
void audit_log_close(struct audit_log *l); /* takes NULL */
/* One line, with its end. What cannot be written is told in the program's own log. */
void audit_log_write(struct audit_log *l, const char *line, size_t len);
