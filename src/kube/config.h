/* Where the API server is and how to prove who we are: a kubeconfig, or what a pod on Kubernetes
 * is given. Certificates and keys may stand in the kubeconfig (*-data, base64) or be named by path,
 * relative to the file. */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"

struct kube_config {
    char *server;             /* "https://127.0.0.1:6443" */
    char *ca_pem;             /* NULL for plain http */
    char *cert_pem, *key_pem; /* both or none */
    char *token;              /* or NULL */
    char *token_file;         /* where `token` comes from and newer ones will; or NULL */
    char *namespace_;         /* of the context, or NULL */
};

/* Reads the current context of the file. Errors name the file and what is missing in it. */
int kube_config_load(const char *path, struct kube_config *ret, struct ferry_error *err);
/* The same from text; `path` is for messages and for what it names. */
int kube_config_parse(const char *path, const char *text, size_t len, struct kube_config *ret,
                      struct ferry_error *err);

#define KUBE_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
/* What a pod has: KUBERNETES_SERVICE_HOST and _PORT in the environment, ca.crt, token and namespace
 * in `dir`. -FERRY_NOT_FOUND outside of a pod. */
int kube_config_in_cluster(const char *dir, struct kube_config *ret, struct ferry_error *err);
void kube_config_done(struct kube_config *c); /* wipes secrets */
#define kube_cleanup_config ferry_cleanup(kube_config_done)
