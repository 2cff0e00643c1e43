/* Links of a transfer that has begun. */
#include <inttypes.h>
#include <stdio.h>

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_mode.h"
#include "api/wire/wire_move.h"
#include "api/wire/wire_progress.h"
#include "cli/why/why_case.h"

void why_link_path(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);
    const char *trouble = why_node_trouble(v, s->target_node);

    if (why_queued_at(v, "path", l)) {
        return;
    }
    if (trouble && !s->completed) {
        why_say(l, WHY_BROKEN, "the target node %s %s", s->target_node, trouble);
        why_remedy(l, "bring it back; until then the VM stays where it is");
    }
}

static const char *mode_of(const struct why_view *v)
{
    return v->n_samples > 0 ? v->samples[v->n_samples - 1].mode : why_state_of(v)->mode;
}

/* What an annotation says of this move; 0 when it is about none or another. */
static int64_t generation(const struct why_view *v, const char *annotation)
{
    return ferry_streq(v->vmi->migration.uid, v->migration->meta.uid)
               ? wire_move_generation(v->vmi, annotation)
               : 0;
}

/* In post-copy, with its streams away or broken: that, and not what is sent, is the matter then. */
static bool post_copy_hangs(const struct why_view *v, bool *ret_away)
{
    *ret_away = v->n_samples > 0 && v->samples[v->n_samples - 1].path_away;
    return wire_mode_is(mode_of(v), MODE_POST_COPY) && !why_state_of(v)->completed &&
           (*ret_away ||
            generation(v, ANNOTATION_RECOVER) > generation(v, ANNOTATION_PORTS_GENERATION));
}

static void transfer_figures(const struct why_view *v, struct why_link *l)
{
    const struct wire_progress *a = &v->samples[0], *b = &v->samples[v->n_samples - 1];
    bool two = v->n_samples == 2;
    char rest[PROGRESS_TEXT], rate[PROGRESS_TEXT], dirty[PROGRESS_TEXT];

    progress_bytes(b->remaining_bytes, rest);
    progress_bytes(b->bytes_per_s, rate);
    progress_bytes(b->dirty_bytes_per_s, dirty);
    if (two && a->elapsed_ms == b->elapsed_ms) {
        why_say(l, WHY_BROKEN,
                "the source node %s stopped reporting; last: %s remaining, round %" PRId64,
                why_text_or(why_state_of(v)->source_node, "?"), rest, b->iteration);
        why_remedy(l, "look at ferry-handler on that node; the transfer itself may still go on");
    } else if (two && b->remaining_bytes > 0 && b->processed_bytes <= a->processed_bytes) {
        why_say(l, WHY_BROKEN, "stuck: %s remaining in round %" PRId64 ", nothing was sent for %s",
                rest, b->iteration, progress_duration(b->elapsed_ms - a->elapsed_ms, dirty));
        why_remedy(l, "see to the network between the two nodes; 'ferry cancel' gives up");
    } else if (wire_mode_is(b->mode, MODE_PRE_COPY) && b->iteration > 1 && b->bytes_per_s > 0 &&
               b->dirty_bytes_per_s >= b->bytes_per_s) {
        why_say(l, WHY_BROKEN,
                "not converging: round %" PRId64 ", %s remaining, %s/s sent, %s/s rewritten by the "
                "guest, throttled by %" PRId64 "%%",
                b->iteration, rest, rate, dirty, b->throttle_percent);
        why_remedy(l,
                   "allow post-copy or auto-converge by a policy ('ferry policy create --help'), "
                   "give it more bandwidth, or quiet the guest");
    } else {
        why_say(l, WHY_OK, "round %" PRId64 ", %s remaining and falling: %s/s sent, %s/s rewritten",
                b->iteration, rest, rate, dirty);
    }
}

static bool is_being_cancelled(const struct why_view *v)
{
    const struct api_migration_state *s = why_state_of(v);

    return (v->migration->meta.deleted_ms || s->abort_requested) && !s->completed;
}

/* How a move goes that is to end is of no interest any more. */
void why_link_transfer(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);
    bool away;

    if (s->completed || post_copy_hangs(v, &away) || is_being_cancelled(v)) {
        return;
    }
    if (v->n_samples > 0) {
        transfer_figures(v, l);
        return;
    }
    why_node_step(v, l, s->source_node, "it began, but no figures came yet");
}

void why_link_mode(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);
    const char *mode = mode_of(v);
    char since[PROGRESS_TEXT + 32] = "", after[PROGRESS_TEXT];

    if (v->mode_since_ms >= 0) {
        snprintf(since, sizeof(since), " since %s after the start",
                 progress_duration(v->mode_since_ms, after));
    }
    if (wire_mode_is(mode, MODE_POST_COPY)) {
        why_say(l, WHY_OK, "PostCopy%s: the guest runs on %s and fetches the rest", since,
                why_text_or(s->target_node, "the target"));
    } else if (wire_mode_is(mode, MODE_PAUSED)) {
        why_say(l, WHY_OK, "Paused%s: the guest stands still until the rest is sent", since);
    } else {
        why_say(l, WHY_OK, "%s%s", why_text_or(mode, wire_mode_text(MODE_PRE_COPY)), since);
    }
}

/* The guest is on the target and its memory is not: all hangs on the streams between the two. */
void why_link_post_copy(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);
    int64_t asked = generation(v, ANNOTATION_RECOVER);
    bool away;

    if (!wire_mode_is(mode_of(v), MODE_POST_COPY) || s->completed) {
        return;
    }
    if (post_copy_hangs(v, &away)) {
        why_say(l, WHY_BROKEN, "%s; the guest waits on %s for memory that is still on %s",
                away ? "the way between the nodes is away"
                     : "the streams broke and new ones are being made",
                why_text_or(s->target_node, "?"), why_text_or(s->source_node, "?"));
        why_remedy(l, "bring back the network between the two nodes and keep both up: the move "
                      "goes on by itself, and cannot be cancelled");
    } else if (asked > 0) {
        why_say(l, WHY_OK, "recovered over fresh streams, %" PRId64 " time%s", asked,
                asked == 1 ? "" : "s");
    } else {
        why_say(l, WHY_OK, "the way between the nodes is up");
    }
}

void why_link_cancel(const struct why_view *v, struct why_link *l)
{
    if (is_being_cancelled(v)) {
        why_say(l, WHY_WAITS, "it is being cancelled (%s)",
                why_text_or(why_state_of(v)->abort_status, "asked for"));
    }
}

void why_link_end(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);

    why_say(l, WHY_WAITS, "%s",
            s->completed ? "the VM has moved; what is left of the source is being removed"
                         : "nothing is in the way: it goes on");
}
