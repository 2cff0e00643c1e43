#include "cli/why.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"

/* How long a step may take before it counts as broken; the controller gives up much later. */
enum {
    ADMIT_MS = 10000,
    POD_START_MS = 60000,
    STEP_MS = 20000,
    LEASE_GRACE_MS = 15000,
    CHANNEL_MEMORY = 49152,
};

/* ---- helpers ------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void say(struct why_link *l, enum why_state state,
                                                      const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(l->text, sizeof(l->text), fmt, ap);
    va_end(ap);
    l->state = state;
}

__attribute__((format(printf, 2, 3))) static void remedy(struct why_link *l, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(l->remedy, sizeof(l->remedy), fmt, ap);
    va_end(ap);
}

static const char *text_or(const char *s, const char *other)
{
    return ferry_str_empty(s) ? other : s;
}

enum rank { NEW, PENDING, SCHEDULING, SCHEDULED, PREPARING, READY, RUNNING, OVER };

static enum rank rank_of(const struct why_view *v)
{
    static const char *const phases[] = {"",          "Pending",         "Scheduling",
                                         "Scheduled", "PreparingTarget", "TargetReady",
                                         "Running",   "Succeeded"};

    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        if (ferry_streq(v->migration->phase, phases[i])) {
            return (enum rank)i;
        }
    }
    return OVER;
}

/* How long the move has been in its phase. */
static int64_t phase_age_ms(const struct why_view *v)
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
static const struct api_migration_state *state_of(const struct why_view *v)
{
    const struct api_migration_state *s = v->vmi ? &v->vmi->migration : NULL;

    return s && s->present && ferry_streq(s->uid, v->migration->meta.uid) ? s : NULL;
}

/* NULL when it is well or nothing is known about it. */
static const char *node_trouble(const struct why_view *v, const char *name)
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

/* What the node says of itself under `key`; NULL when it says nothing. */
static const char *node_says(const struct why_view *v, const char *name, const char *key)
{
    for (size_t i = 0; v->nodes && i < v->n_nodes; i++) {
        if (ferry_streq(v->nodes[i]->meta->name, name)) {
            const char *said = api_map_get(&v->nodes[i]->meta->annotations, key);

            return ferry_str_empty(said) ? NULL : said;
        }
    }
    return NULL;
}

/* A step that a node has to take: broken when the node is away or takes too long. */
static void node_step(const struct why_view *v, struct why_link *l, const char *node,
                      const char *what)
{
    const char *trouble = node_trouble(v, node);
    char age[PROGRESS_TEXT];

    if (trouble) {
        say(l, WHY_BROKEN, "%s: node %s %s", what, node, trouble);
        remedy(l, "bring %s back: are ferry-handler, ferry-pods and ferry-relay running on it?",
               node);
        return;
    }
    bool late = phase_age_ms(v) > STEP_MS;
    say(l, late ? WHY_BROKEN : WHY_WAITS, "%s, since %s", what,
        progress_duration(phase_age_ms(v), age));
    if (late) {
        remedy(l,
               "look at the log of ferry-handler on %s and at 'ferry events'; 'ferry cancel %s' "
               "gives up",
               text_or(node, "the node"), v->migration->meta.name);
    }
}

/* ---- the queue ----------------------------------------------------------------------------- */

