/* What the tests of migration_decide() share: a move with its objects, and rows of a table over it.
 */
#pragma once

#include "lib/objects.h"

#include "base/clock.h"
#include "control/migration/migration_decide.h"

/* 2026-01-01T00:00:00Z; objects are made a minute earlier. */
#define NOW_MS INT64_C(1767225600000)

static const char __attribute__((unused)) MIGRATION[] =
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachineInstanceMigration','metadata':{"
    "'name':'move','namespace':'ns','uid':'mig-1','resourceVersion':'7',"
    "'creationTimestamp':'2025-12-31T23:59:00Z','labels':{'kubevirt.io/vmi-name':'web'},"
    "'finalizers':['kubevirt.io/migrationJobFinalize']},'spec':{'vmiName':'web'}}";

static const char __attribute__((unused)) VMI[] =
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachineInstance','metadata':{'name':'web',"
    "'namespace':'ns','uid':'vmi-1','resourceVersion':'5','labels':{'kubevirt.io/nodeName':'a'}},"
    "'spec':{'domain':{'memory':{'guest':'64Mi'}}},'status':{'phase':'Running','nodeName':'a'}}";

static const char __attribute__((unused)) SOURCE[] =
    "{'metadata':{'name':'virt-launcher-web-src','namespace':'ns','uid':'pod-a',"
    "'resourceVersion':'3','labels':{'kubevirt.io/created-by':'vmi-1'}},'spec':{'nodeName':'a'},"
    "'status':{'phase':'Running','containerStatuses':[{'name':'compute','ready':true,'state':{"
    "'running':{}}}]}}";

static const char __attribute__((unused)) TARGET[] =
    "{'metadata':{'name':'virt-launcher-web-dst','namespace':'ns','uid':'pod-b',"
    "'resourceVersion':'4','creationTimestamp':'2025-12-31T23:59:00Z','labels':{"
    "'kubevirt.io/created-by':'vmi-1','kubevirt.io/migrationJobUID':'mig-1'}},'spec':{'nodeName':"
    "'b'},'status':{'phase':'Running','containerStatuses':[{'name':'compute','ready':true,'state':"
    "{'running':{}}}]}}";

/* Pieces of merges. */
#define PHASE(p) "'status':{'phase':'" p "'}"
#define PHASE_SINCE(p, t)                                                                          \
    "'status':{'phase':'" p "','phaseTransitionTimestamps':[{'phase':'" p                          \
    "','phaseTransitionTimestamp':'" t "'}]}"
#define DELETING "'metadata':{'deletionTimestamp':'2025-12-31T23:59:58Z'}"
#define DELETING_LONG "'metadata':{'deletionTimestamp':'2025-12-31T23:59:00Z'}"
#define STATE(more)                                                                                \
    "{'status':{'migrationState':{'migrationUid':'mig-1','sourceNode':'a','targetNode':'b'," more  \
    "}}}"
#define TROUBLED(side, uid, reason, more)                                                          \
    "{'metadata':{'annotations':{'ferry.io/" side "-trouble':'{\\'uid\\':\\'" uid                  \
    "\\',\\'reason\\':\\'" reason "\\',\\'class\\':\\'denied\\',\\'message\\':\\'no way\\'}'}},"   \
    "'status':{'migrationState':{'migrationUid':'mig-1','sourceNode':'a','targetNode':'b'," more   \
    "}}}"
#define TROUBLE_CONDITION                                                                          \
    "'conditions':[{'type':'migrationNodeTrouble','status':'True','reason':'RelayTrouble'}]"
#define OTHER_STATE(more) "{'status':{'migrationState':{'migrationUid':'mig-0'" more "}}}"
#define HOMELESS                                                                                   \
    "{'spec':{'nodeName':null},'status':{'phase':'Pending','containerStatuses':null,'conditions':" \
    "[{'type':'PodScheduled','status':'False','reason':'Unschedulable','message':'0/1 nodes'}]}}"
#define STARTING "{'status':{'phase':'Pending','containerStatuses':null}}"
#define AGED(time, pod) "{'metadata':{'creationTimestamp':'2025-12-31T" time "Z'}," pod "}"
#define NO_NODE                                                                                    \
    "'spec':{'nodeName':null},'status':{'phase':'Pending','conditions':[{'type':'PodScheduled',"   \
    "'status':'False','message':'0/1 nodes'}]}"
