/* What the server offers, in the forms that clients ask for: API groups and resources, OpenAPI v3,
 * version. Pure. */
#pragma once

#include "apiserver/status.h"

/* JSON for a path ("/api", "/apis/kubevirt.io/v1", "/openapi/v3/...", "/version"), owned by the
 * caller; NULL when the path is none of these. */
char *discovery_answer(const char *path);
