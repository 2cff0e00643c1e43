#include "handler/serve/node_check_move.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/json.h"
#include "base/channels.h"
#include "base/fd.h"
#include "base/str.h"
#include "handler/local/node_call.h"
#include "handler/node/migration_net.h"
#include "handler/serve/node_checks.h"
#include "tls/identity.h"

enum { QUICK_MS = 5000, TABLE_MAX = 4 << 20, PEM_MAX = 1 << 20, TCP_LISTENS = 0x0A };

/* What was seen, and the memory behind it. */
struct sight {
    struct check_facts facts;
    yyjson_doc *relay;
    struct ferry_error relay_error, address_error, certificate_error;
    char *paths[CHECK_CHANNELS];
    struct node_probe probes[CHECK_CHANNELS];
    char address[ADDRESS_SIZE], certificate[TLS_IDENTITY_TEXT];
};

static void sight_done(struct sight *s)
{
    yyjson_doc_free(s->relay);
    for (size_t i = 0; i < CHECK_CHANNELS; i++) {
        free(s->paths[i]);
    }
}

static struct api_object *vmi_of_move(const struct node_api_config *cfg, const char *uid)
{
    struct kube_informer *both[] = {cfg->coming, cfg->here};

    for (size_t k = 0; k < 2; k++) {
        kube_cleanup_snapshot struct kube_snapshot vmis = kube_informer_list(both[k]);

        for (size_t i = 0; i < vmis.n; i++) {
            const struct api_migration_state *m = &vmis.items[i]->u.vmi.migration;

            if (m->present && ferry_streq(m->uid, uid)) {
                return api_object_ref(vmis.items[i]);
            }
        }
    }
    return NULL;
}

/* What the relay says of the move. */
static void ask_relay(const struct node_api_config *cfg, struct sight *s)
{
    struct check_facts *f = &s->facts;
    ferry_cleanup_free char *key = http_escape(f->vmi->meta.uid);
    ferry_cleanup_free char *path =
        ferry_asprintf("/v1/%s/%s", f->role == NODE_ROLE_TARGET ? "targets" : "sources", key);
    http_cleanup_reply struct http_reply reply = {0};
    int rc = node_call(&(struct node_call){.socket = cfg->node->relay_socket,
                                           .method = "GET",
                                           .path = path,
                                           .timeout_ms = QUICK_MS},
                       &reply, &s->relay_error);

    if (rc == 0) {
        rc = api_json_parse(reply.body.data, reply.body.len, &s->relay, &s->relay_error);
    }
    if (rc == 0) {
        f->relay = yyjson_doc_get_root(s->relay);
    } else if (rc == -FERRY_NOT_FOUND) {
        f->relay_error = s->relay_error.msg;
    } else {
        f->relay_socket_gone = s->relay_error.msg;
    }
}

static void look_for_socket(struct sight *s, int logical, char *path_take)
{
    struct check_facts *f = &s->facts;
    struct stat st;

    s->paths[f->n_files] = path_take;
    f->files[f->n_files++] =
        (struct check_file){logical, path_take, lstat(path_take, &st) == 0 && S_ISSOCK(st.st_mode)};
}

static void look_for_sockets(struct sight *s, const struct pass *pass)
{
    const struct api_migration_state *m = &s->facts.vmi->migration;
    const char *key = pass->vmi->meta->uid;

    if (pass->role == NODE_ROLE_TARGET) { /* those of QEMU come when the move begins */
        look_for_socket(s, FERRY_CHANNEL_CONTROL,
                        launcher_control_socket(pass->pod_dir, pass->view.status));
        return;
    }
    ferry_cleanup_free char *dir = ferry_asprintf("%s/m", pass->pod_dir);
    for (size_t i = 0; i < m->n_ports && i < CHECK_CHANNELS; i++) {
        int logical = m->ports[i].logical;

        look_for_socket(s, logical, ferry_channel_path(dir, key, (enum ferry_channel)logical));
    }
}

bool node_check_listens(const char *table, int port)
{
    for (const char *line = table; line && *line; line = strchr(line, '\n')) {
        unsigned at = 0, state = 0;

        line += *line == '\n';
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &at, &state) == 2 &&
            at == (unsigned)port && state == TCP_LISTENS) {
            return true;
        }
    }
    return false;
}

