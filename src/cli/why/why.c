#include "cli/why/why.h"

#include <stdio.h>
#include <string.h>

#include "api/object.h"
#include "api/wire/wire_error.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_reason.h"
#include "base/channels.h"
#include "base/count.h"
#include "cli/why/why_case.h"

enum { ADMIT_MS = 10000, POD_START_MS = 60000, LEASE_GRACE_MS = 15000 };

/* ---- links --------------------------------------------------------------------------------- */

static void link_vm(const struct why_view *v, struct why_link *l)
{
    const struct api_vmi *vm = v->vmi;

    if (!vm) {
        why_say(l, WHY_BROKEN, "there is no virtual machine '%s'",
                why_text_or(v->migration->vmi_name, "?"));
        why_remedy(l, "'ferry vm list' shows those that there are");
    } else if (vm->meta.deleted_ms) {
        why_say(l, WHY_BROKEN, "%s is being deleted", vm->meta.name);
    } else if (!wire_phase_is(vm->phase, PHASE_RUNNING)) {
        why_say(l, WHY_BROKEN, "%s is %s; only a running virtual machine can be moved",
                vm->meta.name, wire_phase_shown(vm->phase));
        why_remedy(l, "'ferry events %s' tells what became of it", vm->meta.name);
    } else {
        why_say(l, WHY_OK, "%s runs on %s, %s", vm->meta.name, why_text_or(vm->node_name, "?"),
                why_accelerator(vm));
    }
}

void why_link_migratable(const struct why_view *v, struct why_link *l)
{
    const struct api_condition *c =
        api_condition_find(&v->vmi->conditions, CONDITION_LIVE_MIGRATABLE);

    if (c && ferry_streq(c->status, "False")) {
        why_say(l, WHY_BROKEN, "%s: %.300s", why_text_or(c->reason, "not migratable"),
                why_text_or(c->message, "no more is known"));
        why_remedy(l, "change what is named, or shut the VM down to move it");
    }
}

void why_link_object(const struct why_view *v, struct why_link *l)
{
    char age[PROGRESS_TEXT];

    if (v->migration) {
        why_say(l, WHY_OK, "%s was created %s ago", v->migration->meta.name,
                progress_age(v->now_ms - v->migration->meta.created_ms, age));
        return;
    }
    why_say(l, WHY_BROKEN, "no move of %s is under way or remembered", v->vmi->meta.name);
    why_remedy(l, "'ferry migrate %s' asks for one", v->vmi->meta.name);
}

void why_say_controller(const struct why_view *v, struct why_link *l)
{
    char age[PROGRESS_TEXT];

    if (!v->lease_known) {
        return;
    }
    if (!v->lease || ferry_str_empty(v->lease->holder)) {
        why_say(l, WHY_BROKEN, "no controller is at work: nobody holds its lease");
        why_remedy(l, "start ferry-controller, or look at its log");
        return;
    }
    int64_t silent = v->now_ms - v->lease->renew_ms;
    if (silent > v->lease->duration_s * 1000 + LEASE_GRACE_MS) {
        why_say(l, WHY_BROKEN, "the controller %s was last heard of %s ago", v->lease->holder,
                progress_duration(silent, age));
        why_remedy(l, "start ferry-controller, or look at its log");
    }
}

static void link_controller(const struct why_view *v, struct why_link *l)
{
    if (why_phase_of(v) <= PHASE_RUNNING) {
        why_say_controller(v, l);
    }
}

static void link_admitted(const struct why_view *v, struct why_link *l)
{
    char age[PROGRESS_TEXT];

    /* What waits in the queue has no phase yet, but was looked at. */
    if (why_phase_of(v) != PHASE_NONE ||
        api_map_get(&v->migration->meta.annotations, ANNOTATION_QUEUE)) {
        return;
    }
    bool late = why_phase_age_ms(v) > ADMIT_MS;
    why_say(l, late ? WHY_BROKEN : WHY_WAITS, "the controller has not looked at it for %s",
            progress_duration(why_phase_age_ms(v), age));
    if (late) {
        why_remedy(l, "look at the log of ferry-controller");
    }
}

