/* AdmissionReviews from whoever reaches the webhook; the answers to what is taken must be JSON. */
#include "fuzz.h"

#include "api/admit.h"
#include "api/instancetype/instancetype.h"
#include "api/instancetype/matcher.h"
#include "api/json.h"
#include "api/object.h"
#include "base/str.h"
#include "control/loops/review.h"
#include "control/loops/review_machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    review_cleanup struct review r = {0};
    struct ferry_error err;
    char why[FERRY_ERROR_TEXT] = "";

    if (review_parse((const char *)data, size, &r, &err) == 0) {
        ferry_cleanup_free char *label = review_label(r.object);
        ferry_cleanup_free char *answer =
            label ? review_patch(&r, label)
                  : review_deny(&r, 429, WIRE_ERROR_MOVE_IN_FLIGHT, r.uid);
        api_cleanup_doc yyjson_doc *again = NULL;

        const yyjson_val *spec = r.old ? yyjson_obj_get((yyjson_val *)r.old, "spec") : NULL;

        (void)matcher_check(r.object, r.old, &err);
        (void)instancetype_admit(
            r.object, &(struct instancetype_pair){.type = spec, .preference = spec}, &err);
        (void)api_admit_by_descheduler(r.object);
        (void)api_admit_eviction(r.object, r.object, NULL, why, sizeof(why));
        must(answer && api_json_parse(answer, strlen(answer), &again, &err) == 0);
        ferry_cleanup_free char *fields = review_machine(&r);
        api_cleanup_doc yyjson_doc *judged = NULL;
        must(fields && api_json_parse(fields, strlen(fields), &judged, &err) == 0);
    }
    return 0;
}