static const struct {
    const char *reason, *link;
    enum why_state state;
    const char *remedy;
} queue_reasons[] = {
    {"SourceBusy", "turn", WHY_WAITS, "wait for the other move, or cancel it ('ferry list')"},
    {"PolicyInvalid", "policy", WHY_BROKEN,
     "correct the policy ('ferry policy list') or the KubeVirt object"},
    {"ClusterLimit", "limits", WHY_WAITS,
     "wait, or raise parallelMigrationsPerCluster in the KubeVirt object"},
    {"OutboundLimit", "limits", WHY_WAITS,
     "wait, or raise parallelOutboundMigrationsPerNode in the KubeVirt object"},
    {"InboundLimit", "limits", WHY_WAITS,
     "wait, move it to another node, or raise ferry.io/parallelInboundMigrationsPerNode"},
    {"BandwidthBudget", "limits", WHY_WAITS,
     "wait, or raise ferry.io/migrationBandwidthPerNode of the KubeVirt object"},
    {"BackOff", "limits", WHY_WAITS, "earlier moves of this VM failed ('ferry list -o wide')"},
    {"Quota", "quota", WHY_BROKEN, "raise the ResourceQuota of the namespace: a move needs twice"},
    {"VolumeNotReady", "volumes", WHY_BROKEN, "see to the volume that is named"},
    {"NeverSchedulable", "target-pod", WHY_BROKEN,
     "no node can ever take it: change the VM's node selector, or add a node"},
    {"Unschedulable", "target-pod", WHY_BROKEN,
     "make room on a node, or uncordon one ('ferry node list')"},
    {"TargetPodPending", "target-pod", WHY_WAITS, ""},
    {"TargetPreparing", "target-prepared", WHY_WAITS, ""},
    {"PathAway", "path", WHY_BROKEN,
     "bring back the network between the two nodes; the move goes on by itself"},
};

/* Whether the controller says that the move waits at this link; then `l` says it, too. */
static bool queued_at(const struct why_view *v, const char *link, struct why_link *l)
{
    const char *text = api_map_get(&v->migration->meta.annotations, "ferry.io/queue");
    api_cleanup_doc yyjson_doc *doc = text ? yyjson_read(text, strlen(text), 0) : NULL;
    const yyjson_val *root = yyjson_doc_get_root(doc);
    const char *reason = root ? api_json_str(root, "/reason") : NULL;

    for (size_t i = 0; reason && i < sizeof(queue_reasons) / sizeof(queue_reasons[0]); i++) {
        if (!ferry_streq(reason, queue_reasons[i].reason) ||
            !ferry_streq(link, queue_reasons[i].link)) {
            continue;
        }
        int64_t position = api_json_int(root, "/position", 0);
        const char *message = text_or(api_json_str(root, "/message"), "no more is known");

        if (position > 0 && rank_of(v) <= PENDING) {
            say(l, queue_reasons[i].state, "%s: %.200s; place %" PRId64 " in the queue", reason,
                message, position);
        } else {
            say(l, queue_reasons[i].state, "%s: %.200s", reason, message);
        }
        remedy(l, "%s", queue_reasons[i].remedy);
        return true;
    }
    return false;
}

/* ---- links --------------------------------------------------------------------------------- */

static void link_vm(const struct why_view *v, struct why_link *l)
{
    const struct api_vmi *vm = v->vmi;

    if (!vm) {
        say(l, WHY_BROKEN, "there is no virtual machine '%s'",
            text_or(v->migration->vmi_name, "?"));
        remedy(l, "'ferry vm list' shows those that there are");
    } else if (vm->meta.deleted_ms) {
        say(l, WHY_BROKEN, "%s is being deleted", vm->meta.name);
    } else if (!ferry_streq(vm->phase, "Running")) {
        say(l, WHY_BROKEN, "%s is %s; only a running virtual machine can be moved", vm->meta.name,
            text_or(vm->phase, "Pending"));
        remedy(l, "'ferry events %s' tells what became of it", vm->meta.name);
    } else {
        say(l, WHY_OK, "%s runs on %s", vm->meta.name, text_or(vm->node_name, "?"));
    }
}

static void link_migratable(const struct why_view *v, struct why_link *l)
{
    const struct api_condition *c = api_condition_find(&v->vmi->conditions, "LiveMigratable");

    if (c && ferry_streq(c->status, "False")) {
        say(l, WHY_BROKEN, "%s: %.300s", text_or(c->reason, "not migratable"),
            text_or(c->message, "no more is known"));
        remedy(l, "change what is named, or shut the VM down to move it");
    }
}