/* No node takes the pod. */
static void say_homeless(const struct why_view *v, const struct api_pod *pod, const char *message,
                         struct why_link *l)
{
    enum wire_lack lack;
    ferry_cleanup_free char *lacks = v->migration ? why_lack(v, &lack) : NULL;

    why_say(l, WHY_BROKEN, "no node for %s: %.300s", pod->meta.name,
            lacks ? lacks : why_text_or(message, "no more is known"));
    if (lacks) {
        why_remedy(l, "%s",
                   lack == WIRE_LACK_MACHINE
                       ? "add a node whose QEMU has that machine type; a VM that starts anew gets "
                         "one that all nodes have"
                       : "add a node with that CPU; a VM with a named CPU model can go to more "
                         "nodes");
    } else if (message && strstr(message, RESOURCE_KVM)) {
        why_remedy(l, "it is to be run by hardware (kvm), which no node has that it may go to: see "
                      "docs/hardware.md");
    } else {
        why_remedy(l, "make room on a node, or uncordon one ('ferry node list')");
    }
}

void why_say_pending(const struct why_view *v, const struct api_pod *pod, struct why_link *l)
{
    const struct api_condition *c = api_condition_find(&pod->conditions, CONDITION_POD_SCHEDULED);
    const char *trouble = why_node_trouble(v, pod->node_name);
    int64_t age_ms = v->now_ms - pod->meta.created_ms;
    const char *said = why_text_or(pod->message, why_text_or(pod->waiting_message, ""));
    char age[PROGRESS_TEXT];

    if (c && ferry_streq(c->status, "False")) {
        say_homeless(v, pod, c->message, l);
    } else if (trouble) {
        why_say(l, WHY_BROKEN, "%s is to start on %s, which %s", pod->meta.name, pod->node_name,
                trouble);
        why_remedy(l, "bring %s back, or %s and try again", pod->node_name,
                   v->migration ? "cancel the move" : "stop the VM");
    } else if (!ferry_str_empty(pod->waiting_reason) && !ferry_str_empty(pod->node_name)) {
        why_say(l, WHY_BROKEN, "%s does not start on %s: %s: %.250s", pod->meta.name,
                pod->node_name, pod->waiting_reason, said);
        why_remedy(l, "see to what is named on %s; it is tried again by itself", pod->node_name);
    } else {
        bool late = age_ms > POD_START_MS;

        why_say(l, late ? WHY_BROKEN : WHY_WAITS, "%s has been starting%s%s for %s%s%.250s",
                pod->meta.name, ferry_str_empty(pod->node_name) ? "" : " on ",
                why_text_or(pod->node_name, ""), progress_duration(age_ms, age), *said ? ": " : "",
                said);
        if (late) {
            why_remedy(l, "look at the log of %s%s",
                       ferry_str_empty(pod->node_name) ? "ferry-controller" : "ferry-pods on ",
                       why_text_or(pod->node_name, ""));
        }
    }
}

static void link_target_pod(const struct why_view *v, struct why_link *l)
{
    const struct api_pod *pod = v->target_pod;

    if (pod && (wire_phase_of(pod->phase) <= PHASE_PENDING)) {
        why_say_pending(v, pod, l);
    } else if (pod && (wire_pod_is_over(pod))) {
        why_say(l, WHY_BROKEN, "%s ended%s%.300s", pod->meta.name,
                ferry_str_empty(pod->message) ? "" : ": ", why_text_or(pod->message, ""));
        why_remedy(l, "look at the log of ferry-pods on %s; then move again",
                   why_text_or(pod->node_name, "its node"));
    } else if (pod) {
        why_say(l, WHY_OK, "%s runs on %s", pod->meta.name, why_text_or(pod->node_name, "?"));
    } else if (why_queued_at(v, "target-pod", l)) {
        return;
    } else if (why_phase_of(v) >= PHASE_SCHEDULING) {
        why_say(l, WHY_BROKEN, "the target pod is gone");
        why_remedy(l, "the move fails by itself; then 'ferry migrate %s' tries again",
                   why_text_or(v->migration->vmi_name, "VM"));
    } else {
        why_say(l, WHY_WAITS, "the target pod is not created yet");
    }
}

