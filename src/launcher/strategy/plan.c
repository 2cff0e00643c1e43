#include "launcher/strategy/plan.h"

#include <math.h>

#include "base/count.h"
#include "json/doc.h"

enum {
    STEP_MS = 50,
    BEFORE_MS = 350, /* of libvirt, before the first byte, */
    AFTER_MS = 250,  /* and after the last */
    SWITCH_MS = 25,  /* of a switch-over with nothing left to send */
    POST_COPY_SWITCH_MS = 50,
    FOR_EVER_MS = 24 * 3600 * 1000,
    QUEUED_BYTES = 512 << 10, /* on their way inside the transport when the guest stops */
};
#define DIRTIES_LEAST 0.8 /* during a move, of what was sampled before, */
#define DIRTIES_MOST 3.0  /* and at most */
#define STEADY 0.9        /* a second second that adds as much as this is no repetition */
#define REPEATS_ALL 0.02

/* With pages that are hit at random, D(t) = W (1 - x^t) distinct bytes are dirty after t seconds:
 * x is what the second second adds, of what the first did. A guest that walks through a set in
 * order fits, too: x is 1 until it begins anew, then 0. */
struct plan_dirtying plan_dirtying_of(int64_t in_one_s, int64_t in_two_s, int64_t most)
{
    double x = in_one_s > 0 ? (double)(in_two_s - in_one_s) / (double)in_one_s : 1;

    if (x >= STEADY) {
        return (struct plan_dirtying){.bytes_per_s = in_one_s, .set_bytes = most};
    }
    x = x > REPEATS_ALL ? x : REPEATS_ALL;
    double set = (double)in_one_s / (1 - x);
    set = set < (double)most ? set : (double)most;
    return (struct plan_dirtying){.bytes_per_s = (int64_t)(set * -log(x)),
                                  .set_bytes = (int64_t)set};
}

/* Model of a guest in pre-copy. Sizes in bytes, as fractions. */
struct model {
    double left, dirtied, sent;
    double dirty_per_s, set, path_per_s;
    double rate, period_ms;
    int64_t iteration, limit_ms, throttle;
};

static void dirty(struct model *m)
{
    double runs = (double)(100 - m->throttle) / 100;
    double fresh = m->set > 0 ? 1 - m->dirtied / m->set : 0;

    m->dirtied += m->dirty_per_s * runs * fresh * STEP_MS / 1000;
    m->dirtied = m->dirtied < m->set ? m->dirtied : m->set;
}

/* One step; true when QEMU switches over. It looks for dirtied pages as soon as what is left of a
 * round would fit into the allowed downtime, and stops the guest if it still does then. */
static bool advance(struct model *m, bool converge)
{
    double sent = m->path_per_s * STEP_MS / 1000;
    double fits = m->path_per_s * (double)m->limit_ms / 1000;

    sent = sent < m->left ? sent : m->left;
    m->left -= sent;
    m->sent += sent;
    m->period_ms += STEP_MS;
    dirty(m);
    if (m->left > fits) {
        return false;
    }
    m->rate = m->dirtied * 1000 / m->period_ms;
    m->period_ms = 0;
    m->left += m->dirtied;
    m->dirtied = 0;
    m->iteration++;
    if (m->left <= fits) {
        return true;
    }
    if (converge && m->iteration > 3 && m->iteration % 2 == 0) {
        m->throttle = m->throttle < 90 ? m->throttle + 10 : 99;
    }
    return false;
}

static struct launcher_sample look(const struct model *m)
{
    return (struct launcher_sample){.present = true,
                                    .active = true,
                                    .iteration = m->iteration,
                                    .remaining_bytes = (int64_t)m->left,
                                    .processed_bytes = (int64_t)m->sent,
                                    .bytes_per_s = (int64_t)m->path_per_s,
                                    .dirty_bytes_per_s = (int64_t)m->rate,
                                    .throttle_percent = m->throttle,
                                    .downtime_ms = -1};
}

