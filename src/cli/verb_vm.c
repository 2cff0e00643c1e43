/* Verbs for virtual machines: create, list, delete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/object.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/manifest.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/table.h"

enum { STEP_MS = 100, DEFAULT_TIMEOUT_S = 120, MANIFEST_MAX = 1 << 20 };

/* ---- waiting ------------------------------------------------------------------------------- */

/* One step of a wait; 0 = look again. `what` completes "waiting for ...". */
static int wait_step(int64_t deadline_ns, const char *what, struct ferry_error *err)
{
    if (ferry_signals_wait(ferry_now_ns() + STEP_MS * FERRY_NS_PER_MS)) {
        return ferry_fail(err, FERRY_CANCELLED, "interrupted while waiting for %s", what);
    }
    if (ferry_ms_left(deadline_ns) == 0) {
        return ferry_fail(err, FERRY_RETRY,
                          "waited too long for %s; 'kubectl get vmi,pod' shows "
                          "how far it is",
                          what);
    }
    return 0;
}

static int wait_running(struct session *s, const char *ns, const char *name, int timeout_s,
                        struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + timeout_s * FERRY_NS_PER_S;
    ferry_cleanup_free char *what = ferry_asprintf("%s to run", name);

    for (;;) {
        api_cleanup_object struct api_object *o = NULL;
        int rc = kube_client_get(s->client, kube_ref(API_KIND_VMI, ns, name), &o, err);

        if (rc < 0) {
            return session_explain(err);
        }
        if (ferry_streq(o->u.vmi.phase, "Running")) {
            printf("%s runs on %s\n", name, o->u.vmi.node_name);
            return 0;
        }
        if (ferry_streq(o->u.vmi.phase, "Failed") || ferry_streq(o->u.vmi.phase, "Succeeded")) {
            return ferry_fail(err, FERRY_FATAL, "%s does not run: it is %s%s%s", name,
                              o->u.vmi.phase, o->u.vmi.reason ? ", reason " : "",
                              o->u.vmi.reason ? o->u.vmi.reason : "");
        }
        rc = wait_step(deadline, what, err);
        if (rc < 0) {
            return rc;
        }
    }
}

static int wait_gone(struct session *s, const char *name, const char *uid, int timeout_s,
                     struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + timeout_s * FERRY_NS_PER_S;
    ferry_cleanup_free char *what = ferry_asprintf("%s to go", name);

    for (;;) {
        api_cleanup_object struct api_object *o = NULL;
        int rc = kube_client_get(s->client, kube_ref(API_KIND_VMI, s->ns, name), &o, err);

        if (rc == -(int)FERRY_NOT_FOUND || (o && !ferry_streq(o->meta->uid, uid))) {
            return 0;
        }
        if (rc < 0) {
            return session_explain(err);
        }
        rc = wait_step(deadline, what, err);
        if (rc < 0) {
            return rc;
        }
    }
}

/* ---- create -------------------------------------------------------------------------------- */

struct create {
    struct session *session;
    const char *name; /* asked for, or NULL with a manifest */
    bool asked_ns, wait;
    int timeout_s;
    size_t documents;
};

static int create_json(struct create *c, const char *json, struct ferry_error *err)
{
    api_cleanup_object struct api_object *wish = NULL, *made = NULL;
    int rc = api_object_parse(API_KIND_VMI, json, strlen(json), &wish, err);

    if (rc < 0) {
        return rc;
    }
    const char *ns = wish->meta->namespace_;
    if (ns && c->asked_ns && !ferry_streq(ns, c->session->ns)) {
        return ferry_fail(err, FERRY_INVALID,
                          "the manifest is for namespace '%s', --namespace says '%s'", ns,
                          c->session->ns);
    }
    ns = ns ? ns : c->session->ns;
    rc = kube_client_create(c->session->client, kube_ref(API_KIND_VMI, ns, NULL), json, &made, err);
    if (rc == -(int)FERRY_CONFLICT) {
        return ferry_fail(err, FERRY_CONFLICT,
                          "there is a virtual machine '%s' in namespace '%s' already; choose "
                          "another name or delete that one",
                          wish->meta->name, ns);
    }
    if (rc < 0) {
        return session_explain(err);
    }
    printf("virtual machine %s created\n", made->meta->name);
    fflush(stdout);
    return c->wait ? wait_running(c->session, ns, made->meta->name, c->timeout_s, err) : 0;
}