static void link_hand_over(const struct why_view *v, struct why_link *l)
{
    if (why_state_of(v)) {
        return;
    }
    bool late = why_phase_age_ms(v) > WHY_STEP_MS;
    why_say(l, late ? WHY_BROKEN : WHY_WAITS,
            "the target pod runs, but the VM was not handed over");
    if (late) {
        why_remedy(l,
                   "is another move of this VM under way ('ferry list')? else look at the log of "
                   "ferry-controller");
    }
}

static void link_target_prepared(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);

    const char *trouble = why_node_says(v, s->target_node, ANNOTATION_MIGRATION_TROUBLE);

    if (!ferry_str_empty(s->target_address)) {
        return;
    }
    if (!trouble && why_node_cannot(v, "target", REASON_NONE, l)) {
        return;
    }
    if (trouble) {
        why_say(l, WHY_BROKEN, "node %s is not on the migration network: %.250s", s->target_node,
                trouble);
        why_remedy(l, "see to what is named (docs/migration-network.md); the move goes on by "
                      "itself");
        return;
    }
    why_node_step(v, l, s->target_node, "the target node prepares itself");
    /* Its own word says what it waits for. */
    static const char *const steps[] = {"pod", "launcher", "relay", "network"};
    for (size_t i = 0; v->target && i < FERRY_COUNT(steps); i++) {
        const struct why_check *fault = why_report_fault(v->target, steps[i]);
        size_t n = strlen(l->text);

        if (fault) {
            snprintf(l->text + n, sizeof(l->text) - n, "; %s: %s", fault->name, fault->message);
            return;
        }
    }
}

static void link_ports(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);
    bool control = false, memory = false;

    for (size_t i = 0; i < s->n_ports; i++) {
        control = control || s->ports[i].logical == FERRY_CHANNEL_CONTROL;
        memory = memory || s->ports[i].logical == FERRY_CHANNEL_MEMORY;
    }
    if (control && memory) {
        const char *network = why_node_says(v, s->target_node, ANNOTATION_MIGRATION_NETWORK);
        const char *address = why_node_says(v, s->target_node, ANNOTATION_MIGRATION_ADDRESS);

        if (network && address && !s->start_ms && !ferry_streq(address, s->target_address)) {
            why_say(l, WHY_WAITS, "%s published %s, but its address on %s is %s", s->target_node,
                    s->target_address, network, address);
            return;
        }
        why_say(l, WHY_OK, "%zu ports at %s%s%s", s->n_ports, s->target_address,
                network ? " on network " : "", why_text_or(network, ""));
        return;
    }
    why_say(l, WHY_BROKEN, "%s published no port for the %s channel",
            why_text_or(s->target_node, "?"), control ? "memory" : "control");
    why_remedy(l, "is ferry-relay running on %s? see its log and that of ferry-handler",
               why_text_or(s->target_node, "the target node"));
}

static void link_connected(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);

    if (!s->start_ms && !why_node_cannot(v, "source", REASON_NONE, l)) {
        why_node_step(v, l, s->source_node, "the source node has not begun");
    }
}

static const struct why_row chain[] = {
    {"vm", link_vm},
    {"migratable", why_link_migratable},
    {"object", why_link_object},
    {"controller", link_controller},
    {"admitted", link_admitted},
    {"turn", why_link_turn},
    {"policy", why_link_policy},
    {"limits", why_link_limits},
    {"quota", why_link_quota},
    {"volumes", why_link_volumes},
    {"target-pod", link_target_pod},
    {"hand-over", link_hand_over},
    {"target-prepared", link_target_prepared},
    {"ports", link_ports},
    {"listeners", why_link_listeners},
    {"sockets", why_link_sockets},
    {"port-map", why_link_port_map},
    {"network", why_link_network},
    {"reach", why_link_reach},
    {"mtu", why_link_mtu},
    {"certificates", why_link_certificates},
    {"tls", why_link_tls},
    {"connected", link_connected},
    {"path", why_link_path},
    {"transfer", why_link_transfer},
    {"mode", why_link_mode},
    {"post-copy", why_link_post_copy},
    {"cancel", why_link_cancel},
    {"end", why_link_end},
};
_Static_assert(FERRY_COUNT(chain) <= WHY_LINKS, "the answer has room for the chain");

/* ---- moves that are over ------------------------------------------------------------------- */

