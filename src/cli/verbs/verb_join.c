/* join: this host becomes a node of a site. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#include "api/json.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/options.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/session.h"
#include "cli/site/site_plan.h"
#include "cli/verbs/join_plan.h"
#include "cli/verbs/verbs.h"
#include "http/client.h"
#include "kube/token.h"
#include "tls/pki.h"
#include "json/doc.h"

enum {
    TOKEN_FILE_MAX = 4096,
    REPLY_MAX = 1 << 20,
    ADDRESS_SIZE = 64,
};

FERRY_DEFINE_CLEANUP(struct http_client *, http_client_free)
#define cleanup_client ferry_cleanup(http_client_freep)
FERRY_DEFINE_CLEANUP(char *, pki_key_free)
#define cleanup_key ferry_cleanup(pki_key_freep)

struct join {
    const char *where, *node, *address, *root, *token_text;
    struct join_token token;
    char *server, *ca;
    char own_address[ADDRESS_SIZE]; /* that the server is reached from */
};

static void join_done(struct join *j)
{
    join_token_done(&j->token);
    free(j->server);
    free(j->ca);
}

/* Asks whoever answers for the site's CA, and believes it if it has the fingerprint. */
static int fetch_ca(struct join *j, struct ferry_error *err)
{
    cleanup_client struct http_client *client = NULL;
    http_cleanup_reply struct http_reply reply = {0};
    char fingerprint[PKI_FINGERPRINT_SIZE];
    int rc = http_client_new(
        &(struct http_client_config){.base_url = j->server, .any_certificate = true}, &client, err);

    if (rc == 0) {
        rc = http_client_call(
            client,
            &(struct http_call){.method = "GET", .path = "/ferry/v1/ca", .max_reply = REPLY_MAX},
            &reply, err);
    }
    if (rc < 0) {
        return ferry_wrap(err, "asking %s for its CA", j->server);
    }
    if (reply.status != 200 || pki_fingerprint(reply.body.data, fingerprint, err) < 0) {
        return ferry_fail(err, FERRY_PEER, "%s is not an API server of Ferry", j->server);
    }
    if (!ferry_streq(fingerprint, j->token.fingerprint)) {
        return ferry_fail(err, FERRY_DENIED,
                          "%s has another CA than the site that made the token: fingerprint %s, "
                          "not %s",
                          j->server, fingerprint, j->token.fingerprint);
    }
    j->ca = ferry_buf_take(&reply.body);
    return 0;
}

static char *request_body(const struct join *j, const char *node, const char *relay)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);

    yyjson_mut_obj_add_str(doc, root, "node", j->node);
    yyjson_mut_obj_add_str(doc, root, "nodeRequest", node);
    yyjson_mut_obj_add_str(doc, root, "relayRequest", relay);
    return json_doc_text(doc, 0, NULL);
}

static int ask(struct join *j, const char *body, yyjson_doc **ret, struct ferry_error *err)
{
    cleanup_client struct http_client *client = NULL;
    http_cleanup_reply struct http_reply reply = {0};
    int rc = http_client_new(&(struct http_client_config){.base_url = j->server,
                                                          .ca_pem = j->ca,
                                                          .token = j->token.token},
                             &client, err);

    if (rc == 0) {
        rc = http_client_call(client,
                              &(struct http_call){.method = "POST",
                                                  .path = "/ferry/v1/join",
                                                  .content_type = "application/json",
                                                  .body = body,
                                                  .body_len = strlen(body),
                                                  .max_reply = REPLY_MAX},
                              &reply, err);
    }
    if (rc == 0 && reply.status != 200) {
        rc = kube_status_error(reply.status, reply.body.data, reply.body.len, "joining", err);
    }
    return rc < 0 ? rc : api_json_parse(reply.body.data, reply.body.len, ret, err);
}

/* ---- files --------------------------------------------------------------------------------- */

