/* Audit: which calls become events of audit.k8s.io/v1, one JSON object to a line. */
#pragma once

#include "apiserver/request/request.h"
#include "apiserver/serve/audit_policy.h"

struct audit;

struct audit_config {
    const char *policy; /* path of a Policy, or NULL: audit_default_level() */
    const char *log;    /* path of the file */
    int64_t max_bytes;
    int max_backups;
};
int audit_open(const struct audit_config *cfg, struct audit **ret, struct ferry_error *err);
void audit_close(struct audit *a); /* takes NULL */

/* Before the call is served: what it is, and whether its answer is to be kept. */
void audit_begin(const struct audit *a, struct request *r);
/* After it was answered. */
void audit_end(struct audit *a, struct request *r, int64_t begin_unix_ms);
