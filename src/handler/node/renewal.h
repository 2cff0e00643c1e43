/* The node's certificates, renewed while everything runs: at two thirds of their life the handler
 * asks the API server for new ones, for itself and for the relay. Who uses them re-reads the files:
 * the relay with its next connection, clients of the API when the kubeconfig was written anew, the
 * node API when told. Open connections and streams go on with what they began with. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/client.h"

struct renewal {
    struct kube_client *client;
    const char *node, *pki_dir;
    const char *kubeconfig; /* of the node's programs; it comes to name the files */
    int percent;            /* of a certificate's life, then it is renewed */
    int64_t again_ms;       /* not before this time: the last attempt failed; wall clock */
};

/* Renews what is due. 1 = renewed, 0 = nothing to do. Call it now and then, one thread at a time.
 */
int renewal_look(struct renewal *r, int64_t now_ms, struct ferry_error *err);

/* Finishes what a renewal that was cut short left, before anybody uses the files: call it when the
 * program starts. */
int renewal_settle(const char *pki_dir, const char *kubeconfig, struct ferry_error *err);

/* A kubeconfig that names the node's files where it had their contents. The caller's. Pure. */
char *renewal_kubeconfig(const char *text);

/* When a certificate that is good from `begin_s` to `end_s` is to be renewed. Pure. */
int64_t renewal_due_s(int64_t begin_s, int64_t end_s, int percent);
