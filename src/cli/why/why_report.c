#include "cli/why/why_report.h"

#include <stdio.h>

#include "api/json.h"
#include "api/object.h"
#include "base/str.h"

int why_report_parse(const char *json, size_t len, struct why_report *ret, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    size_t i, n;
    yyjson_val *c;

    *ret = (struct why_report){0};
    if (api_json_parse(json, len, &doc, err) < 0) {
        return ferry_wrap(err, "the node's checks");
    }
    yyjson_val *list = yyjson_obj_get(yyjson_doc_get_root(doc), "checks");
    if (!yyjson_is_arr(list)) {
        return ferry_fail(err, FERRY_INVALID, "the node's checks: there is no list of them");
    }
    yyjson_arr_foreach(list, i, n, c)
    {
        const char *name = api_json_str(c, "/name"), *message = api_json_str(c, "/message");

        if (!name || ret->n == WHY_CHECKS) {
            continue;
        }
        struct why_check *to = &ret->checks[ret->n++];
        snprintf(to->name, sizeof(to->name), "%s", name);
        snprintf(to->message, sizeof(to->message), "%s", message ? message : "");
        to->channel = (int)api_json_int(c, "/channel", WHY_NO_CHANNEL);
        to->ok = yyjson_is_true(yyjson_obj_get(c, "ok"));
    }
    return 0;
}

const struct why_check *why_report_find(const struct why_report *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++) {
        if (ferry_streq(r->checks[i].name, name)) {
            return &r->checks[i];
        }
    }
    return NULL;
}

const struct why_check *why_report_fault(const struct why_report *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++) {
        if (ferry_streq(r->checks[i].name, name) && !r->checks[i].ok) {
            return &r->checks[i];
        }
    }
    return NULL;
}