static void link_object(const struct why_view *v, struct why_link *l)
{
    char age[PROGRESS_TEXT];

    if (v->migration) {
        say(l, WHY_OK, "%s was created %s ago", v->migration->meta.name,
            progress_age(v->now_ms - v->migration->meta.created_ms, age));
        return;
    }
    say(l, WHY_BROKEN, "no move of %s is under way or remembered", v->vmi->meta.name);
    remedy(l, "'ferry migrate %s' asks for one", v->vmi->meta.name);
}

static void link_controller(const struct why_view *v, struct why_link *l)
{
    char age[PROGRESS_TEXT];

    if (!v->lease_known || rank_of(v) == OVER) {
        return;
    }
    if (!v->lease || ferry_str_empty(v->lease->holder)) {
        say(l, WHY_BROKEN, "no controller is at work: nobody holds its lease");
        remedy(l, "start ferry-controller, or look at its log");
        return;
    }
    int64_t silent = v->now_ms - v->lease->renew_ms;
    if (silent > v->lease->duration_s * 1000 + LEASE_GRACE_MS) {
        say(l, WHY_BROKEN, "the controller %s was last heard of %s ago", v->lease->holder,
            progress_duration(silent, age));
        remedy(l, "start ferry-controller, or look at its log");
    }
}

static void link_admitted(const struct why_view *v, struct why_link *l)
{
    char age[PROGRESS_TEXT];

    if (rank_of(v) != NEW) {
        return;
    }
    bool late = phase_age_ms(v) > ADMIT_MS;
    say(l, late ? WHY_BROKEN : WHY_WAITS, "the controller has not looked at it for %s",
        progress_duration(phase_age_ms(v), age));
    if (late) {
        remedy(l, "look at the log of ferry-controller");
    }
}

static void link_turn(const struct why_view *v, struct why_link *l)
{
    queued_at(v, "turn", l);
}

static void link_policy(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = state_of(v);

    if (!queued_at(v, "policy", l) && s && v->vmi->status) {
        const char *name = api_json_str(v->vmi->status, "/migrationState/migrationPolicyName");

        say(l, WHY_OK, "%s%s", name ? "policy " : "the cluster's defaults", name ? name : "");
    }
}

static void link_limits(const struct why_view *v, struct why_link *l)
{
    queued_at(v, "limits", l);
}

static void link_quota(const struct why_view *v, struct why_link *l)
{
    queued_at(v, "quota", l);
}

static void link_volumes(const struct why_view *v, struct why_link *l)
{
    queued_at(v, "volumes", l);
}

static void pod_pending(const struct why_view *v, struct why_link *l)
{
    const struct api_pod *pod = v->target_pod;
    const struct api_condition *c = api_condition_find(&pod->conditions, "PodScheduled");
    const char *trouble = node_trouble(v, pod->node_name);
    int64_t age_ms = v->now_ms - pod->meta.created_ms;
    char age[PROGRESS_TEXT];

    if (c && ferry_streq(c->status, "False")) {
        say(l, WHY_BROKEN, "no node for %s: %.300s", pod->meta.name,
            text_or(c->message, "no more is known"));
        remedy(l, "make room on a node, or uncordon one ('ferry node list')");
    } else if (trouble) {
        say(l, WHY_BROKEN, "%s is to start on %s, which %s", pod->meta.name, pod->node_name,
            trouble);
        remedy(l, "bring %s back, or cancel the move and try again", pod->node_name);
    } else {
        bool late = age_ms > POD_START_MS;

        say(l, late ? WHY_BROKEN : WHY_WAITS, "%s has been starting%s%s for %s%s%s", pod->meta.name,
            ferry_str_empty(pod->node_name) ? "" : " on ", text_or(pod->node_name, ""),
            progress_duration(age_ms, age), ferry_str_empty(pod->message) ? "" : ": ",
            text_or(pod->message, ""));
        if (late) {
            remedy(l, "look at the log of %s%s",
                   ferry_str_empty(pod->node_name) ? "ferry-controller" : "ferry-pods on ",
                   text_or(pod->node_name, ""));
        }
    }
}

