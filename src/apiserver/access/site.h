/* What a site's API host gives out: certificates signed by its CA and kubeconfigs that carry them.
 * The CA lives in DATA/ca and never leaves it. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/user.h"
#include "tls/pki.h"

/* Opens the CA in DATA/ca, makes it (and DATA, 0700) when it is not there. */
int site_open(const char *data, struct pki_ca **ret, struct ferry_error *err);

/* Serving certificate for these names and numeric addresses; 127.0.0.1, ::1 and localhost are
 * always among them. `lifetime_s` as in struct pki_leaf. Free the key with pki_key_free(). */
int site_serving(const struct pki_ca *ca, const char *const *sans, size_t n_sans,
                 int64_t lifetime_s, char **ret_cert_pem, char **ret_key_pem,
                 struct ferry_error *err);

/* Kubeconfigs with everything inside, 0600. `server` is the URL of the API. */
int site_admin_kubeconfig(const struct pki_ca *ca, const char *server, int64_t lifetime_s,
                          const char *path, struct ferry_error *err);
/* `reader` (FERRY_NO_GROUP = none) may read it, too; `uid` is whose it shall be, or -1. */
int site_controller_kubeconfig(const struct pki_ca *ca, const char *server, int64_t lifetime_s,
                               const char *path, uid_t uid, gid_t reader, struct ferry_error *err);
/* A new certificate into a controller's kubeconfig, for the server that it names and whoever could
 * read it before; nothing when there is no such file. */
int site_renew_controller(const struct pki_ca *ca, int64_t lifetime_s, const char *path,
                          struct ferry_error *err);

/* All that node `name` holds: DIR/pki/{ca.crt,node.crt,node.key,relay.crt,relay.key} and
 * DIR/node.kubeconfig. With `relay_uid` and `relay_gid` not -1 the relay's key is theirs. */
struct site_node {
    const char *name, *dir, *server;
    uid_t relay_uid;
    gid_t relay_gid;
};
int site_node(const struct pki_ca *ca, const struct site_node *node, struct ferry_error *err);

/* The same certificate for a key that the node made itself, of a generation ("" = none). */
int site_sign_node(const struct pki_ca *ca, const char *node, const char *generation,
                   const char *request_pem, char **ret_cert_pem, struct ferry_error *err);
