#include "launcher/move/result.h"

#include <ctype.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <string.h>

#include "api/wire/wire_reason.h"
#include "base/str.h"

/* KubeVirt's words for two of them. */
#define ABORTED_TEXT "Live migration has been aborted"
#define TOO_SMALL_TEXT                                                                             \
    "the destination volume is smaller than the source volume and cannot hold its data: "

/* White space runs become one blank; libvirt breaks lines in some messages. */
static void normalise(const char *text, char *to, size_t size)
{
    size_t n = 0;

    for (; *text && n + 1 < size; text++) {
        bool space = isspace((unsigned char)*text);

        if (!space) {
            to[n++] = *text;
        } else if (n && to[n - 1] != ' ') {
            to[n++] = ' ';
        }
    }
    while (n && to[n - 1] == ' ') {
        n--;
    }
    to[n] = '\0';
}

/* QEMU refuses to open the target's image (block/raw-format.c; tried: 10.0, with two blanks at one
 * place); libvirt hands them on with VIR_ERR_INTERNAL_ERROR, and neither has a code
 * for it. Where the words are others one day, the reason is LibvirtError and says them. */
static bool says_too_small(const char *normalised)
{
    return strstr(normalised,
                  "has to be smaller or equal to the actual size of the containing file");
}

static void fail(struct result *r, enum wire_reason code, const char *text)
{
    r->decided = true;
    r->phase = LAUNCHER_FAILED;
    r->reason_code = wire_reason_text(code);
    snprintf(r->failure_reason, sizeof(r->failure_reason), "%s", text);
}

static void fail_by_libvirt(struct result *r, const struct result_input *in)
{
    char text[400];

    if (!in->call_known) {
        fail(r, REASON_LIBVIRT_ERROR,
             "the migration ended without moving the guest; the launcher was restarted meanwhile, "
             "so libvirt's own reason is not known");
        return;
    }
    normalise(in->text ? in->text : "", text, sizeof(text));
    if (in->call_ok) {
        fail(r, REASON_LIBVIRT_ERROR, "libvirt reported success, but the guest still runs here");
    } else if (in->refused == REASON_DESTINATION_TOO_SMALL || says_too_small(text)) {
        fail(r, REASON_DESTINATION_TOO_SMALL, TOO_SMALL_TEXT);
        size_t used = strlen(r->failure_reason);
        snprintf(r->failure_reason + used, sizeof(r->failure_reason) - used, "%s", text);
    } else if (in->refused) {
        fail(r, in->refused, text);
    } else if (in->libvirt_code == VIR_ERR_CPU_INCOMPATIBLE) {
        fail(r, REASON_CPU_INCOMPATIBLE, text);
    } else {
        fail(r, REASON_LIBVIRT_ERROR, text[0] ? text : "libvirt gave no reason");
    }
}

/* The guest stayed. An abort that libvirt took explains it: its own message is then racy
 * ("canceled by client", "Channel error", "Broken pipe"). */
static void stayed(struct result *r, const struct result_input *in)
{
    static const enum wire_reason codes[] = {
        [STATE_ABORT_ASKED] = REASON_ABORTED,
        [STATE_ABORT_STUCK] = REASON_STUCK,
        [STATE_ABORT_NOT_CONVERGING] = REASON_NOT_CONVERGING,
    };

    if (in->abort == STATE_ABORT_NONE || !in->abort_accepted) {
        fail_by_libvirt(r, in);
        r->abort_status = in->abort == STATE_ABORT_NONE ? ABORT_NONE : ABORT_FAILED;
        return;
    }
    fail(r, codes[in->abort], in->abort == STATE_ABORT_ASKED ? ABORTED_TEXT : in->abort_detail);
    r->abort_status = ABORT_SUCCEEDED;
}

static void moved(struct result *r, const struct result_input *in)
{
    r->decided = true;
    r->phase = LAUNCHER_SUCCEEDED;
    r->abort_status = in->abort == STATE_ABORT_NONE ? ABORT_NONE : ABORT_FAILED;
}

