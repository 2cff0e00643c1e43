#include "apiserver/request/page.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

static int parse_version(const char *text, uint64_t *ret, struct status *st)
{
    long long v = 0;

    if (text && *text && ferry_parse_int(text, 0, INT64_MAX, &v, NULL) < 0) {
        return status_fail(st, 400, "resourceVersion: Invalid value: \"%.100s\"", text);
    }
    *ret = (uint64_t)v;
    return 0;
}

static int check_not_newer(uint64_t version, uint64_t current, struct status *st)
{
    if (version > current) {
        return status_fail(st, 504, "Timeout: Too large resource version: %llu, current: %llu",
                           (unsigned long long)version, (unsigned long long)current);
    }
    return 0;
}

int page_check_version(const char *text, uint64_t current, struct status *st)
{
    uint64_t version = 0;

    return parse_version(text, &version, st) < 0 ? -1 : check_not_newer(version, current, st);
}

/* "1:VERSION:NAMESPACE/NAME" */
static int parse_token(const char *token, struct page *p, struct status *st)
{
    ferry_cleanup_free char *copy = ferry_strdup(token);
    char *colon = ferry_str_starts(copy, "1:") ? strchr(copy + 2, ':') : NULL;
    long long version = 0;

    if (colon) {
        *colon = '\0';
    }
    if (!colon || ferry_parse_int(copy + 2, 1, INT64_MAX, &version, NULL) < 0 ||
        !strchr(colon + 1, '/') || strlen(colon + 1) >= sizeof(p->after)) {
        return status_fail(st, 400, "continue: Invalid value: not a token of this server");
    }
    p->version = (uint64_t)version;
    snprintf(p->after, sizeof(p->after), "%s", colon + 1);
    return 0;
}

/* resourceVersion and resourceVersionMatch of a first page. */
static int parse_match(const struct page_query *q, uint64_t current, struct page *p,
                       struct status *st)
{
    bool exact = ferry_streq(q->match, "Exact");
    uint64_t version = 0;

    if (parse_version(q->version, &version, st) < 0) {
        return -1;
    }
    if (!ferry_str_empty(q->match)) {
        if (ferry_str_empty(q->version)) {
            return status_fail(st, 422,
                               "resourceVersionMatch: Forbidden: resourceVersionMatch is "
                               "forbidden unless resourceVersion is provided");
        }
        if (!exact && !ferry_streq(q->match, "NotOlderThan")) {
            return status_fail(st, 422,
                               "resourceVersionMatch: Unsupported value: \"%.100s\": "
                               "supported values: \"Exact\", \"NotOlderThan\"",
                               q->match);
        }
        if (exact && version == 0) {
            return status_fail(st, 422,
                               "resourceVersionMatch: Forbidden: Exact is forbidden for "
                               "resourceVersion 0");
        }
    }
    /* A version with a limit and no match means exactly that version. */
    if (exact || (version && p->limit && ferry_str_empty(q->match))) {
        p->version = version;
    }
    return check_not_newer(version, current, st);
}

int page_parse(const struct page_query *q, uint64_t current, struct page *ret, struct status *st)
{
    long long limit = 0;

    *ret = (struct page){0};
    if (!ferry_str_empty(q->limit) &&
        ferry_parse_int(q->limit, INT64_MIN, INT64_MAX, &limit, NULL) < 0) {
        return status_fail(st, 400, "limit: Invalid value: \"%.100s\"", q->limit);
    }
    ret->limit = limit > 0 ? limit : 0;
    if (ferry_str_empty(q->token)) {
        return parse_match(q, current, ret, st);
    }
    if (!ferry_str_empty(q->version) && !ferry_streq(q->version, "0")) {
        return status_fail(st, 400,
                           "specifying resource version is not allowed when using "
                           "continue");
    }
    if (!ferry_str_empty(q->match)) {
        return status_fail(st, 422,
                           "resourceVersionMatch: Forbidden: resourceVersionMatch is "
                           "forbidden when continue is provided");
    }
    return parse_token(q->token, ret, st) < 0 ? -1 : check_not_newer(ret->version, current, st);
}

static bool is_after(const struct entry *e, const char *key)
{
    const char *slash = strchr(key, '/');
    size_t n = (size_t)(slash - key);
    int c = strncmp(e->ns, key, n);

    if (c == 0 && e->ns[n]) {
        c = 1;
    }
    return c > 0 || (c == 0 && strcmp(e->name, slash + 1) > 0);
}

void page_cut(const struct page *p, struct entry_list *list, char ret_token[PAGE_TOKEN_MAX],
              size_t *ret_left)
{
    size_t from = 0, n;

    ret_token[0] = '\0';
    *ret_left = 0;
    while (*p->after && from < list->n && !is_after(list->items[from], p->after)) {
        from++;
    }
    n = list->n - from;
    if (p->limit && (uint64_t)n > (uint64_t)p->limit) {
        *ret_left = n - (size_t)p->limit;
        n = (size_t)p->limit;
    }
    for (size_t i = 0; i < list->n; i++) {
        if (i < from || i >= from + n) {
            entry_unref(list->items[i]);
        }
    }
    if (n && from) {
        memmove(list->items, list->items + from, n * sizeof(*list->items));
    }
    list->n = n;
    if (*ret_left) {
        snprintf(ret_token, PAGE_TOKEN_MAX, "1:%llu:%s/%s", (unsigned long long)list->version,
                 list->items[n - 1]->ns, list->items[n - 1]->name);
    }
}