#define ALLOWED(what, seconds)                                                                     \
    "'metadata':{'annotations':{'kubevirt.io/migration" what "TimeoutSeconds':'" seconds "'}}"
#define OLD(pod) "{'metadata':{'creationTimestamp':'2025-12-31T23:40:00Z'}," pod
#define OLDISH(pod) "{'metadata':{'creationTimestamp':'2025-12-31T23:54:00Z'}," pod

/* An older, automatic one that ended 10 s ago. */
#define AUTOMATIC(annotation, phase)                                                               \
    "{'metadata':{'uid':'mig-0','creationTimestamp':'2025-12-31T23:58:00Z','annotations':{"        \
    "'kubevirt.io/" annotation "':'a'}},'status':{'phase':'" phase                                 \
    "','phaseTransitionTimestamps':[{'phase':'" phase "','phaseTransitionTimestamp':"              \
    "'2025-12-31T23:59:50Z'}]}}"

#define DONE_WITH(condition)                                                                       \
    "{'status':{'conditions':[" condition "],'migrationState':{'migrationUid':'mig-1',"            \
    "'completed':true,'endTimestamp':'2025-12-31T23:59:50Z'}}}"

#define GONE "-"
#define PLAIN "{}"

struct move_row {
    const char *name;
    const char *migration, *vmi, *target; /* merges; NULL target = no pod */
    const char *sibling;                  /* merge on a second migration, or NULL */
    const char *source;                   /* NULL = there; GONE = none */
    bool full;                            /* the limits say no */
    bool source_gone, target_gone;        /* the Node objects */
    const char *enter_reason;             /* why the target node takes no more */
    int source_silent_s, target_silent_s; /* how long the nodes have not reported; 0 = they do */
    int clock_set_s;                      /* by how much the clock was set, a second ago */
    /* expected */
    const char *rule, *phase, *reason;
    const char *vmi_patch, *own_patch; /* text in a patch of VMI, of the migration; NULL = none */
    bool creates, deletes_target, confirm;
    int64_t again_s;      /* 0 = do not care */
    const char *event;    /* one that must be there, or NULL */
    const char *unwanted; /* text that no patch has, or NULL */
};

struct objects {
    struct api_object *migration, *vmi, *target, *source, *sibling;
};

static inline void objects_done(struct objects *o)
{
    api_object_unref(o->migration);
    api_object_unref(o->vmi);
    api_object_unref(o->target);
    api_object_unref(o->source);
    api_object_unref(o->sibling);
}

/* The text of all patches of a kind in one. */
static inline char *patches_of(const struct plan *p, enum api_kind kind)
{
    struct ferry_buf b = {0};

    for (size_t i = 0; i < p->n; i++) {
        const struct plan_action *a = &p->actions[i];

        if ((a->op == PLAN_PATCH || a->op == PLAN_PATCH_STATUS) && a->kind == kind) {
            ferry_buf_puts(&b, a->body);
        }
    }
    return ferry_buf_take(&b);
}

static inline void check_patch(const char *name, const struct plan *p, const struct api_object *o,
                               enum api_kind kind, const char *want)
{
    ferry_cleanup_free char *text = patches_of(p, kind);

    if ((want && !strstr(text, want)) || (!want && text[0])) {
        fail_msg("%s: patch of kind %d is %s, expected '%s'", name, kind, text[0] ? text : "none",
                 want ? want : "none");
    }
    /* Each patch applies to the object that it was decided on, one after the other. */
    api_cleanup_object struct api_object *now = o ? api_object_ref((struct api_object *)o) : NULL;
    for (size_t i = 0; i < p->n; i++) {
        const struct plan_action *a = &p->actions[i];

        if ((a->op == PLAN_PATCH || a->op == PLAN_PATCH_STATUS) && a->kind == kind) {
            struct api_object *next = patched_object(now, a->body, false);

            api_object_unref(now);
            now = next;
        }
    }
}

static inline bool has_event(const struct plan *p, const char *reason)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->actions[i].op == PLAN_EVENT && strcmp(p->actions[i].event_reason, reason) == 0) {
            return true;
        }
    }
    return false;
}

