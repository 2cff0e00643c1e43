/* Theory of operation. A write is compared with what was there, place by place, and each key that
 * differs is looked up in the table: a key without a row is refused, one with a row when the node
 * has none of its parts. Parts are questions about the whole write, so that one row can say "the
 * target, in the write by which it takes the guest". What is equal is not looked at. */
#include "api/owners/field_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/count.h"
#include "base/str.h"

#define OWNER "/status/nodeName"
#define MOVE "/status/migrationState"

/* ---- parts ------------------------------------------------------------------------------------
 */

static bool says(const yyjson_val *vmi, const char *pointer, const char *text)
{
    return ferry_streq(api_json_str(vmi, pointer), text);
}

static bool over(const yyjson_val *vmi)
{
    return api_json_bool(vmi, MOVE "/completed", false);
}

static bool failed(const yyjson_val *vmi)
{
    return api_json_bool(vmi, MOVE "/failed", false);
}

static bool live(const yyjson_val *vmi)
{
    return !over(vmi) && !failed(vmi);
}

static bool is_target(const struct field_write *w)
{
    return says(w->before, MOVE "/targetNode", w->node);
}

/* The controller ended the move and does not know where the guest is, nor does the source. */
static bool unconfirmed(const struct field_write *w)
{
    const char *uid = api_json_str(w->before, MOVE "/migrationUid");

    return over(w->before) && failed(w->before) && !ferry_str_empty(uid) &&
           ferry_streq(wire_annotation(w->before, ANNOTATION_UNCONFIRMED), uid) &&
           ferry_streq(wire_label(w->before, LABEL_TARGET_NODE_NAME), w->node);
}

static bool runs(const struct field_write *w)
{
    return says(w->before, OWNER, w->node);
}

static bool lives(const struct field_write *w)
{
    const char *phase = api_json_str(w->after, "/status/phase");

    return runs(w) && !wire_phase_is_over(api_json_str(w->before, "/status/phase")) &&
           (wire_phase_is(phase, PHASE_RUNNING) || wire_phase_is_over(phase));
}

static bool ends(const struct field_write *w)
{
    return lives(w) && wire_phase_is_over(api_json_str(w->after, "/status/phase"));
}

static bool is_source(const struct field_write *w)
{
    return live(w->before) && says(w->before, MOVE "/sourceNode", w->node);
}

static bool is_live_target(const struct field_write *w)
{
    return live(w->before) && is_target(w);
}

static bool takes(const struct field_write *w)
{
    return is_target(w) && (live(w->before) || unconfirmed(w)) && !runs(w) &&
           says(w->after, OWNER, w->node);
}

/* Nobody fails a move for a guest that has arrived: that would have its pod deleted. */
static bool fails(const struct field_write *w)
{
    bool on_source = is_source(w) && runs(w);
    bool before_it_came = is_live_target(w) && !runs(w) && !says(w->after, OWNER, w->node);

    return failed(w->after) && over(w->after) && (on_source || before_it_came);
}

static bool doubts(const struct field_write *w)
{
    return is_source(w) && fails(w);
}

static bool completes(const struct field_write *w)
{
    return is_live_target(w) && says(w->after, OWNER, w->node) && over(w->after) &&
           !failed(w->after);
}

static bool leaves(const struct field_write *w)
{
    return is_target(w) && ferry_streq(wire_label(w->before, LABEL_TARGET_NODE_NAME), w->node);
}

#define TARGET_IS_NODE "variables.move.?targetNode.orValue('') == variables.node"
#define LABEL_IS_NODE                                                                              \
    "variables.labels[?'" LABEL_TARGET_NODE_NAME "'].orValue('') == variables.node"
#define TO_NODE "variables.after.?nodeName.orValue('') == variables.node"

