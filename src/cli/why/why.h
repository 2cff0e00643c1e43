/* Why a virtual machine does not start, or a move does not go on: the chain from the request to its
 * end, link by link. Pure.
 *
 * The links stand in the order in which they are passed; the first that does not hold is the
 * answer, because those behind it cannot hold. */
#pragma once

#include <stdint.h>

#include "api/kinds.h"
#include "api/wire/wire_progress.h"
#include "base/str.h"
#include "cli/views/progress.h"
#include "cli/why/why_report.h"

/* What was read; everything may be absent, and what may not be read counts as not known. */
struct why_view {
    const struct api_migration *migration; /* NULL = no move was asked for */
    const struct api_vmi *vmi;
    const struct api_pod *target_pod;
    struct api_object *const *nodes; /* NULL = not known */
    size_t n_nodes;
    bool lease_known;              /* whether the next was read at all */
    const struct api_lease *lease; /* of the controller */
    /* Samples of the transfer, some seconds apart; n_samples: 0, 1 or 2. */
    struct wire_progress samples[2];
    size_t n_samples;
    /* What the nodes say of it; NULL = not asked, or not allowed to. */
    const struct why_report *target, *source;
    int64_t mode_since_ms; /* into the move; negative = not known */
    /* Of a virtual machine, when no move is what is asked about. */
    const struct api_vm *vm;          /* NULL = there is none of that name */
    const struct api_pod *pod;        /* that has its instance, or is to have it */
    const struct api_migration *last; /* its last move, which is over */
    bool claims_known;
    struct api_object *const *claims; /* of its namespace */
    size_t n_claims;
    const struct api_event *event; /* the latest that tells of trouble with it, or NULL */
    int64_t now_ms;
};

/* Whether the answer may depend on what the nodes say: then ask them before why_walk(). */
bool why_needs_nodes(const struct why_view *view);

enum why_state { WHY_OK, WHY_WAITS, WHY_BROKEN };

enum { WHY_LINKS = 32, WHY_TEXT = 400 };
struct why_link {
    const char *name; /* static */
    enum why_state state;
    char text[WHY_TEXT];
    char remedy[WHY_TEXT]; /* "" when there is nothing to do */
};
struct why_answer {
    struct why_link links[WHY_LINKS]; /* the last of them may be other than OK, no other is */
    size_t n;
};
void why_walk(const struct why_view *view, struct why_answer *ret);

/* The same of a virtual machine that is not being moved: of its start, and of its guest. */
void why_walk_vm(const struct why_view *view, struct why_answer *ret);

/* The link that does not hold, or NULL. */
const struct why_link *why_first(const struct why_answer *a);

/* The chain as text, one line per link. */
void why_render(const struct why_answer *a, struct ferry_buf *out);

/* The same for programs: {"broken": NAME or null, "links": [{name, state, text, remedy}]}. */
void why_output(const struct why_answer *a, bool yaml, struct ferry_buf *out);