/* Puts the name asked for into the object; owned by the caller. */
static char *with_name(yyjson_val *root, const char *name)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *copy = yyjson_val_mut_copy(doc, root);
    yyjson_mut_val *meta = yyjson_mut_obj_get(copy, "metadata");

    yyjson_mut_doc_set_root(doc, copy);
    if (name && !yyjson_mut_is_obj(meta)) {
        meta = yyjson_mut_obj(doc);
        yyjson_mut_obj_put(copy, yyjson_mut_str(doc, "metadata"), meta);
    }
    if (name) {
        yyjson_mut_obj_put(meta, yyjson_mut_str(doc, "name"), yyjson_mut_str(doc, name));
    }
    char *text = yyjson_mut_write(doc, 0, NULL);
    yyjson_mut_doc_free(doc);
    return text;
}

static int create_document(void *ctx, const char *json, size_t len, struct ferry_error *err)
{
    struct create *c = ctx;
    yyjson_doc *doc = NULL;
    int rc = api_json_parse(json, len, &doc, err);

    if (rc < 0) {
        return rc;
    }
    yyjson_val *root = yyjson_doc_get_root(doc);
    const struct api_resource *resource = NULL;

    c->documents++;
    if (api_resource_of_manifest(root, &resource, err) < 0) {
        rc = ferry_wrap(err, "document %zu", c->documents);
    } else if (resource->kind != API_KIND_VMI) {
        rc = ferry_fail(err, FERRY_INVALID,
                        "document %zu is a %s, not a VirtualMachineInstance; 'kubectl apply -f' "
                        "takes other kinds",
                        c->documents, resource->kind_name);
    } else if (c->name && c->documents > 1) {
        rc = ferry_fail(err, FERRY_INVALID,
                        "the manifest holds several objects: leave out the name '%s'", c->name);
    } else {
        ferry_cleanup_free char *text = with_name(root, c->name);

        rc = create_json(c, text, err);
    }
    yyjson_doc_free(doc);
    return rc;
}

static int create_from_file(struct create *c, const char *path, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    int rc = ferry_read_file(ferry_streq(path, "-") ? "/dev/stdin" : path, MANIFEST_MAX, &b, err);

    if (rc < 0) {
        return rc;
    }
    rc = api_yaml_each(b.data ? b.data : "", b.len, create_document, c, err);
    if (rc < 0) {
        return err->http ? rc : ferry_wrap(err, "%s", path);
    }
    return c->documents ? 0 : ferry_fail(err, FERRY_INVALID, "%s: there is no object in it", path);
}