static void link_target_pod(const struct why_view *v, struct why_link *l)
{
    const struct api_pod *pod = v->target_pod;

    if (pod && (ferry_str_empty(pod->phase) || ferry_streq(pod->phase, "Pending"))) {
        pod_pending(v, l);
    } else if (pod && (ferry_streq(pod->phase, "Failed") || ferry_streq(pod->phase, "Succeeded"))) {
        say(l, WHY_BROKEN, "%s ended%s%.300s", pod->meta.name,
            ferry_str_empty(pod->message) ? "" : ": ", text_or(pod->message, ""));
        remedy(l, "look at the log of ferry-pods on %s; then move again",
               text_or(pod->node_name, "its node"));
    } else if (pod) {
        say(l, WHY_OK, "%s runs on %s", pod->meta.name, text_or(pod->node_name, "?"));
    } else if (queued_at(v, "target-pod", l)) {
        return;
    } else if (rank_of(v) >= SCHEDULING) {
        say(l, WHY_BROKEN, "the target pod is gone");
        remedy(l, "the move fails by itself; then 'ferry migrate %s' tries again",
               text_or(v->migration->vmi_name, "VM"));
    } else {
        say(l, WHY_WAITS, "the target pod is not created yet");
    }
}

static void link_hand_over(const struct why_view *v, struct why_link *l)
{
    if (state_of(v)) {
        return;
    }
    bool late = phase_age_ms(v) > STEP_MS;
    say(l, late ? WHY_BROKEN : WHY_WAITS, "the target pod runs, but the VM was not handed over");
    if (late) {
        remedy(l, "is another move of this VM under way ('ferry list')? else look at the log of "
                  "ferry-controller");
    }
}

static void link_target_prepared(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = state_of(v);
    const char *trouble = node_says(v, s->target_node, "ferry.io/migration-network-trouble");

    if (ferry_str_empty(s->target_address) && trouble) {
        say(l, WHY_BROKEN, "node %s is not on the migration network: %.250s", s->target_node,
            trouble);
        remedy(l, "see to what is named (docs/migration-network.md); the move goes on by itself");
    } else if (ferry_str_empty(s->target_address)) {
        node_step(v, l, s->target_node, "the target node prepares itself");
    }
}

static void link_ports(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = state_of(v);
    bool control = false, memory = false;

    for (size_t i = 0; i < s->n_ports; i++) {
        control = control || s->ports[i].logical == 0;
        memory = memory || s->ports[i].logical == CHANNEL_MEMORY;
    }
    if (control && memory) {
        const char *network = node_says(v, s->target_node, "ferry.io/migration-network");
        const char *address = node_says(v, s->target_node, "ferry.io/migration-address");

        if (network && address && !s->start_ms && !ferry_streq(address, s->target_address)) {
            say(l, WHY_WAITS, "%s published %s, but its address on %s is %s", s->target_node,
                s->target_address, network, address);
            return;
        }
        say(l, WHY_OK, "%zu ports at %s%s%s", s->n_ports, s->target_address,
            network ? " on network " : "", text_or(network, ""));
        return;
    }
    say(l, WHY_BROKEN, "%s published no port for the %s channel", text_or(s->target_node, "?"),
        control ? "memory" : "control");
    remedy(l, "is ferry-relay running on %s? see its log and that of ferry-handler",
           text_or(s->target_node, "the target node"));
}

static void link_connected(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = state_of(v);

    if (!s->start_ms) {
        node_step(v, l, s->source_node, "the source node has not begun");
    }
}

