/* ResourceQuota: what a namespace may hold of pods, their cpu and memory, and of counted kinds. */
#pragma once

#include "apiserver/request/request.h"

/* Inside the transaction: may the object be made (`old` is NULL), or become this? 403 with
 * "exceeded quota" when not. */
int quota_admit(struct request *r, const yyjson_val *old, const yyjson_val *object);
/* Brings the status of all quotas in line with what is there; false when one could not be written
 * and is to be tried again. Part of the collector. */
bool quota_sweep(struct store *store);

/* How much of `what` ("pods", "requests.cpu", "count/pods") an object takes: bytes of memory and
 * storage, thousandths of all else; INT64_MAX when that is not enough. Pure. */
int64_t quota_usage(const char *what, const struct api_resource *r, const yyjson_val *object);
