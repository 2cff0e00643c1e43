/* What a site on this machine consists of: names, addresses, paths and the command of every
 * program in it. Pure: nothing here touches the machine, and the same settings always give the same
 * plan, so that `ferry down` finds what `ferry up` made even when the state file is gone.
 *
 * Network: one namespace, the fabric, holds two bridges. Every node is a namespace of its own with
 * `eth0` on the node network and `migration0` on the migration network. The host's own namespace
 * gets no interface. The API server runs in the fabric, from where it reaches the nodes, and
 * listens on its address of the node network and, through a socket made there, on the loopback
 * interface of the host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SITE_DEFAULT_ROOT "/var/lib/ferry-site"
enum { SITE_MAX_NODES = 8, SITE_DEFAULT_NODES = 2, SITE_DEFAULT_PORT = 6443 };
enum { SITE_RELAY_ID = 61200 }; /* uid and gid of the relays */

struct site_settings {
    const char *root;      /* absolute */
    const char *bin_dir;   /* where the programs are */
    const char *guest_dir; /* where the built-in guests are */
    int nodes, port;
};

struct site_node {
    char *name, *root, *netns;
    char *address, *migration_address;
    char *kubeconfig;
};

struct site_plan {
    char *root, *bin_dir, *guest_dir;
    char *state_file, *lock_file, *log_dir;
    char *fabric;         /* name of the fabric's network namespace */
    char *fabric_address; /* where nodes reach the API server */
    char *api_root, *api_data;
    char *api_url, *api_node_url; /* from the host, from a node */
    char *admin_kubeconfig, *controller_kubeconfig;
    int port;
    size_t n_nodes;
    struct site_node nodes[SITE_MAX_NODES];
};

/* Checks the settings, too. */
int site_plan_new(const struct site_settings *s, struct site_plan **ret, struct ferry_error *err);
void site_plan_free(struct site_plan *p);
FERRY_DEFINE_CLEANUP(struct site_plan *, site_plan_free)
#define site_cleanup_plan ferry_cleanup(site_plan_freep)

/* A NULL-terminated list of strings, all owned. */
void site_strings_free(char **list);
FERRY_DEFINE_CLEANUP(char **, site_strings_free)
#define site_cleanup_strings ferry_cleanup(site_strings_freep)

/* What the namespace of node `i`, or of the fabric, is called. */
char *site_plan_netns_name(const char *root, int i);
char *site_plan_fabric_name(const char *root);
/* "/run/netns/NAME" */
char *site_plan_netns_path(const char *name);

/* Commands that make the network, in order, one per line of words without spaces inside. */
char **site_plan_network(const struct site_plan *p);

/* Command that makes the credentials of node `i` (from 0), or of the controller. */
char **site_plan_node_pki(const struct site_plan *p, size_t i);
char **site_plan_controller_pki(const struct site_plan *p);

struct site_daemon {
    char *name; /* "api", "controller", "node1-relay": also the name of its log */
    char **argv;
    char *netns;      /* name, or NULL for the host's */
    char *after;      /* not started before this file exists, or NULL */
    bool api_sockets; /* gets the API's listening sockets */
};
struct site_daemons {
    struct site_daemon *items;
    size_t n;
};
struct site_daemons site_plan_daemons(const struct site_plan *p);
void site_daemons_done(struct site_daemons *d);
#define site_cleanup_daemons ferry_cleanup(site_daemons_done)
