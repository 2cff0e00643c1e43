#include "apiserver/action/proxy_plan.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/names.h"
#include "base/count.h"
#include "base/str.h"

static const char prefix[] = "/api/v1/nodes/", word[] = "/proxy";

bool proxy_is_path(const char *path)
{
    if (!ferry_str_starts(path, prefix)) {
        return false;
    }
    const char *after = path + strlen(prefix);
    after += strcspn(after, "/");
    return ferry_str_starts(after, word) && (!after[strlen(word)] || after[strlen(word)] == '/');
}

/* No empty, "." or ".." part: what is asked for must be what the right was given for. */
static bool is_plain(const char *rest)
{
    while (*rest == '/') {
        size_t len = strcspn(rest + 1, "/");

        if ((len == 0 && rest[1]) || (len == 1 && rest[1] == '.') ||
            (len == 2 && rest[1] == '.' && rest[2] == '.')) {
            return false;
        }
        rest += 1 + len;
    }
    return true;
}

int proxy_parse(const char *path, struct proxy_call *ret, struct status *st)
{
    const char *name = path + strlen(prefix);
    size_t len = strcspn(name, "/");
    const char *rest = name + len + strlen(word);

    *ret = (struct proxy_call){0};
    if (memchr(name, ':', len)) {
        return status_fail(st, 400,
                           "nodes/%.*s/proxy: neither scheme nor port can be chosen: the node says "
                           "itself where its API is",
                           (int)len, name);
    }
    if (len >= sizeof(ret->node) || strlen(rest) >= sizeof(ret->rest) || !is_plain(rest)) {
        return status_fail(st, 400,
                           "nodes/NAME/proxy: the path is too long, or has an empty, '.' "
                           "or '..' part");
    }
    memcpy(ret->node, name, len);
    snprintf(ret->rest, sizeof(ret->rest), "%s", *rest ? rest : "/");
    if (!api_name_is_dns_subdomain(ret->node)) {
        return status_not_found(st, api_resource_find("", "v1", "nodes"), ret->node);
    }
    return 0;
}

bool proxy_allowed(const struct auth_who *who, const struct proxy_call *c, bool posts)
{
    static const char *const open[] = {"/healthz", "/metrics", "/v1/paths"};
    static const char *const open_below[] = {"/v1/checks/", "/v1/records/"};
    bool harmless = false;

    for (size_t i = 0; i < FERRY_COUNT(open); i++) {
        harmless = harmless || ferry_streq(c->rest, open[i]);
    }
    for (size_t i = 0; i < FERRY_COUNT(open_below); i++) {
        harmless = harmless || ferry_str_starts(c->rest, open_below[i]);
    }
    switch (who->role) {
    case AUTH_ADMIN:
        return true;
    case AUTH_CONTROLLER:
    case AUTH_VIEWER:
        return harmless && !posts;
    case AUTH_NODE:
        return harmless && !posts && ferry_streq(who->node, c->node);
    case AUTH_ANONYMOUS:
    case AUTH_PERSON:
    case AUTH_NOBODY:
    case AUTH_ROLE_COUNT:
        break;
    }
    return false;
}

#define SUBRESOURCES "subresources.kubevirt.io"
#define KUBEVIRT "kubevirt.io"
#define MIGRATIONS "virtualmachineinstancemigrations"
#define GUESTS "virtualmachineinstances"
static const struct {
    const char *prefix;
    bool gets, posts;
    struct proxy_right right;
    bool of_move; /* a UID follows, not NAMESPACE/NAME */
} rights[] = {
    {"/v1/console/", true, true, {"get", SUBRESOURCES, GUESTS, "console", "", "", ""}, false},
    {"/v1/pause/", false, true, {"update", SUBRESOURCES, GUESTS, "pause", "", "", ""}, false},
    {"/v1/unpause/", false, true, {"update", SUBRESOURCES, GUESTS, "unpause", "", "", ""}, false},
    {"/v1/plan/", false, true, {"create", KUBEVIRT, MIGRATIONS, "", "", "", ""}, false},
    {"/v1/checks/", true, false, {"get", KUBEVIRT, MIGRATIONS, "", "", "", ""}, true},
    {"/v1/records/", true, false, {"get", KUBEVIRT, MIGRATIONS, "", "", "", ""}, true},
};

/* The right is for just these two parts: a third would be something else at the node. */
static bool split(const char *rest, struct proxy_right *ret)
{
    int end = 0;

    return sscanf(rest, "%253[^/]/%253[^/]%n", ret->ns, ret->name, &end) == 2 && !rest[end];
}

bool proxy_right_of(const struct proxy_call *c, bool posts, struct proxy_right *ret)
{
    for (size_t i = 0; i < FERRY_COUNT(rights); i++) {
        const char *rest = c->rest + strlen(rights[i].prefix);

        if (!ferry_str_starts(c->rest, rights[i].prefix) ||
            !(posts ? rights[i].posts : rights[i].gets)) {
            continue;
        }
        *ret = rights[i].right;
        if (!rights[i].of_move) {
            return split(rest, ret);
        }
        snprintf(ret->uid, sizeof(ret->uid), "%.*s", PROXY_NODE_MAX - 1, rest);
        return *rest && !strchr(rest, '/') && strlen(rest) < PROXY_NODE_MAX;
    }
    return false;
}

static const char *address_of(const yyjson_val *node)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)node, "/status/addresses"), *a;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, a)
    {
        if (ferry_streq(api_json_str(a, "/type"), "InternalIP")) {
            return api_json_str(a, "/address");
        }
    }
    return NULL;
}

int proxy_dial(const yyjson_val *node, const char *name, char dial[PROXY_DIAL_MAX],
               struct status *st)
{
    const char *address = address_of(node);
    int64_t port = yyjson_get_sint(
        yyjson_ptr_get((yyjson_val *)node, "/status/daemonEndpoints/kubeletEndpoint/Port"));
    unsigned char bytes[16];
    bool six = address && inet_pton(AF_INET6, address, bytes) == 1;

    if (!address || port < 1 || port > 65535) {
        return status_fail(st, 503,
                           "node \"%s\" does not say where its API is (status.addresses, "
                           "status.daemonEndpoints): does its ferry-handler run?",
                           name);
    }
    if (!six && inet_pton(AF_INET, address, bytes) != 1) {
        return status_fail(st, 502, "node \"%s\": status.addresses: '%.60s' is no address", name,
                           address);
    }
    snprintf(dial, PROXY_DIAL_MAX, six ? "[%s]:%d" : "%s:%d", address, (int)port);
    return 0;
}

char *proxy_encode(const char *rest)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    for (; *rest; rest++) {
        unsigned char c = (unsigned char)*rest;

        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
            strchr("-_.~/:", c)) {
            ferry_buf_append(&b, rest, 1);
        } else {
            ferry_buf_printf(&b, "%%%02X", c);
        }
    }
    return ferry_buf_take(&b);
}
