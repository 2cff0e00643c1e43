#include "cli/views/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/object.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/output.h"
#include "cli/views/progress.h"
#include "cli/views/table.h"

enum { OPTION_ROWS = 6 };

void listing_put_age(const struct api_object *o, const struct listing_context *context,
                     struct ferry_buf *out)
{
    char age[PROGRESS_TEXT];

    ferry_buf_puts(out, progress_age(context->now_ms - o->meta->created_ms, age));
}

struct api_object *listing_find(struct api_object *const *items, size_t n, const char *ns,
                                const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (ferry_streq(items[i]->meta->name, name) &&
            ferry_streq(items[i]->meta->namespace_, ns)) {
            return items[i];
        }
    }
    return NULL;
}

static int by_age(const void *a, const void *b)
{
    const struct api_meta *x = (*(struct api_object *const *)a)->meta,
                          *y = (*(struct api_object *const *)b)->meta;

    return x->created_ms < y->created_ms   ? -1
           : x->created_ms > y->created_ms ? 1
                                           : strcmp(x->name, y->name);
}

void listing_sort_by_age(struct kube_list *list)
{
    if (list->n > 1) {
        qsort(list->items, list->n, sizeof(struct api_object *), by_age);
    }
}

/* The columns that are shown; how many. */
static size_t choose(const struct listing *l, bool wide, bool all,
                     struct listing_column ret[CLI_TABLE_COLUMNS])
{
    size_t n = 0;

    if (all && l->namespaced) {
        ret[n++] = (struct listing_column){"NAMESPACE", .pointer = "/metadata/namespace"};
    }
    for (const struct listing_column *c = l->columns; c->header && n < CLI_TABLE_COLUMNS; c++) {
        if (wide || !c->wide) {
            ret[n++] = *c;
        }
    }
    return n;
}

void listing_render(const struct listing *l, struct api_object *const *items, size_t n,
                    const struct listing_context *context, bool wide, bool all,
                    struct ferry_buf *out)
{
    struct listing_column columns[CLI_TABLE_COLUMNS];
    size_t n_columns = choose(l, wide, all, columns);
    const char *headers[CLI_TABLE_COLUMNS + 1] = {NULL};
    cli_table_cleanup struct cli_table t;

    for (size_t i = 0; i < n_columns; i++) {
        headers[i] = columns[i].header;
    }
    cli_table_init(&t, headers);
    for (size_t i = 0; i < n; i++) {
        struct ferry_buf text[CLI_TABLE_COLUMNS] = {0};
        const char *cells[CLI_TABLE_COLUMNS] = {NULL};

        for (size_t c = 0; c < n_columns; c++) {
            if (columns[c].put) {
                columns[c].put(items[i], context, &text[c]);
            }
            cells[c] =
                columns[c].put ? text[c].data : api_json_str(items[i]->root, columns[c].pointer);
        }
        cli_table_row(&t, cells);
        for (size_t c = 0; c < n_columns; c++) {
            ferry_buf_done(&text[c]);
        }
    }
    cli_table_render(&t, out);
}

/* Those about `name` first, in their order; how many. */
static size_t keep(const struct listing *l, struct kube_list *list, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++) {
        struct api_object *o = list->items[i];

        if (!name || (l->about && l->about(o, name))) {
            list->items[i] = list->items[n];
            list->items[n++] = o;
        }
    }
    return n;
}

static int read_and_print(const struct listing *l, struct session *s, bool all, const char *name,
                          enum output_format format, struct ferry_error *err)
{
    kube_cleanup_list struct kube_list list = {0}, beside = {0};
    ferry_cleanup_buf struct ferry_buf out = {0};
    const char *ns = l->namespaced && !all ? s->ns : NULL;
    bool people = format == OUTPUT_TABLE || format == OUTPUT_WIDE;
    int rc = kube_client_list(s->client, kube_ref(l->kind, ns, NULL), NULL, &list, err);

    if (rc < 0 || (l->gather && (rc = l->gather(s, ns, &list, &beside, err)) < 0) ||
        (people && l->recall && (rc = l->recall(s, ns, &list, &beside, err)) < 0)) {
        return session_explain(err);
    }
    size_t n = keep(l, &list, name);
    if (!people) {
        output_objects(list.items, n, format, &out);
    } else if (n > 0) {
        const struct listing_context context = {ferry_now_unix_ms(), beside.items, beside.n};

        listing_render(l, list.items, n, &context, format == OUTPUT_WIDE, all, &out);
    } else {
        fprintf(stderr, "No %s%s%s%s%s%s%s.\n", l->what, name ? " about " : "", name ? name : "",
                ns ? " in namespace " : "", ns ? ns : "", l->advice ? "; " : "",
                l->advice ? l->advice : "");
    }
    fputs(out.data ? out.data : "", stdout);
    return FERRY_EXIT_OK;
}

int listing_verb(const struct listing *l, int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const char *output = NULL;
    enum output_format format;
    bool all = false;
    struct ferry_option options[OPTION_ROWS] = {
        OUTPUT_OPTION_ROW(&output),
        SESSION_OPTION_ROWS(&so),
    };
    const struct ferry_command cmd = {
        .name = l->name,
        .usage = l->about ? "[OPTION]... [NAME]" : "[OPTION]...",
        .summary = l->summary,
        .options = options,
    };
    session_cleanup struct session s = {0};

    if (l->namespaced) {
        options[3] = (struct ferry_option){"all-namespaces",    'A', FERRY_OPTION_FLAG, &all, NULL,
                                           "of every namespace"};
    }
    const struct cli_call call = {
        &cmd, &so, l->about ? "a name" : NULL, true, .output = &output, .format = &format};
    const char *name = NULL;
    int rc = cli_begin(&call, argc, argv, &name, &s, err);
    return rc < 0 ? rc : read_and_print(l, &s, all, name, format, err);
}