static int vm_create(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    struct manifest_vm vm = {.memory = "128Mi", .dirty_rate = 1};
    struct create c = {.timeout_s = DEFAULT_TIMEOUT_S};
    const char *file = NULL;
    const struct ferry_option options[] = {
        {"memory", 0, FERRY_OPTION_STRING, &vm.memory, "SIZE", "memory of the guest (128Mi)"},
        {"dirty-rate", 0, FERRY_OPTION_INT, &vm.dirty_rate, "N",
         "MiB per second that the test guest rewrites (1)"},
        {"working-set", 0, FERRY_OPTION_INT, &vm.working_set, "N",
         "MiB that the test guest rewrites (a quarter of its memory)"},
        {"heartbeat", 0, FERRY_OPTION_INT, &vm.heartbeat, "N",
         "lines per second that the test guest writes on its serial line (20)"},
        {"file", 'f', FERRY_OPTION_STRING, &file, "MANIFEST",
         "create what this file describes instead of the test guest ('-': standard input)"},
        {"wait", 0, FERRY_OPTION_FLAG, &c.wait, NULL, "return when the guest runs"},
        {"timeout", 0, FERRY_OPTION_INT, &c.timeout_s, "S", "wait at most S seconds (120)"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry vm create",
        .usage = "[OPTION]... NAME",
        .summary =
            "Creates a virtual machine. Without a manifest it runs Ferry's small test guest,\n"
            "which writes a heartbeat, rewrites memory, and checks all of it on request.",
        .options = options,
    };
    int first = ferry_options_parse(&cmd, argc, argv, err);

    if (first < 0) {
        return first;
    }
    c.name = first < argc ? argv[first++] : NULL;
    if (!c.name && !file) {
        return ferry_fail(err, FERRY_INVALID, "a name is missing (see ferry vm create --help)");
    }
    int rc = cli_no_more(cmd.name, argc, argv, first, err);
    ferry_cleanup_free char *json = NULL;
    vm.name = c.name;
    if (rc == 0 && !file) {
        rc = manifest_vm(&vm, &json, err);
    }
    session_cleanup struct session s = {0};
    if (rc < 0 || (rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    ferry_signals_block();
    c.session = &s;
    c.asked_ns = so.ns != NULL;
    return json ? create_json(&c, json, err) : create_from_file(&c, file, err);
}

/* ---- list ---------------------------------------------------------------------------------- */

static void vm_row(struct table *t, const struct api_vmi *v, bool wide, bool all, int64_t now_ms)
{
    char memory[PROGRESS_TEXT], age[PROGRESS_TEXT];
    const struct api_migration_state *m = &v->migration;
    bool moving = m->present && m->uid && !m->completed && !m->failed;
    ferry_cleanup_free char *to =
        moving ? ferry_asprintf("to %s", m->target_node ? m->target_node : "?") : NULL;
    const struct api_condition *movable = api_condition_find(&v->conditions, "LiveMigratable");
    const char *cells[TABLE_COLUMNS];
    size_t n = 0;

    if (all) {
        cells[n++] = v->meta.namespace_;
    }
    cells[n++] = v->meta.name;
    cells[n++] = v->phase;
    cells[n++] = v->node_name;
    cells[n++] = progress_bytes(v->memory_bytes, memory);
    cells[n++] = progress_age(now_ms - v->meta.created_ms, age);
    cells[n++] = to;
    if (wide) {
        cells[n++] = movable ? movable->status : NULL;
        cells[n++] = v->meta.uid;
    }
    table_row(t, cells);
}

static void show_vms(const struct kube_list *list, bool wide, bool all)
{
    table_cleanup struct table t;
    ferry_cleanup_buf struct ferry_buf out = {0};
    const char *headers[TABLE_COLUMNS + 1] = {NULL};
    size_t n = 0;

    if (all) {
        headers[n++] = "NAMESPACE";
    }
    headers[n++] = "NAME";
    headers[n++] = "PHASE";
    headers[n++] = "NODE";
    headers[n++] = "MEMORY";
    headers[n++] = "AGE";
    headers[n++] = "MOVING";
    if (wide) {
        headers[n++] = "MIGRATABLE";
        headers[n++] = "UID";
    }
    table_init(&t, headers);
    for (size_t i = 0; i < list->n; i++) {
        vm_row(&t, &list->items[i]->u.vmi, wide, all, ferry_now_unix_ms());
    }
    table_render(&t, &out);
    fputs(out.data, stdout);
}

static int vm_list(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const char *output = NULL;
    enum output_format format;
    bool all = false;
    const struct ferry_option options[] = {
        {"all-namespaces", 'A', FERRY_OPTION_FLAG, &all, NULL, "of every namespace"},
        OUTPUT_OPTION_ROW(&output),
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry vm list",
        .usage = "[OPTION]...",
        .summary = "Lists virtual machines: where they run, and where they are moving to.",
        .options = options,
    };
    int rc = ferry_options_parse(&cmd, argc, argv, err);
    session_cleanup struct session s = {0};
    kube_cleanup_list struct kube_list list = {0};

    if (rc < 0 || (rc = cli_no_more(cmd.name, argc, argv, rc, err)) < 0 ||
        (rc = output_parse(output, &format, err)) < 0 || (rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    if (kube_client_list(s.client, kube_ref(API_KIND_VMI, all ? NULL : s.ns, NULL), NULL, &list,
                         err) < 0) {
        return session_explain(err);
    }
    if (format != OUTPUT_TABLE && format != OUTPUT_WIDE) {
        ferry_cleanup_buf struct ferry_buf out = {0};

        output_objects(list.items, list.n, format, &out);
        fputs(out.data ? out.data : "", stdout);
    } else if (list.n == 0) {
        fprintf(stderr, "No virtual machines%s%s; 'ferry vm create' makes one.\n",
                all ? "" : " in namespace ", all ? "" : s.ns);
    } else {
        show_vms(&list, format == OUTPUT_WIDE, all);
    }
    return FERRY_EXIT_OK;
}

/* ---- delete -------------------------------------------------------------------------------- */

static int delete_one(struct session *s, const char *name, bool wait, int timeout_s,
                      struct ferry_error *err)
{
    api_cleanup_object struct api_object *o = NULL;
    int rc = cli_get_vm(s, name, &o, err);

    if (rc < 0) {
        return rc;
    }
    rc = kube_client_delete(s->client, kube_ref_of(o),
                            &(struct kube_delete_options){.uid = o->meta->uid}, err);
    if (rc < 0 && rc != -(int)FERRY_NOT_FOUND) {
        return session_explain(err);
    }
    rc = wait ? wait_gone(s, name, o->meta->uid, timeout_s, err) : 0;
    if (rc == 0) {
        printf("virtual machine %s %s\n", name, wait ? "is gone" : "is being deleted");
    }
    return rc;
}

static int vm_delete(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    int timeout_s = DEFAULT_TIMEOUT_S;
    bool wait = false;
    const struct ferry_option options[] = {
        {"wait", 0, FERRY_OPTION_FLAG, &wait, NULL, "return when it is gone"},
        {"timeout", 0, FERRY_OPTION_INT, &timeout_s, "S", "wait at most S seconds (120)"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry vm delete",
        .usage = "[OPTION]... NAME...",
        .summary = "Shuts virtual machines down and deletes them.",
        .options = options,
    };
    int first = ferry_options_parse(&cmd, argc, argv, err), rc = 0;
    session_cleanup struct session s = {0};

    if (first < 0) {
        return first;
    }
    if (first == argc) {
        return ferry_fail(err, FERRY_INVALID, "a name is missing (see ferry vm delete --help)");
    }
    if ((rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    ferry_signals_block();
    for (int i = first; i < argc && rc == 0; i++) {
        rc = delete_one(&s, argv[i], wait, timeout_s, err);
    }
    return rc;
}

const struct cli_verb vm_verbs[] = {
    {"create", "create a virtual machine: the built-in test guest, or a manifest", vm_create},
    {"list", "list virtual machines", vm_list},
    {"console", "the serial line of a virtual machine, wherever it moves", verb_vm_console,
     .completes = "vms"},
    {"delete", "shut a virtual machine down and delete it", vm_delete, .completes = "vms"},
    {0},
};

int verb_vm(int argc, char **argv, struct ferry_error *err)
{
    return cli_dispatch("ferry vm",
                        "Creates, lists and deletes virtual machines, and shows their consoles.",
                        vm_verbs, argc, argv, err);
}