static void link_path(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = state_of(v);
    const char *trouble = node_trouble(v, s->target_node);

    if (queued_at(v, "path", l)) {
        return;
    }
    if (trouble && !s->completed) {
        say(l, WHY_BROKEN, "the target node %s %s", s->target_node, trouble);
        remedy(l, "bring it back; until then the VM stays where it is");
    }
}

static void transfer_figures(const struct why_view *v, struct why_link *l)
{
    const struct progress_sample *a = &v->samples[0], *b = &v->samples[v->n_samples - 1];
    bool two = v->n_samples == 2;
    char rest[PROGRESS_TEXT], rate[PROGRESS_TEXT], dirty[PROGRESS_TEXT];

    progress_bytes(b->remaining_bytes, rest);
    progress_bytes(b->bytes_per_s, rate);
    progress_bytes(b->dirty_bytes_per_s, dirty);
    if (two && a->elapsed_ms == b->elapsed_ms) {
        say(l, WHY_BROKEN,
            "the source node %s stopped reporting; last: %s remaining, round %" PRId64,
            text_or(state_of(v)->source_node, "?"), rest, b->iteration);
        remedy(l, "look at ferry-handler on that node; the transfer itself may still go on");
    } else if (two && b->remaining_bytes > 0 && b->processed_bytes <= a->processed_bytes) {
        say(l, WHY_BROKEN, "stuck: %s remaining in round %" PRId64 ", nothing was sent for %s",
            rest, b->iteration, progress_duration(b->elapsed_ms - a->elapsed_ms, dirty));
        remedy(l, "see to the network between the two nodes; 'ferry cancel' gives up");
    } else if (ferry_streq(b->mode, "PreCopy") && b->iteration > 1 && b->bytes_per_s > 0 &&
               b->dirty_bytes_per_s >= b->bytes_per_s) {
        say(l, WHY_BROKEN,
            "not converging: round %" PRId64 ", %s remaining, %s/s sent, %s/s rewritten by the "
            "guest, throttled by %" PRId64 "%%",
            b->iteration, rest, rate, dirty, b->throttle_percent);
        remedy(l, "allow post-copy or auto-converge by a policy ('ferry policy create --help'), "
                  "give it more bandwidth, or quiet the guest");
    } else {
        say(l, WHY_OK, "round %" PRId64 ", %s remaining and falling: %s/s sent, %s/s rewritten",
            b->iteration, rest, rate, dirty);
    }
}

static void link_transfer(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = state_of(v);

    if (s->completed) {
        return;
    }
    if (v->n_samples > 0) {
        transfer_figures(v, l);
        return;
    }
    node_step(v, l, s->source_node, "it began, but no figures came yet");
}

static void link_mode(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = state_of(v);
    const char *mode = v->n_samples > 0 ? v->samples[v->n_samples - 1].mode : s->mode;

    if (ferry_streq(mode, "PostCopy")) {
        say(l, WHY_OK, "PostCopy: the guest runs on %s and fetches the rest",
            text_or(s->target_node, "the target"));
    } else if (ferry_streq(mode, "Paused")) {
        say(l, WHY_OK, "Paused: the guest stands still until the rest is sent");
    } else {
        say(l, WHY_OK, "%s", text_or(mode, "PreCopy"));
    }
}

static void link_cancel(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = state_of(v);

    if ((v->migration->meta.deleted_ms || s->abort_requested) && !s->completed) {
        say(l, WHY_WAITS, "it is being cancelled (%s)", text_or(s->abort_status, "asked for"));
    }
}

static void link_end(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = state_of(v);

    say(l, WHY_WAITS, "%s",
        s->completed ? "the VM has moved; what is left of the source is being removed"
                     : "nothing is in the way: it goes on");
}