static const struct field_part_row part_rows[] = {
    {FIELD_RUNS, "runs", "the node that runs the guest", runs,
     "variables.before.?nodeName.orValue('') == variables.node"},
    {FIELD_LIVES, "lives", "the node that runs a guest which is not over, to say how it is", lives,
     "variables.runs && !(variables.before.?phase.orValue('') in ['Succeeded', 'Failed']) &&\n"
     "variables.after.?phase.orValue('') in ['Running', 'Succeeded', 'Failed']"},
    {FIELD_ENDS, "ends", "the node that runs a guest, as it says that it is over", ends,
     "variables.lives && variables.after.?phase.orValue('') in ['Succeeded', 'Failed']"},
    {FIELD_SOURCE, "source", "the source of a live move", is_source,
     "variables.live && variables.move.?sourceNode.orValue('') == variables.node"},
    {FIELD_TARGET, "target", "the target of a live move", is_live_target,
     "variables.live && " TARGET_IS_NODE},
    {FIELD_TAKES, "takes", "the target, as it takes the guest within the move", takes,
     TARGET_IS_NODE
     " &&\n(variables.live || variables.unconfirmed) && !variables.runs && " TO_NODE},
    {FIELD_FAILS, "fails", "the side of a live move that has the guest, or waits for it, to end it",
     fails,
     "variables.failedAfter && variables.overAfter && (variables.source && variables.runs ||\n"
     "variables.target && !variables.runs && !(" TO_NODE "))"},
    {FIELD_DOUBTS, "doubts", "the source that ends its move", doubts,
     "variables.source && variables.fails"},
    {FIELD_COMPLETES, "completes", "the target of a live move that has the guest", completes,
     "variables.target && " TO_NODE " &&\nvariables.overAfter && !variables.failedAfter"},
    {FIELD_LEAVES, "leaves", "the target of a move, until it lets go", leaves,
     TARGET_IS_NODE " &&\n" LABEL_IS_NODE},
};

const struct field_part_row *field_rules_parts(size_t *ret_n)
{
    *ret_n = FERRY_COUNT(part_rows);
    return part_rows;
}

static unsigned parts_of(const struct field_write *w)
{
    unsigned found = 0;

    for (size_t i = 0; i < FERRY_COUNT(part_rows) && !ferry_str_empty(w->node); i++) {
        found |= part_rows[i].is(w) ? (unsigned)part_rows[i].part : 0;
    }
    return found;
}

bool field_rules_concern(const char *node, const yyjson_val *vmi)
{
    return parts_of(&(struct field_write){node, vmi, vmi}) != 0;
}

/* ---- the table --------------------------------------------------------------------------------
 */

#define STATUS(key, parts)                                                                         \
    {                                                                                              \
        FIELD_OF_STATUS, key, parts, 0                                                             \
    }
#define MOVES(key, parts, limits)                                                                  \
    {                                                                                              \
        FIELD_OF_MOVE, key, parts, limits                                                          \
    }
#define SAYS(type, parts)                                                                          \
    {                                                                                              \
        FIELD_OF_CONDITIONS, type, parts, 0                                                        \
    }
#define LABEL(key, parts, limits)                                                                  \
    {                                                                                              \
        FIELD_OF_LABELS, key, parts, limits                                                        \
    }
#define NOTE(key, parts, limits)                                                                   \
    {                                                                                              \
        FIELD_OF_ANNOTATIONS, key, parts, limits                                                   \
    }

