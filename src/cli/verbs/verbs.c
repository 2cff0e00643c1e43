#include "cli/verbs/verbs.h"

#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/str.h"
#include "base/suggest.h"

enum { MAX_VERBS = 32 };

const struct cli_verb cli_verbs[] = {
    {"up", "start a site on this machine: an API server and a few nodes", verb_up},
    {"down", "end the site and remove everything it made", verb_down},
    {"vm", "create, list, start, stop and delete virtual machines", verb_vm, .sub = vm_verbs},
    {"migrate", "move a virtual machine to another node", verb_migrate, .completes = "vms"},
    {"plan", "predict a move without making it", verb_plan, .completes = "vms"},
    {"list", "list moves", verb_list},
    {"watch", "show how moves go", verb_watch, .completes = "moves vms"},
    {"show", "show all that is known of a move", verb_show, .completes = "moves vms"},
    {"why", "say why a move does not go on, and what to do", verb_why, .completes = "moves vms"},
    {"cancel", "cancel a move", verb_cancel, .completes = "moves vms"},
    {"node", "list and remove nodes", verb_node, .sub = node_verbs},
    {"token", "tokens with which hosts join", verb_token, .sub = verb_token_verbs},
    {"join", "make this host a node of a site", verb_join},
    {"drain", "empty a node", verb_drain, .completes = "nodes"},
    {"undrain", "let a node take virtual machines again", verb_undrain, .completes = "nodes"},
    {"policy", "settings for the moves of some virtual machines", verb_policy, .sub = policy_verbs},
    {"events", "list what happened", verb_events, .completes = "moves vms"},
    {"completion", "print a script that completes words in a shell", verb_completion,
     .completes = "shells"},
    {"supervise", "keep a site's programs running", verb_supervise, .hidden = true},
    {0},
};

static void print_verbs(const char *prefix, const char *about, const struct cli_verb *list)
{
    printf("Usage: %s VERB [OPTION]... [ARGUMENT]...\n\n%s\n\nVerbs:\n", prefix, about);
    for (const struct cli_verb *v = list; v->name; v++) {
        if (!v->hidden) {
            printf("  %-10s %s\n", v->name, v->summary);
        }
    }
    printf("\n'%s VERB --help' tells more about one of them.\n", prefix);
}

static int unknown_verb(const char *prefix, const struct cli_verb *list, const char *word,
                        struct ferry_error *err)
{
    const char *names[MAX_VERBS];
    size_t n = 0;

    for (const struct cli_verb *v = list; v->name && n < MAX_VERBS; v++) {
        if (!v->hidden) {
            names[n++] = v->name;
        }
    }
    const char *near = ferry_suggest(word, names, n);
    if (near) {
        return ferry_fail(err, FERRY_INVALID, "'%s' has no verb '%s'; did you mean '%s %s'?",
                          prefix, word, prefix, near);
    }
    return ferry_fail(err, FERRY_INVALID, "'%s' has no verb '%s'; see '%s --help'", prefix, word,
                      prefix);
}

int cli_dispatch(const char *prefix, const char *about, const struct cli_verb *list, int argc,
                 char **argv, struct ferry_error *err)
{
    if (argc < 2) {
        return ferry_fail(err, FERRY_INVALID, "'%s' needs a verb; see '%s --help'", prefix, prefix);
    }
    if (ferry_streq(argv[1], "--help") || ferry_streq(argv[1], "-h") ||
        ferry_streq(argv[1], "help")) {
        print_verbs(prefix, about, list);
        return FERRY_EXIT_OK;
    }
    if (ferry_streq(argv[1], "--version")) {
        /* The option parser knows the version; this prints it and exits. */
        return ferry_options_parse(&(struct ferry_command){.name = "ferry"}, argc, argv, err);
    }
    for (const struct cli_verb *v = list; v->name; v++) {
        if (ferry_streq(v->name, argv[1])) {
            return v->run(argc - 1, argv + 1, err);
        }
    }
    return unknown_verb(prefix, list, argv[1], err);
}