static int write_one(const char *dir, const char *name, const char *text, mode_t mode,
                     struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", dir, name);

    return text ? ferry_write_file(path, text, strlen(text), mode, err)
                : ferry_fail(err, FERRY_PEER, "the server's answer has no %s", name);
}

/* The relay runs as a user of its own and must be able to read its key. */
static int give_to_relay(const char *pki, struct ferry_error *err)
{
    ferry_cleanup_free char *key = ferry_asprintf("%s/relay.key", pki);
    const struct passwd *user = getpwnam("ferry-relay");
    uid_t uid = user ? user->pw_uid : SITE_RELAY_ID;
    gid_t gid = user ? user->pw_gid : SITE_RELAY_ID;

    return chown(key, uid, gid) < 0 ? ferry_fail_errno(err, errno, "giving %s to the relay", key)
                                    : 0;
}

static int write_files(const struct join *j, const yyjson_val *answer, const char *node_key,
                       const char *relay_key, struct ferry_error *err)
{
    ferry_cleanup_free char *state = ferry_asprintf("%s/var/lib/ferry", j->root);
    ferry_cleanup_free char *pki = ferry_asprintf("%s/pki", state);
    ferry_cleanup_free char *etc = ferry_asprintf("%s/etc/ferry", j->root);
    ferry_cleanup_free char *config = join_kubeconfig(j->server, j->node);
    ferry_cleanup_free char *environment =
        join_environment(j->node, j->address ? j->address : j->own_address);
    int rc = ferry_mkdir_p(pki, 0711, err);
    struct stat st;

    if (rc < 0 || (rc = ferry_mkdir_p(etc, 0755, err)) < 0) {
        return rc;
    }
    /* On the API host the first one is the API server's to write to, too. */
    if (stat(state, &st) < 0 || chmod(state, (st.st_mode & 01070) | 0711) < 0 ||
        chmod(pki, 0711) < 0) {
        return ferry_fail_errno(err, errno, "opening %s for the relay", pki);
    }
    /* The kubeconfig last: it is what the programs wait for. */
    const struct {
        const char *dir, *name, *text;
        mode_t mode;
    } files[] = {
        {pki, "ca.crt", api_json_str(answer, "/ca"), 0644},
        {pki, "relay.key", relay_key, 0600},
        {pki, "relay.crt", api_json_str(answer, "/relay"), 0644},
        {pki, "node.key", node_key, 0600},
        {pki, "node.crt", api_json_str(answer, "/node"), 0644},
        {etc, "node.env", environment, 0644},
        {state, "node.kubeconfig", config, 0600},
    };
    for (size_t i = 0; rc == 0 && i < FERRY_COUNT(files); i++) {
        rc = write_one(files[i].dir, files[i].name, files[i].text, files[i].mode, err);
        if (rc == 0 && i == 1) {
            rc = give_to_relay(pki, err);
        }
    }
    return rc;
}

