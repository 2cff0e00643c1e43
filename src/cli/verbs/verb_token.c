/* token: what a host joins a site with. */
#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "cli/session/call.h"
#include "cli/session/session.h"
#include "cli/verbs/verbs.h"
#include "kube/token.h"
#include "tls/pki.h"

enum { TOKEN_LIFE_S = 3600 };

static int token_create(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    int life_s = TOKEN_LIFE_S;
    const struct ferry_option options[] = {
        {"life", 0, FERRY_OPTION_INT, &life_s, "SECONDS", "how long it is good (3600)"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry token create",
        .usage = "[OPTION]... NODE",
        .summary =
            "Makes a token with which a host joins the site as node NODE, once, and prints\n"
            "it. It carries the fingerprint of the site's CA, so that the host knows whom it\n"
            "joins.",
        .options = options,
    };
    const struct cli_call call = {&cmd, .what = "a name for the node"};
    const char *name = NULL;
    int rc = cli_parse(&call, argc, argv, &name, err);
    session_cleanup struct session s = {0};
    char token[KUBE_TOKEN_SIZE], fingerprint[PKI_FINGERPRINT_SIZE];

    if (rc < 0) {
        return rc;
    }
    if (!api_name_is_dns_subdomain(name)) {
        return ferry_fail(err, FERRY_INVALID, "a name for the node is missing (see %s --help)",
                          cmd.name);
    }
    if (life_s < 1) {
        return ferry_fail(err, FERRY_INVALID, "--life: a token for joining must have an end");
    }
    if ((rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    const char *ca = kube_client_ca(s.client);
    if (!ca || (rc = pki_fingerprint(ca, fingerprint, err)) < 0) {
        return ca ? rc : ferry_fail(err, FERRY_INVALID, "the kubeconfig names no CA");
    }
    rc = kube_token_create(s.client, &(struct kube_token_use){.node = name, .life_s = life_s},
                           token, err);
    if (rc < 0) {
        return session_explain(err);
    }
    printf("%s:%s\n", token, fingerprint);
    explicit_bzero(token, sizeof(token));
    return FERRY_EXIT_OK;
}

const struct cli_verb verb_token_verbs[] = {
    {"create", "make a token with which a host joins", token_create},
    {0},
};

int verb_token(int argc, char **argv, struct ferry_error *err)
{
    return cli_dispatch("ferry token", "Tokens with which hosts join the site.", verb_token_verbs,
                        argc, argv, err);
}
