#include "api/wire/wire_error.h"

#include <string.h>

#include "api/object.h"
#include "api/wire/wire_error_old.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_words.h"
#include "base/count.h"
#include "base/str.h"

static const char *const texts[] = {
    [WIRE_ERROR_NONE] = "",
    [WIRE_ERROR_MOVE_IN_FLIGHT] = "MoveInFlight",
    [WIRE_ERROR_QUOTA] = "QuotaExceeded",
};
_Static_assert(FERRY_COUNT(texts) == WIRE_ERROR_COUNT, "one text a reason");

const char *wire_error_text(enum wire_error e)
{
    return texts[e];
}

enum wire_error wire_error_find(const char *text)
{
    for (int e = WIRE_ERROR_NONE + 1; e < WIRE_ERROR_COUNT; e++) {
        if (ferry_streq(text, texts[e])) {
            return (enum wire_error)e;
        }
    }
    return WIRE_ERROR_NONE;
}

bool wire_error_is(const struct ferry_error *err, enum wire_error e)
{
    return e != WIRE_ERROR_NONE && ferry_streq(err->reason, texts[e]);
}

/* ---- answers -----------------------------------------------------------------------------------
 */

/* The first cause that is a reason of ours; else what the body says, of any kind. */
static const char *reason_of(const yyjson_val *body)
{
    yyjson_val *causes = yyjson_ptr_get((yyjson_val *)body, "/details/causes"), *cause;
    yyjson_arr_iter it = yyjson_arr_iter_with(causes);

    while ((cause = yyjson_arr_iter_next(&it))) {
        const char *said = yyjson_get_str(yyjson_obj_get(cause, "reason"));

        if (wire_error_find(said) != WIRE_ERROR_NONE) {
            return said;
        }
    }
    return api_json_str(body, "/reason");
}

int wire_error_read(enum ferry_class cls, int status, const yyjson_val *body,
                    struct ferry_error *err)
{
    const char *message = body ? api_json_str(body, "/message") : NULL;
    const char *reason = body ? reason_of(body) : NULL;

    if (wire_error_find(reason) == WIRE_ERROR_NONE) {
        enum wire_error old = wire_error_old_answer(status, message);

        reason = old != WIRE_ERROR_NONE ? texts[old] : reason;
    }
    bool fits = reason && strlen(reason) < FERRY_ERROR_REASON;
    if (ferry_str_empty(message)) {
        ferry_fail_reason(err, cls, fits ? reason : "", "no reason given (HTTP %d)", status);
    } else {
        ferry_fail_reason(err, cls, fits ? reason : "", "%s", message);
    }
    if (err) {
        err->http = status;
    }
    return -(int)cls;
}

/* ---- what no node has --------------------------------------------------------------------------
 */

static const char *const lacks[] = {"", "cpu", "machine"};
_Static_assert(FERRY_COUNT(lacks) == WIRE_LACK_COUNT, "one text a lack");
static const struct wire_words lack_words = {lacks, WIRE_LACK_COUNT};

void wire_error_lack_write(yyjson_mut_doc *doc, yyjson_mut_val *queue, enum wire_lack lack,
                           const char *text)
{
    if (lack != WIRE_LACK_NOTHING) {
        yyjson_mut_val *o = yyjson_mut_obj_add_obj(doc, queue, "lack");

        yyjson_mut_obj_add_str(doc, o, "of", lacks[lack]);
        yyjson_mut_obj_add_str(doc, o, "message", text);
    }
}

const char *wire_error_lack_read(const yyjson_val *queue, enum wire_lack *ret)
{
    const yyjson_val *lack = yyjson_obj_get((yyjson_val *)queue, "lack");
    unsigned of = lack ? wire_words_find(&lack_words, api_json_str(lack, "/of")) : lack_words.n;

    if (of < lack_words.n) {
        *ret = (enum wire_lack)of;
        return api_json_str(lack, "/message");
    }
    return wire_error_old_lack(queue ? api_json_str(queue, "/message") : NULL, ret);
}

/* ---- moves that failed ------------------------------------------------------------------------
 */

enum wire_reason wire_error_failure_of(const struct api_migration *m)
{
    const struct api_condition *c = api_condition_find(&m->conditions, CONDITION_FAILED);
    enum wire_reason code = c ? wire_reason_of(c->reason) : REASON_NONE;

    return wire_reason_is_failure(code) ? code : wire_reason_of_failure(m->state.failure_reason);
}

char *wire_error_failure_write(const char *uid, enum wire_reason code)
{
    return ferry_asprintf("%s/%s", uid, wire_reason_text(code));
}

enum wire_reason wire_error_failure_read(const struct api_map *annotations, const char *uid)
{
    const char *text = api_map_get(annotations, ANNOTATION_FAILURE);
    const char *slash = text ? strchr(text, '/') : NULL;

    if (!slash || ferry_str_empty(uid) || strlen(uid) != (size_t)(slash - text) ||
        memcmp(text, uid, strlen(uid)) != 0) {
        return REASON_NONE;
    }
    enum wire_reason code = wire_reason_of(slash + 1);
    return wire_reason_is_failure(code) ? code : REASON_NONE;
}
