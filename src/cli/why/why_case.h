/* What the links of the chain share; of src/cli/why*.c alone. */
#pragma once

#include "api/wire/wire_error.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_reason.h"
#include "cli/why/why.h"

/* How long a step may take before it counts as broken; the controller gives up much later. */
enum { WHY_STEP_MS = 20000 };

enum wire_phase why_phase_of(const struct why_view *v);

void why_say(struct why_link *l, enum why_state state, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void why_remedy(struct why_link *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *why_text_or(const char *s, const char *other);
/* What runs the guest, for people. */
const char *why_accelerator(const struct api_vmi *vmi);

/* How long the move has been in its phase. */
int64_t why_phase_age_ms(const struct why_view *v);
/* The VM's account of this very move, or NULL. */
const struct api_migration_state *why_state_of(const struct why_view *v);
/* What is wrong with a node; NULL when it is well or nothing is known about it. */
const char *why_node_trouble(const struct why_view *v, const char *name);
/* What the node says of itself in an annotation; NULL when it says nothing. */
const char *why_node_says(const struct why_view *v, const char *name, const char *key);
/* Whether a node says of its side ("source", "target") of this move that it cannot do its part, for
 * this reason (none = any; docs/contracts/reasons.md); then `l` says it, too. */
bool why_node_cannot(const struct why_view *v, const char *side, enum wire_reason reason,
                     struct why_link *l);
/* A step that a node has to take: broken when the node is away or takes too long. */
void why_node_step(const struct why_view *v, struct why_link *l, const char *node,
                   const char *what);
/* Whether the controller says that the move waits at this link; then `l` says it, too. */
bool why_queued_at(const struct why_view *v, const char *link, struct why_link *l);
/* What the controller says of a CPU, or a machine type, that no other node has; NULL when that is
 * not it. The caller's. */
char *why_lack(const struct why_view *v, enum wire_lack *ret);

/* Links, in their files. */
void why_link_migratable(const struct why_view *v, struct why_link *l);
void why_link_object(const struct why_view *v, struct why_link *l);
/* Of the controller's lease. */
void why_say_controller(const struct why_view *v, struct why_link *l);
/* Of a pod that does not run yet: why, and what to do. */
void why_say_pending(const struct why_view *v, const struct api_pod *pod, struct why_link *l);
/* A row of a chain, and the walk along it until one does not hold. */
struct why_row {
    const char *name;
    void (*check)(const struct why_view *v, struct why_link *l);
};
void why_walk_rows(const struct why_view *v, const struct why_row *rows, size_t n,
                   struct why_answer *ret);
void why_link_turn(const struct why_view *v, struct why_link *l);
void why_link_policy(const struct why_view *v, struct why_link *l);
void why_link_limits(const struct why_view *v, struct why_link *l);
void why_link_quota(const struct why_view *v, struct why_link *l);
void why_link_volumes(const struct why_view *v, struct why_link *l);
void why_link_listeners(const struct why_view *v, struct why_link *l);
void why_link_sockets(const struct why_view *v, struct why_link *l);
void why_link_port_map(const struct why_view *v, struct why_link *l);
void why_link_network(const struct why_view *v, struct why_link *l);
void why_link_reach(const struct why_view *v, struct why_link *l);
void why_link_mtu(const struct why_view *v, struct why_link *l);
void why_link_certificates(const struct why_view *v, struct why_link *l);
void why_link_tls(const struct why_view *v, struct why_link *l);
void why_link_path(const struct why_view *v, struct why_link *l);
void why_link_transfer(const struct why_view *v, struct why_link *l);
void why_link_mode(const struct why_view *v, struct why_link *l);
void why_link_post_copy(const struct why_view *v, struct why_link *l);
void why_link_cancel(const struct why_view *v, struct why_link *l);
void why_link_end(const struct why_view *v, struct why_link *l);
