#include "apiserver/read.h"

#include "api/json.h"
#include "apiserver/filter.h"
#include "base/clock.h"

int read_get(struct request *r)
{
    cleanup_entry struct entry *e =
        store_get(r->store, r->route.resource, r->route.ns, r->route.name);

    if (!e) {
        return status_not_found(&r->st, r->route.resource, r->route.name);
    }
    request_answer_object(r, 200, e->json, e->json_len);
    return 0;
}

static void put_table(struct ferry_buf *b, const struct request *r, const struct entry_list *list,
                      const struct filter *filter, enum table_include include)
{
    int64_t now = ferry_now_unix_ms();
    bool first = true;

    table_begin(b, r->route.resource, list->version);
    for (size_t i = 0; i < list->n; i++) {
        const struct entry *e = list->items[i];

        if (filter_matches(filter, e)) {
            api_cleanup_doc yyjson_doc *doc = yyjson_read(e->json, e->json_len, 0);

            table_row(b, r->route.resource, yyjson_doc_get_root(doc), e->json, include, now, first);
            first = false;
        }
    }
    table_end(b);
}

static void put_list(struct ferry_buf *b, const struct api_resource *resource,
                     const struct entry_list *list, const struct filter *filter)
{
    bool first = true;

    ferry_buf_printf(b,
                     "{\"kind\":\"%sList\",\"apiVersion\":\"%s%s%s\",\"metadata\":"
                     "{\"resourceVersion\":\"%llu\"},\"items\":[",
                     resource->kind_name, resource->group, *resource->group ? "/" : "",
                     resource->version, (unsigned long long)list->version);
    for (size_t i = 0; i < list->n; i++) {
        if (filter_matches(filter, list->items[i])) {
            ferry_buf_puts(b, first ? "" : ",");
            ferry_buf_append(b, list->items[i]->json, list->items[i]->json_len);
            first = false;
        }
    }
    ferry_buf_puts(b, "]}");
}

int read_list(struct request *r)
{
    cleanup_entry_list struct entry_list list = {0};
    cleanup_filter struct filter filter = {0};
    ferry_cleanup_buf struct ferry_buf b = {0};
    enum table_include include;

    if (filter_parse(r->route.resource, r->route.ns, NULL, http_query(r->x, "labelSelector"),
                     http_query(r->x, "fieldSelector"), &filter, &r->st) < 0) {
        return -1;
    }
    store_list(r->store, r->route.resource, *r->route.ns ? r->route.ns : NULL, &list);
    if (request_wants_table(r, &include)) {
        put_table(&b, r, &list, &filter, include);
    } else {
        put_list(&b, r->route.resource, &list, &filter);
    }
    r->code = 200;
    http_answer(r->x, 200, "application/json", b.data, b.len);
    return 0;
}
