/* What the controllers see of the cluster and how they reach it: one client, one recorder, one
 * cache per kind, and views of a VMI's objects made from them. Any thread. */
#pragma once

#include <pthread.h>

#include "control/loops/plan_apply.h"
#include "control/migration/migration_decide.h"
#include "kube/client.h"
#include "kube/informer.h"
#include "kube/queue.h"

struct cluster {
    struct kube_client *client;
    struct plan_writer writer; /* with that client */
    struct kube_informer *vms, *vmis, *pods, *migrations, *nodes;
    struct kube_informer *policies, *namespaces, *kubevirts, *quotas;
    struct kube_informer *claims, *volumes, *classes, *profiles, *attachments;
    struct kube_informer *types, *cluster_types, *preferences, *cluster_preferences;
    struct migration_settings settings;
    bool embedded;                     /* there is no kubelet and no Multus */
    struct cluster_config *config;     /* what the KubeVirt object says; cluster_config.c */
    const char *lease_ns, *lease_name; /* of the controllers' Lease; NULL = there is none */
    struct guest_users *users;         /* that guests run as */
    struct kube_queue *clock_changes;  /* gets a key when the clock was set */
    pthread_mutex_t clock_lock;
    struct clock_steps clock; /* under `clock_lock` */
};

/* The wall clock, and how it was set so far. */
int64_t cluster_now_ms(struct cluster *c, struct clock_steps *ret);

/* What is known of the claims that a VMI names. */
struct cluster_storage {
    struct storage_view view; /* points into the rest */
    struct kube_snapshot claims, classes, profiles;
};

/* From the caches; either machine may be NULL. */
struct cluster_storage cluster_storage(struct cluster *c, const char *ns,
                                       const struct api_machine *m,
                                       const struct api_machine *other);
void cluster_storage_done(struct cluster_storage *s);

/* All that hangs together by one VMI name. Referenced objects; free with cluster_family_done(). */
struct cluster_family {
    struct api_object *vmi;          /* or NULL */
    struct kube_snapshot pods;       /* created for the VMI's UID */
    struct kube_snapshot migrations; /* of that VMI name */
    struct api_object *node;         /* that the VMI is on, or NULL */
    struct cluster_storage storage;
};
void cluster_family_done(struct cluster_family *f);
#define cluster_cleanup_family ferry_cleanup(cluster_family_done)

/* From the caches. */
struct cluster_family cluster_family(struct cluster *c, const char *ns, const char *vmi_name);
/* VMI and pods from the API itself, for decisions that rest on something not being there. */
int cluster_family_live(struct cluster *c, const char *ns, const char *vmi_name,
                        struct cluster_family *ret, struct ferry_error *err);

/* Do the caches lag behind what was written of these objects? Then what they show is not decided
 * on; the change that is on its way wakes whom it concerns. */
bool cluster_is_behind(struct cluster *c, const struct cluster_family *f);

/* How the caches of migrations and pods are indexed: by "ns/VMI", by the UID of
 * the VMI; VMIs by the node that they are on. */
char *cluster_index_migration(const struct api_object *m);
char *cluster_index_pod(const struct api_object *pod);
char *cluster_index_vmi(const struct api_object *vmi);

/* The pod made for a migration, or NULL; points into `pods`. */
const struct api_object *cluster_target_pod(const struct kube_snapshot *pods,
                                            const char *migration_uid);

/* "ns/name" into its parts; both are owned by the caller. False for anything else. */
bool cluster_split_key(const char *key, char **ret_ns, char **ret_name);
char *cluster_key(const char *ns, const char *name);