/* Whatever waits says why, behind what, and until when. */
static inline void check_note(const char *name, const struct plan *p)
{
    ferry_cleanup_free char *text = patches_of(p, API_KIND_MIGRATION);
    const char *note = strstr(text, "ferry.io~1queue\",\"value\":\"{");

    if (note && (!strstr(note, "\\\"reason\\\":\\\"") || !strstr(note, "\\\"blocker\\\":\\\"") ||
                 !strstr(note, "\\\"message\\\":\\\"") || !strstr(note, "\\\"position\\\":") ||
                 !(strstr(note, "\\\"checkSeconds\\\":") || strstr(note, "\\\"deadline\\\":")))) {
        fail_msg("%s: a note that says too little: %s", name, note);
    }
}

static inline void check_row(const struct move_row *r)
{
    bool vmi_gone = strcmp(r->vmi, GONE) == 0;
    struct objects o = {
        .migration = make_object(API_KIND_MIGRATION, MIGRATION, r->migration),
        .vmi = vmi_gone ? NULL : make_object(API_KIND_VMI, VMI, r->vmi),
        .target = r->target ? make_object(API_KIND_POD, TARGET, r->target) : NULL,
        .source = r->source ? NULL : make_object(API_KIND_POD, SOURCE, NULL),
        .sibling = r->sibling ? make_object(API_KIND_MIGRATION, MIGRATION, r->sibling) : NULL,
    };
    const struct api_object *all[] = {o.migration, o.sibling};
    struct migration_view view = {
        .migration = o.migration,
        .vmi = o.vmi,
        .target_pod = o.target,
        .source_pod = o.source,
        .migrations = all,
        .n_migrations = r->sibling ? 2 : 1,
        .limits = {.start = !r->full,
                   .enter = true,
                   .reason = r->full ? REASON_CLUSTER_LIMIT : REASON_NONE,
                   .position = 1},
        .source_node_gone = r->source_gone,
        .target_node_gone = r->target_gone,
        .source_silent_ms = r->source_silent_s ? NOW_MS - r->source_silent_s * 1000 : 0,
        .target_silent_ms = r->target_silent_s ? NOW_MS - r->target_silent_s * 1000 : 0,
        .settings = &migration_default_settings,
    };
    plan_cleanup struct plan p = {0};

    if (r->enter_reason) {
        view.limits.enter = false;
        view.limits.enter_reason = wire_reason_of(r->enter_reason);
    }
    if (r->clock_set_s) {
        int64_t by_ms = r->clock_set_s * INT64_C(1000);

        view.clock.steps[view.clock.n_steps++] =
            (struct wire_clock_step){.before_ms = NOW_MS - 1000 - by_ms, .by_ms = by_ms};
    }
    migration_decide(&view, NOW_MS, &p);
    const struct plan_action *deleted = plan_find(&p, PLAN_DELETE, API_KIND_POD);
    if (!ferry_streq(p.rule, r->rule) || !ferry_streq(p.phase, r->phase) ||
        !ferry_streq(p.reason, r->reason)) {
        fail_msg("%s: rule '%s' phase '%s' reason '%s', expected '%s' '%s' '%s'", r->name, p.rule,
                 p.phase ? p.phase : "-", p.reason ? p.reason : "-", r->rule,
                 r->phase ? r->phase : "-", r->reason ? r->reason : "-");
    }
    bool creates = plan_find(&p, PLAN_CREATE, API_KIND_POD) != NULL;
    if (r->creates != creates || r->deletes_target != (deleted != NULL) ||
        r->confirm != p.confirm) {
        fail_msg("%s: creates %d, deletes %d, confirm %d", r->name, creates, deleted != NULL,
                 p.confirm);
    }
    if (deleted) {
        assert_string_equal(deleted->uid, "pod-b");
    }
    if (r->again_s && p.again_ms != r->again_s * 1000) {
        fail_msg("%s: again after %lld ms", r->name, (long long)p.again_ms);
    }
    if (r->event && !has_event(&p, r->event)) {
        fail_msg("%s: no event %s", r->name, r->event);
    }
    for (size_t i = 0; r->unwanted && i < p.n; i++) {
        if (p.actions[i].op != PLAN_EVENT && p.actions[i].body &&
            strstr(p.actions[i].body, r->unwanted)) {
            fail_msg("%s: %s in %s", r->name, r->unwanted, p.actions[i].body);
        }
    }
    check_note(r->name, &p);
    check_patch(r->name, &p, o.vmi, API_KIND_VMI, r->vmi_patch);
    check_patch(r->name, &p, o.migration, API_KIND_MIGRATION, r->own_patch);
    objects_done(&o);
}