static const struct {
    enum wire_reason code;
    const char *link, *remedy;
} failures[] = {
    {REASON_UNSCHEDULABLE_TIMEOUT, "target-pod",
     "make room on a node, or uncordon one, and move again"},
    {REASON_UNSCHEDULABLE, "target-pod", "move it to another node with --to"},
    {REASON_PENDING_TIMEOUT, "target-pod", "look at the log of ferry-pods on the target node"},
    {REASON_PREPARE_TIMEOUT, "target-prepared",
     "look at the log of ferry-handler on the target node"},
    {REASON_REFUSED, "target-prepared", "see to what is named, and move again"},
    {REASON_RELAY_TROUBLE, "sockets", "see to what is named on that node, and move again"},
    {REASON_CONNECT_TIMEOUT, "connected", "look at the log of ferry-handler on the source node"},
    {REASON_TLS_FAILED, "tls", "look at the dates and names of both relays' certificates"},
    {REASON_STUCK, "transfer", "see to the network between the two nodes"},
    {REASON_NOT_CONVERGING, "transfer",
     "allow post-copy or auto-converge by a policy ('ferry policy create --help')"},
    {REASON_ABORTED, "cancel", ""},
    {REASON_DESTINATION_TOO_SMALL, "volumes", "make the destination as large as the source"},
    {REASON_CPU_INCOMPATIBLE, "migratable", "move to a node with the same CPU, or set a CPU model"},
    {REASON_DEVICE_NOT_MIGRATABLE, "migratable",
     "change what is named, or shut the VM down to move it"},
    {REASON_CONTROL_REFUSED, "target-prepared",
     "see docs/control-channel.md for what is named; do not trust the source node before"},
    {REASON_TARGET_LOST, "path", "look at the target node, then move again"},
    {REASON_SOURCE_LOST, "vm", "look at the source node"},
    {REASON_SOURCE_BUSY, "turn", "move again when the other move is over"},
    {REASON_LIBVIRT_ERROR, "transfer", "look at the log of the source's launcher"},
};

static void walk_failed(const struct why_view *v, struct why_answer *ret)
{
    const struct api_migration_state *s = why_state_of(v);
    const char *reason =
        why_text_or(v->migration->state.failure_reason,
                    why_text_or(s ? s->failure_reason : NULL, "no reason was given"));
    enum wire_reason code = wire_error_failure_of(v->migration);
    const char *link = "end", *advice = "'ferry show' has its events";

    code = code || !s ? code : wire_error_failure_read(&v->vmi->meta.annotations, s->uid);
    code = code ? code : wire_reason_of_failure(reason);
    for (size_t i = 0; i < FERRY_COUNT(failures); i++) {
        if (failures[i].code == code) {
            link = failures[i].link;
            advice = failures[i].remedy;
            break;
        }
    }
    for (size_t i = 0; i < FERRY_COUNT(chain); i++) {
        struct why_link *l = &ret->links[ret->n++];

        l->name = chain[i].name;
        if (ferry_streq(chain[i].name, link)) {
            why_say(l, WHY_BROKEN, "the move failed: %.380s", reason);
            why_remedy(l, "%s", advice);
            return;
        }
    }
}

void why_walk_rows(const struct why_view *v, const struct why_row *rows, size_t n,
                   struct why_answer *ret)
{
    for (size_t i = 0; i < n; i++) {
        struct why_link *l = &ret->links[ret->n++];

        l->name = rows[i].name;
        rows[i].check(v, l);
        if (l->state != WHY_OK) {
            return;
        }
    }
}

void why_walk(const struct why_view *view, struct why_answer *ret)
{
    *ret = (struct why_answer){0};
    if (view->migration && wire_phase_is(view->migration->phase, PHASE_FAILED)) {
        walk_failed(view, ret);
        return;
    }
    if (view->migration && wire_phase_is(view->migration->phase, PHASE_SUCCEEDED)) {
        ret->links[ret->n++] = (struct why_link){.name = "end", .text = "the VM has moved"};
        return;
    }
    why_walk_rows(view, chain, FERRY_COUNT(chain), ret);
}

const struct why_link *why_first(const struct why_answer *a)
{
    return a->n > 0 && a->links[a->n - 1].state != WHY_OK ? &a->links[a->n - 1] : NULL;
}