static enum outcome_source source_of(const struct result_input *in)
{
    if (!view_active(&in->domain)) {
        return OUTCOME_SOURCE_GONE;
    }
    if (in->domain.postcopy &&
        in->domain.state != LAUNCHER_DOMAIN_RUNNING) { /* else we took it back */
        return OUTCOME_SOURCE_POSTCOPY;
    }
    bool stopped =
        in->domain.between || (in->suspended && in->domain.state == LAUNCHER_DOMAIN_PAUSED);
    return stopped ? OUTCOME_SOURCE_STOPPED : OUTCOME_SOURCE_ACTIVE;
}

/* From here the target is known by what libvirt confirmed (it writes "migrated" when the target's
 * libvirtd has said that the guest runs there), or by what the handler found out over there. */
static enum outcome_target target_of(const struct result_input *in)
{
    bool confirmed = (in->domain.state == LAUNCHER_DOMAIN_SHUTOFF && in->domain.migrated) ||
                     (in->domain.state == LAUNCHER_DOMAIN_NONE && in->call_known && in->call_ok);

    if (confirmed) {
        return OUTCOME_TARGET_ACTIVE;
    }
    return in->incomplete ? OUTCOME_TARGET_NEVER_RAN : in->target;
}

static void ended(struct result *r, const struct result_input *in)
{
    char text[200];

    snprintf(text, sizeof(text), "the guest ended on the source during the migration (%s%s%s)",
             wire_launcher_domain_text(in->domain.state), in->domain.reason ? ", " : "",
             wire_launcher_reason_text(in->domain.reason));
    fail(r, REASON_SOURCE_LOST, text);
    r->abort_status = in->abort == STATE_ABORT_NONE ? ABORT_NONE : ABORT_FAILED;
}

static void rescued(struct result *r, const struct result_input *in)
{
    fail(r, REASON_LIBVIRT_ERROR,
         "a post-copy broke before the guest ran on its target; it was taken back and runs on, but "
         "it cannot be moved before it is stopped and started");
    r->abort_status = in->abort == STATE_ABORT_NONE ? ABORT_NONE : ABORT_FAILED;
}

static void lost(struct result *r, const struct result_input *in)
{
    fail(r, REASON_TARGET_LOST,
         "the guest is lost: its target died in post-copy, when part of its memory was there only; "
         "what is left here is stale and must not run");
    r->abort_status = in->abort == STATE_ABORT_NONE ? ABORT_NONE : ABORT_FAILED;
}

/* In post-copy other versions say "failed" as well when all was sent, and only then the stream
 * broke: 10.2, and of 10.0 stable releases up to 10.0.13 (10.0.2 does not yet). */
enum { POSTCOPY_FAILED_SINCE = 10000000, POSTCOPY_FAILED_LAST = 10000002 };

bool result_never_sent(const char *status, bool postcopy, unsigned long version)
{
    bool failed = ferry_streq(status, "none") || ferry_streq(status, "failed") ||
                  ferry_streq(status, "cancelled");
    bool plain = version >= POSTCOPY_FAILED_SINCE && version <= POSTCOPY_FAILED_LAST;

    return failed && (!postcopy || plain);
}

void result_decide(const struct result_input *in, struct result *ret)
{
    enum outcome_source source = source_of(in);
    bool postcopy = in->postcopy || in->domain.postcopy;

    *ret = (struct result){.phase = LAUNCHER_RUNNING, .reason_code = ""};
    switch (api_outcome_of(source, target_of(in), postcopy && source != OUTCOME_SOURCE_ACTIVE)) {
    case OUTCOME_ON_TARGET:
        ret->stop_source = source != OUTCOME_SOURCE_GONE;
        moved(ret, in);
        break;
    case OUTCOME_ON_SOURCE:
        if (in->rescued) {
            rescued(ret, in);
        } else if (!in->job_active) {
            stayed(ret, in);
        }
        break;
    case OUTCOME_RESUME_SOURCE:
        ret->rescue_source = postcopy;
        ret->resume_source = !ret->rescue_source && !in->job_active;
        break;
    case OUTCOME_LOST:
        if (source != OUTCOME_SOURCE_GONE) {
            lost(ret, in);
        } else if (!in->job_active) {
            ended(ret, in);
        }
        break;
    default: /* stopped on its way: libvirt will resume or end it */
        if (source == OUTCOME_SOURCE_GONE && !in->job_active) {
            ended(ret, in);
        }
        break;
    }
}
