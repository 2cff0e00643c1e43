/* What a node says that it cannot do for its side of a move (docs/contracts/annotations.md), on the
 * migration, where whoever asked for the move looks. The nodes' word is checked, not trusted: it is
 * about this move, and its reason is one of the contract's. */
#include <stdio.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_reason.h"
#include "api/wire/wire_trouble.h"
#include "base/str.h"
#include "control/migration/migration_case.h"

struct trouble {
    enum wire_reason reason; /* none = there is none */
    const char *node;
    char text[MIGRATION_TEXT];
};

static bool read_side(const struct migration_case *d, const char *key, const char *side,
                      const char *node, struct trouble *ret)
{
    struct wire_trouble told;

    if (!wire_trouble_of(api_map_get(&d->vmi->meta.annotations, key), d->m->meta.uid, &told)) {
        return false;
    }
    ret->reason = told.reason;
    ret->node = ferry_str_empty(node) ? side : node;
    snprintf(ret->text, sizeof(ret->text), "the %s node %.128s: %s", side,
             ferry_str_empty(node) ? "" : node, told.message);
    return true;
}

/* The target's first: the source cannot begin before it. */
static struct trouble read_trouble(const struct migration_case *d)
{
    struct trouble t = {0};

    if (d->state && !read_side(d, ANNOTATION_TARGET_TROUBLE, "target", d->state->target_node, &t)) {
        read_side(d, ANNOTATION_SOURCE_TROUBLE, "source", d->state->source_node, &t);
    }
    return t;
}

static bool put_condition(const struct migration_case *d, const struct trouble *t,
                          struct api_patch *p)
{
    const struct plan_condition c = {.type = CONDITION_NODE_TROUBLE,
                                     .status = "True",
                                     .reason = wire_reason_text(t->reason),
                                     .message = t->text};

    return plan_set_condition(p, d->view->migration, &d->m->conditions, &c, d->now_ms);
}

bool migration_note_trouble(struct migration_case *d, int64_t deadline_ms)
{
    struct trouble t = read_trouble(d);
    struct api_patch *p = migration_status_patch(d);

    plan_guard(p, d->view->migration); /* a condition is changed by its place in the list */
    if (t.reason ? put_condition(d, &t, p)
                 : plan_remove_condition(p, &d->m->conditions, CONDITION_NODE_TROUBLE)) {
        plan_patch_status(d->plan, d->view->migration, p);
    } else {
        api_patch_free(p);
    }
    if (t.reason) {
        migration_wait_for(d, &(struct migration_wait){.reason = t.reason,
                                                       .message = t.text,
                                                       .blocker = t.node,
                                                       .deadline_ms = deadline_ms});
    }
    return t.reason != REASON_NONE;
}

enum wire_reason migration_trouble(const struct migration_case *d, char ret_text[MIGRATION_TEXT])
{
    struct trouble t = read_trouble(d);

    memcpy(ret_text, t.text, sizeof(t.text));
    return t.reason;
}
