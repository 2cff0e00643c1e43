/* Links that only the two nodes can see: their own checks, put into the order of the chain. */
#include "api/object.h"
#include "api/wire/wire_mode.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_reason.h"
#include "base/channels.h"
#include "cli/why/why_case.h"

/* What is younger than this may still be on its way. */
enum { GRACE_MS = 5000 };

bool why_needs_nodes(const struct why_view *v)
{
    const struct api_migration_state *s = v->migration ? why_state_of(v) : NULL;
    const char *mode = v->n_samples > 0 ? v->samples[v->n_samples - 1].mode : NULL;

    /* Once in post-copy its streams may be others than those that were published first. */
    return s && !s->completed && !s->failed && why_phase_of(v) >= PHASE_PREPARING_TARGET &&
           why_phase_of(v) <= PHASE_RUNNING && !wire_mode_is(mode, MODE_POST_COPY) &&
           !wire_mode_is(s->mode, MODE_POST_COPY);
}

static const char *channel_word(int channel)
{
    return channel == FERRY_CHANNEL_CONTROL  ? "control channel: "
           : channel == FERRY_CHANNEL_MEMORY ? "memory channel: "
           : channel == FERRY_CHANNEL_DISKS  ? "disk channel: "
                                             : "";
}

static void blame(const struct why_view *v, struct why_link *l, const char *node,
                  const struct why_check *fault)
{
    why_say(l, why_phase_age_ms(v) < GRACE_MS ? WHY_WAITS : WHY_BROKEN, "%s: %s%s",
            why_text_or(node, "?"), channel_word(fault->channel), fault->message);
}

/* The node itself answers, and so does its relay. */
static bool agents_answer(const struct why_view *v, const struct why_report *r, const char *node,
                          struct why_link *l)
{
    const struct why_check *relay = why_report_fault(r, "relay");

    if (r->error[0]) {
        why_say(l, WHY_BROKEN, "%s does not answer: %.300s", why_text_or(node, "?"), r->error);
        why_remedy(l, "is ferry-handler running on %s? see its log", why_text_or(node, "the node"));
        return false;
    }
    if (relay) {
        blame(v, l, node, relay);
        why_remedy(l, "is ferry-relay running on %s? see its log", why_text_or(node, "the node"));
        return false;
    }
    return true;
}

/* The first fault of either name at the node; true when there is one. */
static bool fault_of(const struct why_view *v, const struct why_report *r, const char *node,
                     const char *one, const char *other, struct why_link *l)
{
    const struct why_check *fault = r ? why_report_fault(r, one) : NULL;

    if (r && !fault && other) {
        fault = why_report_fault(r, other);
    }
    if (fault) {
        blame(v, l, node, fault);
    }
    return fault != NULL;
}

void why_link_listeners(const struct why_view *v, struct why_link *l)
{
    const char *node = why_state_of(v)->target_node;

    if (why_node_cannot(v, "target", REASON_RELAY_TROUBLE, l)) {
        return;
    }
    if (!v->target || !agents_answer(v, v->target, node, l)) {
        return;
    }
    if (fault_of(v, v->target, node, "listeners", "listener", l)) {
        why_remedy(l,
                   "look at the logs of ferry-handler and ferry-relay on %s; 'ferry cancel %s' "
                   "gives up",
                   node, v->migration->meta.name);
    } else if (why_report_find(v->target, "listener")) {
        why_say(l, WHY_OK, "open on %s", node);
    }
}

void why_link_sockets(const struct why_view *v, struct why_link *l)
{
    const char *node = why_state_of(v)->source_node;

    struct why_link other = {0};

    if (why_node_cannot(v, "source", REASON_RELAY_TROUBLE, l) ||
        (!why_state_of(v)->start_ms && why_node_cannot(v, "source", REASON_NONE, &other))) {
        return; /* it does not come to its sockets; the link "connected" has its word */
    }
    if (!v->source || !agents_answer(v, v->source, node, l)) {
        return;
    }
    if (fault_of(v, v->source, node, "sockets", "socket", l)) {
        why_remedy(l,
                   "look at the logs of ferry-handler and ferry-relay on %s; 'ferry cancel %s' "
                   "gives up",
                   node, v->migration->meta.name);
    } else if (why_report_find(v->source, "socket")) {
        why_say(l, WHY_OK, "there on %s", node);
    }
}

void why_link_port_map(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);

    if (fault_of(v, v->target, s->target_node, "published", "port map", l) ||
        fault_of(v, v->source, s->source_node, "published", "port map", l)) {
        why_remedy(l,
                   "a relay was restarted or told otherwise: see the logs of ferry-handler on "
                   "both nodes; 'ferry cancel %s' gives up",
                   v->migration->meta.name);
    } else if (v->target && v->source) {
        why_say(l, WHY_OK, "the same on both nodes and in the VM's status");
    }
}

void why_link_network(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);

    if (fault_of(v, v->target, s->target_node, "network", NULL, l)) {
        why_remedy(l, "see to the migration network's interface on %s ('ip address')",
                   why_text_or(s->target_node, "the target"));
    } else if (v->target && why_report_find(v->target, "network")) {
        why_say(l, WHY_OK, "%s is %s's address for moves", s->target_address, s->target_node);
    }
}

void why_link_reach(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);

    if (fault_of(v, v->source, s->source_node, "reach", NULL, l)) {
        why_remedy(l,
                   "see to the network and firewalls between %s and %s; the move goes on by "
                   "itself",
                   why_text_or(s->source_node, "?"), why_text_or(s->target_node, "?"));
    }
}

void why_link_mtu(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);

    if (fault_of(v, v->source, s->source_node, "mtu", NULL, l)) {
        why_remedy(l, "give all interfaces, bridges and switches between %s and %s one MTU",
                   why_text_or(s->source_node, "?"), why_text_or(s->target_node, "?"));
    }
}

void why_link_certificates(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);
    const struct why_check *target = v->target ? why_report_find(v->target, "certificate") : NULL;

    if (fault_of(v, v->target, s->target_node, "certificate", NULL, l) ||
        fault_of(v, v->source, s->source_node, "certificate", NULL, l)) {
        why_remedy(l, "is the clock right? else let the node get new certificates ('ferry token "
                      "create', 'ferry join')");
    } else if (target) {
        why_say(l, WHY_OK, "that of %s %s", s->target_node, target->message);
    }
}

void why_link_tls(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);

    if (fault_of(v, v->source, s->source_node, "handshake", NULL, l)) {
        why_remedy(l, "do both nodes have certificates of one CA? see the log of ferry-relay on %s",
                   why_text_or(s->target_node, "the target"));
    } else if (v->source && why_report_find(v->source, "handshake")) {
        why_say(l, WHY_OK, "handshakes with %s done on every channel", s->target_node);
    }
}
