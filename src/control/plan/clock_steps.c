#include "control/plan/clock_steps.h"

#include <stdio.h>
#include <string.h>

#include "api/wire/wire_clock.h"
#include "base/str.h"

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
        s->steps[s->n_steps++] = (struct wire_clock_step){.before_ms = expected, .by_ms = by};
    }
    s->wall_ms = wall_ms;
    s->mono_ms = mono_ms;
    return was_set;
}

/* Was this time written before the step? Objects carry whole seconds, so one that is a little
 * earlier than the clock was after the step may be of after it. After a step back some times come
 * twice: of those the later one is meant, unless it has not come yet. */
static int is_before(const struct wire_clock_step *step, int64_t since_ms, int64_t now_ms)
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
    struct wire_clock c = {.n = s->n_steps};

    snprintf(c.boot, sizeof(c.boot), "%s", boot);
    memcpy(c.steps, s->steps, sizeof(c.steps));
    return wire_clock_text(&c);
}

void clock_steps_recall(struct clock_steps *s, const char *text, const char *boot)
{
    struct wire_clock c;

    if (!wire_clock_read(text, &c) || ferry_str_empty(boot) || !ferry_streq(c.boot, boot)) {
        return;
    }
    for (size_t i = 0; i < c.n && s->n_steps < CLOCK_STEPS_MAX; i++) {
        s->steps[s->n_steps++] = c.steps[i];
    }
}
