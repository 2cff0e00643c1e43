/* Verbs for virtual machines: list, delete, start, stop, pause, unpause. */
#include <stdio.h>

#include "api/object.h"
#include "api/wire/wire_accelerator.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/session.h"
#include "cli/verbs/power.h"
#include "cli/verbs/verbs.h"
#include "cli/views/listing.h"
#include "cli/views/progress.h"
#include "cli/watch/vm_wait.h"
#include "http/client.h"

enum { SUBRESOURCE_MS = 45000 };

/* ---- list ---------------------------------------------------------------------------------- */

/* The instance that a row is about: the VM's, or the row itself; NULL when it does not run. */
static const struct api_vmi *instance_of(const struct api_object *o,
                                         const struct listing_context *context)
{
    if (o->kind == API_KIND_VMI) {
        return &o->u.vmi;
    }
    const struct api_object *vmi =
        listing_find(context->beside, context->n_beside, o->meta->namespace_, o->meta->name);

    return vmi ? &vmi->u.vmi : NULL;
}

static void put_text(struct ferry_buf *out, const char *text)
{
    ferry_buf_puts(out, text ? text : "");
}

static void put_phase(const struct api_object *o, const struct listing_context *context,
                      struct ferry_buf *out)
{
    const struct api_vmi *v = instance_of(o, context);

    put_text(out, v && cli_vm_paused(v)      ? "Paused"
                  : v                        ? wire_phase_shown(v->phase)
                  : o->u.vm.printable_status ? o->u.vm.printable_status
                                             : "Stopped");
}

static void put_node(const struct api_object *o, const struct listing_context *context,
                     struct ferry_buf *out)
{
    const struct api_vmi *v = instance_of(o, context);

    put_text(out, v ? v->node_name : NULL);
}

static void put_memory(const struct api_object *o, const struct listing_context *context,
                       struct ferry_buf *out)
{
    const struct api_vmi *v = instance_of(o, context);
    char memory[PROGRESS_TEXT];

    if (v) {
        put_text(out, progress_bytes(v->memory_bytes, memory));
    } else {
        put_text(out, api_json_str(o->root, "/spec/template/spec/domain/memory/guest"));
    }
}

static void put_moving(const struct api_object *o, const struct listing_context *context,
                       struct ferry_buf *out)
{
    const struct api_vmi *v = instance_of(o, context);
    const struct api_migration_state *m = v ? &v->migration : NULL;

    if (m && m->present && m->uid && !m->completed && !m->failed) {
        ferry_buf_printf(out, "to %s", m->target_node ? m->target_node : "?");
    }
}

static void put_migratable(const struct api_object *o, const struct listing_context *context,
                           struct ferry_buf *out)
{
    const struct api_vmi *v = instance_of(o, context);
    const struct api_condition *c =
        v ? api_condition_find(&v->conditions, CONDITION_LIVE_MIGRATABLE) : NULL;

    put_text(out, c ? c->status : NULL);
}

static void put_accelerator(const struct api_object *o, const struct listing_context *context,
                            struct ferry_buf *out)
{
    const struct api_vmi *v = instance_of(o, context);

    put_text(out, v ? wire_accelerator_text(wire_accelerator_of_vmi(&v->meta)) : NULL);
}

static void put_strategy(const struct api_object *o, const struct listing_context *context,
                         struct ferry_buf *out)
{
    (void)context;
    put_text(out, o->kind == API_KIND_VM ? o->u.vm.run_strategy : "once created");
}

static bool has_owner(const struct api_object *vmi, const struct kube_list *vms, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ferry_streq(vms->items[i]->meta->name, vmi->meta->name) &&
            ferry_streq(vms->items[i]->meta->namespace_, vmi->meta->namespace_)) {
            return true;
        }
    }
    return false;
}

/* Virtual machines, and instances that stand for themselves. */
static int gather(struct session *s, const char *ns, struct kube_list *list,
                  struct kube_list *beside, struct ferry_error *err)
{
    size_t n = list->n;
    int rc = kube_client_list(s->client, kube_ref(API_KIND_VMI, ns, NULL), NULL, beside, err);

