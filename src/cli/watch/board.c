/* Every step lists moves and virtual machines afresh and compares with what was shown: moves that
 * are not over are live; a live one that is over or gone now gets its last line and is forgotten.
 * On a terminal the live lines stand below all that is final and are erased before each step. */
#include "cli/watch/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/object.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/str.h"
#include "cli/session/sink.h"
#include "cli/views/listing.h"
#include "cli/views/moveline.h"

enum { STEP_MS = 500, API_AWAY_S = 60, NAME_COLUMN = 16, ROUTE_COLUMN = 18 };

struct live {
    struct api_object *migration, *vmi; /* as last seen; vmi may be NULL */
    char *source, *line;
    bool seen, drawn; /* in this step */
};

struct board {
    struct session *session;
    const struct board_options *options;
    struct board_counts *counts;
    struct live *live;
    size_t n, lines; /* lines: drawn on the terminal */
    bool terminal, said_idle;
    int64_t away_since_ns;
};

static void live_done(struct live *l)
{
    api_object_unref(l->migration);
    api_object_unref(l->vmi);
    free(l->source);
    free(l->line);
}

static void erase(struct board *b)
{
    if (b->lines > 0) {
        ferry_cleanup_free char *up = ferry_asprintf("\033[%zuA\033[J", b->lines);

        sink_obey(up);
        b->lines = 0;
    }
}

static struct live *live_of(struct board *b, const char *uid)
{
    for (size_t i = 0; i < b->n; i++) {
        if (ferry_streq(b->live[i].migration->meta->uid, uid)) {
            return &b->live[i];
        }
    }
    return NULL;
}

static void take(struct board *b, struct api_object *o, const struct kube_list *vmis)
{
    const struct api_migration *m = &o->u.migration;
    struct api_object *vmi = listing_find(vmis->items, vmis->n, m->meta.namespace_, m->vmi_name);
    struct live *l = live_of(b, m->meta.uid);

    if (!l) {
        const char *source = outcome_from(m, vmi ? &vmi->u.vmi : NULL);

        if (outcome_of(m, false, vmi ? &vmi->u.vmi : NULL) != OUTCOME_GOING ||
            (b->options->node && !ferry_streq(source, b->options->node))) {
            return;
        }
        b->live = ferry_xrealloc(b->live, b->n + 1, sizeof(*b->live));
        l = &b->live[b->n++];
        *l = (struct live){.source = ferry_strdup(source)};
    }
    api_object_unref(l->migration);
    l->migration = api_object_ref(o);
    api_object_unref(l->vmi);
    l->vmi = vmi ? api_object_ref(vmi) : NULL;
    l->seen = true;
}

static int refresh(struct board *b, struct ferry_error *err)
{
    const char *ns = b->options->all_namespaces ? NULL : b->session->ns;
    kube_cleanup_list struct kube_list moves = {0}, vmis = {0};
    int rc = kube_client_list(b->session->client, kube_ref(API_KIND_MIGRATION, ns, NULL), NULL,
                              &moves, err);

    if (rc == 0) {
        rc = kube_client_list(b->session->client, kube_ref(API_KIND_VMI, ns, NULL), NULL, &vmis,
                              err);
    }
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < b->n; i++) {
        b->live[i].seen = false;
    }
    for (size_t i = 0; i < moves.n; i++) {
        take(b, moves.items[i], &vmis);
    }
    return 0;
}

static void count(struct board_counts *c, enum outcome outcome)
{
    c->moved += outcome == OUTCOME_SUCCEEDED;
    c->cancelled += outcome == OUTCOME_CANCELLED;
    c->failed += outcome == OUTCOME_FAILED;
}

/* Says of those that are over how they ended, and forgets them. */
static void retire(struct board *b)
{
    size_t kept = 0;

    for (size_t i = 0; i < b->n; i++) {
        struct live *l = &b->live[i];
        const struct api_migration *m = &l->migration->u.migration;
        const struct api_vmi *v = l->vmi ? &l->vmi->u.vmi : NULL;
        enum outcome outcome = outcome_of(m, !l->seen, v);

        if (outcome == OUTCOME_GOING) {
            b->live[kept++] = *l;
            continue;
        }
        ferry_cleanup_buf struct ferry_buf text = {0};
        moveline_end(m, v, l->source, outcome, &text);
        printf("%s\n", text.data);
        count(b->counts, outcome);
        live_done(l);
    }
    b->n = kept;
}

static char *route_of(const struct live *l)
{
    const char *to = outcome_to(&l->migration->u.migration, l->vmi ? &l->vmi->u.vmi : NULL);

    return ferry_asprintf("%s > %s", l->source ? l->source : "?", to ? to : "?");
}

