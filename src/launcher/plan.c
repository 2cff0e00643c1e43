#include "launcher/plan.h"

enum {
    STEP_MS = 100,
    FIXED_MS = 700, /* of libvirt, before the first byte and after the last */
    SWITCH_MS = 25, /* of a switch-over with nothing left to send */
    POST_COPY_SWITCH_MS = 50,
    DIRTIES_MORE = 3, /* during a move than before it, at most */
    FOR_EVER_MS = 24 * 3600 * 1000,
};

/* Model of a guest in pre-copy. Sizes in bytes, as fractions. */
struct model {
    double left, dirtied, sent;
    double in_use, dirty_per_s, path_per_s;
    double rate, period_ms;
    int64_t iteration, limit_ms, throttle;
};

/* One step; true when QEMU would switch over. */
static bool advance(struct model *m, bool converge)
{
    double sent = m->path_per_s * STEP_MS / 1000;

    sent = sent < m->left ? sent : m->left;
    m->left -= sent;
    m->sent += sent;
    m->period_ms += STEP_MS;
    m->dirtied += m->dirty_per_s * (double)(100 - m->throttle) / 100 * STEP_MS / 1000;
    m->dirtied = m->dirtied < m->in_use ? m->dirtied : m->in_use;
    if (m->left > 0.5) {
        return false;
    }
    if (m->dirtied <= m->path_per_s * (double)m->limit_ms / 1000) {
        return true;
    }
    m->rate = m->dirtied * 1000 / m->period_ms;
    m->period_ms = 0;
    m->left = m->dirtied;
    m->dirtied = 0;
    m->iteration++;
    if (converge && m->iteration > 3 && m->iteration % 2 == 0) {
        m->throttle = m->throttle < 90 ? m->throttle + 10 : 99;
    }
    return false;
}

static struct sample look(const struct model *m)
{
    return (struct sample){.present = true,
                           .active = true,
                           .iteration = m->iteration,
                           .remaining_bytes = (int64_t)m->left,
                           .processed_bytes = (int64_t)m->sent,
                           .bytes_per_s = (int64_t)m->path_per_s,
                           .dirty_bytes_per_s = (int64_t)m->rate,
                           .throttle_percent = m->throttle,
                           .downtime_ms = -1};
}

static struct plan_case run(const struct plan_input *in, int64_t dirty_per_s)
{
    struct strategy_memory memory = {0};
    struct model m = {.left = (double)in->data_bytes,
                      .in_use = (double)in->data_bytes,
                      .dirty_per_s = (double)dirty_per_s,
                      .path_per_s = (double)in->path_bytes_per_s,
                      .iteration = 1,
                      .limit_ms = STRATEGY_DOWNTIME_DEFAULT_MS};
    struct strategy_decision d = {0};

    for (int64_t now = STEP_MS; now < FOR_EVER_MS; now += STEP_MS) {
        bool over = advance(&m, in->policy.allow_auto_converge);
        int64_t rest_ms = (int64_t)((over ? m.dirtied : m.left + m.dirtied) * 1000 / m.path_per_s);
        struct plan_case c = {.rounds = m.iteration,
                              .total_ms = now + rest_ms + FIXED_MS,
                              .downtime_ms = rest_ms + SWITCH_MS};

        if (over) {
            return c;
        }
        strategy_decide(&(struct strategy_input){.policy = &in->policy,
                                                 .data_bytes = in->data_bytes,
                                                 .elapsed_ms = now,
                                                 .vfio = in->vfio,
                                                 .sample = look(&m)},
                        &memory, &d);
        switch (d.action) {
        case STRATEGY_KEEP:
            break;
        case STRATEGY_SET_DOWNTIME:
            m.limit_ms = d.downtime_ms;
            break;
        case STRATEGY_POST_COPY:
            c.end = PLAN_POST_COPY;
            c.downtime_ms = POST_COPY_SWITCH_MS;
            return c;
        case STRATEGY_PAUSE:
        case STRATEGY_FORCE:
            c.end = PLAN_PAUSE;
            return c;
        default:
            return (struct plan_case){.end = PLAN_ABORT, .rounds = m.iteration, .total_ms = now};
        }
    }
    return (struct plan_case){.end = PLAN_ABORT, .rounds = m.iteration, .total_ms = FOR_EVER_MS};
}

void plan_make(const struct plan_input *in, struct plan *ret)
{
    *ret = (struct plan){.low = run(in, in->dirty_bytes_per_s),
                         .high = run(in, in->dirty_bytes_per_s * DIRTIES_MORE)};
}

static yyjson_mut_val *case_json(yyjson_mut_doc *doc, const struct plan_case *c)
{
    static const char *const ends[] = {"switch-over", "post-copy", "pause", "abort"};
    _Static_assert(sizeof(ends) / sizeof(ends[0]) == PLAN_END_COUNT, "one name an end");
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_str(doc, o, "end", ends[c->end]);
    yyjson_mut_obj_add_int(doc, o, "rounds", c->rounds);
    yyjson_mut_obj_add_int(doc, o, "totalMs", c->total_ms);
    yyjson_mut_obj_add_int(doc, o, "downtimeMs", c->downtime_ms);
    return o;
}

char *plan_json(const struct plan_input *in, const struct plan *p)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_int(doc, o, "dataBytes", in->data_bytes);
    yyjson_mut_obj_add_int(doc, o, "dirtyBytesPerS", in->dirty_bytes_per_s);
    yyjson_mut_obj_add_int(doc, o, "pathBytesPerS", in->path_bytes_per_s);
    yyjson_mut_obj_add_val(doc, o, "low", case_json(doc, &p->low));
    yyjson_mut_obj_add_val(doc, o, "high", case_json(doc, &p->high));
    char *text = yyjson_mut_write(doc, 0, NULL);
    yyjson_mut_doc_free(doc);
    return text;
}