static const struct field_rule rules[] = {
    STATUS("phase", FIELD_LIVES),
    STATUS("phaseTransitionTimestamps", FIELD_LIVES),
    STATUS("reason", FIELD_ENDS),
    STATUS("interfaces", FIELD_RUNS),
    STATUS("machine", FIELD_RUNS),
    STATUS("migrationMethod", FIELD_RUNS),
    STATUS("migrationTransport", FIELD_RUNS | FIELD_TAKES),
    STATUS("nodeName", FIELD_TAKES),
    STATUS("activePods", FIELD_TAKES),

    MOVES("targetNodeAddress", FIELD_TARGET, 0),
    MOVES("targetDirectMigrationNodePorts", FIELD_TARGET, 0),
    MOVES("targetNodeDomainDetected", FIELD_TARGET | FIELD_TAKES, 0),
    MOVES("targetNodeDomainReadyTimestamp", FIELD_TAKES, FIELD_ONCE),
    MOVES("startTimestamp", FIELD_SOURCE | FIELD_TARGET | FIELD_TAKES, FIELD_ONCE),
    MOVES("mode", FIELD_SOURCE, 0),
    MOVES("abortStatus", FIELD_SOURCE, 0),
    MOVES("endTimestamp", FIELD_FAILS | FIELD_TAKES, FIELD_ONCE),
    MOVES("failed", FIELD_FAILS, 0),
    MOVES("failureReason", FIELD_FAILS, 0),
    MOVES("completed", FIELD_FAILS | FIELD_COMPLETES, 0),

    SAYS(CONDITION_READY, FIELD_RUNS),
    SAYS(CONDITION_LIVE_MIGRATABLE, FIELD_RUNS),
    SAYS(CONDITION_STORAGE_LIVE_MIGRATABLE, FIELD_RUNS),
    SAYS(CONDITION_SYNCHRONIZED, FIELD_RUNS),
    SAYS(CONDITION_GUEST_RESET, FIELD_RUNS),
    SAYS(CONDITION_WATCHDOG_FIRED, FIELD_RUNS),
    SAYS(CONDITION_PAUSED, FIELD_RUNS | FIELD_TAKES),

    LABEL(LABEL_NODE_NAME, FIELD_TAKES, FIELD_OWN_NAME),
    LABEL(LABEL_TARGET_NODE_NAME, FIELD_LEAVES, FIELD_AWAY),

    NOTE(ANNOTATION_PROGRESS, FIELD_SOURCE, 0),
    NOTE(ANNOTATION_RECOVER, FIELD_SOURCE, 0),
    NOTE(ANNOTATION_SOURCE_DISKS, FIELD_SOURCE, 0),
    NOTE(ANNOTATION_SOURCE_TROUBLE, FIELD_SOURCE, 0),
    NOTE(ANNOTATION_PORTS_GENERATION, FIELD_TARGET, 0),
    NOTE(ANNOTATION_TARGET_DISKS, FIELD_TARGET, 0),
    NOTE(ANNOTATION_TARGET_TROUBLE, FIELD_TARGET, 0),
    NOTE(ANNOTATION_TARGET_STATE, FIELD_TARGET | FIELD_LEAVES, 0),
    NOTE(ANNOTATION_FAILURE, FIELD_FAILS, 0),
    NOTE(ANNOTATION_UNCONFIRMED, FIELD_DOUBTS, FIELD_MOVE_UID),
};

const struct field_rule *field_rules(size_t *ret_n)
{
    *ret_n = FERRY_COUNT(rules);
    return rules;
}

static const struct field_rule *find(enum field_place place, const char *key)
{
    for (size_t i = 0; i < FERRY_COUNT(rules); i++) {
        if (rules[i].place == place && strcmp(rules[i].key, key) == 0) {
            return &rules[i];
        }
    }
    return NULL;
}

/* ---- judging ----------------------------------------------------------------------------------
 */

struct judgement {
    const struct field_write *w;
    unsigned parts;
    char *ret; /* FIELD_TEXT bytes */
};

static bool refuse(const struct judgement *j, enum field_place place, const char *key,
                   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static bool refuse(const struct judgement *j, enum field_place place, const char *key,
                   const char *fmt, ...)
{
    static const char *const where[] = {
        [FIELD_OF_STATUS] = "status.",
        [FIELD_OF_MOVE] = "status.migrationState.",
        [FIELD_OF_CONDITIONS] = "status.conditions ",
        [FIELD_OF_LABELS] = "the label ",
        [FIELD_OF_ANNOTATIONS] = "the annotation ",
    };
    _Static_assert(FERRY_COUNT(where) == FIELD_PLACE_COUNT, "one text per place");
    int n = snprintf(j->ret, FIELD_TEXT, "%s%.200s: ", where[place], key);
    va_list args;

    va_start(args, fmt);
    vsnprintf(j->ret + n, FIELD_TEXT - (size_t)n, fmt, args);
    va_end(args);
    return false;
}

static bool refuse_part(const struct judgement *j, const struct field_rule *rule)
{
    ferry_cleanup_buf struct ferry_buf who = {0};

    for (size_t i = 0; i < FERRY_COUNT(part_rows); i++) {
        if (rule->parts & part_rows[i].part) {
            ferry_buf_printf(&who, "%s%s", who.len ? "; or for " : "", part_rows[i].who);
        }
    }
    return refuse(j, rule->place, rule->key, "that is for %s", who.data);
}

/* Values are NULL where there is none. */
static bool judge(const struct judgement *j, enum field_place place, const char *key,
                  const yyjson_val *before, const yyjson_val *after)
{
    const struct field_rule *rule = find(place, key);
    const char *text = yyjson_get_str((yyjson_val *)after);

    if (!rule) {
        return refuse(j, place, key, "no node writes that");
    }
    if (!(rule->parts & j->parts)) {
        return refuse_part(j, rule);
    }
    if ((rule->limits & FIELD_ONCE) && before) {
        return refuse(j, place, key, "it is written once");
    }
    if ((rule->limits & FIELD_OWN_NAME) && !ferry_streq(text, j->w->node)) {
        return refuse(j, place, key, "a node writes its own name there");
    }
    if ((rule->limits & FIELD_AWAY) && after) {
        return refuse(j, place, key, "a node only takes it away");
    }
    if ((rule->limits & FIELD_MOVE_UID) &&
        !ferry_streq(text, api_json_str(j->w->before, MOVE "/migrationUid"))) {
        return refuse(j, place, key, "a node writes the uid of its move there");
    }
    return true;
}

static const yyjson_val *or_none(const yyjson_val *v)
{
    return yyjson_is_null((yyjson_val *)v) ? NULL : v;
}

static bool same(const yyjson_val *a, const yyjson_val *b)
{
    return a && b ? yyjson_equals((yyjson_val *)a, (yyjson_val *)b) : a == b;
}

/* These members of the status are looked into instead. */
static bool is_deeper(enum field_place place, const char *key)
{
    return place == FIELD_OF_STATUS &&
           (strcmp(key, "migrationState") == 0 || strcmp(key, "conditions") == 0);
}

/* The keys of `a`, all of them or those that `b` does not have. Both are mostly in the same order:
 * the iterator finds the next one at once. */
static bool judge_keys(const struct judgement *j, enum field_place place, yyjson_val *a,
                       yyjson_val *b, bool missing)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(a), other = yyjson_obj_iter_with(b);

    for (yyjson_val *k; (k = yyjson_obj_iter_next(&it));) {
        const char *key = yyjson_get_str(k);
        const yyjson_val *v = or_none(yyjson_obj_iter_get_val(k));
        const yyjson_val *o = b ? or_none(yyjson_obj_iter_get(&other, key)) : NULL;

        if (is_deeper(place, key) || (missing && o) || same(v, o)) {
            continue;
        }
        if (!(missing ? judge(j, place, key, NULL, v) : judge(j, place, key, v, o))) {
            return false;
        }
    }
    return true;
}

