#include "cli/why/why_case.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "base/count.h"
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

enum why_rank why_rank_of(const struct why_view *v)
{
    static const char *const phases[] = {"",          "Pending",         "Scheduling",
                                         "Scheduled", "PreparingTarget", "TargetReady",
                                         "Running",   "Succeeded"};

    for (size_t i = 0; i < FERRY_COUNT(phases); i++) {
        if (ferry_streq(v->migration->phase, phases[i])) {
            return (enum why_rank)i;
        }
    }
    return WHY_OVER;
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
            return api_condition_true(&n->conditions, "Ready") ? NULL : "is not ready";
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

bool why_node_cannot(const struct why_view *v, const char *side, const char *reason,
                     struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);
    const char *node = ferry_streq(side, "source") ? s->source_node : s->target_node;
    ferry_cleanup_free char *key = ferry_asprintf("ferry.io/%s-trouble", side);
    const char *word = api_map_get(&v->vmi->meta.annotations, key);
    api_cleanup_doc yyjson_doc *doc = word ? yyjson_read(word, strlen(word), 0) : NULL;
    const yyjson_val *root = yyjson_doc_get_root(doc);
    const char *said = root ? api_json_str(root, "/reason") : NULL;

    if (!said || !ferry_streq(api_json_str(root, "/uid"), v->migration->meta.uid) ||
        (reason && !ferry_streq(said, reason))) {
        return false;
    }
    why_say(l, WHY_BROKEN, "the %s node %s cannot %s: %.40s: %.256s", side, why_text_or(node, "?"),
            s->start_ms ? "go on" : "begin", said, why_text_or(api_json_str(root, "/message"), ""));
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
