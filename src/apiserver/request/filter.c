#include "apiserver/request/filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

void filter_done(struct filter *f)
{
    free(f->ns);
    free(f->name);
    api_selector_free(f->labels);
    api_selector_free(f->fields);
    *f = (struct filter){0};
}

int filter_parse(const struct api_resource *r, const char *ns, const char *name,
                 const char *label_selector, const char *field_selector, struct filter *ret,
                 struct status *st)
{
    cleanup_filter struct filter f = {0};
    struct ferry_error err;

    if (api_selector_parse_labels(label_selector, &f.labels, &err) < 0 ||
        api_selector_parse_fields(field_selector, &f.fields, &err) < 0) {
        return status_of_error(st, &err);
    }
    for (size_t i = 0; i < api_selector_count(f.fields); i++) {
        if (!entry_field_is_selectable(r, api_selector_key(f.fields, i))) {
            return status_fail(st, 400, "field label not supported: %.100s",
                               api_selector_key(f.fields, i));
        }
    }
    f.ns = ferry_strdup(ns ? ns : "");
    f.name = ferry_strdup(name ? name : "");
    *ret = (struct filter){.ns = ferry_take_ptr(f.ns),
                           .name = ferry_take_ptr(f.name),
                           .labels = ferry_take_ptr(f.labels),
                           .fields = ferry_take_ptr(f.fields)};
    return 0;
}

bool filter_by_address_only(const struct filter *f)
{
    return api_selector_empty(f->labels) && api_selector_empty(f->fields);
}

static bool matches_address(const struct filter *f, const struct entry *e)
{
    const char *name = api_selector_equal(f->fields, "metadata.name");

    return (!*f->ns || strcmp(f->ns, e->ns) == 0) && (!*f->name || strcmp(f->name, e->name) == 0) &&
           (!name || strcmp(name, e->name) == 0);
}

static struct ferry_span label_of(const void *e, const char *key)
{
    return entry_label(e, key);
}

/* A field that is absent equals "". */
static struct ferry_span field_of(const void *e, const char *path)
{
    struct ferry_span value = entry_field(e, path);

    return value.at ? value : ferry_span_of("");
}

bool filter_matches(const struct filter *f, const struct entry *e)
{
    return matches_address(f, e) && api_selector_matches(f->labels, label_of, e) &&
           api_selector_matches(f->fields, field_of, e);
}
