#include "apiserver/request/filter.h"

#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "base/count.h"
#include "base/str.h"

/* Fields that may be selected on, beside name and namespace. */
static const struct {
    const char *plural, *field;
} selectable[] = {
    {"pods", "spec.nodeName"},
    {"pods", "spec.restartPolicy"},
    {"pods", "spec.schedulerName"},
    {"pods", "spec.serviceAccountName"},
    {"pods", "status.phase"},
    {"pods", "status.podIP"},
    {"nodes", "spec.unschedulable"},
    {"namespaces", "status.phase"},
    {"secrets", "type"},
    {"events", "involvedObject.kind"},
    {"events", "involvedObject.namespace"},
    {"events", "involvedObject.name"},
    {"events", "involvedObject.uid"},
    {"events", "involvedObject.apiVersion"},
    {"events", "involvedObject.resourceVersion"},
    {"events", "involvedObject.fieldPath"},
    {"events", "reason"},
    {"events", "reportingComponent"},
    {"events", "type"},
};

static bool is_selectable(const struct api_resource *r, const char *field)
{
    if (ferry_streq(field, "metadata.name") || ferry_streq(field, "metadata.namespace")) {
        return true;
    }
    for (size_t i = 0; i < FERRY_COUNT(selectable); i++) {
        if (ferry_streq(r->plural, selectable[i].plural) &&
            ferry_streq(field, selectable[i].field)) {
            return true;
        }
    }
    return false;
}

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
        if (!is_selectable(r, api_selector_key(f.fields, i))) {
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

bool filter_matches_address(const struct filter *f, const struct entry *e)
{
    const char *name = api_selector_equal(f->fields, "metadata.name");

    return (!*f->ns || strcmp(f->ns, e->ns) == 0) && (!*f->name || strcmp(f->name, e->name) == 0) &&
           (!name || strcmp(name, e->name) == 0);
}

bool filter_matches(const struct filter *f, const struct entry *e)
{
    if (!filter_matches_address(f, e)) {
        return false;
    }
    if (filter_by_address_only(f)) {
        return true;
    }
    api_cleanup_doc yyjson_doc *doc = yyjson_read(e->json, e->json_len, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    return api_selector_matches_labels_of(f->labels, root) &&
           api_selector_matches_fields(f->fields, root);
}
