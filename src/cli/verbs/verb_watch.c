/* watch: how moves go. */
#include "api/object.h"
#include "cli/session/call.h"
#include "cli/verbs/verbs.h"
#include "cli/watch/board.h"
#include "cli/watch/watch.h"

int verb_watch(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    struct board_options board = {0};
    const struct ferry_option options[] = {
        {"all-namespaces", 'A', FERRY_OPTION_FLAG, &board.all_namespaces, NULL,
         "moves of every namespace"},
        {"until-idle", 0, FERRY_OPTION_FLAG, &board.until_idle, NULL,
         "return when no move goes on"},
        {"once", 0, FERRY_OPTION_FLAG, &board.once, NULL, "show what goes on now and return"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry watch",
        .usage = "[OPTION]... [MIGRATION|VM]",
        .summary = "Shows how moves go: all that are under way, one line each, or one until it is\n"
                   "over.",
        .options = options,
        .epilogue = "Exit codes for one move: 0 it moved (with --once: or goes on), 1 it did not,\n"
                    "3 the move was cancelled.\n"
                    "130: the watching was interrupted (moves go on).",
    };
    const struct cli_call call = {&cmd, &so, "a move or a virtual machine", .may_miss = true};
    const char *name = NULL;
    session_cleanup struct session s = {0};
    struct board_counts counts;
    int rc = cli_parse(&call, argc, argv, &name, err);

    if (rc < 0) {
        return rc;
    }
    if (name && (board.all_namespaces || board.until_idle)) {
        return ferry_fail(err, FERRY_INVALID,
                          "--%s is for all moves: '%s' names one, which is shown until it is over",
                          board.until_idle ? "until-idle" : "all-namespaces", name);
    }
    if ((rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    ferry_signals_block();
    if (!name) {
        rc = board_watch(&s, &board, &counts, err);
        return rc < 0 ? rc : FERRY_EXIT_OK;
    }
    api_cleanup_object struct api_object *o = NULL;
    enum outcome outcome = OUTCOME_GOING;
    if ((rc = cli_get_move(&s, name, &o, err)) < 0 ||
        (rc = watch_migration(&s, o->meta->name, (struct watch_options){.once = board.once},
                              &outcome, err)) < 0) {
        return rc;
    }
    return outcome == OUTCOME_GOING ? FERRY_EXIT_OK : cli_outcome_code(outcome);
}
