#include "control/steady.h"

#include <string.h>

enum { SECOND_MS = 1000 };

void steady_look(struct steady *s, int64_t wall_ms, int64_t mono_ms)
{
    int64_t expected = s->wall_ms + (mono_ms - s->mono_ms);
    int64_t by = wall_ms - expected;

    if (s->wall_ms && (by >= STEADY_STEP_MS || by <= -STEADY_STEP_MS)) {
        if (s->n_steps == STEADY_STEPS) {
            memmove(s->steps, s->steps + 1, sizeof(s->steps) - sizeof(s->steps[0]));
            s->n_steps--;
        }
        s->steps[s->n_steps++] = (struct steady_step){.before_ms = expected, .by_ms = by};
    }
    s->wall_ms = wall_ms;
    s->mono_ms = mono_ms;
}

/* Was this time written before the step? Objects carry whole seconds, so one that is a little
 * earlier than the clock was after the step may be of after it. After a step back some times come
 * twice: of those the later one is meant, unless it has not come yet. */
static int is_before(const struct steady_step *step, int64_t since_ms, int64_t now_ms)
{
    int64_t after_ms = step->before_ms + step->by_ms;

    return since_ms <= after_ms - SECOND_MS || (step->by_ms < 0 && since_ms > now_ms);
}

int64_t steady_elapsed(const struct steady *s, int64_t since_ms, int64_t now_ms)
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
