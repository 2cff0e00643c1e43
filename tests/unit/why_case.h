/* What the tests of `ferry why` share: objects, written as JSON. */
#pragma once

#include "lib/unit.h"

#include "api/object.h"
#include "base/str.h"
#include "cli/why/why.h"

/* All times are seconds of one minute; "now" is 12:00:50. */
#define AT(s) "2026-01-01T12:00:" s "Z"
#define MIGRATION(phase, meta, status)                                                             \
    "{\"metadata\":{\"name\":\"m\",\"namespace\":\"default\",\"uid\":\"u1\","                      \
    "\"creationTimestamp\":"                                                                       \
    "\"" AT("00") "\"" meta "},\"spec\":{\"vmiName\":\"demo\"},\"status\":{\"phase\":\"" phase     \
                  "\"" status "}}"
#define FAILED(reason)                                                                             \
    MIGRATION("Failed", "", ",\"migrationState\":{\"failureReason\":\"" reason "\"}")
#define NODE(name, ready)                                                                          \
    "{\"metadata\":{\"name\":\"" name "\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","       \
    "\"status\":\"" ready "\"}]}}"
#define LEASE(renewed)                                                                             \
    "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"c1\","                          \
    "\"leaseDurationSeconds\":15,\"renewTime\":\"" renewed "\"}}"

static inline struct api_object *object(enum api_kind kind, const char *json)
{
    struct api_object *o = NULL;
    struct ferry_error err = {0};

    if (json && api_object_parse(kind, json, strlen(json), &o, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    return o;
}
