#include "handler/node/node_cpu.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "api/json.h"
#include "api/machine_type.h"
#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"

static const char *const kinds[] = {LABEL_CPU_MODEL,   LABEL_CPU_MIGRATION, LABEL_CPU_FEATURE,
                                    LABEL_CPU_VENDOR,  LABEL_HOST_MODEL,    LABEL_HOST_FEATURES,
                                    LABEL_MACHINE_TYPE};

enum { NAME_MAX_LENGTH = 63, LABELS_MAX = 4096 };

bool node_cpu_is_kind(const char *label)
{
    for (size_t i = 0; i < FERRY_COUNT(kinds); i++) {
        if (ferry_str_starts(label, kinds[i])) {
            return true;
        }
    }
    return false;
}

/* What may stand behind the slash of a label's key. */
static bool is_label_name(const char *s)
{
    size_t n = strlen(s);

    if (n == 0 || n > NAME_MAX_LENGTH || !isalnum((unsigned char)s[0]) ||
        !isalnum((unsigned char)s[n - 1])) {
        return false;
    }
    for (; *s; s++) {
        if (!isalnum((unsigned char)*s) && !strchr("-_.", *s)) {
            return false;
        }
    }
    return true;
}

static bool add(struct node_cpu *c, const char *kind, const char *name)
{
    if (!name || !is_label_name(name) || c->n == LABELS_MAX) {
        return false;
    }
    c->labels = ferry_xrealloc(c->labels, c->n + 1, sizeof(*c->labels));
    c->labels[c->n++] = ferry_asprintf("%s%s", kind, name);
    return true;
}

static void add_each(struct node_cpu *c, const char *kind, yyjson_val *names)
{
    yyjson_val *v;
    size_t i, max;

    yyjson_arr_foreach(names, i, max, v)
    {
        add(c, kind, yyjson_get_str(v));
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_once(struct node_cpu *c)
{
    size_t kept = 0;

    if (c->n) {
        qsort(c->labels, c->n, sizeof(*c->labels), by_text);
    }
    for (size_t i = 0; i < c->n; i++) {
        if (kept && ferry_streq(c->labels[kept - 1], c->labels[i])) {
            free(c->labels[i]);
        } else {
            c->labels[kept++] = c->labels[i];
        }
    }
    c->n = kept;
}

int node_cpu_parse(const char *json, size_t len, struct node_cpu **ret, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    int rc = api_json_parse(json, len, &doc, err);

    if (rc < 0) {
        return ferry_wrap(err, "report of the CPU");
    }
    yyjson_val *root = yyjson_doc_get_root(doc), *models = yyjson_obj_get(root, "models");
    if (!yyjson_is_arr(models)) {
        return ferry_fail(err, FERRY_PEER, "report of the CPU: it names no models");
    }
    const char *host = api_json_str(root, "/hostModel");
    struct node_cpu *c = ferry_xcalloc(1, sizeof(*c));

    add_each(c, LABEL_CPU_MODEL, models);
    add_each(c, LABEL_CPU_MIGRATION, models);
    add_each(c, LABEL_CPU_FEATURE, yyjson_obj_get(root, "features"));
    add_each(c, LABEL_MACHINE_TYPE, yyjson_obj_get(root, "machines"));
    c->host_model = add(c, LABEL_HOST_MODEL, host);
    if (c->host_model) {
        yyjson_val *required = yyjson_obj_get(root, "requiredFeatures");

        /* A guest that came from here can come back, though no guest may ask for the model by name:
         * it is usable with the features that libvirt takes away from it. */
        add(c, LABEL_CPU_MIGRATION, host);
        add_each(c, LABEL_HOST_FEATURES, required);
        add_each(c, LABEL_CPU_FEATURE, required);
        add(c, LABEL_CPU_VENDOR, api_json_str(root, "/vendor"));
    }
    sort_once(c);
    *ret = c;
    return 0;
}

void node_cpu_free(struct node_cpu *c)
{
    while (c) {
        struct node_cpu *older = c->older;

        for (size_t i = 0; i < c->n; i++) {
            free(c->labels[i]);
        }
        free(c->labels);
        free(c);
        c = older;
    }
}

bool node_cpu_has(const struct node_cpu *c, const char *label)
{
    return c->n && bsearch(&label, c->labels, c->n, sizeof(*c->labels), by_text);
}

/* Lines that say what the CPU is, not what it does just now. */
char *node_cpu_identity(const char *cpuinfo)
{
    static const char *const names[] = {"vendor_id", "cpu family", "model",
                                        "stepping",  "microcode",  "flags"};
    struct ferry_buf b = {0};

    ferry_buf_puts(&b, "");
    for (const char *line = cpuinfo; *line && *line != '\n';) {
        size_t len = strcspn(line, "\n");

        for (size_t i = 0; i < FERRY_COUNT(names); i++) {
            if (ferry_str_starts(line, names[i])) { /* "model name" too */
                ferry_buf_printf(&b, "%.*s\n", (int)len, line);
                break;
            }
        }
        line += len + (line[len] == '\n');
    }
    return b.data;
}
