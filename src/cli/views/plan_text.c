#include "cli/views/plan_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_phase.h"
#include "cli/views/progress.h"

static void read_case(const yyjson_val *v, struct plan_text_case *ret)
{
    const char *end = api_json_str(v, "/end");

    snprintf(ret->end, sizeof(ret->end), "%s", end ? end : "");
    ret->rounds = api_json_int(v, "/rounds", 0);
    ret->total_ms = api_json_int(v, "/totalMs", 0);
    ret->downtime_ms = api_json_int(v, "/downtimeMs", 0);
}

int plan_text_parse(const char *json, size_t len, struct plan_text *ret, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    int rc = api_json_parse(json, len, &doc, err);

    if (rc < 0) {
        return rc;
    }
    yyjson_val *root = yyjson_doc_get_root(doc);
    *ret = (struct plan_text){
        .data_bytes = api_json_int(root, "/dataBytes", 0),
        .dirty_bytes_per_s = api_json_int(root, "/dirtyBytesPerS", 0),
        .path_bytes_per_s = api_json_int(root, "/pathBytesPerS", 0),
        .path_measured = api_json_bool(root, "/pathMeasured", false),
    };
    read_case(yyjson_obj_get(root, "low"), &ret->low);
    read_case(yyjson_obj_get(root, "high"), &ret->high);
    return *ret->low.end && *ret->high.end
               ? 0
               : ferry_fail(err, FERRY_PEER, "the node's answer is not a plan");
}

int64_t plan_text_started_ms(const struct api_object *vmi)
{
    yyjson_val *list = yyjson_obj_get((yyjson_val *)vmi->u.vmi.status, "phaseTransitionTimestamps");
    yyjson_val *v;
    size_t i, n;
    int64_t ms = 0;

    yyjson_arr_foreach(list, i, n, v)
    {
        const char *when = api_json_str(v, "/phaseTransitionTimestamp");

        if (wire_phase_is(api_json_str(v, "/phase"), PHASE_RUNNING) && when) {
            api_time_parse(when, &ms, NULL);
        }
    }
    return ms;
}

int64_t plan_text_too_early_ms(int64_t started_ms, int64_t now_ms)
{
    int64_t left = started_ms + PLAN_TEXT_SETTLE_MS - now_ms;

    if (started_ms == 0 || left <= 0) {
        return 0;
    }
    return left < PLAN_TEXT_SETTLE_MS ? left : PLAN_TEXT_SETTLE_MS; /* clocks may differ */
}

static void put_case(const char *name, const struct plan_text_case *c, struct ferry_buf *out)
{
    char total[PROGRESS_TEXT], downtime[PROGRESS_TEXT];

    progress_duration(c->total_ms, total);
    progress_duration(c->downtime_ms, downtime);
    ferry_buf_printf(out, "%-11s ", name);
    if (ferry_streq(c->end, "abort")) {
        ferry_buf_printf(out,
                         "it does not converge: given up after %s; a policy that allows "
                         "auto-converge, post-copy or a pause would move it\n",
                         total);
        return;
    }
    ferry_buf_printf(out, "%s in %" PRId64 " round%s, %s; the guest stands still for %s\n",
                     ferry_streq(c->end, "switch-over") ? "pre-copy"
                     : ferry_streq(c->end, "pause")     ? "paused to finish"
                                                        : c->end,
                     c->rounds, c->rounds == 1 ? "" : "s", total, downtime);
}

void plan_text_render(const struct plan_text *p, const char *vm, const char *from, const char *to,
                      const char *policy, enum wire_accelerator accelerator, int64_t age_ms,
                      struct ferry_buf *out)
{
    char data[PROGRESS_TEXT], dirty[PROGRESS_TEXT], path[PROGRESS_TEXT];

    progress_bytes(p->data_bytes, data);
    progress_bytes(p->dirty_bytes_per_s, dirty);
    progress_bytes(p->path_bytes_per_s, path);
    ferry_buf_printf(out, "%-11s %s: %s to %s\n", "move", vm, from, to ? to : "any node");
    ferry_buf_printf(out, "%-11s %s\n", "policy", policy ? policy : "none: the site's settings");
    ferry_buf_printf(out, "%-11s %s to send, %s/s dirtied (sampled)\n", "guest", data, dirty);
    ferry_buf_printf(out, "%-11s %s\n", "accelerator",
                     accelerator == ACCELERATOR_KVM
                         ? "kvm: it moves only to nodes whose hardware runs guests"
                         : "tcg: it is emulated, here and there");
    ferry_buf_printf(out, "%-11s %s/s%s\n", "path", path,
                     p->path_measured ? " (measured by earlier moves)"
                                      : " (assumed: nothing was sent there lately)");
    put_case("at best", &p->low, out);
    put_case("at worst", &p->high, out);
    if (age_ms >= 0 && age_ms < PLAN_TEXT_YOUNG_MS && ferry_streq(p->high.end, "abort")) {
        char age[PROGRESS_TEXT];

        ferry_buf_printf(out,
                         "%-11s it was started %s ago: one that still boots dirties more than it "
                         "will later, so ask again\n",
                         "but", progress_seconds(age_ms / 1000, age));
    }
}
