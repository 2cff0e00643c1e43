#include "apiserver/object/sizing_check.h"

#include "api/instancetype/instancetype.h"
#include "base/str.h"

static int check_machine(const yyjson_val *old, const yyjson_val *object,
                         const yyjson_val *const named[MATCHER_COUNT], struct ferry_error *err)
{
    const yyjson_val *specs[MATCHER_COUNT] = {NULL};
    int rc = matcher_check(object, old, err);

    for (enum matcher_of of = 0; rc == 0 && of < MATCHER_COUNT; of++) {
        struct matcher m;

        if (named[of] && matcher_read(object, of, &m)) {
            specs[of] = matcher_spec(&m, named[of]);
        }
    }
    return rc < 0 ? rc
                  : instancetype_admit(
                        object,
                        &(struct instancetype_pair){.type = specs[MATCHER_INSTANCETYPE],
                                                    .preference = specs[MATCHER_PREFERENCE]},
                        err);
}

int sizing_check(const struct api_resource *r, const char *name, const yyjson_val *old,
                 const yyjson_val *object, const yyjson_val *const named[MATCHER_COUNT],
                 struct status *st)
{
    struct ferry_error err = {0};
    size_t len;

    if ((r->kind == API_KIND_VM ? check_machine(old, object, named, &err)
                                : instancetype_check(r, object, &err)) == 0) {
        return 0;
    }
    const char *about = ferry_error_about(&err, &len);
    ferry_cleanup_free char *field = ferry_strndup(about, len);
    return status_invalid(st, r, name, field, STATUS_VALUE_INVALID, "%s", ferry_error_words(&err));
}
