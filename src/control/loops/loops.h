/* The loops around the decisions: each reconcile reads the caches, asks the decide function, and
 * carries the plan out. Called by kube_workers, several at a time, never two for one key. */
#pragma once

#include "control/loops/cluster.h"
#include "kube/workers.h"

/* ---- VMIs: key "ns/name"; ctx: struct cluster ------------------------------------------------
 */
int loop_vmi_reconcile(void *ctx, const char *key, struct kube_again *again,
                       struct ferry_error *err);

/* ---- VirtualMachines: key "ns/name"; ctx: struct cluster --------------------------------------
 */
int loop_vm_reconcile(void *ctx, const char *key, struct kube_again *again,
                      struct ferry_error *err);

/* ---- migrations: key "ns/name"; ctx: struct loop_migration -----------------------------------
 */
struct loop_migration;
struct loop_migration *loop_migration_new(struct cluster *c);
void loop_migration_free(struct loop_migration *l);
int loop_migration_reconcile(void *ctx, const char *key, struct kube_again *again,
                             struct ferry_error *err);
/* Brings the ledger of limits up to date with the caches: call it before waking migrations of a
 * VMI, on every change of the VMI, its pods and its migrations. */
void loop_migration_changed(struct loop_migration *l, const char *ns, const char *vmi_name);
void loop_migration_gone(struct loop_migration *l, const char *uid);
/* Key of the i-th that may start now, owned by the caller; NULL = no more. */
char *loop_migration_next(struct loop_migration *l, size_t i);
/* How urgent an event of this migration is. */
int loop_migration_priority(const struct api_migration *m);

/* ---- pods without a node: key "ns/name"; ctx: struct loop_schedule; one worker ----------------
 */
struct loop_schedule;
/* Chosen pods go to `bindings`; what could not be bound comes back to `pods`. */
struct loop_schedule *loop_schedule_new(struct cluster *c, struct kube_queue *pods,
                                        struct kube_queue *bindings);
void loop_schedule_free(struct loop_schedule *l);
/* There may be room now: looks again at the pods that it found no node for. */
void loop_schedule_wake(struct loop_schedule *l);
/* Tell it of every change of a pod or a node, before anything is woken by it; `now` NULL = it is
 * gone. Any thread. */
void loop_schedule_pod_seen(struct loop_schedule *l, const struct api_object *old,
                            const struct api_object *now);
void loop_schedule_node_seen(struct loop_schedule *l, const struct api_object *old,
                             const struct api_object *now);
int loop_schedule_reconcile(void *ctx, const char *key, struct kube_again *again,
                            struct ferry_error *err);
/* Writes the choice down; key: the pod's UID; several workers. */
int loop_schedule_bind(void *ctx, const char *uid, struct kube_again *again,
                       struct ferry_error *err);

/* ---- evacuation: key the name of a node; ctx: struct cluster; one worker ----------------------
 */
int loop_evacuation_reconcile(void *ctx, const char *key, struct kube_again *again,
                              struct ferry_error *err);

/* ---- workload updates: one key; ctx: struct loop_update; one worker ----------------------------
 */
struct loop_update;
struct loop_update *loop_update_new(struct cluster *c);
void loop_update_free(struct loop_update *l); /* takes NULL */
int loop_update_reconcile(void *ctx, const char *key, struct kube_again *again,
                          struct ferry_error *err);
/* VMs with an older launcher, at the last pass. Any thread. */
size_t loop_update_outdated(const struct loop_update *l);

/* ---- nodes: key name; ctx: struct loop_node; one worker ---------------------------------------
 */
struct loop_node;
struct loop_node *loop_node_new(struct cluster *c);
void loop_node_free(struct loop_node *l);
/* Notes a sign of life when the heartbeat changed; `now` NULL = the node is gone. */
void loop_node_seen(struct loop_node *l, const struct api_object *old,
                    const struct api_object *now);
int loop_node_reconcile(void *ctx, const char *key, struct kube_again *again,
                        struct ferry_error *err);
