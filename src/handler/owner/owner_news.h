/* What there is to tell of a guest besides the state that it is in: events, each told once, and the
 * conditions by which it is known that they were told. Pure. */
#pragma once

#include "handler/local/launcher_status.h"
#include "handler/move/vmi_edit.h"

enum { NEWS_MAX = 4, NEWS_TEXT = 400 };

struct owner_event {
    bool warning;
    const char *reason; /* static; KubeVirt's where it has one */
    char text[NEWS_TEXT];
};

struct owner_news {
    struct owner_event list[NEWS_MAX];
    size_t n;
};

void news_add(struct owner_news *news, bool warning, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Of a guest that is there: that it started, was reset, stands still and why; writes the conditions
 * into `e`. */
void news_of_guest(struct vmi_edit *e, const struct launcher_status *s, struct owner_news *news);

/* How a guest ended that its launcher says is down. */
struct guest_end {
    enum wire_phase phase;
    const char *reason; /* of the VMI's status; NULL when it ended well */
    const char *why;
};
struct guest_end news_of_end(const struct launcher_status *s);
/* The same of a launcher whose pod is over. */
struct guest_end news_of_pod_end(const struct launcher_view *l);
/* That it ended, for whoever reads events. */
void news_add_end(struct owner_news *news, const struct guest_end *end);