    for (size_t i = 0; i < beside->n; i++) {
        if (!has_owner(beside->items[i], list, n)) {
            list->items = ferry_xrealloc(list->items, list->n + 1, sizeof(*list->items));
            list->items[list->n++] = api_object_ref(beside->items[i]);
        }
    }
    return rc;
}

static int vm_list(int argc, char **argv, struct ferry_error *err)
{
    static const struct listing_column columns[] = {
        LISTING_NAME,
        {"PHASE", put_phase},
        {"NODE", put_node},
        {"MEMORY", put_memory},
        {"AGE", listing_put_age},
        {"MOVING", put_moving},
        {"MIGRATABLE", put_migratable, .wide = true},
        {"ACCELERATOR", put_accelerator, .wide = true},
        {"RUNS", put_strategy, .wide = true},
        {"UID", .wide = true, .pointer = "/metadata/uid"},
        {0},
    };
    static const struct listing vms = {
        .name = "ferry vm list",
        .summary = "Lists virtual machines: where they run, and where they are moving to.",
        .kind = API_KIND_VM,
        .namespaced = true,
        .columns = columns,
        .what = "virtual machines",
        .advice = "'ferry vm create' makes one",
        .gather = gather,
    };

    return listing_verb(&vms, argc, argv, err);
}

/* ---- several names, one after the other ------------------------------------------------------ */

struct each {
    bool wait;
    int timeout_s;
};