/* How long the bytes in `m` take, and what is queued before them. */
static int64_t rest_ms(const struct model *m)
{
    return (int64_t)((m->left + m->dirtied + QUEUED_BYTES) * 1000 / m->path_per_s);
}

static struct plan_case switches_over(const struct plan_input *in, struct model *m, int64_t now)
{
    int64_t total = now + rest_ms(m) + AFTER_MS;

    /* What the first round ends with is memory like any other: some of it is not in use. */
    if (m->iteration == 2 && in->guest_bytes > in->memory_bytes) {
        m->left *= (double)in->memory_bytes / (double)in->guest_bytes;
    }
    return (struct plan_case){
        .rounds = m->iteration + 1, .total_ms = total, .downtime_ms = rest_ms(m) + SWITCH_MS};
}

static struct plan_case run(const struct plan_input *in, double more)
{
    struct strategy_memory memory = {0};
    struct model m = {.left = (double)in->memory_bytes,
                      .set = (double)in->dirtying.set_bytes,
                      .dirty_per_s = (double)in->dirtying.bytes_per_s * more,
                      .path_per_s = (double)in->path_bytes_per_s,
                      .iteration = 1,
                      .limit_ms = STRATEGY_DOWNTIME_DEFAULT_MS};
    struct strategy_decision d = {0};
    int64_t begin = BEFORE_MS + (int64_t)((double)in->disk_bytes * 1000 / m.path_per_s);

    for (int64_t now = begin + STEP_MS; now < FOR_EVER_MS; now += STEP_MS) {
        if (advance(&m, in->policy.allow_auto_converge)) {
            return switches_over(in, &m, now);
        }
        struct plan_case c = {.rounds = m.iteration + 1,
                              .total_ms = now + rest_ms(&m) + AFTER_MS,
                              .downtime_ms = rest_ms(&m) + SWITCH_MS};
        strategy_decide(&(struct strategy_input){.policy = &in->policy,
                                                 .data_bytes = in->guest_bytes + in->disk_bytes,
                                                 .elapsed_ms = now,
                                                 .vfio = in->vfio,
                                                 .sample = look(&m)},
                        &memory, &d);
        switch (d.action) {
        case STRATEGY_KEEP:
        case STRATEGY_SET_SWITCHOVER: /* the model's QEMU knows what the path carries */
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
    *ret = (struct plan){
        .low = run(in, DIRTIES_LEAST), .expected = run(in, 1), .high = run(in, DIRTIES_MOST)};
}

static yyjson_mut_val *case_json(yyjson_mut_doc *doc, const struct plan_case *c)
{
    static const char *const ends[] = {"switch-over", "post-copy", "pause", "abort"};
    _Static_assert(FERRY_COUNT(ends) == PLAN_END_COUNT, "one name an end");
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_str(doc, o, "end", ends[c->end]);
    yyjson_mut_obj_add_int(doc, o, "rounds", c->rounds);
    yyjson_mut_obj_add_int(doc, o, "totalMs", c->total_ms);
    yyjson_mut_obj_add_int(doc, o, "downtimeMs", c->downtime_ms);
    return o;
}

char *plan_json(const struct plan_input *in, const struct plan *p)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = json_doc_object(doc);

    yyjson_mut_obj_add_int(doc, o, "dataBytes", in->memory_bytes + in->disk_bytes);
    yyjson_mut_obj_add_int(doc, o, "dirtyBytesPerS", in->dirtying.bytes_per_s);
    yyjson_mut_obj_add_int(doc, o, "dirtySetBytes", in->dirtying.set_bytes);
    yyjson_mut_obj_add_int(doc, o, "pathBytesPerS", in->path_bytes_per_s);
    yyjson_mut_obj_add_val(doc, o, "low", case_json(doc, &p->low));
    yyjson_mut_obj_add_val(doc, o, "expected", case_json(doc, &p->expected));
    yyjson_mut_obj_add_val(doc, o, "high", case_json(doc, &p->high));
    return json_doc_take(doc);
}
