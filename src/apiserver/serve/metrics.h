/* Numbers about the server in Prometheus' text format. Counting is for any thread. */
#pragma once

#include "apiserver/store/store.h"
#include "base/str.h"

enum metrics_kind { METRICS_READ, METRICS_WATCH, METRICS_WRITE, METRICS_OTHER, METRICS_KIND_COUNT };

void apiserver_metrics_count(enum metrics_kind kind, int code, int64_t took_ns);
void apiserver_metrics_write(struct store *store, struct ferry_buf *out);
