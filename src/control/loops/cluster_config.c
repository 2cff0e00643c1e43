#include "control/loops/cluster_config.h"

#include <pthread.h>
#include <stdlib.h>

#include "api/policy.h"
#include "base/log.h"
#include "base/str.h"
#include "control/migration/limits_settings.h"

struct cluster_config {
    pthread_mutex_t lock;        /* guards all below */
    struct api_object *kubevirt; /* or NULL */
    struct migration_limits limits;
    bool known; /* `limits` are of a KubeVirt object, not the built-in ones */
};

struct cluster_config *cluster_config_new(void)
{
    struct cluster_config *c = ferry_xcalloc(1, sizeof(*c));

    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void cluster_config_free(struct cluster_config *c)
{
    if (!c) {
        return;
    }
    api_object_unref(c->kubevirt);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

bool cluster_config_refresh(struct cluster *c)
{
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(c->kubevirts);
    struct migration_limits limits = c->settings.limits;
    struct api_object *kubevirt = all.n > 0 ? all.items[0] : NULL; /* there should be one */
    struct ferry_error err = {0};

    if (kubevirt && limits_settings(kubevirt, &limits, &err) < 0) {
        ferry_error("KubeVirt configuration refused, the last good one stays in force",
                    F_ERR(&err));
        return false;
    }
    pthread_mutex_lock(&c->config->lock);
    api_object_unref(c->config->kubevirt);
    c->config->kubevirt = kubevirt ? api_object_ref(kubevirt) : NULL;
    c->config->limits = limits;
    c->config->known = kubevirt != NULL;
    pthread_mutex_unlock(&c->config->lock);
    return true;
}

struct api_object *cluster_config_get(struct cluster *c, struct migration_settings *ret_settings)
{
    struct api_object *o = NULL;

    *ret_settings = c->settings;
    pthread_mutex_lock(&c->config->lock);
    if (c->config->known) {
        ret_settings->limits = c->config->limits;
        o = api_object_ref(c->config->kubevirt);
    }
    pthread_mutex_unlock(&c->config->lock);
    return o;
}
