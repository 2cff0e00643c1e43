/* ferry-apiserver: the embedded engine, a small Kubernetes API on SQLite, and the site's CA. */
#include "programs/ferry-apiserver.h"

#include <string.h>

#include "apiserver/access/site_owner.h"
#include "base/count.h"
#include "base/str.h"

char *apiserver_site_dir(const struct site_options *o)
{
    return o->data ? ferry_strdup(o->data)
                   : ferry_asprintf("%s/var/lib/ferry", o->root ? o->root : "");
}

int apiserver_be_owner(const char *data, bool for_good, struct ferry_error *err)
{
    struct ferry_user owner;
    int rc = site_check_user(data, err);

    site_owner(data, &owner);
    if (rc < 0) {
        return rc;
    }
    return for_good ? ferry_user_become(&owner, FERRY_NO_GROUP, err)
                    : ferry_user_act_as(&owner, err);
}

gid_t apiserver_controller_group(int gid)
{
    struct ferry_user controller;

    ferry_user_find(NULL, "", FERRY_CONTROLLER_USER, FERRY_CONTROLLER_ID, &controller, NULL);
    return gid > 0 ? (gid_t)gid : controller.gid;
}

int apiserver_site_parse(const struct ferry_command *command, const struct site_options *o,
                         int argc, char **argv, struct ferry_error *err)
{
    int first = ferry_options_parse(command, argc, argv, err);

    return first < 0 || ferry_log_options_apply(PROGRAM, &o->log, err) < 0 ? -1 : first;
}

int apiserver_misused(const struct ferry_error *err)
{
    return ferry_die(PROGRAM, FERRY_EXIT_USAGE, err);
}

int apiserver_failed(const struct ferry_error *err)
{
    return ferry_die(PROGRAM, FERRY_EXIT_FAILED, err);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } verbs[] = {
        {"serve", apiserver_verb_serve},   {"pki", apiserver_verb_pki},
        {"backup", apiserver_verb_backup}, {"restore", apiserver_verb_restore},
        {"token", apiserver_verb_token},
    };

    for (size_t i = 0; argc > 1 && i < FERRY_COUNT(verbs); i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            return verbs[i].run(argc - 1, argv + 1);
        }
    }
    return apiserver_verb_serve(argc, argv);
}
