/* Verbs for nodes: node list. */
#include <inttypes.h>
#include <stdio.h>

#include "api/object.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/table.h"

static void node_row(struct table *t, const struct api_node *n, const struct kube_list *vmis,
                     bool wide, int64_t now_ms)
{
    char age[PROGRESS_TEXT], count[PROGRESS_TEXT], memory[PROGRESS_TEXT];
    size_t vms = 0;

    for (size_t i = 0; i < vmis->n; i++) {
        const struct api_vmi *v = &vmis->items[i]->u.vmi;

        vms += ferry_streq(v->node_name, n->meta.name) && ferry_streq(v->phase, "Running");
    }
    snprintf(count, sizeof(count), "%zu", vms);
    const char *cells[TABLE_COLUMNS] = {
        n->meta.name,
        api_condition_true(&n->conditions, "Ready") ? "yes" : "no",
        n->unschedulable ? "no, drained" : "yes",
        count,
        progress_age(now_ms - n->meta.created_ms, age),
    };
    if (wide) {
        cells[5] = n->internal_ip;
        cells[6] = progress_bytes(n->memory_bytes, memory);
    }
    table_row(t, cells);
}

static void show_nodes(const struct kube_list *nodes, const struct kube_list *vmis, bool wide)
{
    const char *headers[] = {"NAME", "READY", "TAKES VMS", "VMS", "AGE", "ADDRESS", "MEMORY", NULL};
    table_cleanup struct table t;
    ferry_cleanup_buf struct ferry_buf out = {0};

    if (!wide) {
        headers[5] = NULL;
    }
    table_init(&t, headers);
    for (size_t i = 0; i < nodes->n; i++) {
        node_row(&t, &nodes->items[i]->u.node, vmis, wide, ferry_now_unix_ms());
    }
    table_render(&t, &out);
    fputs(out.data, stdout);
}

static int node_list(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const char *output = NULL;
    enum output_format format;
    const struct ferry_option options[] = {
        OUTPUT_OPTION_ROW(&output),
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry node list",
        .usage = "[OPTION]...",
        .summary =
            "Lists nodes: whether they are ready and take virtual machines, and how many run\n"
            "there.",
        .options = options,
    };
    int rc = ferry_options_parse(&cmd, argc, argv, err);
    session_cleanup struct session s = {0};
    kube_cleanup_list struct kube_list nodes = {0}, vmis = {0};

    if (rc < 0 || (rc = cli_no_more(cmd.name, argc, argv, rc, err)) < 0 ||
        (rc = output_parse(output, &format, err)) < 0 || (rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    if (kube_client_list(s.client, kube_ref(API_KIND_NODE, NULL, NULL), NULL, &nodes, err) < 0) {
        return session_explain(err);
    }
    if (format != OUTPUT_TABLE && format != OUTPUT_WIDE) {
        ferry_cleanup_buf struct ferry_buf out = {0};

        output_objects(nodes.items, nodes.n, format, &out);
        fputs(out.data ? out.data : "", stdout);
        return FERRY_EXIT_OK;
    }
    if (kube_client_list(s.client, kube_ref(API_KIND_VMI, NULL, NULL), NULL, &vmis, err) < 0) {
        return session_explain(err);
    }
    show_nodes(&nodes, &vmis, format == OUTPUT_WIDE);
    return FERRY_EXIT_OK;
}

const struct cli_verb node_verbs[] = {
    {"list", "list nodes", node_list},
    {"remove", "take a node out of the site", verb_node_remove, .completes = "nodes"},
    {0},
};

int verb_node(int argc, char **argv, struct ferry_error *err)
{
    return cli_dispatch("ferry node", "Lists and removes nodes of the site.", node_verbs, argc,
                        argv, err);
}
