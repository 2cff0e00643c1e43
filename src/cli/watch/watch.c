#include "cli/watch/watch.h"

#include <stdio.h>
#include <string.h>

#include "api/object.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/session/sink.h"
#include "cli/views/moveline.h"

enum { STEP_MS = 200, API_AWAY_S = 60 };

struct watch {
    struct session *session;
    const char *name;
    struct watch_options options;
    bool terminal;
    struct api_object *migration, *vmi; /* as last seen */
    bool gone;
    char *source;    /* node that the VM was on before */
    char *last_line; /* that was printed */
    int64_t away_since_ns;
};

static void watch_done(struct watch *w)
{
    api_object_unref(w->migration);
    api_object_unref(w->vmi);
    free(w->source);
    free(w->last_line);
}

/* ---- reading ------------------------------------------------------------------------------- */

static int refresh(struct watch *w, struct ferry_error *err)
{
    struct session *s = w->session;
    struct api_object *fresh = NULL;
    int rc = kube_client_get(s->client, kube_ref(API_KIND_MIGRATION, s->ns, w->name), &fresh, err);

    if (rc == -FERRY_NOT_FOUND && w->migration) {
        w->gone = true;
    } else if (rc < 0) {
        return rc;
    } else {
        api_object_unref(w->migration);
        w->migration = fresh;
    }
    fresh = NULL;
    rc = kube_client_get(
        s->client, kube_ref(API_KIND_VMI, s->ns, w->migration->u.migration.vmi_name), &fresh, err);
    if (rc < 0 && rc != -FERRY_NOT_FOUND) {
        return rc;
    }
    api_object_unref(w->vmi);
    w->vmi = fresh;
    if (fresh && !w->source) {
        w->source = ferry_strdup(outcome_from(&w->migration->u.migration, &fresh->u.vmi));
    }
    return 0;
}

/* ---- showing ------------------------------------------------------------------------------- */

static void show(struct watch *w)
{
    ferry_cleanup_buf struct ferry_buf line = {0};
    const struct api_migration *m = &w->migration->u.migration;

    if (w->options.quiet) {
        return;
    }
    moveline_put(m, w->vmi ? &w->vmi->u.vmi : NULL, w->terminal ? moveline_terminal_width() - 1 : 0,
                 &line);
    if (ferry_streq(line.data, w->last_line)) {
        return;
    }
    if (w->terminal) {
        sink_obey("\r\033[K");
        fputs(line.data, stdout);
    } else {
        printf("%s\n", line.data);
    }
    fflush(stdout);
    free(w->last_line);
    w->last_line = ferry_buf_take(&line);
}

static void clear_line(const struct watch *w)
{
    if (w->terminal && !w->options.quiet && w->last_line) {
        sink_obey("\r\033[K");
    }
}

static void say_end(const struct watch *w, enum outcome outcome)
{
    ferry_cleanup_buf struct ferry_buf text = {0};

    clear_line(w);
    moveline_end(&w->migration->u.migration, w->vmi ? &w->vmi->u.vmi : NULL, w->source, outcome,
                 &text);
    printf("%s\n", text.data);
    fflush(stdout);
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Whether to look again although a call failed. */
static bool wait_out(struct watch *w, const struct ferry_error *err)
{
    int64_t now = ferry_now_ns();

    if (err->cls != FERRY_RETRY || w->options.once) {
        return false;
    }
    if (!w->away_since_ns) {
        w->away_since_ns = now;
        clear_line(w);
        fprintf(stderr, "ferry: the API server does not answer; the move goes on without it, "
                        "waiting for it\n");
    }
    return now - w->away_since_ns < API_AWAY_S * FERRY_NS_PER_S;
}

static int follow(struct watch *w, enum outcome *ret, struct ferry_error *err)
{
    for (;;) {
        struct ferry_error why;
        int rc = refresh(w, &why);

        if (rc == 0) {
            w->away_since_ns = 0;
            *ret = outcome_of(&w->migration->u.migration, w->gone, w->vmi ? &w->vmi->u.vmi : NULL);
            if (*ret != OUTCOME_GOING) {
                say_end(w, *ret);
                return 0;
            }
            show(w);
            if (w->options.once || sink_error()) {
                return 0;
            }
        } else if (!wait_out(w, &why)) {
            clear_line(w);
            *err = why;
            return rc;
        }
        if (ferry_signals_wait(ferry_now_ns() + STEP_MS * FERRY_NS_PER_MS)) {
            clear_line(w);
            return ferry_fail(err, FERRY_CANCELLED,
                              "no longer watching; the move goes on ('ferry cancel %s' stops it)",
                              w->name);
        }
    }
}

int watch_migration(struct session *s, const char *name, struct watch_options options,
                    enum outcome *ret, struct ferry_error *err)
{
    struct watch w = {.session = s,
                      .name = name,
                      .options = options,
                      .terminal = moveline_terminal() && !options.once};
    int rc = follow(&w, ret, err);

    watch_done(&w);
    return rc;
}
