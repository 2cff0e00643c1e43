/* The API server: a store behind HTTPS. */
#pragma once

#include <stddef.h>

#include "apiserver/serve/audit.h"
#include "base/error.h"
#include "http/server.h"
#include "tls/pki.h"

struct apiserver;

struct apiserver_config {
    const char *database;                    /* path of the SQLite file */
    const char *cert_pem, *key_pem, *ca_pem; /* serving certificate; CA of the clients */
    const struct pki_ca *ca;          /* signs for nodes that join; must outlive the server */
    int bookmark_s;                   /* how often a watcher that wants it is told how far it is */
    struct doors_limits doors;        /* for connections; zero = defaults */
    uint64_t body_memory;             /* for the bodies of all requests; 0 = 256 MiB */
    const struct audit_config *audit; /* NULL = no file of its own */
};

/* Opens the store, makes what every site has (namespaces), starts the collector. */
int apiserver_start(const struct apiserver_config *cfg, struct apiserver **ret,
                    struct ferry_error *err);
/* Serves on one more listening socket, which is taken, also on failure. */
int apiserver_listen(struct apiserver *s, int listen_fd, const char *name, struct ferry_error *err);
/* New connections get this serving certificate; those that are open go on. */
int apiserver_renew(struct apiserver *s, const char *cert_pem, const char *key_pem,
                    struct ferry_error *err);
/* Ends watches, waits for calls under way, closes the store. Takes NULL. */
void apiserver_stop(struct apiserver *s);
