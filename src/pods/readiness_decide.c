#include "pods/readiness_decide.h"

#include <stdio.h>

enum { HTTP_OK = 200, HTTP_BAD = 400 };

static int64_t pause_ms(const struct readiness_state *s)
{
    if (s->ready) {
        return s->failures ? READINESS_AGAIN_MS : READINESS_PERIOD_MS;
    }
    int64_t pause = READINESS_FIRST_MS;
    for (int i = 1; i < s->failures && pause < READINESS_AGAIN_MS; i++) {
        pause *= 2;
    }
    return pause < READINESS_AGAIN_MS ? pause : READINESS_AGAIN_MS;
}

bool readiness_decide(struct readiness_state *s, bool answered, int64_t now_ms)
{
    bool before = s->ready;

    s->failures = answered ? 0 : s->failures + 1;
    if (answered) {
        s->ready = true;
    } else if (s->failures >= READINESS_FAILURES) {
        s->ready = false;
    }
    s->next_ms = now_ms + pause_ms(s);
    return s->ready != before;
}

bool readiness_known(const struct readiness_state *s)
{
    return s->ready || s->failures >= READINESS_FAILURES;
}

bool readiness_answer_good(const char *text)
{
    int minor, status;

    return sscanf(text, "HTTP/1.%1d %3d", &minor, &status) == 2 && status >= HTTP_OK &&
           status < HTTP_BAD;
}