static bool judge_object(const struct judgement *j, enum field_place place, const char *pointer)
{
    yyjson_val *before = yyjson_ptr_get((yyjson_val *)j->w->before, pointer);
    yyjson_val *after = yyjson_ptr_get((yyjson_val *)j->w->after, pointer);

    if (or_none(after) && !yyjson_is_obj(after)) {
        snprintf(j->ret, FIELD_TEXT, "%s: it must be an object", pointer);
        return false;
    }
    before = yyjson_is_obj(before) ? before : NULL;
    after = yyjson_is_obj(after) ? after : NULL;
    return judge_keys(j, place, after, before, true) && judge_keys(j, place, before, after, false);
}

static bool has(yyjson_val *list, yyjson_val *item)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(list);

    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (yyjson_equals(v, item)) {
            return true;
        }
    }
    return false;
}

/* Those of `a` that `b` does not have just so. */
static bool judge_conditions(const struct judgement *j, yyjson_val *a, yyjson_val *b)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(a);

    for (yyjson_val *c; (c = yyjson_arr_iter_next(&it));) {
        const char *type = yyjson_get_str(yyjson_obj_get(c, "type"));

        if (!has(b, c) && !judge(j, FIELD_OF_CONDITIONS, type ? type : "", NULL, NULL)) {
            return false;
        }
    }
    return true;
}

bool field_rules_allow(const struct field_write *w, char ret[FIELD_TEXT])
{
    static const char *const objects[] = {
        [FIELD_OF_STATUS] = "/status",
        [FIELD_OF_MOVE] = MOVE,
        [FIELD_OF_LABELS] = "/metadata/labels",
        [FIELD_OF_ANNOTATIONS] = "/metadata/annotations",
    };
    const struct judgement j = {.w = w, .parts = parts_of(w), .ret = ret};
    yyjson_val *before = yyjson_ptr_get((yyjson_val *)w->before, "/status/conditions");
    yyjson_val *after = yyjson_ptr_get((yyjson_val *)w->after, "/status/conditions");

    *ret = '\0';
    for (enum field_place p = 0; p < FIELD_PLACE_COUNT; p++) {
        if (p < FERRY_COUNT(objects) && objects[p] && !judge_object(&j, p, objects[p])) {
            return false;
        }
    }
    /* What is new first: of what was there are only as many as there are types. */
    return judge_conditions(&j, after, before) && judge_conditions(&j, before, after);
}
