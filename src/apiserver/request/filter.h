/* Which objects a list or a watch is about: namespace, name, labels, fields. Pure after parsing. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "api/selector.h"
#include "apiserver/message/status.h"
#include "apiserver/store/entry.h"

struct filter {
    char *ns;   /* "" = all namespaces */
    char *name; /* "" = any */
    struct api_selector *labels, *fields;
};

/* Texts as they come in a request; NULL = not given. */
int filter_parse(const struct api_resource *r, const char *ns, const char *name,
                 const char *label_selector, const char *field_selector, struct filter *ret,
                 struct status *st);
void filter_done(struct filter *f);
#define cleanup_filter ferry_cleanup(filter_done)

/* Nothing but the address decides. */
bool filter_by_address_only(const struct filter *f);
/* By what the entry knows of itself: nothing is parsed. */
bool filter_matches(const struct filter *f, const struct entry *e);