/* How wide the first two columns are: on a terminal, where all lines are drawn together, as wide as
 * they need be. */
struct columns {
    int name, route;
};

static struct columns columns_of(const struct board *b)
{
    struct columns c = {NAME_COLUMN, ROUTE_COLUMN};

    if (b->terminal) {
        c = (struct columns){0};
    }
    for (size_t i = 0; b->terminal && i < b->n; i++) {
        ferry_cleanup_free char *route = route_of(&b->live[i]);
        int name = (int)strlen(b->live[i].migration->u.migration.vmi_name);

        c.name = name > c.name ? name : c.name;
        c.route = (int)strlen(route) > c.route ? (int)strlen(route) : c.route;
    }
    return c;
}

static char *line_of(const struct board *b, const struct live *l, struct columns c)
{
    const struct api_migration *m = &l->migration->u.migration;
    ferry_cleanup_free char *route = route_of(l);
    struct ferry_buf line = {0};
    int width = b->terminal ? moveline_terminal_width() - 1 : 0;

    ferry_buf_printf(&line, "%-*s  %-*s  ", c.name, m->vmi_name, c.route, route);
    ferry_buf_one_line(&line, 0);
    int left = width - (int)line.len;
    moveline_put(m, l->vmi ? &l->vmi->u.vmi : NULL, width == 0 ? 0 : left > 1 ? left : 1, &line);
    if (width > 0 && line.len > (size_t)width) {
        line.data[width] = '\0';
    }
    return ferry_buf_take(&line);
}

static void draw_line(struct board *b, struct live *l, struct columns c)
{
    char *line = line_of(b, l, c);

    if (b->terminal || !ferry_streq(line, l->line)) {
        printf("%s\n", line);
        b->lines += b->terminal && !b->options->once;
    }
    free(l->line);
    l->line = line;
    l->drawn = true;
}

/* No more lines than can be erased again: what has scrolled off cannot. Those that send come first.
 */
static void draw_lines(struct board *b)
{
    struct columns c = columns_of(b);
    int room = moveline_terminal_height() - 2;
    size_t most = b->terminal && !b->options->once ? (size_t)(room > 1 ? room : 1) : b->n, n = 0;

    for (size_t i = 0; i < b->n; i++) {
        b->live[i].drawn = false;
    }
    for (int others = b->n <= most; others <= 1; others++) {
        for (size_t i = 0; i < b->n && n < most; i++) {
            struct live *l = &b->live[i];

            if (!l->drawn &&
                (others || wire_phase_is(l->migration->u.migration.phase, PHASE_RUNNING))) {
                draw_line(b, l, c);
                n++;
            }
        }
    }
    if (n < b->n) {
        printf("... and %zu more\n", b->n - n);
        b->lines++;
    }
}

static void draw(struct board *b)
{
    draw_lines(b);
    if (b->n == 0 && !b->options->until_idle && !b->said_idle) {
        fprintf(stderr, "No move goes on%s.\n", b->options->once ? "" : "; waiting for one");
    }
    b->said_idle = b->n == 0;
    fflush(stdout);
}

static bool wait_out(struct board *b, const struct ferry_error *err)
{
    int64_t now = ferry_now_ns();

    if (err->cls != FERRY_RETRY || b->options->once) {
        return false;
    }
    if (!b->away_since_ns) {
        b->away_since_ns = now;
        erase(b);
        fprintf(stderr, "ferry: the API server does not answer; moves go on without it, waiting "
                        "for it\n");
    }
    return now - b->away_since_ns < API_AWAY_S * FERRY_NS_PER_S;
}

static int follow(struct board *b, struct ferry_error *err)
{
    for (;;) {
        struct ferry_error why;
        int rc = refresh(b, &why);

        if (rc == 0) {
            b->away_since_ns = 0;
            erase(b);
            retire(b);
            draw(b);
            if (b->options->once || (b->options->until_idle && b->n == 0) || sink_error()) {
                return 0;
            }
        } else if (!wait_out(b, &why)) {
            *err = why;
            return session_explain(err);
        }
        if (ferry_signals_wait(ferry_now_ns() + STEP_MS * FERRY_NS_PER_MS)) {
            return ferry_fail(err, FERRY_CANCELLED, "no longer watching; moves go on");
        }
    }
}

int board_watch(struct session *s, const struct board_options *o, struct board_counts *ret,
                struct ferry_error *err)
{
    struct board b = {.session = s, .options = o, .counts = ret, .terminal = moveline_terminal()};

    *ret = (struct board_counts){0};
    int rc = follow(&b, err);

    for (size_t i = 0; i < b.n; i++) {
        live_done(&b.live[i]);
    }
    free(b.live);
    return rc;
}
