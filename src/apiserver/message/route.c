#include "apiserver/message/route.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"

enum { MAX_PARTS = 9 };

static const char *const verb_names[] = {
    [ROUTE_GET] = "get",       [ROUTE_LIST] = "list",
    [ROUTE_WATCH] = "watch",   [ROUTE_CREATE] = "create",
    [ROUTE_UPDATE] = "update", [ROUTE_PATCH] = "patch",
    [ROUTE_DELETE] = "delete", [ROUTE_DELETE_COLLECTION] = "deletecollection",
};
_Static_assert(FERRY_COUNT(verb_names) == ROUTE_VERB_COUNT, "one name per verb");

const char *route_verb_name(enum route_verb v)
{
    return verb_names[v];
}

enum route_verb route_verb_of(const char *name)
{
    enum route_verb v = 0;

    while (v < ROUTE_VERB_COUNT && !ferry_streq(verb_names[v], name)) {
        v++;
    }
    return v;
}

bool route_verb_reads(enum route_verb v)
{
    return v == ROUTE_GET || v == ROUTE_LIST || v == ROUTE_WATCH;
}

struct parts {
    char text[MAX_PARTS][ROUTE_PART_MAX];
    size_t n;
};

/* Empty parts, parts that are too long and too many parts are no path of ours. */
static bool split(const char *path, struct parts *ret)
{
    ret->n = 0;
    if (*path != '/') {
        return false;
    }
    path++;
    for (;;) {
        size_t len = strcspn(path, "/");

        if (len == 0) {
            return !*path && ret->n > 0; /* a slash at the end is fine */
        }
        if (len >= ROUTE_PART_MAX || ret->n == MAX_PARTS) {
            return false;
        }
        memcpy(ret->text[ret->n], path, len);
        ret->text[ret->n++][len] = '\0';
        path += len;
        if (!*path) {
            return true;
        }
        path++;
    }
}

bool route_is_object_path(const char *path)
{
    struct parts p;

    if (!split(path, &p)) {
        return false;
    }
    return (ferry_streq(p.text[0], "api") && p.n > 2) ||
           (ferry_streq(p.text[0], "apis") && p.n > 3);
}

bool route_knows_subresource(const struct api_resource *r, const char *sub)
{
    return !*sub || (ferry_streq(sub, "status") && r->has_status) ||
           ((ferry_streq(sub, "binding") || ferry_streq(sub, "eviction")) &&
            r->kind == API_KIND_POD);
}

static int find_verb(const char *method, bool watch, struct route *ret, struct status *st)
{
    static const struct {
        const char *method;
        bool named;
        enum route_verb verb;
    } verbs[] = {
        {"GET", false, ROUTE_LIST},
        {"GET", true, ROUTE_GET},
        {"POST", false, ROUTE_CREATE},
        {"PUT", true, ROUTE_UPDATE},
        {"PATCH", true, ROUTE_PATCH},
        {"DELETE", true, ROUTE_DELETE},
        {"DELETE", false, ROUTE_DELETE_COLLECTION},
    };
    bool named = *ret->name;
    bool binding =
        ferry_streq(ret->subresource, "binding") || ferry_streq(ret->subresource, "eviction");

    if (binding && ferry_streq(method, "POST")) {
        ret->verb = ROUTE_CREATE;
        return 0;
    }
    for (size_t i = 0; i < FERRY_COUNT(verbs); i++) {
        if (!binding && ferry_streq(method, verbs[i].method) && named == verbs[i].named &&
            !(*ret->subresource && verbs[i].verb == ROUTE_DELETE)) {
            ret->verb = watch && ferry_streq(method, "GET") ? ROUTE_WATCH : verbs[i].verb;
            break;
        }
        if (i + 1 == FERRY_COUNT(verbs)) {
            return status_fail(st, 405,
                               "the server does not allow this method on the requested "
                               "resource");
        }
    }
    /* Namespaces go one by one, as in Kubernetes: each takes a world with it. */
    if (ret->verb == ROUTE_DELETE_COLLECTION && (ferry_streq(ret->resource->plural, "namespaces") ||
                                                 (ret->resource->namespaced && !*ret->ns))) {
        return status_fail(st, 405,
                           "the server does not allow this method on the requested resource");
    }
    if (ret->verb == ROUTE_CREATE && ret->resource->namespaced && !*ret->ns) {
        return status_fail(st, 405, "an object of this kind is created inside a namespace");
    }
    return 0;
}

int route_parse(const char *method, const char *path, bool watch, struct route *ret,
                struct status *st)
{
    struct parts p;
    const char *group = "";
    size_t at = 2;

    *ret = (struct route){0};
    if (!split(path, &p) || !route_is_object_path(path)) {
        return status_fail(st, 404, "the server could not find the requested resource");
    }
    if (ferry_streq(p.text[0], "apis")) {
        group = p.text[1];
        at = 3;
    }
    const char *version = p.text[at - 1];
    /* /namespaces/NS/plural..., but /namespaces/NAME and its subresources are a namespace itself */
    if (p.n > at + 2 && ferry_streq(p.text[at], "namespaces") &&
        !(ferry_streq(p.text[at + 2], "status") || ferry_streq(p.text[at + 2], "finalize"))) {
        snprintf(ret->ns, sizeof(ret->ns), "%s", p.text[at + 1]);
        at += 2;
    }
    ret->resource = api_resource_find(group, version, p.text[at]);
    if (!ret->resource || p.n > at + 3 || (*ret->ns && !ret->resource->namespaced)) {
        return status_fail(st, 404, "the server could not find the requested resource");
    }
    if (p.n > at + 1) {
        snprintf(ret->name, sizeof(ret->name), "%s", p.text[at + 1]);
    }
    if (p.n > at + 2) {
        snprintf(ret->subresource, sizeof(ret->subresource), "%s", p.text[at + 2]);
    }
    if (!route_knows_subresource(ret->resource, ret->subresource) ||
        (*ret->name && ret->resource->namespaced && !*ret->ns)) {
        return status_fail(st, 404, "the server could not find the requested resource");
    }
    return find_verb(method, watch, ret, st);
}
