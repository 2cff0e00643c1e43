#include "handler/local/relay_client.h"

#include <stdio.h>
#include <yyjson.h>

#include "api/json.h"
#include "api/object.h"
#include "base/channels.h"
#include "handler/local/node_call.h"
#include "json/doc.h"

enum { TIMEOUT_MS = 5000 };

static char *path_of(const char *collection, const char *key)
{
    ferry_cleanup_free char *escaped = http_escape(key ? key : "");

    return ferry_asprintf("/v1/%s%s%s", collection, key ? "/" : "", escaped);
}

/* Sends `doc` (freed) and parses the answer. */
static int put(const char *socket, const char *collection, const char *key, yyjson_mut_doc *doc,
               yyjson_doc **ret, struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of(collection, key);
    ferry_cleanup_free char *body = json_doc_text(doc, 0, NULL);
    http_cleanup_reply struct http_reply reply = {0};

    yyjson_mut_doc_free(doc);
    int rc = node_call(&(struct node_call){.socket = socket,
                                           .method = "PUT",
                                           .path = path,
                                           .body = body,
                                           .timeout_ms = TIMEOUT_MS},
                       &reply, err);
    if (rc == 0) {
        rc = api_json_parse(reply.body.data, reply.body.len, ret, err);
    }
    return rc < 0 ? ferry_wrap(err, "relay") : 0;
}

static yyjson_mut_val *new_body(yyjson_mut_doc *doc, const char *move, int64_t generation,
                                bool plain)
{
    yyjson_mut_val *o = json_doc_object(doc);

    yyjson_mut_obj_add_str(doc, o, "move", move);
    yyjson_mut_obj_add_int(doc, o, "generation", generation);
    yyjson_mut_obj_add_str(doc, o, "tls", plain ? "plain" : "ferry");
    return o;
}

static void add_channel(yyjson_mut_doc *doc, yyjson_mut_val *list, enum ferry_channel logical,
                        const char *path)
{
    yyjson_mut_val *c = yyjson_mut_arr_add_obj(doc, list);

    yyjson_mut_obj_add_int(doc, c, "logical", logical);
    yyjson_mut_obj_add_str(doc, c, "unix", path);
}

static int read_ports(const yyjson_val *map, struct target_relay *r, struct ferry_error *err)
{
    size_t i, max;
    yyjson_val *k, *v;

    yyjson_obj_foreach((yyjson_val *)map, i, max, k, v)
    {
        long long port;
        int64_t logical;

        if (ferry_parse_int(yyjson_get_str(k), 1, 65535, &port, err) < 0 ||
            !api_json_get_int(v, &logical) || logical < 0 || logical > 65535 ||
            r->n_ports == TARGET_PORTS_MAX) {
            return ferry_fail(err, FERRY_PEER, "relay: its answer has unusable ports");
        }
        r->ports[r->n_ports++] = (struct api_port){.port = (int)port, .logical = (int)logical};
    }
    return r->n_ports ? 0 : ferry_fail(err, FERRY_PEER, "relay: its answer has no ports");
}

int relay_put_target(const char *socket, const struct relay_target *t,
                     char address[RELAY_ADDRESS_SIZE], struct target_relay *ret,
                     struct ferry_error *err)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = new_body(doc, t->move, t->generation, t->source_address);
    yyjson_mut_val *channels = yyjson_mut_obj_add_arr(doc, o, "channels");
    api_cleanup_doc yyjson_doc *answer = NULL;

    yyjson_mut_obj_add_str(doc, o, "sourceNode", t->source_node);
    yyjson_mut_obj_add_str(doc, o, "bind", t->bind);
    yyjson_mut_obj_add_int(doc, o, "resumeWindowS", t->resume_window_s);
    yyjson_mut_obj_add_uint(doc, o, "owner", t->owner);
    if (t->source_address) {
        yyjson_mut_obj_add_str(doc, o, "sourceAddress", t->source_address);
    }
    add_channel(doc, channels, FERRY_CHANNEL_CONTROL, t->control_socket);
    add_channel(doc, channels, FERRY_CHANNEL_MEMORY, t->memory_socket);
    if (t->disk_socket) {
        add_channel(doc, channels, FERRY_CHANNEL_DISKS, t->disk_socket);
    }
    int rc = put(socket, "targets", t->key, doc, &answer, err);
    if (rc < 0) {
        return rc;
    }
    const yyjson_val *root = yyjson_doc_get_root(answer);
    const char *where = api_json_str(root, "/address");
    struct target_relay r = {.listening = true, .address = address};
    rc = read_ports(yyjson_obj_get((yyjson_val *)root, "ports"), &r, err);
    if (rc == 0) {
        snprintf(address, RELAY_ADDRESS_SIZE, "%s", where ? where : t->bind);
        *ret = r;
    }
    return rc;
}

