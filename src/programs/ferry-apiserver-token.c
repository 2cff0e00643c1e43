/* ferry-apiserver token: tokens for nodes that join and for people, made at the running server. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "kube/token.h"
#include "programs/ferry-apiserver.h"

enum { JOIN_LIFE_S = 3600 };

static int run_token(const struct site_options *o, const struct kube_token_use *use,
                     struct ferry_error *err)
{
    ferry_cleanup_free char *data = apiserver_site_dir(o);
    ferry_cleanup_free char *config = ferry_asprintf("%s/admin.kubeconfig", data);
    kube_cleanup_client struct kube_client *client = NULL;
    char token[KUBE_TOKEN_SIZE];
    int rc = apiserver_be_owner(data, true, err);

    rc = rc < 0 ? rc : kube_client_open(config, &client, err);
    rc = rc < 0 ? rc : kube_token_create(client, use, token, err);
    if (rc == 0) {
        printf("%s\n", token);
    }
    explicit_bzero(token, sizeof(token));
    return rc;
}

int apiserver_verb_token(int argc, char **argv)
{
    struct site_options o = {0};
    struct kube_token_use use = {0};
    struct ferry_error err;
    int life_s = 0;
    const struct ferry_option rows[] = {
        {"node", 0, FERRY_OPTION_STRING, &use.node, "NAME", "for joining as this node, once"},
        {"user", 0, FERRY_OPTION_STRING, &use.user, "NAME", "for calling as this user"},
        {"group", 0, FERRY_OPTION_STRING, &use.group, "GROUP",
         "... in this group: ferry:admins, ferry:viewers"},
        {"life", 0, FERRY_OPTION_INT, &life_s, "SECONDS",
         "how long it is good (default 3600 for joining, no end for users)"},
        SITE_OPTION_ROWS(&o, "where the site is"),
        {.name = NULL},
    };
    const struct ferry_command command = {
        .name = "ferry-apiserver token",
        .usage = "--node NAME | --user NAME [--group GROUP] [OPTION]...",
        .summary = "Makes a token at the running server and prints it. It is not kept anywhere: "
                   "the server has a hash.",
        .options = rows,
    };
    int first = apiserver_site_parse(&command, &o, argc, argv, &err);

    if (first < 0) {
        return apiserver_misused(&err);
    }
    if (first < argc || !use.node == !use.user) {
        ferry_fail(&err, FERRY_INVALID, "expected --node NAME or --user NAME");
        return apiserver_misused(&err);
    }
    use.life_s = life_s ? life_s : use.node ? JOIN_LIFE_S : 0;
    return run_token(&o, &use, &err) < 0 ? apiserver_failed(&err) : FERRY_EXIT_OK;
}