/* Whether the relay's ports are open. That they are those of the VMI is another question. */
static void look_for_listeners(struct sight *s)
{
    ferry_cleanup_buf struct ferry_buf four = {0}, six = {0};
    yyjson_val *ports = yyjson_obj_get(yyjson_doc_get_root(s->relay), "ports"), *key, *logical;
    size_t i, most;

    (void)ferry_read_file("/proc/net/tcp", TABLE_MAX, &four, NULL);
    (void)ferry_read_file("/proc/net/tcp6", TABLE_MAX, &six, NULL);
    yyjson_obj_foreach(ports, i, most, key, logical)
    {
        int port = (int)strtol(yyjson_get_str(key), NULL, 10);

        if (i < CHECK_CHANNELS) {
            s->facts.listeners[s->facts.n_listeners++] = (struct check_listener){
                yyjson_get_int(logical), port,
                node_check_listens(four.data, port) || node_check_listens(six.data, port)};
        }
    }
}

static void look_at_certificate(const struct node_api_config *cfg, struct sight *s)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/relay.crt", cfg->pki_dir);
    ferry_cleanup_buf struct ferry_buf pem = {0};
    int rc = ferry_read_file(path, PEM_MAX, &pem, &s->certificate_error);

    if (rc == 0) {
        rc = tls_identity_check_own(pem.data ? pem.data : "", pem.len, cfg->node->name,
                                    s->certificate, &s->certificate_error);
    }
    s->facts.certificate = s->certificate;
    s->facts.certificate_error = rc < 0 ? s->certificate_error.msg : NULL;
}

static void look_at_address(const struct node_api_config *cfg, struct sight *s)
{
    int rc = migration_net_address(cfg->node->network, s->address, &s->address_error);

    s->facts.address = rc == 0 ? s->address : NULL;
    s->facts.address_error = rc < 0 ? s->address_error.msg : NULL;
}

static void probe(const struct node_api_config *cfg, struct sight *s, bool plain)
{
    const struct api_migration_state *m = &s->facts.vmi->migration;

    for (size_t i = 0; i < m->n_ports && i < CHECK_CHANNELS; i++) {
        node_probe(cfg->pki_dir, m->target_node, m->target_address, m->ports[i].port, plain,
                   &s->probes[i]);
        s->facts.probes[s->facts.n_probes++] =
            (struct check_probe){m->ports[i].logical, s->probes[i].stage, s->probes[i].error.msg};
    }
}

static void look_around(const struct node_api_config *cfg, const struct pass *pass, struct sight *s)
{
    ask_relay(cfg, s);
    const char *tls = api_json_str(s->facts.relay, "/tls");
    bool encrypted = !ferry_streq(tls, "plain");

    if (pass->pod_dir && s->facts.relay) {
        look_for_sockets(s, pass);
    }
    if (pass->role == NODE_ROLE_TARGET) {
        look_for_listeners(s);
        look_at_address(cfg, s);
    }
    if (encrypted) {
        look_at_certificate(cfg, s);
    }
    /* The handshake of raw mode names nobody; that it connects is what can be tried. */
    if (pass->role == NODE_ROLE_SOURCE && s->facts.relay) {
        probe(cfg, s, !ferry_streq(tls, "ferry"));
    }
}

void node_check_move(struct http_exchange *x, const struct node_api_config *cfg, const char *uid)
{
    api_cleanup_object struct api_object *vmi = vmi_of_move(cfg, uid);
    struct pass_memory memory = {0};

    if (!vmi) {
        struct ferry_error err;

        ferry_fail(&err, FERRY_NOT_FOUND, "this node has no part in migration '%.100s'", uid);
        http_answer_error(x, 404, &err);
        return;
    }
    ferry_cleanup(pass_done) struct pass pass = {.node = cfg->node,
                                                 .memory = &memory,
                                                 .vmi = vmi,
                                                 .role =
                                                     node_role_of(&vmi->u.vmi, cfg->node->name)};
    pass_begin(&pass);
    ferry_cleanup(sight_done) struct sight s = {
        .facts = {
            .vmi = &vmi->u.vmi, .node = cfg->node->name, .role = pass.role, .launcher = pass.view}};
    if (pass.role == NODE_ROLE_SOURCE || pass.role == NODE_ROLE_TARGET) {
        look_around(cfg, &pass, &s);
    }
    ferry_cleanup_free char *json = node_checks(&s.facts);
    http_answer_json(x, 200, json);
}
