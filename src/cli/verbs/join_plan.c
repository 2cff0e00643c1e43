#include "cli/verbs/join_plan.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define DEFAULT_PORT "6443"

static bool is_hex(const char *s)
{
    return strspn(s, "0123456789abcdef") == strlen(s);
}

int join_token_parse(const char *text, struct join_token *ret, struct ferry_error *err)
{
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);

    if (!ferry_str_starts(text, "ferry.") || (colon && strlen(colon + 1) != JOIN_FINGERPRINT) ||
        (colon && !is_hex(colon + 1))) {
        return ferry_fail(err, FERRY_INVALID,
                          "that is not a token: 'ferry token create NODE' makes one");
    }
    *ret = (struct join_token){.token = ferry_strndup(text, len)};
    if (colon) {
        snprintf(ret->fingerprint, sizeof(ret->fingerprint), "%s", colon + 1);
    }
    return 0;
}

void join_token_done(struct join_token *t)
{
    if (t->token) {
        explicit_bzero(t->token, strlen(t->token));
        free(t->token);
    }
    *t = (struct join_token){0};
}

char *join_server(const char *where, struct ferry_error *err)
{
    const char *rest = ferry_str_starts(where, "https://") ? where + strlen("https://") : where;
    const char *close = *rest == '[' ? strchr(rest, ']') : NULL;
    const char *colon = strrchr(close ? close : rest, ':');
    long long port = 0;

    if (!*rest || strpbrk(rest, "/ \t\"'#@?") || (*rest == '[' && !close) || colon == rest ||
        (close && close[1] && close[1] != ':') || (!close && strchr(rest, ':') != colon)) {
        ferry_fail(err, FERRY_INVALID, "'%s' is not HOST:PORT ('[ADDRESS]:PORT' for IPv6)", where);
        return NULL;
    }
    if (colon && ferry_parse_int(colon + 1, 1, 65535, &port, err) < 0) {
        ferry_wrap(err, "'%s'", where);
        return NULL;
    }
    return ferry_asprintf("https://%s%s", rest, colon ? "" : ":" DEFAULT_PORT);
}

char *join_kubeconfig(const char *server, const char *node)
{
    return ferry_asprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: ferry\n  cluster:\n"
                          "    server: %s\n    certificate-authority: pki/ca.crt\n"
                          "users:\n- name: system:node:%s\n  user:\n"
                          "    client-certificate: pki/node.crt\n    client-key: pki/node.key\n"
                          "contexts:\n- name: ferry\n  context:\n    cluster: ferry\n"
                          "    user: system:node:%s\ncurrent-context: ferry\n",
                          server, node, node);
}

char *join_environment(const char *node, const char *address)
{
    return ferry_asprintf("# Who this node is. Written by 'ferry join'; read by ferry-relay, "
                          "ferry-pods and ferry-handler.\nFERRY_NODE=%s\nFERRY_NODE_ADDRESS=%s\n",
                          node, address);
}
