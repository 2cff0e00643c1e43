#include "sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/owners/field_rules.h"
#include "api/patch.h"
#include "api/wire/wire_keys.h"
#include "base/clock.h"
#include "base/str.h"
#include "control/plan/facts.h"

struct world world;

/* ---- chance, time, words ---------------------------------------------------------------------
 */

uint32_t world_random(uint32_t below)
{
    world.random ^= world.random << 13;
    world.random ^= world.random >> 7;
    world.random ^= world.random << 17;
    return below ? (uint32_t)((world.random >> 16) % below) : 0;
}

bool world_chance(uint32_t percent)
{
    return world_random(100) < percent;
}

int64_t world_wall_ms(void)
{
    return world.now_ms + world.wall_offset_ms;
}

/* What the API and the nodes write: of the same clock, or of clocks that are right. */
static int64_t world_stamp_ms(void)
{
    return world.seed % 4 ? world_wall_ms() : world.now_ms;
}

void world_say(const char *fmt, ...)
{
    if (world.verbose) {
        va_list args;

        printf("%9.1f  ", (double)world.now_ms / 1000 - 1.7e9);
        va_start(args, fmt);
        vprintf(fmt, args);
        va_end(args);
        printf("\n");
    }
}

void world_fail(const char *fmt, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "seed %llu: ", (unsigned long long)world.seed);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\n");
    for (size_t i = 0; i < world.n_items; i++) {
        if (world.items[i]->now) {
            ferry_cleanup_free char *json =
                yyjson_val_write((yyjson_val *)world.items[i]->now->root, 0, NULL);

            fprintf(stderr, "  %s\n", json);
        }
    }
    fprintf(stderr, "again, with every step: sim --seed %llu --verbose\n",
            (unsigned long long)world.seed);
    exit(1);
}

/* ---- store -----------------------------------------------------------------------------------
 */

struct world_item *world_find(enum api_kind kind, const char *name)
{
    for (size_t i = 0; i < world.n_items; i++) {
        if (world.items[i]->kind == kind && strcmp(world.items[i]->name, name) == 0) {
            return world.items[i];
        }
    }
    return NULL;
}

static struct world_item *find_or_add(enum api_kind kind, const char *name)
{
    struct world_item *item = world_find(kind, name);

    if (!item) {
        item = ferry_xcalloc(1, sizeof(*item));
        item->kind = kind;
        item->name = ferry_strdup(name);
        world.items = ferry_xrealloc(world.items, world.n_items + 1, sizeof(struct world_item *));
        world.items[world.n_items++] = item;
    }
    return item;
}

static void announce(struct world_item *item)
{
    world.changes = ferry_xrealloc(world.changes, world.n_changes + 1, sizeof(struct world_change));
    world.changes[world.n_changes++] =
        (struct world_change){item, item->now ? api_object_ref(item->now) : NULL};
}

void world_remove(struct world_item *item)
{
    world_say("removed %s", item->name);
    api_object_unref(item->now);
    item->now = NULL;
    announce(item);
}

/* Takes the document; stamps the next version. */
static int store(struct world_item *item, yyjson_mut_doc *doc)
{
    yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "metadata");
    char version[16];
    struct api_object *o = NULL;
    struct ferry_error err = {0};
    size_t len = 0;

    snprintf(version, sizeof(version), "%u", ++world.version);
    yyjson_mut_obj_put(meta, yyjson_mut_str(doc, "resourceVersion"),
                       yyjson_mut_strcpy(doc, version));
    ferry_cleanup_free char *json = yyjson_mut_write(doc, 0, &len);
    yyjson_mut_doc_free(doc);
    if (api_object_parse(item->kind, json, len, &o, &err) < 0) {
        world_fail("%s cannot be stored: %s: %s", item->name, err.msg, json);
    }
    api_object_unref(item->now);
    item->now = o;
    if (o->meta->deleted_ms && o->meta->finalizers.n == 0 && item->kind != API_KIND_POD) {
        world_remove(item);
    } else {
        announce(item);
    }
    return 0;
}

