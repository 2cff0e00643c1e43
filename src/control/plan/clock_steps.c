#include "control/plan/clock_steps.h"

#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "base/str.h"
#include "json/doc.h"

enum { SECOND_MS = 1000 };

bool clock_steps_observe(struct clock_steps *s, int64_t wall_ms, int64_t mono_ms)
{
    int64_t expected = s->wall_ms + (mono_ms - s->mono_ms);
    int64_t by = wall_ms - expected;
    bool was_set = s->wall_ms && (by >= CLOCK_STEP_MS || by <= -CLOCK_STEP_MS);

    if (was_set) {
        if (s->n_steps == CLOCK_STEPS_MAX) {
            memmove(s->steps, s->steps + 1, sizeof(s->steps) - sizeof(s->steps[0]));
            s->n_steps--;
        }
        s->steps[s->n_steps++] = (struct clock_step){.before_ms = expected, .by_ms = by};
    }
    s->wall_ms = wall_ms;
    s->mono_ms = mono_ms;
    return was_set;
}

/* Was this time written before the step? Objects carry whole seconds, so one that is a little
 * earlier than the clock was after the step may be of after it. After a step back some times come
 * twice: of those the later one is meant, unless it has not come yet. */
static int is_before(const struct clock_step *step, int64_t since_ms, int64_t now_ms)
{
    int64_t after_ms = step->before_ms + step->by_ms;

    return since_ms <= after_ms - SECOND_MS || (step->by_ms < 0 && since_ms > now_ms);
}

int64_t clock_steps_elapsed(const struct clock_steps *s, int64_t since_ms, int64_t now_ms)
{
    int64_t elapsed = now_ms - since_ms;

    /* From the last one: a time before a step is looked at as the clock before it would show it. */
    for (size_t i = s->n_steps; i-- > 0;) {
        if (!is_before(&s->steps[i], since_ms, now_ms)) {
            break;
        }
        elapsed -= s->steps[i].by_ms;
        now_ms -= s->steps[i].by_ms;
    }
    return elapsed > 0 ? elapsed : 0;
}

char *clock_steps_text(const struct clock_steps *s, const char *boot)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);
    yyjson_mut_val *steps = NULL;

    yyjson_mut_obj_add_str(doc, root, "boot", boot);
    steps = yyjson_mut_obj_add_arr(doc, root, "steps");
    for (size_t i = 0; i < s->n_steps; i++) {
        yyjson_mut_val *one = yyjson_mut_arr_add_obj(doc, steps);

        yyjson_mut_obj_add_int(doc, one, "beforeMs", s->steps[i].before_ms);
        yyjson_mut_obj_add_int(doc, one, "byMs", s->steps[i].by_ms);
    }
    return json_doc_take(doc);
}

void clock_steps_recall(struct clock_steps *s, const char *text, const char *boot)
{
    api_cleanup_doc yyjson_doc *doc = text ? yyjson_read(text, strlen(text), 0) : NULL;
    yyjson_val *root = yyjson_doc_get_root(doc), *one;
    size_t i, max;

    if (!root || ferry_str_empty(boot) || !ferry_streq(api_json_str(root, "/boot"), boot)) {
        return;
    }
    yyjson_arr_foreach(yyjson_obj_get(root, "steps"), i, max, one)
    {
        struct clock_step step = {.before_ms = api_json_int(one, "/beforeMs", 0),
                                  .by_ms = api_json_int(one, "/byMs", 0)};

        if (step.before_ms > 0 && step.by_ms && s->n_steps < CLOCK_STEPS_MAX) {
            s->steps[s->n_steps++] = step;
        }
    }
}
