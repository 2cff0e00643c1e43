/* kubeconfig: where the API server is and how to prove who we are. Certificates and keys may stand
 * in the file (*-data, base64) or be named by path, relative to the file. */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"

struct kube_config {
    char *server;             /* "https://127.0.0.1:6443" */
    char *ca_pem;             /* NULL for plain http */
    char *cert_pem, *key_pem; /* both or none */
    char *token;              /* or NULL */
    char *namespace_;         /* of the context, or NULL */
};

/* Reads the current context of the file. Errors name the file and what is missing in it. */
int kube_config_load(const char *path, struct kube_config *ret, struct ferry_error *err);
void kube_config_done(struct kube_config *c); /* wipes secrets */
#define kube_cleanup_config ferry_cleanup(kube_config_done)