/* Runs `act` for every name on the command line; the first that fails ends it. */
static int for_each(const struct ferry_command *about, int argc, char **argv,
                    int (*act)(struct session *s, const char *name, const struct each *e,
                               struct ferry_error *err),
                    const char *wait_help, struct ferry_error *err)
{
    struct session_options so = {0};
    struct each e = {.timeout_s = VM_WAIT_DEFAULT_S};
    const struct ferry_option options[] = {
        {"wait", 0, FERRY_OPTION_FLAG, &e.wait, NULL, wait_help},
        {"timeout", 0, FERRY_OPTION_INT, &e.timeout_s, "S", "wait at most S seconds (120)"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    struct ferry_command cmd = *about;
    session_cleanup struct session s = {0};

    cmd.usage = "[OPTION]... NAME...";
    cmd.options = options;
    int first = ferry_options_parse(&cmd, argc, argv, err), rc = 0;
    if (first < 0) {
        return first;
    }
    if (first == argc) {
        return ferry_fail(err, FERRY_INVALID, "a name is missing (see %s --help)", cmd.name);
    }
    if ((rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    ferry_signals_block();
    for (int i = first; i < argc && rc == 0; i++) {
        rc = act(&s, argv[i], &e, err);
    }
    return rc;
}

/* The VM of that name; when there is none, *ret is NULL and it is no error. */
static int find(struct session *s, enum api_kind kind, const char *name, struct api_object **ret,
                struct ferry_error *err)
{
    int rc = kube_client_get(s->client, kube_ref(kind, s->ns, name), ret, err);

    return rc < 0 && rc != -FERRY_NOT_FOUND ? session_explain(err) : 0;
}

/* ---- delete -------------------------------------------------------------------------------- */

static int delete_one(struct session *s, const char *name, const struct each *e,
                      struct ferry_error *err)
{
    api_cleanup_object struct api_object *o = NULL, *vmi = NULL;
    int rc = find(s, API_KIND_VM, name, &o, err);

    if (rc < 0 || (!o && (rc = cli_get_vm(s, name, &o, err)) < 0) ||
        (rc = find(s, API_KIND_VMI, name, &vmi, err)) < 0) {
        return rc;
    }
    rc = kube_client_delete(s->client, kube_ref_of(o),
                            &(struct kube_delete_options){.uid = o->meta->uid}, err);
    if (rc < 0 && rc != -FERRY_NOT_FOUND) {
        return session_explain(err);
    }
    rc = e->wait ? vm_wait_gone(s, o, false, e->timeout_s, err) : 0;
    if (rc == 0 && e->wait && vmi) {
        rc = vm_wait_gone(s, vmi, false, e->timeout_s, err);
    }
    if (rc == 0) {
        printf("virtual machine %s %s\n", name, e->wait ? "is gone" : "is being deleted");
    }
    return rc;
}

static int vm_delete(int argc, char **argv, struct ferry_error *err)
{
    return for_each(&(struct ferry_command){.name = "ferry vm delete",
                                            .summary = "Shuts virtual machines down and deletes "
                                                       "them."},
                    argc, argv, delete_one, "return when they are gone", err);
}

/* ---- start, stop --------------------------------------------------------------------------- */

static int get_machine(struct session *s, const char *name, struct api_object **vm,
                       struct api_object **vmi, struct ferry_error *err)
{
    int rc = find(s, API_KIND_VM, name, vm, err);

    if (rc < 0 || (rc = find(s, API_KIND_VMI, name, vmi, err)) < 0 || *vm) {
        return rc;
    }
    return *vmi ? ferry_fail(err, FERRY_FATAL,
                             "%s is an instance without a VirtualMachine: it cannot be started or "
                             "stopped, only deleted ('ferry vm delete %s')",
                             name, name)
                : ferry_fail(err, FERRY_NOT_FOUND,
                             "there is no virtual machine '%s' in namespace '%s'; 'ferry vm list' "
                             "shows them",
                             name, s->ns);
}

/* What stood before must be gone before what is asked for can be seen. */
static int await_power(struct session *s, const struct api_object *vmi, const char *name,
                       enum power what, const struct each *e, struct ferry_error *err)
{
    int rc = 0;

    if (vmi && (what == POWER_STOP || wire_vmi_is_over(&vmi->u.vmi))) {
        rc = vm_wait_gone(s, vmi, what == POWER_STOP, e->timeout_s, err);
    }
    return rc == 0 && what == POWER_START ? vm_wait_running(s, s->ns, name, e->timeout_s, err) : rc;
}

static int switch_power(struct session *s, const char *name, enum power what, const struct each *e,
                        struct ferry_error *err)
{
    api_cleanup_object struct api_object *vm = NULL, *vmi = NULL;
    struct power_plan plan = {0};
    int rc = get_machine(s, name, &vm, &vmi, err);

    if (rc < 0 || (rc = power_decide(vm, vmi ? &vmi->u.vmi : NULL, what, &plan, err)) < 0) {
        return rc;
    }
    ferry_cleanup_free char *patch = plan.patch;
    if (patch) {
        rc = kube_client_patch(s->client, plan.status ? kube_ref_status(vm) : kube_ref_of(vm),
                               KUBE_PATCH_MERGE, patch, NULL, err);
    }
    if (rc < 0) {
        return session_explain(err);
    }
    if (plan.nothing) {
        printf("%s %s already\n", name, what == POWER_START ? "is started" : "is stopped");
    } else {
        printf("%s is being %s\n", name, what == POWER_START ? "started" : "stopped");
    }
    fflush(stdout);
    rc = e->wait ? await_power(s, vmi, name, what, e, err) : 0;
    if (rc == 0 && e->wait && what == POWER_STOP) {
        printf("%s is stopped\n", name);
    }
    return rc;
}

static int start_one(struct session *s, const char *name, const struct each *e,
                     struct ferry_error *err)
{
    return switch_power(s, name, POWER_START, e, err);
}

static int stop_one(struct session *s, const char *name, const struct each *e,
                    struct ferry_error *err)
{
    return switch_power(s, name, POWER_STOP, e, err);
}

static int vm_start(int argc, char **argv, struct ferry_error *err)
{
    return for_each(&(struct ferry_command){.name = "ferry vm start",
                                            .summary = "Starts virtual machines that stand, or "
                                                       "whose guest has ended."},
                    argc, argv, start_one, "return when they run", err);
}

static int vm_stop(int argc, char **argv, struct ferry_error *err)
{
    return for_each(&(struct ferry_command){.name = "ferry vm stop",
                                            .summary = "Shuts virtual machines down; they stay to "
                                                       "be started again."},
                    argc, argv, stop_one, "return when they stand", err);
}

/* ---- pause, unpause -------------------------------------------------------------------------- */

/* KubeVirt's own call: only the guest's node can do it, and the API server knows the way there. */
static int put_subresource(struct session *s, const char *name, const char *verb,
                           struct ferry_error *err)
{
    ferry_cleanup_free char *escaped = http_escape(name), *ns = http_escape(s->ns);
    ferry_cleanup_free char *path =
        ferry_asprintf("/apis/subresources.kubevirt.io/v1/namespaces/%s/virtualmachineinstances/"
                       "%s/%s",
                       ns, escaped, verb);
    ferry_cleanup_free char *what = ferry_asprintf("ferry vm %s %s", verb, name);
    http_cleanup_reply struct http_reply reply = {0};
    int rc = http_client_call(
        kube_client_http(s->client),
        &(struct http_call){.method = "PUT", .path = path, .timeout_ms = SUBRESOURCE_MS}, &reply,
        err);

    if (rc == 0 && reply.status / 100 != 2) {
        rc = kube_status_error(reply.status, reply.body.data, reply.body.len, what, err);
    }
    return rc < 0 ? session_explain(err) : 0;
}

static int pause_or_not(struct session *s, const char *name, bool pause, const struct each *e,
                        struct ferry_error *err)
{
    api_cleanup_object struct api_object *vmi = NULL;
    int rc = cli_get_vm(s, name, &vmi, err);

    if (rc < 0) {
        return rc;
    }
    if (cli_vm_paused(&vmi->u.vmi) == pause) {
        printf("%s %s already\n", name, pause ? "is paused" : "is not paused");
        return 0;
    }
    if ((rc = put_subresource(s, name, pause ? "pause" : "unpause", err)) < 0) {
        return rc;
    }
    printf("%s %s\n", name, pause ? "is paused" : "goes on");
    fflush(stdout);
    return e->wait ? vm_wait_paused(s, name, pause, e->timeout_s, err) : 0;
}

static int pause_one(struct session *s, const char *name, const struct each *e,
                     struct ferry_error *err)
{
    return pause_or_not(s, name, true, e, err);
}

static int unpause_one(struct session *s, const char *name, const struct each *e,
                       struct ferry_error *err)
{
    return pause_or_not(s, name, false, e, err);
}

static int vm_pause(int argc, char **argv, struct ferry_error *err)
{
    return for_each(&(struct ferry_command){.name = "ferry vm pause",
                                            .summary = "Makes guests stand still where they are; "
                                                       "one that is moved stays paused."},
                    argc, argv, pause_one, "return when their status says so", err);
}

static int vm_unpause(int argc, char **argv, struct ferry_error *err)
{
    return for_each(&(struct ferry_command){.name = "ferry vm unpause",
                                            .summary = "Lets guests that were paused go on."},
                    argc, argv, unpause_one, "return when their status says so", err);
}

const struct cli_verb vm_verbs[] = {
    {"create", "create a virtual machine: the built-in test guest, or a manifest", verb_vm_create},
    {"list", "list virtual machines", vm_list},
    {"start", "start a virtual machine", vm_start, .completes = "vms"},
    {"stop", "shut a virtual machine down, to be started again", vm_stop, .completes = "vms"},
    {"pause", "make a guest stand still, also across a move", vm_pause, .completes = "vms"},
    {"unpause", "let a paused guest go on", vm_unpause, .completes = "vms"},
    {"console", "the serial line of a virtual machine, wherever it moves", verb_vm_console,
     .completes = "vms"},
    {"delete", "shut a virtual machine down and delete it", vm_delete, .completes = "vms"},
    {0},
};

int verb_vm(int argc, char **argv, struct ferry_error *err)
{
    return cli_dispatch(
        "ferry vm",
        "Creates, lists, starts, stops, pauses and deletes virtual machines, and shows "
        "their consoles.",
        vm_verbs, argc, argv, err);
}
