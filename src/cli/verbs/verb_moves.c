/* Verbs for moves that there are: list, cancel. */
#include <stdio.h>

#include "api/object.h"
#include "api/wire/wire_mode.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/session.h"
#include "cli/verbs/verbs.h"
#include "cli/watch/moves.h"
#include "cli/watch/watch.h"

/* ---- list ---------------------------------------------------------------------------------- */

int verb_list(int argc, char **argv, struct ferry_error *err)
{
    return listing_verb(&moves_listing, argc, argv, err);
}

/* ---- cancel -------------------------------------------------------------------------------- */

/* The move that `word` names: itself, or the VM it moves. */
static int find_move(struct session *s, const char *word, struct api_object **ret,
                     struct ferry_error *err)
{
    kube_cleanup_list struct kube_list list = {0};
    int rc = kube_client_get(s->client, kube_ref(API_KIND_MIGRATION, s->ns, word), ret, err);

    if (rc == 0) {
        return wire_migration_is_over(&(*ret)->u.migration)
                   ? ferry_fail(err, FERRY_CONFLICT, "the move %s is over already: %s", word,
                                (*ret)->u.migration.phase)
                   : 0;
    }
    if (rc != -FERRY_NOT_FOUND ||
        kube_client_list(s->client, kube_ref(API_KIND_MIGRATION, s->ns, NULL), NULL, &list, err) <
            0) {
        return session_explain(err);
    }
    for (size_t i = 0; i < list.n; i++) {
        const struct api_migration *m = &list.items[i]->u.migration;

        if (ferry_streq(m->vmi_name, word) && !wire_migration_is_over(m)) {
            *ret = api_object_ref(list.items[i]);
            return 0;
        }
    }
    return ferry_fail(err, FERRY_NOT_FOUND,
                      "there is no running move called '%s' nor of a virtual machine of that name "
                      "in namespace '%s'; 'ferry list' shows moves",
                      word, s->ns);
}

/* In post-copy each node has a part of the guest: there is nothing to go back to. */
static int check_cancellable(struct session *s, const struct api_migration *m,
                             struct ferry_error *err)
{
    api_cleanup_object struct api_object *o = NULL;

    if (kube_client_get(s->client, kube_ref(API_KIND_VMI, s->ns, m->vmi_name), &o, NULL) < 0) {
        return 0; /* the API server will say */
    }
    const struct api_migration_state *now = &o->u.vmi.migration;
    if (now->present && ferry_streq(now->uid, m->meta.uid) && !now->completed &&
        wire_mode_is(now->mode, MODE_POST_COPY)) {
        return ferry_fail(err, FERRY_CONFLICT,
                          "the move %s cannot be cancelled any more: in post-copy each node has a "
                          "part of the guest, and it must finish; 'ferry watch %s' shows how it "
                          "goes",
                          m->meta.name, m->meta.name);
    }
    return 0;
}

static int cancel(struct session *s, const char *word, bool wait, struct ferry_error *err)
{
    api_cleanup_object struct api_object *o = NULL;
    enum outcome outcome = OUTCOME_GOING;
    int rc = find_move(s, word, &o, err);

    if (rc < 0 || (rc = check_cancellable(s, &o->u.migration, err)) < 0) {
        return rc;
    }
    rc = kube_client_delete(s->client, kube_ref_of(o),
                            &(struct kube_delete_options){.uid = o->meta->uid}, err);
    if (rc < 0 && rc != -FERRY_NOT_FOUND) {
        return session_explain(err);
    }
    if (!wait) {
        printf("the move %s is being cancelled\n", o->meta->name);
        return FERRY_EXIT_OK;
    }
    rc = watch_migration(s, o->meta->name, (struct watch_options){.quiet = true}, &outcome, err);
    if (rc == -FERRY_NOT_FOUND) { /* it went at once, and with it what it could tell */
        printf("The move %s was cancelled\n", o->meta->name);
        return FERRY_EXIT_OK;
    }
    if (rc < 0) {
        return rc;
    }
    /* A move that was past its switch-over, or failed by itself, was not cancelled. */
    return outcome == OUTCOME_CANCELLED ? FERRY_EXIT_OK : FERRY_EXIT_FAILED;
}

int verb_cancel(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    bool wait = false;
    const struct ferry_option options[] = {
        {"wait", 0, FERRY_OPTION_FLAG, &wait, NULL, "return when the move is over"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry cancel",
        .usage = "[OPTION]... MIGRATION|VM",
        .summary = "Cancels a move: the virtual machine stays where it is.",
        .options = options,
        .epilogue = "Exit codes with --wait: 0 it was cancelled, 1 it ended otherwise.",
    };
    const char *name = NULL;
    int rc =
        cli_one_name(&cmd, argc, argv, "the name of a move or of a virtual machine", &name, err);
    session_cleanup struct session s = {0};

    if (rc < 0) {
        return rc;
    }
    if ((rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    ferry_signals_block();
    return cancel(&s, name, wait, err);
}