static const struct {
    const char *name;
    void (*check)(const struct why_view *v, struct why_link *l);
} chain[] = {
    {"vm", link_vm},
    {"migratable", link_migratable},
    {"object", link_object},
    {"controller", link_controller},
    {"admitted", link_admitted},
    {"turn", link_turn},
    {"policy", link_policy},
    {"limits", link_limits},
    {"quota", link_quota},
    {"volumes", link_volumes},
    {"target-pod", link_target_pod},
    {"hand-over", link_hand_over},
    {"target-prepared", link_target_prepared},
    {"ports", link_ports},
    {"connected", link_connected},
    {"path", link_path},
    {"transfer", link_transfer},
    {"mode", link_mode},
    {"cancel", link_cancel},
    {"end", link_end},
};
_Static_assert(sizeof(chain) / sizeof(chain[0]) <= WHY_LINKS, "the answer has room for the chain");

/* ---- moves that are over ------------------------------------------------------------------- */

static const struct {
    const char *code, *link, *remedy;
} failures[] = {
    {"UnschedulableTimeout", "target-pod", "make room on a node, or uncordon one, and move again"},
    {"Unschedulable", "target-pod", "move it to another node with --to"},
    {"PendingTimeout", "target-pod", "look at the log of ferry-pods on the target node"},
    {"PrepareTimeout", "target-prepared", "look at the log of ferry-handler on the target node"},
    {"ConnectTimeout", "connected", "look at the log of ferry-handler on the source node"},
    {"TLSFailed", "connected", "look at the dates and names of both relays' certificates"},
    {"Stuck", "transfer", "see to the network between the two nodes"},
    {"NotConverging", "transfer",
     "allow post-copy or auto-converge by a policy ('ferry policy create --help')"},
    {"Aborted", "cancel", ""},
    {"DestinationTooSmall", "volumes", "make the destination as large as the source"},
    {"CPUIncompatible", "migratable", "move to a node with the same CPU, or set a CPU model"},
    {"DeviceNotMigratable", "migratable", "change what is named, or shut the VM down to move it"},
    {"TargetLost", "path", "look at the target node, then move again"},
    {"SourceLost", "vm", "look at the source node"},
    {"SourceBusy", "turn", "move again when the other move is over"},
    {"LibvirtError", "transfer", "look at the log of the source's launcher"},
};

static void walk_failed(const struct why_view *v, struct why_answer *ret)
{
    const struct api_migration_state *s = state_of(v);
    const char *reason = text_or(v->migration->state.failure_reason,
                                 text_or(s ? s->failure_reason : NULL, "no reason was given"));
    const char *link = "end", *advice = "'ferry show' has its events";

    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        size_t n = strlen(failures[i].code);

        if (strncmp(reason, failures[i].code, n) == 0 && reason[n] == ':') {
            link = failures[i].link;
            advice = failures[i].remedy;
            break;
        }
    }
    for (size_t i = 0; i < sizeof(chain) / sizeof(chain[0]); i++) {
        struct why_link *l = &ret->links[ret->n++];

        l->name = chain[i].name;
        if (ferry_streq(chain[i].name, link)) {
            say(l, WHY_BROKEN, "the move failed: %.380s", reason);
            remedy(l, "%s", advice);
            return;
        }
    }
}

void why_walk(const struct why_view *view, struct why_answer *ret)
{
    *ret = (struct why_answer){0};
    if (view->migration && ferry_streq(view->migration->phase, "Failed")) {
        walk_failed(view, ret);
        return;
    }
    if (view->migration && ferry_streq(view->migration->phase, "Succeeded")) {
        ret->links[ret->n++] = (struct why_link){.name = "end", .text = "the VM has moved"};
        return;
    }
    for (size_t i = 0; i < sizeof(chain) / sizeof(chain[0]); i++) {
        struct why_link *l = &ret->links[ret->n++];

        l->name = chain[i].name;
        chain[i].check(view, l);
        if (l->state != WHY_OK) {
            return;
        }
    }
}

const struct why_link *why_first(const struct why_answer *a)
{
    return a->n > 0 && a->links[a->n - 1].state != WHY_OK ? &a->links[a->n - 1] : NULL;
}
