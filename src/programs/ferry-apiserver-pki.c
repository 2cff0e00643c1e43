/* ferry-apiserver pki: certificates from the site's CA, into files. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/access/site.h"
#include "apiserver/access/site_owner.h"
#include "base/str.h"
#include "programs/ferry-apiserver.h"

struct pki_options {
    struct site_options site;
    const char *server, *out, *relay_owner;
    int controller_gid;
};

static void ca_free(struct pki_ca **ca)
{
    pki_ca_free(*ca);
}
#define cleanup_ca ferry_cleanup(ca_free)

static int parse_owner(const char *text, struct site_node *node, struct ferry_error *err)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    long long uid, gid;

    node->relay_uid = (uid_t)-1;
    node->relay_gid = (gid_t)-1;
    if (!text) {
        return 0;
    }
    ferry_cleanup_free char *first = colon ? ferry_strndup(text, (size_t)(colon - text)) : NULL;
    if (!colon || ferry_parse_int(first, 0, UINT32_MAX - 1, &uid, NULL) < 0 ||
        ferry_parse_int(colon + 1, 0, UINT32_MAX - 1, &gid, NULL) < 0) {
        return ferry_fail(err, FERRY_INVALID, "--relay-owner: '%s' is not UID:GID", text);
    }
    node->relay_uid = (uid_t)uid;
    node->relay_gid = (gid_t)gid;
    return 0;
}

/* The CA is opened, or made, as whose it is: root leaves no key that the server cannot read. */
static int open_ca(const char *data, struct pki_ca **ret, struct ferry_error *err)
{
    int rc = apiserver_be_owner(data, false, err);

    rc = rc < 0 ? rc : site_open(data, ret, err);
    return rc < 0 ? rc : ferry_user_return(err);
}

/* Beside the database it is the server's, which renews it, and the controller's to read. */
static int write_controller(const struct pki_options *p, const struct pki_ca *ca, const char *data,
                            struct ferry_error *err)
{
    struct ferry_user owner;

    site_owner(data, &owner);
    bool shared = geteuid() == 0 && owner.uid != 0 && site_holds(data, p->out);
    return site_controller_kubeconfig(
        ca, p->server, 0, p->out, shared ? owner.uid : (uid_t)-1,
        shared ? apiserver_controller_group(p->controller_gid) : FERRY_NO_GROUP, err);
}

static int run_pki(const struct pki_options *p, char **words, int n, struct ferry_error *err)
{
    ferry_cleanup_free char *data = apiserver_site_dir(&p->site);
    cleanup_ca struct pki_ca *ca = NULL;
    bool node = n == 2 && strcmp(words[0], "node") == 0;
    bool controller = n == 1 && strcmp(words[0], "controller") == 0;
    struct site_node what = {.dir = p->out, .server = p->server};

    if (!node && !controller) {
        return ferry_fail(err, FERRY_INVALID,
                          "expected 'pki node NAME' or 'pki controller' (see ferry-apiserver pki "
                          "--help)");
    }
    if (!p->out || !p->server) {
        return ferry_fail(err, FERRY_INVALID, "%s is required", p->out ? "--server" : "--out");
    }
    int rc = parse_owner(p->relay_owner, &what, err);
    rc = rc < 0 ? rc : open_ca(data, &ca, err);
    if (rc < 0) {
        return rc;
    }
    if (controller) {
        return write_controller(p, ca, data, err);
    }
    what.name = words[1];
    return site_node(ca, &what, err);
}

int apiserver_verb_pki(int argc, char **argv)
{
    struct pki_options o = {0};
    struct ferry_error err;
    const struct ferry_option rows[] = {
        {"out", 0, FERRY_OPTION_STRING, &o.out, "PATH",
         "node: directory for pki/ and node.kubeconfig; controller: the kubeconfig"},
        {"server", 0, FERRY_OPTION_STRING, &o.server, "URL", "where the API is reached"},
        {"relay-owner", 0, FERRY_OPTION_STRING, &o.relay_owner, "UID:GID",
         "whose the relay's key shall be"},
        CONTROLLER_GID_ROW(&o.controller_gid),
        SITE_OPTION_ROWS(&o.site, "where the CA is"),
        {.name = NULL},
    };
    const struct ferry_command command = {
        .name = "ferry-apiserver pki",
        .usage = "node NAME|controller --out PATH --server URL [OPTION]...",
        .summary = "Writes certificates signed by the site's CA, which is made when it is not "
                   "there yet.",
        .options = rows,
    };
    int first = apiserver_site_parse(&command, &o.site, argc, argv, &err);

    if (first < 0) {
        return apiserver_misused(&err);
    }
    if (run_pki(&o, argv + first, argc - first, &err) < 0) {
        return ferry_die(PROGRAM, err.cls == FERRY_INVALID ? FERRY_EXIT_USAGE : FERRY_EXIT_FAILED,
                         &err);
    }
    return FERRY_EXIT_OK;
}
