/* Keeps the logs of pods short: of each only the end stays, however much is written.
 *
 * The head of a log is given back to its file system as a hole: the file keeps its length, so that
 * whoever writes to it or follows it by an offset goes on. Between two looks the size of the pod's
 * file system is the limit (pod_dir.h); what does not fit is lost, and nobody who writes is held
 * up. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum {
    LOG_TRIM_MAX = 3 << 20,  /* a log that has more is cut */
    LOG_TRIM_KEEP = 2 << 20, /* to this; more than the node API's longest answer */
};

/* How many bytes at the head of a log go, of those that it is long and that it takes up. Pure. */
int64_t log_trim_head(int64_t length, int64_t taken);

/* Looks once at all logs of the pod whose directory that is. */
void log_trim_pod(const char *dir);

struct log_trim;
/* Does it from now on, for all pods below a directory, in a thread. */
int log_trim_start(const char *pods_dir, struct log_trim **ret, struct ferry_error *err);
void log_trim_stop(struct log_trim *t); /* NULL is fine */