static yyjson_mut_doc *copy_of(const struct world_item *item)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);

    yyjson_mut_doc_set_root(doc, yyjson_val_mut_copy(doc, (yyjson_val *)item->now->root));
    return doc;
}

int world_create(enum api_kind kind, const char *name, const char *json)
{
    struct world_item *item = find_or_add(kind, name);
    api_cleanup_doc yyjson_doc *in = yyjson_read(json, strlen(json), 0);
    char uid[24], when[FERRY_RFC3339_SIZE];

    if (item->now) {
        return -FERRY_CONFLICT;
    }
    if (!in) {
        world_fail("not JSON: %s", json);
    }
    world_say("created %s", name);
    item->born_ms = world.now_ms;
    yyjson_mut_doc *doc = yyjson_doc_mut_copy(in, NULL);
    yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "metadata");
    snprintf(uid, sizeof(uid), "uid-%u", ++world.uids);
    yyjson_mut_obj_put(meta, yyjson_mut_str(doc, "uid"), yyjson_mut_strcpy(doc, uid));
    yyjson_mut_obj_put(meta, yyjson_mut_str(doc, "creationTimestamp"),
                       yyjson_mut_strcpy(doc, ferry_rfc3339(world_stamp_ms(), when)));
    return store(item, doc);
}

int world_patch(enum api_kind kind, const char *name, const char *patch)
{
    struct world_item *item = world_find(kind, name);
    api_cleanup_doc yyjson_doc *p = yyjson_read(patch, strlen(patch), 0);
    struct ferry_error err = {0};

    if (!item || !item->now) {
        return -FERRY_NOT_FOUND;
    }
    yyjson_mut_doc *doc = copy_of(item);
    int rc = api_patch_apply_json(doc, yyjson_doc_get_root(p), &err);
    if (rc < 0) {
        yyjson_mut_doc_free(doc);
        return -FERRY_CONFLICT;
    }
    world_say("patched %s: %s", name, patch);
    return store(item, doc);
}

int world_delete(enum api_kind kind, const char *name, const char *uid)
{
    struct world_item *item = world_find(kind, name);
    char when[FERRY_RFC3339_SIZE];

    if (!item || !item->now || (uid && !ferry_streq(item->now->meta->uid, uid))) {
        return -FERRY_NOT_FOUND;
    }
    if (item->now->meta->deleted_ms) {
        return 0;
    }
    yyjson_mut_doc *doc = copy_of(item);
    yyjson_mut_val *meta = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "metadata");
    yyjson_mut_obj_put(meta, yyjson_mut_str(doc, "deletionTimestamp"),
                       yyjson_mut_strcpy(doc, ferry_rfc3339(world_stamp_ms(), when)));
    world_say("deleting %s", name);
    return store(item, doc);
}

/* ---- nodes -----------------------------------------------------------------------------------
 */

int world_guest_in(const char *pod_uid)
{
    for (int i = 0; i < WORLD_VMS; i++) {
        if (ferry_streq(world.guests[i].pod_uid, pod_uid)) {
            return i;
        }
    }
    return -1;
}

static void move_guest(int i, const char *pod_uid)
{
    free(world.guests[i].pod_uid);
    world.guests[i].pod_uid = ferry_strdup(pod_uid);
}

void world_new_guest(int i)
{
    move_guest(i, NULL);
    world.guests[i].lost = false;
    world.unlistened[i] = world.stopped[i] = false;
}

static int node_index(const char *name)
{
    return name && name[0] == 'n' ? name[1] - '0' : -1;
}

static bool node_lives(const char *name)
{
    int i = node_index(name);

    return i >= 0 && world.nodes[i].up && !world.nodes[i].removed;
}

static bool node_works(const char *name)
{
    return node_lives(name) && !world.nodes[node_index(name)].cut;
}

