/* What the server offers, in the forms that clients ask for: API groups and resources, OpenAPI v3,
 * version. Pure. */
#pragma once

#include <stdbool.h>

#include "apiserver/message/status.h"

/* JSON for a path ("/api", "/apis/kubevirt.io/v1", "/openapi/v3/...", "/version"), owned by the
 * caller; NULL when the path is none of these. */
char *discovery_answer(const char *path);
/* Where virtctl asks, when a call has failed, which version it talks to; it looks like an object.
 */
bool discovery_is_virt_version(const char *path);
