#include "cli/why/why_case.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/object.h"
#include "api/wire/wire_accelerator.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_reason.h"
#include "api/wire/wire_trouble.h"
#include "base/str.h"

void why_say(struct why_link *l, enum why_state state, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(l->text, sizeof(l->text), fmt, ap);
    va_end(ap);
    l->state = state;
}

void why_remedy(struct why_link *l, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(l->remedy, sizeof(l->remedy), fmt, ap);
    va_end(ap);
}

const char *why_text_or(const char *s, const char *other)
{
    return ferry_str_empty(s) ? other : s;
}

const char *why_accelerator(const struct api_vmi *vmi)
{
    return wire_accelerator_of_vmi(&vmi->meta) == ACCELERATOR_KVM ? "by hardware (kvm)"
                                                                  : "emulated (tcg)";
}

enum wire_phase why_phase_of(const struct why_view *v)
{
    return wire_phase_of(v->migration->phase);
}

/* How long the move has been in its phase. */
int64_t why_phase_age_ms(const struct why_view *v)
{
    const struct api_migration *m = v->migration;

    for (size_t i = m->n_phase_times; i-- > 0;) {
        if (ferry_streq(m->phase_times[i].phase, m->phase)) {
            return v->now_ms - m->phase_times[i].at_ms;
        }
    }
    return v->now_ms - m->meta.created_ms;
}

/* The VM's account of this very move, or NULL. */
const struct api_migration_state *why_state_of(const struct why_view *v)
{
    const struct api_migration_state *s = v->vmi ? &v->vmi->migration : NULL;

    return s && s->present && ferry_streq(s->uid, v->migration->meta.uid) ? s : NULL;
}

/* NULL when it is well or nothing is known about it. */
const char *why_node_trouble(const struct why_view *v, const char *name)
{
    if (!v->nodes || ferry_str_empty(name)) {
        return NULL;
    }
    for (size_t i = 0; i < v->n_nodes; i++) {
        const struct api_node *n = &v->nodes[i]->u.node;

        if (ferry_streq(n->meta.name, name)) {
            return api_condition_true(&n->conditions, CONDITION_READY) ? NULL : "is not ready";
        }
    }
    return "does not exist any more";
}

const char *why_node_says(const struct why_view *v, const char *name, const char *key)
{
    for (size_t i = 0; v->nodes && i < v->n_nodes; i++) {
        if (ferry_streq(v->nodes[i]->meta->name, name)) {
            const char *said = api_map_get(&v->nodes[i]->meta->annotations, key);

            return ferry_str_empty(said) ? NULL : said;
        }
    }
    return NULL;
}

bool why_node_cannot(const struct why_view *v, const char *side, enum wire_reason reason,
                     struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);
    bool source = ferry_streq(side, "source");
    const char *node = source ? s->source_node : s->target_node;
    const char *key = source ? ANNOTATION_SOURCE_TROUBLE : ANNOTATION_TARGET_TROUBLE;
    struct wire_trouble told;

    if (!wire_trouble_of(api_map_get(&v->vmi->meta.annotations, key), v->migration->meta.uid,
                         &told) ||
        (reason && told.reason != reason)) {
        return false;
    }
    why_say(l, WHY_BROKEN, "the %s node %s cannot %s: %s: %s", side, why_text_or(node, "?"),
            s->start_ms ? "go on" : "begin", wire_reason_text(told.reason), told.message);
    why_remedy(l,
               "see to what is named on %s; the move goes on by itself, 'ferry cancel %s' gives up",
               why_text_or(node, "the node"), v->migration->meta.name);
    return true;
}

/* A step that a node has to take: broken when the node is away or takes too long. */
void why_node_step(const struct why_view *v, struct why_link *l, const char *node, const char *what)
{
    const char *trouble = why_node_trouble(v, node);
    char age[PROGRESS_TEXT];

    if (trouble) {
        why_say(l, WHY_BROKEN, "%s: node %s %s", what, node, trouble);
        why_remedy(l, "bring %s back: are ferry-handler, ferry-pods and ferry-relay running on it?",
                   node);
        return;
    }
    bool late = why_phase_age_ms(v) > WHY_STEP_MS;
    why_say(l, late ? WHY_BROKEN : WHY_WAITS, "%s, since %s", what,
            progress_duration(why_phase_age_ms(v), age));
    if (late) {
        why_remedy(
            l,
            "look at the log of ferry-handler on %s and at 'ferry events'; 'ferry cancel %s' "
            "gives up",
            why_text_or(node, "the node"), v->migration->meta.name);
    }
}