/* The address that packets to the server leave from: how the other nodes reach this one. */
static int find_own_address(struct join *j, struct ferry_error *err)
{
    ferry_cleanup_free char *host = ferry_strdup(j->server + strlen("https://"));
    char *port = strrchr(host, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *list = NULL;
    struct sockaddr_storage own;
    socklen_t len = sizeof(own);

    *port++ = '\0';
    if (*host == '[') {
        host[strlen(host) - 1] = '\0';
    }
    int rc = getaddrinfo(*host == '[' ? host + 1 : host, port, &hints, &list);
    if (rc != 0) {
        return ferry_fail(err, FERRY_NOT_FOUND, "%s: %s", j->where, gai_strerror(rc));
    }
    ferry_cleanup_fd int fd = socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && connect(fd, list->ai_addr, list->ai_addrlen) == 0 &&
              getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
              getnameinfo((struct sockaddr *)&own, len, j->own_address, sizeof(j->own_address),
                          NULL, 0, NI_NUMERICHOST) == 0;
    freeaddrinfo(list);
    return ok ? 0
              : ferry_fail(err, FERRY_RETRY, "%s: there is no way to it from this host", j->where);
}

static int join(struct join *j, struct ferry_error *err)
{
    ferry_cleanup_free char *node_request = NULL, *relay_request = NULL;
    cleanup_key char *node_key = NULL, *relay_key = NULL;
    api_cleanup_doc yyjson_doc *answer = NULL;
    ferry_cleanup_free char *relay_name = ferry_asprintf("ferry-relay:%s", j->node);
    ferry_cleanup_free char *node_name = ferry_asprintf("system:node:%s", j->node);
    int rc;

    if ((rc = find_own_address(j, err)) < 0 || (rc = fetch_ca(j, err)) < 0 ||
        (rc = pki_request(node_name, &node_request, &node_key, err)) < 0 ||
        (rc = pki_request(relay_name, &relay_request, &relay_key, err)) < 0) {
        return rc;
    }
    ferry_cleanup_free char *body = request_body(j, node_request, relay_request);
    if ((rc = ask(j, body, &answer, err)) < 0 ||
        (rc = write_files(j, yyjson_doc_get_root(answer), node_key, relay_key, err)) < 0) {
        return rc;
    }
    printf("%s has joined %s; certificates are in %s/var/lib/ferry/pki\n", j->node, j->server,
           j->root);
    printf("start its programs: systemctl enable --now ferry-relay ferry-pods ferry-handler\n");
    return FERRY_EXIT_OK;
}

/* The token from standard input, so that it is on no command line. */
static int read_token(struct join *j, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    int rc;

    if (!ferry_streq(j->token_text, "-")) {
        return join_token_parse(j->token_text, &j->token, err);
    }
    rc = ferry_read_file("/dev/stdin", TOKEN_FILE_MAX, &b, err);
    if (rc == 0) {
        b.data = b.data ? b.data : ferry_strdup("");
        b.data[strcspn(b.data, "\r\n")] = '\0';
        rc = join_token_parse(b.data, &j->token, err);
        explicit_bzero(b.data, strlen(b.data));
    }
    return rc;
}

int verb_join(int argc, char **argv, struct ferry_error *err)
{
    ferry_cleanup(join_done) struct join j = {.root = ""};
    char hostname[ADDRESS_SIZE + 1] = "";
    const struct ferry_option options[] = {
        {"token", 0, FERRY_OPTION_STRING, &j.token_text, "TOKEN",
         "of 'ferry token create NODE' (required); '-': from standard input"},
        {"node", 0, FERRY_OPTION_STRING, &j.node, "NAME",
         "the node's name, for which the token was made (this host's name)"},
        {"node-address", 0, FERRY_OPTION_STRING, &j.address, "ADDRESS",
         "how other nodes reach this one (as it reaches the server)"},
        {"root", 0, FERRY_OPTION_STRING, &j.root, "DIR", "prefix of all paths"},
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry join",
        .usage = "[OPTION]... HOST[:PORT]",
        .summary =
            "Makes this host a node of the site whose API server is at HOST:PORT: makes its\n"
            "keys, gets certificates for them, and writes down who it is. Keys never leave\n"
            "this host.",
        .options = options,
    };
    int first = ferry_options_parse(&cmd, argc, argv, err), rc;

    if (first < 0) {
        return first;
    }
    if (first == argc || !j.token_text) {
        return ferry_fail(err, FERRY_INVALID, "HOST:PORT and --token are needed (see %s --help)",
                          cmd.name);
    }
    gethostname(hostname, sizeof(hostname) - 1);
    j.node = j.node ? j.node : hostname;
    j.where = argv[first];
    if ((rc = cli_no_more(cmd.name, argc, argv, first + 1, err)) < 0 ||
        (rc = read_token(&j, err)) < 0) {
        return rc;
    }
    if (!j.token.fingerprint[0]) {
        return ferry_fail(err, FERRY_INVALID,
                          "the token has no fingerprint of the site's CA: use the one that 'ferry "
                          "token create' prints, all of it");
    }
    j.server = join_server(j.where, err);
    return j.server ? join(&j, err) : -(int)err->cls;
}
