#include "relay/manager/control.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

enum {
    MAX_SPEC = 64 * 1024,
    MAX_BODY = 2 << 20 /* a list of removed nodes */,
    MAX_CONNECTIONS = 64
};

static void answer_text(struct http_exchange *x, char *json_take)
{
    http_answer_json(x, 200, json_take);
    free(json_take);
}

static void answer_status(struct http_exchange *x, int status, const char *message)
{
    struct ferry_error err;

    ferry_fail(&err, status == 404 ? FERRY_NOT_FOUND : FERRY_INVALID, "%s %s: %s", http_method(x),
               http_path(x), message);
    http_answer_error(x, status, &err);
}

static void put(struct http_exchange *x, struct relay_manager *m, enum relay_role role,
                const char *key)
{
    struct relay_spec *spec = NULL;
    struct ferry_error err;
    char *json = NULL;
    size_t len = 0;
    const char *body = http_body(x, &len);

    if (len > MAX_SPEC) {
        ferry_fail(&err, FERRY_INVALID, "the body is larger than %d bytes", MAX_SPEC);
        http_answer_error(x, 413, &err);
        return;
    }
    int rc = relay_spec_parse(role, key, body, len, &spec, &err);

    if (rc == 0) {
        rc = relay_manager_put(m, spec, &json, &err);
    }
    if (rc == 0) {
        answer_text(x, json);
        return;
    }
    ferry_warn("cannot set up a move", F_STR("role", relay_role_name(role)), F_STR("key", key),
               F_ERR(&err));
    http_answer_error(x, 0, &err);
}

static void one(struct http_exchange *x, struct relay_manager *m, enum relay_role role,
                const char *key)
{
    const char *method = http_method(x);
    struct ferry_error err;
    char *json = NULL;

    if (ferry_streq(method, "PUT")) {
        put(x, m, role, key);
    } else if (ferry_streq(method, "DELETE")) {
        bool was_there = relay_manager_delete(m, role, key);

        http_answer_json(x, 200, was_there ? "{\"deleted\":true}" : "{\"deleted\":false}");
    } else if (!ferry_streq(method, "GET")) {
        answer_status(x, 405, "the method is not one of GET, PUT, DELETE");
    } else if (relay_manager_get(m, role, key, &json, &err) == 0) {
        answer_text(x, json);
    } else {
        http_answer_error(x, 0, &err);
    }
}

/* "/v1/targets" or "/v1/targets/KEY"; false when `path` is neither. */
static bool collection(struct http_exchange *x, struct relay_manager *m, enum relay_role role,
                       const char *prefix)
{
    const char *path = http_path(x);

    if (!ferry_str_starts(path, prefix)) {
        return false;
    }
    const char *rest = path + strlen(prefix);
    if (*rest == '/') {
        one(x, m, role, rest + 1);
        return true;
    }
    if (*rest != '\0') {
        return false;
    }
    if (ferry_streq(http_method(x), "GET")) {
        answer_text(x, relay_manager_list(m, role));
    } else {
        answer_status(x, 405, "the method is not GET");
    }
    return true;
}

static bool allowed(const struct http_exchange *x)
{
    const struct http_peer *peer = http_peer(x);

    if (peer->local && (peer->uid == 0 || peer->uid == getuid())) {
        return true;
    }
    ferry_warn("control call refused", F_STR("call", http_method(x)), F_STR("path", http_path(x)),
               F_INT("uid", peer->local ? (int64_t)peer->uid : -1), F_INT("pid", peer->pid));
    return false;
}

static void put_rate(struct http_exchange *x, struct relay_manager *m)
{
    struct ferry_error err;
    char *json = NULL;
    size_t len = 0;
    const char *body = http_body(x, &len);

    if (relay_manager_set_rate(m, body, len, &json, &err) < 0) {
        http_answer_error(x, 0, &err);
    } else {
        answer_text(x, json);
    }
}

static void put_denied(struct http_exchange *x, struct relay_manager *m)
{
    struct ferry_error err;
    char *json = NULL;
    size_t len = 0;
    const char *body = http_body(x, &len);

    if (relay_manager_set_denied(m, body, len, &json, &err) < 0) {
        http_answer_error(x, 0, &err);
    } else {
        answer_text(x, json);
    }
}

static void answer_metrics(struct http_exchange *x, struct relay_manager *m)
{
    ferry_cleanup_free char *text = relay_manager_metrics(m);

    http_answer(x, 200, "text/plain; version=0.0.4", text, strlen(text));
}

static void handle(struct http_exchange *x, void *ctx)
{
    struct relay_manager *m = ctx;
    const char *method = http_method(x), *path = http_path(x);

    if (!allowed(x)) {
        struct ferry_error err;

        ferry_fail(&err, FERRY_DENIED, "only root and the relay's own user may call it");
        http_answer_error(x, 403, &err);
    } else if (ferry_streq(path, "/healthz") && ferry_streq(method, "GET")) {
        answer_text(x, relay_manager_health(m));
    } else if (ferry_streq(path, "/v1/streams") && ferry_streq(method, "GET")) {
        answer_text(x, relay_manager_streams(m));
    } else if (ferry_streq(path, "/v1/drain") && ferry_streq(method, "POST")) {
        relay_manager_drain(m);
        answer_text(x, relay_manager_health(m));
    } else if (ferry_str_starts(path, "/v1/paths/") && ferry_streq(method, "GET")) {
        answer_text(x, relay_manager_path(m, path + strlen("/v1/paths/")));
    } else if (ferry_streq(path, "/v1/rate") && ferry_streq(method, "PUT")) {
        put_rate(x, m);
    } else if (ferry_streq(path, "/v1/denied") && ferry_streq(method, "PUT")) {
        put_denied(x, m);
    } else if (ferry_streq(path, "/metrics") && ferry_streq(method, "GET")) {
        answer_metrics(x, m);
    } else if (!collection(x, m, RELAY_TARGET, "/v1/targets") &&
               !collection(x, m, RELAY_SOURCE, "/v1/sources")) {
        answer_status(x, 404, "no such call");
    }
}

int relay_control_start(int listen_fd, struct relay_manager *m, struct http_server **ret,
                        struct ferry_error *err)
{
    const struct http_server_config cfg = {.name = "relay control",
                                           .listen_fd = listen_fd,
                                           .max_body = MAX_BODY,
                                           .max_connections = MAX_CONNECTIONS,
                                           .handle = handle,
                                           .ctx = m};

    return http_server_start(&cfg, ret, err);
}
