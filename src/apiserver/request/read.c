#include "apiserver/request/read.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/page.h"
#include "base/clock.h"

/* A node reads of ConfigMaps and Secrets what its pods name, and learns nothing of others, not even
 * whether they are there. */
static int check_needed(struct request *r)
{
    cleanup_entry_list struct entry_list pods = {0};

    if (r->auth == AUTH_YES) {
        return 0;
    }
    store_list(r->store, api_resource_find("", "v1", "pods"), r->route.ns, &pods);
    for (size_t i = 0; i < pods.n; i++) {
        const struct entry *e = pods.items[i];

        if (!ferry_span_is(entry_field(e, "spec.nodeName"), r->who.node)) {
            continue; /* not parsed: most pods are elsewhere */
        }
        api_cleanup_doc yyjson_doc *doc = entry_doc(e);
        if (auth_needs(&r->who, r->route.resource, r->route.name, yyjson_doc_get_root(doc))) {
            return 0;
        }
    }
    return status_forbidden(&r->st, r->route.resource, r->route.name,
                            "User \"%s\" may only read what pods on its own node have as a volume",
                            r->who.user);
}

int read_get(struct request *r)
{
    if (page_check_version(http_query(r->x, "resourceVersion"), store_version(r->store), &r->st) <
        0) {
        return -1;
    }
    if (check_needed(r) < 0) {
        return -1;
    }
    cleanup_entry struct entry *e =
        store_get(r->store, r->route.resource, r->route.ns, r->route.name);
    if (!e) {
        return status_not_found(&r->st, r->route.resource, r->route.name);
    }
    request_answer_entry(r, 200, e);
    return 0;
}

static void put_table(struct ferry_buf *b, const struct request *r, const struct entry_list *list,
                      const char *metadata, enum table_include include)
{
    int64_t now = ferry_now_unix_ms();

    table_begin_list(b, r->route.resource, metadata);
    for (size_t i = 0; i < list->n; i++) {
        const struct entry *e = list->items[i];
        api_cleanup_doc yyjson_doc *doc = entry_doc(e);

        struct table_move move =
            request_move(r->store, r->route.resource, yyjson_doc_get_root(doc));
        table_row(b, r->route.resource, yyjson_doc_get_root(doc), e->json, &move, include, now,
                  i == 0);
    }
    table_end(b);
}

static void put_list(struct ferry_buf *b, const struct api_resource *resource,
                     const struct entry_list *list, const char *metadata)
{
    size_t room = 0;

    ferry_buf_printf(b,
                     "{\"kind\":\"%sList\",\"apiVersion\":\"%s%s%s\",\"metadata\":%s,\"items\":[",
                     resource->kind_name, resource->group, *resource->group ? "/" : "",
                     resource->version, metadata);
    for (size_t i = 0; i < list->n; i++) {
        room += list->items[i]->json_len + 1;
    }
    ferry_buf_reserve(b, room);
    for (size_t i = 0; i < list->n; i++) {
        ferry_buf_puts(b, i ? "," : "");
        ferry_buf_append(b, list->items[i]->json, list->items[i]->json_len);
    }
    ferry_buf_puts(b, "]}");
}

/* Keeps what matches. */
static void select_items(struct entry_list *list, const struct filter *filter)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++) {
        if (filter_matches(filter, list->items[i])) {
            list->items[n++] = list->items[i];
        } else {
            entry_unref(list->items[i]);
        }
    }
    list->n = n;
}

static int take_list(struct request *r, const struct page *page, struct entry_list *ret)
{
    const char *ns = *r->route.ns ? r->route.ns : NULL;

    if (!page->version) {
        store_list(r->store, r->route.resource, ns, ret);
        return 0;
    }
    if (store_list_at(r->store, r->route.resource, ns, page->version, ret) < 0) {
        return status_fail(&r->st, 410,
                           *page->after ? "The provided continue parameter is too old to display a "
                                          "consistent list result: begin again without it"
                                        : "The resourceVersion for the provided list is too old.");
    }
    return 0;
}

void read_answer_list(struct request *r, const struct entry_list *list, const char *token,
                      size_t left)
{
    ferry_cleanup_buf struct ferry_buf b = {0}, metadata = {0};
    enum table_include include;

    ferry_buf_printf(&metadata, "{\"resourceVersion\":\"%llu\"", (unsigned long long)list->version);
    if (*token) {
        ferry_buf_printf(&metadata, ",\"continue\":\"%s\"", token);
    }
    if (left) {
        ferry_buf_printf(&metadata, ",\"remainingItemCount\":%zu", left);
    }
    ferry_buf_puts(&metadata, "}");
    if (request_wants_table(r, &include)) {
        put_table(&b, r, list, metadata.data, include);
    } else {
        put_list(&b, r->route.resource, list, metadata.data);
    }
    r->code = 200;
    request_keep(r, b.data, b.len);
    http_answer(r->x, 200, "application/json", b.data, b.len);
}

int read_list(struct request *r)
{
    cleanup_entry_list struct entry_list list = {0};
    cleanup_filter struct filter filter = {0};
    const struct page_query query = {.limit = http_query(r->x, "limit"),
                                     .token = http_query(r->x, "continue"),
                                     .version = http_query(r->x, "resourceVersion"),
                                     .match = http_query(r->x, "resourceVersionMatch")};
    char token[PAGE_TOKEN_MAX];
    struct page page;
    size_t left;

    if (filter_parse(r->route.resource, r->route.ns, NULL, http_query(r->x, "labelSelector"),
                     http_query(r->x, "fieldSelector"), &filter, &r->st) < 0 ||
        page_parse(&query, store_version(r->store), &page, &r->st) < 0 ||
        take_list(r, &page, &list) < 0) {
        return -1;
    }
    select_items(&list, &filter);
    page_cut(&page, &list, token, &left);
    read_answer_list(r, &list, token, filter_by_address_only(&filter) ? left : 0);
    return 0;
}
