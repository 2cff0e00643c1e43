#include "handler/owner/owner_news.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/wire/wire_keys.h"
#include "base/clock.h"
#include "base/str.h"

void news_add(struct owner_news *news, bool warning, const char *reason, const char *fmt, ...)
{
    if (news->n == NEWS_MAX) {
        return;
    }
    struct owner_event *e = &news->list[news->n++];
    va_list args;

    e->warning = warning;
    e->reason = reason;
    va_start(args, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, args);
    va_end(args);
}

/* ---- a guest that is there -------------------------------------------------------------------
 */

/* True when the VMI does not say just that yet. */
static bool is_news(const struct api_vmi *vmi, const char *type, const char *reason,
                    const char *message)
{
    const struct api_condition *c = api_condition_find(&vmi->conditions, type);

    return !c || !ferry_streq(c->status, "True") || !ferry_streq(c->reason, reason) ||
           (message && !ferry_streq(c->message, message));
}

/* Something that happened and is over: its time is in the condition, so that the next one is news
 * and a handler that starts anew does not tell of this one again. */
static void tell_once(struct vmi_edit *e, struct owner_news *news, bool warning, const char *type,
                      const char *reason, const char *text)
{
    if (is_news(e->vmi, type, reason, text)) {
        vmi_edit_condition(e, type, true, reason, text);
        news_add(news, warning, reason, "%s", text);
    }
}

static void tell_resets(struct vmi_edit *e, const struct launcher_guest *g, struct owner_news *news)
{
    char when[FERRY_RFC3339_SIZE], text[NEWS_TEXT];

    if (g->watchdog_ms) {
        snprintf(text, sizeof(text), "the guest's watchdog fired at %s; its action: %s",
                 ferry_rfc3339(g->watchdog_ms, when), wire_launcher_watchdog_text(g->watchdog));
        tell_once(e, news, true, CONDITION_WATCHDOG_FIRED, "Watchdog", text);
    }
    if (g->reset_ms) {
        snprintf(text, sizeof(text), "the guest was reset at %s", ferry_rfc3339(g->reset_ms, when));
        tell_once(e, news, false, CONDITION_GUEST_RESET, "Reset", text);
    }
}

struct pause {
    const char *reason; /* NULL = it does not stand still, or a move has it stand still */
    char text[NEWS_TEXT];
};

static struct pause pause_of(const struct launcher_status *s)
{
    struct pause p = {0};

    if (s->domain != LAUNCHER_DOMAIN_PAUSED) {
        return p;
    }
    if (s->domain_reason == LAUNCHER_REASON_USER) {
        p.reason = "PausedByUser";
        snprintf(p.text, sizeof(p.text), "VMI was paused by user");
    } else if (s->domain_reason == LAUNCHER_REASON_WATCHDOG) {
        p.reason = "PausedByWatchdog";
        snprintf(p.text, sizeof(p.text), "VMI was paused by its watchdog");
    } else if (s->domain_reason == LAUNCHER_REASON_IO_ERROR) {
        bool full = s->guest.disk_error == LAUNCHER_DISK_FULL;

        p.reason = "PausedIOError";
        snprintf(p.text, sizeof(p.text), "VMI was paused, low-level IO error detected%s%s%s",
                 full                 ? ": no space is left for"
                 : s->guest.volume[0] ? ": at"
                                      : "",
                 s->guest.volume[0] ? " volume "
                 : full             ? " a volume"
                                    : "",
                 s->guest.volume);
    }
    return p;
}

static void tell_io_error(const struct launcher_guest *g, struct owner_news *news)
{
    const char *volume = g->volume[0] ? g->volume : "(not known)";

    if (g->disk_error == LAUNCHER_DISK_FULL) {
        news_add(news, true, "IOerror", "VM Paused due to not enough space on volume: %s", volume);
    } else {
        news_add(news, true, "IOerror", "VM Paused due to IO error at the volume: %s", volume);
    }
}

void news_of_guest(struct vmi_edit *e, const struct launcher_status *s, struct owner_news *news)
{
    struct pause p = pause_of(s);

    if (!wire_phase_is(e->vmi->phase, PHASE_RUNNING)) {
        news_add(news, false, "Started", "VirtualMachineInstance started.");
    }
    tell_resets(e, &s->guest, news);
    if (!p.reason) {
        vmi_edit_drop_condition(e, CONDITION_PAUSED);
        return;
    }
    if (s->domain_reason == LAUNCHER_REASON_IO_ERROR &&
        is_news(e->vmi, CONDITION_PAUSED, p.reason, NULL)) {
        tell_io_error(&s->guest, news);
    }
    vmi_edit_condition(e, CONDITION_PAUSED, true, p.reason, p.text);
}

/* ---- a guest that ended ----------------------------------------------------------------------
 */

static struct guest_end end_of_crash(enum launcher_reason reason)
{
    switch (reason) {
    case LAUNCHER_REASON_OUT_OF_MEMORY:
        return (struct guest_end){PHASE_FAILED, "OutOfMemory",
                                  "the guest crashed: its QEMU was killed because its pod ran out "
                                  "of memory"};
    case LAUNCHER_REASON_PANICKED:
        return (struct guest_end){PHASE_FAILED, "GuestPanicked",
                                  "the guest crashed: its kernel panicked"};
    default:
        return (struct guest_end){PHASE_FAILED, "GuestCrashed",
                                  "the guest crashed: its QEMU ended unexpectedly"};
    }
}

struct guest_end news_of_end(const struct launcher_status *s)
{
    bool by_watchdog = s->guest.watchdog == LAUNCHER_WATCHDOG_POWEROFF ||
                       s->guest.watchdog == LAUNCHER_WATCHDOG_SHUTDOWN;

    if (s->domain == LAUNCHER_DOMAIN_CRASHED) {
        return end_of_crash(s->domain_reason);
    }
    /* KubeVirt's: a guest that had to be ended by force did not end well. */
    if (s->domain_reason == LAUNCHER_REASON_DESTROYED) {
        return (struct guest_end){PHASE_FAILED, "GuestDestroyed", "the guest was ended by force"};
    }
    return (struct guest_end){PHASE_SUCCEEDED, NULL,
                              by_watchdog ? "the guest was shut down by its watchdog"
                                          : "the guest shut itself down"};
}

struct guest_end news_of_pod_end(const struct launcher_view *l)
{
    if (ferry_streq(l->pod_reason, "OOMKilled")) {
        return (struct guest_end){PHASE_FAILED, "OutOfMemory",
                                  "the launcher pod is over: it ran out of memory"};
    }
    return (struct guest_end){l->pod_succeeded ? PHASE_SUCCEEDED : PHASE_FAILED,
                              l->pod_succeeded ? NULL : "PodFailed", "the launcher pod is over"};
}

void news_add_end(struct owner_news *news, const struct guest_end *end)
{
    bool well = end->phase == PHASE_SUCCEEDED;

    if (ferry_streq(end->reason, "GuestPanicked")) {
        news_add(news, true, end->reason, "%s", end->why);
    }
    news_add(news, !well, "Stopped", "%s %s",
             well ? "The VirtualMachineInstance was shut down:"
                  : "The VirtualMachineInstance crashed:",
             end->why);
}
