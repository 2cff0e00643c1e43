/* The node agent: ordinary life of VMs on this node, and both ends of their moves. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "kube/client.h"

struct handler_config {
    struct kube_client *client; /* borrowed, as all strings */
    const char *node, *address; /* numeric */
    const char *migration_interface;
    const char *pods_dir, *relay_socket;
    const char *records_dir, *pki_dir;
    const char *api_socket; /* handler.sock */
    const char *kubeconfig;
    const char *launcher, *cpu_cache; /* program that is asked about the CPU, and the answer kept */
    bool kvm;                         /* hardware runs guests here (kvm_probe.h) */
    int renew_percent;                /* of a certificate's life, then it is renewed */
    int api_port;                     /* of the node API; 0 = any that is free */
    int resume_window_s; /* how long a move's streams are held while their path is away */
};

struct handler;

/* Waits until the API server answers (and says so while it does not), then works until
 * handler_stop(). `stopping` is asked once a second while waiting; true makes it give up with
 * -FERRY_CANCELLED. */
int handler_start(const struct handler_config *cfg, bool (*stopping)(void), struct handler **ret,
                  struct ferry_error *err);
/* Guests and moves go on. Takes NULL. */
void handler_stop(struct handler *h);
