/* The admission webhook of ferry-controller, for Kubernetes: what the embedded API server decides
 * inside itself. Whoever leads or stands by serves it: it asks the API, not the caches. */
#pragma once

#include "base/error.h"

struct webhook_config {
    const char *listen;     /* "ADDRESS:PORT" */
    const char *cert, *key; /* PEM files, read again when they change */
    const char *client_ca;  /* PEM file: only who has a certificate of it is answered; or NULL */
    const char *kubeconfig;
};
struct webhook;
int webhook_start(const struct webhook_config *cfg, struct webhook **ret, struct ferry_error *err);
void webhook_stop(struct webhook *w); /* takes NULL */