static void vpatchf(enum api_kind kind, const char *name, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));
static void vpatchf(enum api_kind kind, const char *name, const char *fmt, va_list args)
{
    char text[2048];

    vsnprintf(text, sizeof(text), fmt, args);
    for (char *c = text; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    world_patch(kind, name, text);
}

static void patchf(enum api_kind kind, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void patchf(enum api_kind kind, const char *name, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vpatchf(kind, name, fmt, args);
    va_end(args);
}

/* By the handler of a node: what it has to write in any history the API takes from it. */
static void patchf_as(const char *node, const char *vmi, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void patchf_as(const char *node, const char *vmi, const char *fmt, ...)
{
    const struct world_item *item = world_find(API_KIND_VMI, vmi);
    api_cleanup_object struct api_object *before = api_object_ref(item->now);
    ferry_cleanup_free char *who = ferry_strdup(node); /* it may be the old object's */
    char why[FIELD_TEXT];
    va_list args;

    va_start(args, fmt);
    vpatchf(API_KIND_VMI, vmi, fmt, args);
    va_end(args);
    if (item->now &&
        !field_rules_allow(&(struct field_write){who, before->root, item->now->root}, why)) {
        world_fail("%s may not write to %s: %s", who, vmi, why);
    }
}

#define ADD(path, value) "{'op':'add','path':'" path "','value':" value "}"
#define STATE "/status/migrationState/"

/* Its container never comes up: only a deadline ends the wait for it. */
static bool is_hung(const struct api_pod *pod)
{
    return api_map_get(&pod->meta.labels, LABEL_MIGRATION_JOB_UID) &&
           strtoul(pod->meta.uid + strlen("uid-"), NULL, 10) % 11 == 5;
}

static void pod_acts(struct world_item *item)
{
    const struct api_pod *pod = &item->now->u.pod;
    int guest = world_guest_in(pod->meta.uid);

    if (pod->meta.deleted_ms) {
        if (guest >= 0) {
            world.guests[guest].lost = true; /* its owner asked for it, or invariant() complained */
            move_guest(guest, NULL);
        }
        world_remove(item);
    } else if (is_hung(pod)) {
        if (!ferry_streq(pod->phase, "Running")) {
            patchf(API_KIND_POD, item->name,
                   "[" ADD("/status", "{'phase':'Running','containerStatuses':[{'name':'compute',"
                                      "'state':{'waiting':{}}}]}") "]");
        }
    } else if (ferry_str_empty(pod->phase) || strcmp(pod->phase, "Pending") == 0) {
        patchf(API_KIND_POD, item->name,
               "[" ADD("/status",
                       "{'phase':'Running','containerStatuses':[{'name':'compute','ready':true,"
                       "'state':{'running':{}}}]}") "]");
    } else if (strcmp(pod->phase, "Running") == 0 && world.storm && guest < 0 &&
               api_map_get(&pod->meta.labels, LABEL_MIGRATION_JOB_UID) && world_chance(1)) {
        patchf(API_KIND_POD, item->name, "[" ADD("/status/phase", "'Failed'") "]");
    }
}

static const struct api_pod *pod_of_vmi_on(const struct api_vmi *vmi, const char *name,
                                           const char *node)
{
    for (size_t i = 0; i < world.n_items; i++) {
        const struct world_item *p = world.items[i];

        if (p->kind == API_KIND_POD && p->now && ferry_streq(p->now->u.pod.node_name, node) &&
            (!name || strcmp(p->name, name) == 0) &&
            ferry_streq(api_map_get(&p->now->meta->labels, LABEL_CREATED_BY), vmi->meta.uid)) {
            return &p->now->u.pod;
        }
    }
    return NULL;
}

/* By the source, whose job is over then. */
static void fail_move(const char *vmi, const char *node, const char *why, bool aborted)
{
    char when[FERRY_RFC3339_SIZE];

    world.stopped[vmi[1] - '0'] = true;
    patchf_as(node, vmi,
              "[" ADD(STATE "failed", "true") "," ADD(STATE "completed", "true") "," ADD(
                  STATE "failureReason", "'%s'") "," ADD(STATE "endTimestamp", "'%s'") "%s]",
              why, ferry_rfc3339(world_stamp_ms(), when),
              aborted ? "," ADD(STATE "abortStatus", "'Succeeded'") : "");
}

/* The source, and at the switch-over both: the guest goes over in one instant. */
static void source_acts(struct world_item *item, int guest)
{
    const struct api_vmi *vmi = &item->now->u.vmi;
    const struct api_migration_state *s = &vmi->migration;
    bool post_copy = ferry_streq(s->mode, "PostCopy");
    char when[FERRY_RFC3339_SIZE];

    if (s->abort_requested && !post_copy) {
        fail_move(item->name, s->source_node, "Aborted: asked for", true);
    } else if (!s->start_ms) {
        if (!ferry_str_empty(s->target_address) && !(world.storm && world_chance(30))) {
            world.stopped[guest] = false;
            patchf_as(
                s->source_node, item->name,
                "[" ADD(STATE "startTimestamp", "'%s'") "," ADD(STATE "mode", "'PreCopy'") "]",
                ferry_rfc3339(world_stamp_ms(), when));
        }
    } else if (!post_copy && world_chance(10)) {
        patchf_as(s->source_node, item->name, "[" ADD(STATE "mode", "'PostCopy'") "]");
    } else if (!post_copy && world.storm && world_chance(10)) {
        fail_move(item->name, s->source_node, "LibvirtError: bad luck", false);
    } else if (world_chance(30)) {
        const struct api_pod *to = pod_of_vmi_on(vmi, s->target_pod, s->target_node);

        if (!to || !node_lives(s->target_node) || wire_pod_is_over(to) || to->meta.deleted_ms) {
            if (post_copy) { /* half of it was there */
                world.guests[guest].lost = true;
                move_guest(guest, NULL);
            }
            fail_move(item->name, s->source_node, "TargetLost: no answer", false);
            return;
        }
        world_say("guest %d runs on %s", guest, s->target_node);
        move_guest(guest, to->meta.uid);
    }
}

/* Some moves meet a handler that never does its part, storm or not: only a deadline ends them. */
static bool is_ignored(const struct api_migration_state *s, unsigned by)
{
    unsigned long n = s->uid ? strtoul(s->uid + strlen("uid-"), NULL, 10) : 0;

    return n % 9 == by;
}

/* A move that the API does not reach goes on between the nodes: the guest may go over unseen. */
static void unseen_acts(const struct api_vmi *vmi, int guest)
{
    const struct api_migration_state *s = &vmi->migration;
    const struct api_pod *from = pod_of_vmi_on(vmi, s->source_pod, s->source_node);
    const struct api_pod *to = pod_of_vmi_on(vmi, s->target_pod, s->target_node);

    if (s->completed && node_works(s->source_node)) {
        world.stopped[guest] = true;
    }
    if (s->start_ms && !world.stopped[guest] && from && to && node_lives(s->source_node) &&
        node_lives(s->target_node) && !wire_pod_is_over(to) && !to->meta.deleted_ms &&
        !world.unlistened[guest] && ferry_streq(world.guests[guest].pod_uid, from->meta.uid) &&
        world_chance(10)) {
        world_say("guest %d goes to %s, and nobody sees it", guest, s->target_node);
        move_guest(guest, to->meta.uid);
    }
}

/* What the target's handler writes: that it has the guest, that all is over, that it lets go. True
 * when it did something. */
static bool target_acts(struct world_item *item, int guest)
{
    const struct api_vmi *vmi = &item->now->u.vmi;
    const struct api_migration_state *s = &vmi->migration;
    const struct api_pod *to = pod_of_vmi_on(vmi, s->target_pod, s->target_node);
    bool here = to && ferry_streq(world.guests[guest].pod_uid, to->meta.uid);
    char when[FERRY_RFC3339_SIZE];

    if (!node_works(s->target_node) ||
        !ferry_streq(api_map_get(&vmi->meta.labels, LABEL_TARGET_NODE_NAME), s->target_node)) {
        return false;
    }
    if (s->completed && s->failed && !world.unlistened[guest]) {
        world.unlistened[guest] = true; /* before it looks who is there */
        return true;
    }
    if (here && !ferry_streq(vmi->node_name, s->target_node)) {
        world_say("%s takes guest %d", s->target_node, guest);
        const char *ended = ferry_rfc3339(s->end_ms ? s->end_ms : world_stamp_ms(), when);

        patchf_as(s->target_node, item->name,
                  "[" ADD("/status/nodeName",
                          "'%s'") "," ADD("/metadata/labels/kubevirt.io~1nodeName",
                                          "'%s'") "," ADD(STATE "endTimestamp", "'%s'") "]",
                  s->target_node, s->target_node, ended);
        return true;
    }
    if (here && !s->completed) {
        if (!is_ignored(s, 3)) {
            patchf_as(s->target_node, item->name, "[" ADD(STATE "completed", "true") "]");
        }
        return true;
    }
    if (s->completed) {
        patchf_as(
            s->target_node, item->name,
            "[{'op':'remove','path':'/metadata/labels/kubevirt.io~1migrationTargetNodeName'}]");
    }
    return s->completed;
}

/* Does the guest run on that node, in whichever pod of its VMI? */
static bool guest_is_on(int guest, const char *node)
{
    for (size_t i = 0; world.guests[guest].pod_uid && i < world.n_items; i++) {
        const struct world_item *p = world.items[i];

        if (p->kind == API_KIND_POD && p->now &&
            strcmp(p->now->meta->uid, world.guests[guest].pod_uid) == 0) {
            return ferry_streq(p->now->u.pod.node_name, node);
        }
    }
    return false;
}

/* The owner's handler, which does not find its guest: it waits for a target that may have it. */
static void owner_acts(struct world_item *item, int guest)
{
    const struct api_vmi *vmi = &item->now->u.vmi;

    if (node_works(vmi->node_name) && pod_of_vmi_on(vmi, NULL, vmi->node_name) &&
        !vmi_awaits_target(vmi) && !guest_is_on(guest, vmi->node_name)) {
        world_say("the handler of %s has no guest %d", vmi->node_name, guest);
        patchf_as(vmi->node_name, item->name, "[" ADD("/status/phase", "'Failed'") "]");
    }
}

static bool is_at_source(const struct api_vmi *vmi, int guest)
{
    const struct api_pod *from =
        pod_of_vmi_on(vmi, vmi->migration.source_pod, vmi->migration.source_node);

    return from && ferry_streq(world.guests[guest].pod_uid, from->meta.uid);
}

static void vmi_acts(struct world_item *item)
{
    const struct api_vmi *vmi = &item->now->u.vmi;
    const struct api_migration_state *s = &vmi->migration;
    int guest = item->name[1] - '0';

    if (wire_phase_is(vmi->phase, PHASE_SCHEDULED) && node_works(vmi->node_name)) {
        const struct api_pod *pod = pod_of_vmi_on(vmi, NULL, vmi->node_name);

        if (pod && ferry_streq(pod->phase, "Running") && !world.guests[guest].lost) {
            move_guest(guest, pod->meta.uid);
            patchf_as(vmi->node_name, item->name, "[" ADD("/status/phase", "'Running'") "]");
        }
        return;
    }
    if (vmi->meta.deleted_ms && !world.guests[guest].pod_uid) {
        return;
    }
    if (!s->present || !wire_phase_is(vmi->phase, PHASE_RUNNING)) {
        return;
    }
    unseen_acts(vmi, guest);
    if (target_acts(item, guest)) {
        return;
    }
    if (s->completed) {
        owner_acts(item, guest);
        return;
    }
    bool unprepared = ferry_str_empty(s->target_address);

    if ((unprepared && is_ignored(s, 1)) || (!unprepared && !s->start_ms && is_ignored(s, 2))) {
        return;
    }
    if (node_works(s->target_node) && unprepared && !(world.storm && world_chance(40))) {
        world.unlistened[guest] = false;
        patchf_as(s->target_node, item->name, "[" ADD(STATE "targetNodeAddress", "'10.0.0.1'") "]");
    } else if (node_works(s->source_node) && is_at_source(vmi, guest)) {
        source_acts(item, guest);
    } else if (node_works(s->source_node) && !world.guests[guest].pod_uid &&
               ferry_streq(vmi->node_name, s->source_node)) { /* else it is no more the source's */
        fail_move(item->name, s->source_node, "SourceLost: the guest is gone", false);
    }
}

/* Half of a guest in post-copy is on either side. */
static void halves_die(const char *node)
{
    for (size_t i = 0; i < world.n_items; i++) {
        const struct world_item *v = world.items[i];
        const struct api_migration_state *s =
            v->kind == API_KIND_VMI && v->now ? &v->now->u.vmi.migration : NULL;

        if (s && s->present && !s->completed && ferry_streq(s->mode, "PostCopy") &&
            is_at_source(&v->now->u.vmi, v->name[1] - '0') && ferry_streq(s->target_node, node)) {
            world_say("guest %s dies in two", v->name);
            world.guests[v->name[1] - '0'].lost = true;
            move_guest(v->name[1] - '0', NULL);
        }
    }
}

static void guests_of_node_die(const char *node)
{
    halves_die(node);
    for (size_t i = 0; i < world.n_items; i++) {
        const struct world_item *p = world.items[i];
        int guest = p->kind == API_KIND_POD && p->now && ferry_streq(p->now->u.pod.node_name, node)
                        ? world_guest_in(p->now->meta->uid)
                        : -1;

        if (guest >= 0) {
            world.guests[guest].lost = true;
            move_guest(guest, NULL);
        }
    }
}

/* What heartbeats and the node controller make of it. */
static void node_reports(int i, const char *name)
{
    struct world_node *n = &world.nodes[i];
    const struct world_item *item = world_find(API_KIND_NODE, name);
    const struct api_condition *ready =
        item->now ? api_condition_find(&item->now->u.node.conditions, "Ready") : NULL;
    bool quiet = !n->up || n->cut;
    char when[FERRY_RFC3339_SIZE];

    n->quiet_ms = !quiet ? 0 : n->quiet_ms ? n->quiet_ms : world.now_ms;
    bool unknown = quiet && world.now_ms - n->quiet_ms >= 40000;
    const char *status = unknown ? "Unknown" : "True";
    if (ready && !ferry_streq(ready->status, status) && (unknown || !quiet)) {
        patchf(API_KIND_NODE, name,
               "[" ADD("/status/conditions",
                       "[{'type':'Ready','status':'%s','lastTransitionTime':'%s'}]") "]",
               status, ferry_rfc3339(world_stamp_ms(), when));
    }
}

static void node_acts(int i)
{
    struct world_node *n = &world.nodes[i];
    char name[16];

    snprintf(name, sizeof(name), "n%d", i);
    if (n->up && world.storm && world_random(3000) == 0) {
        world_say("node %s dies", name);
        n->up = false;
        n->back_ms = world.now_ms + 10000 + (int64_t)world_random(200000);
        n->stays_dead = i == 1 && world.seed % 3 == 1;
        guests_of_node_die(name);
    }
    if (!n->up && !n->removed && i >= 2 && world.storm && world_random(400) == 0) {
        world_say("node %s is removed", name);
        n->removed = true;
        world_remove(world_find(API_KIND_NODE, name));
    }
    if (n->up && !n->cut && world.storm && world_random(1500) == 0) {
        world_say("node %s is cut off", name);
        n->cut = true;
        n->back_ms = world.now_ms + 10000 + (int64_t)world_random(600000);
    }
    if (n->cut && (world.now_ms >= n->back_ms || !world.storm)) {
        world_say("node %s is reached again", name);
        n->cut = false;
    }
    node_reports(i, name);
    bool back =
        !n->up && !n->removed && !n->stays_dead && (world.now_ms >= n->back_ms || !world.storm);
    for (size_t k = 0; (back || n->removed) && k < world.n_items; k++) {
        struct world_item *p = world.items[k];

        if (p->kind != API_KIND_POD || !p->now || !ferry_streq(p->now->u.pod.node_name, name)) {
            continue;
        }
        if (n->removed) {
            world_remove(p); /* as Kubernetes collects pods of nodes that are gone */
        } else if (!wire_pod_is_over(&p->now->u.pod)) {
            patchf(API_KIND_POD, p->name, "[" ADD("/status", "{'phase':'Failed'}") "]");
        }
    }
    n->up |= back;
}

/* As the API server does with what has lost its owner. */
static bool lost_its_owner(const struct world_item *pod)
{
    const struct world_item *vmi =
        pod->now->meta->n_owners ? world_find(API_KIND_VMI, pod->now->meta->owners[0].name) : NULL;

    return vmi && (!vmi->now || !ferry_streq(vmi->now->meta->uid, pod->now->meta->owners[0].uid));
}

void world_act(void)
{
    for (int i = 0; i < WORLD_NODES; i++) {
        node_acts(i);
    }
    for (size_t i = 0; i < world.n_items; i++) {
        struct world_item *item = world.items[i];

        if (!item->now || !world_chance(30)) {
            continue;
        }
        if (item->kind == API_KIND_POD && lost_its_owner(item)) {
            world_remove(item);
        } else if (item->kind == API_KIND_POD && node_works(item->now->u.pod.node_name)) {
            pod_acts(item);
        } else if (item->kind == API_KIND_POD && item->now->meta->deleted_ms &&
                   ferry_str_empty(item->now->u.pod.node_name)) {
            world_remove(item);
        } else if (item->kind == API_KIND_VMI) {
            vmi_acts(item);
        }
    }
}

/* ---- begin and end ---------------------------------------------------------------------------
 */

void world_start(uint64_t seed, bool verbose)
{
    world = (struct world){.seed = seed,
                           .random = seed * 0x9e3779b97f4a7c15u + 1,
                           .now_ms = INT64_C(1700000000000),
                           .storm = true,
                           .verbose = verbose};
    for (int i = 0; i < 8; i++) {
        world_random(1);
    }
    for (int i = 0; i < WORLD_NODES; i++) {
        char json[512];

        world.nodes[i].up = true;
        snprintf(
            json, sizeof(json),
            "{\"metadata\":{\"name\":\"n%d\",\"labels\":{\"kubernetes.io/"
            "hostname\":\"n%d\",\"kubevirt.io/schedulable\":\"true\"}},"
            "\"status\":{\"allocatable\":{\"cpu\":\"64\",\"memory\":\"64Gi\",\"pods\":\"100\"},"
            "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
            i, i);
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        world_create(API_KIND_NODE, name, json);
    }
}

void world_end(void)
{
    for (size_t i = 0; i < world.n_items; i++) {
        free(world.items[i]->name);
        api_object_unref(world.items[i]->now);
        api_object_unref(world.items[i]->seen);
        free(world.items[i]);
    }
    for (size_t i = 0; i < world.n_changes; i++) {
        api_object_unref(world.changes[i].object);
    }
    for (int i = 0; i < WORLD_VMS; i++) {
        free(world.guests[i].pod_uid);
    }
    free(world.items);
    free(world.changes);
}
