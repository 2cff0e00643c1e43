/* Events as people read them. */
#pragma once

#include "cli/views/listing.h"

/* The events of a namespace (NULL = all), oldest first. */
int events_list(struct session *s, const char *ns, struct kube_list *ret, struct ferry_error *err);

/* When it last happened, in unix milliseconds; 0 when it does not say. Pure. */
int64_t events_time_ms(const struct api_object *event);

/* How they are listed. */
extern const struct listing events_listing;