int relay_put_source(const char *socket, const struct relay_source *s, struct ferry_error *err)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = new_body(doc, s->move, s->generation, s->plain);
    yyjson_mut_val *ports = yyjson_mut_obj_add_obj(doc, o, "ports");
    api_cleanup_doc yyjson_doc *answer = NULL;

    for (size_t i = 0; i < s->n_ports; i++) {
        char port[16];

        snprintf(port, sizeof(port), "%d", s->ports[i].port);
        yyjson_mut_obj_add(ports, yyjson_mut_strcpy(doc, port),
                           yyjson_mut_int(doc, s->ports[i].logical));
    }
    yyjson_mut_obj_add_str(doc, o, "targetNode", s->target_node);
    yyjson_mut_obj_add_str(doc, o, "address", s->address);
    yyjson_mut_obj_add_str(doc, o, "dir", s->dir);
    yyjson_mut_obj_add_uint(doc, o, "owner", s->owner);
    yyjson_mut_obj_add_int(doc, o, "rateBytesPerS", s->rate);
    yyjson_mut_obj_add_int(doc, o, "resumeWindowS", s->resume_window_s);
    return put(socket, "sources", s->key, doc, &answer, err);
}

static int get(const char *socket, const char *collection, const char *key, yyjson_doc **ret,
               struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of(collection, key);
    http_cleanup_reply struct http_reply reply = {0};
    int rc = node_call(
        &(struct node_call){
            .socket = socket, .method = "GET", .path = path, .timeout_ms = TIMEOUT_MS},
        &reply, err);

    if (rc == 0) {
        rc = api_json_parse(reply.body.data, reply.body.len, ret, err);
    }
    return rc < 0 ? ferry_wrap(err, "relay") : 0;
}

int relay_get_source_rate(const char *socket, const char *key, int64_t *ret,
                          struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    int rc = get(socket, "sources", key, &doc, err);

    if (rc == 0) {
        *ret = api_json_int(yyjson_doc_get_root(doc), "/bytesPerS", 0);
    }
    return rc;
}

int relay_get_path(const char *socket, const char *node, struct relay_path *ret,
                   struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    int rc = get(socket, "paths", node, &doc, err);

    if (rc < 0) {
        return rc;
    }
    const yyjson_val *root = yyjson_doc_get_root(doc);
    ret->away = ferry_streq(api_json_str(root, "/state"), "away");
    ret->bytes_per_s = api_json_int(root, "/lastBytesPerS", 0);
    return 0;
}

int relay_put_denied(const char *socket, const char *json, struct ferry_error *err)
{
    int rc = node_call(&(struct node_call){.socket = socket,
                                           .method = "PUT",
                                           .path = "/v1/denied",
                                           .body = json,
                                           .timeout_ms = TIMEOUT_MS},
                       NULL, err);

    return rc < 0 ? ferry_wrap(err, "relay") : 0;
}

int relay_delete(const char *socket, const char *collection, const char *key,
                 struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of(collection, key);
    int rc = node_call(
        &(struct node_call){
            .socket = socket, .method = "DELETE", .path = path, .timeout_ms = TIMEOUT_MS},
        NULL, err);

    return rc == -FERRY_NOT_FOUND ? 0 : rc < 0 ? ferry_wrap(err, "relay") : 0;
}

int relay_keys(const char *socket, const char *collection, struct ferry_buf *ret,
               struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of(collection, NULL);
    http_cleanup_reply struct http_reply reply = {0};
    api_cleanup_doc yyjson_doc *doc = NULL;
    size_t i, max;
    yyjson_val *v;
    int rc = node_call(
        &(struct node_call){
            .socket = socket, .method = "GET", .path = path, .timeout_ms = TIMEOUT_MS},
        &reply, err);

    if (rc == 0) {
        rc = api_json_parse(reply.body.data, reply.body.len, &doc, err);
    }
    if (rc < 0) {
        return ferry_wrap(err, "relay");
    }
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), collection), i, max, v)
    {
        const char *key = api_json_str(v, "/key");

        if (key) {
            ferry_buf_printf(ret, "%s\n", key);
        }
    }
    return 0;
}
