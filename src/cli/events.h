/* Events as people read them. */
#pragma once

#include "base/str.h"
#include "cli/session.h"

/* The events of a namespace (NULL = all), oldest first. */
int events_list(struct session *s, const char *ns, struct kube_list *ret, struct ferry_error *err);

/* When it last happened, in unix milliseconds; 0 when it does not say. Pure. */
int64_t events_time_ms(const struct api_object *event);

/* A table of those for which `keep` is true (NULL = all); false when there was none. Pure. */
bool events_render(const struct kube_list *list, bool (*keep)(const struct api_object *, void *),
                   void *ctx, bool with_namespace, int64_t now_ms, struct ferry_buf *out);
