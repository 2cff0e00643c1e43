/* The verb that makes virtual machines: from options, or from a manifest with what belongs to them.
 */
#include <stdio.h>
#include <string.h>

#include "api/object.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/output.h"
#include "cli/session/session.h"
#include "cli/verbs/manifest.h"
#include "cli/verbs/power.h"
#include "cli/verbs/verbs.h"
#include "cli/watch/vm_wait.h"
#include "json/doc.h"

enum { MANIFEST_MAX = 1 << 20 };

struct create {
    struct session *session;
    const char *name; /* asked for, or NULL with a manifest */
    bool asked_ns, wait;
    enum output_format format;
    int timeout_s;
    size_t documents;
};

static bool is_machine(enum api_kind kind)
{
    return kind == API_KIND_VM || kind == API_KIND_VMI;
}

/* Kinds that a virtual machine may need and that may stand in its manifest. */
static bool may_stand_beside(enum api_kind kind)
{
    return kind == API_KIND_VOLUME || kind == API_KIND_CLAIM || kind == API_KIND_CONFIG_MAP ||
           kind == API_KIND_SECRET || kind == API_KIND_NETWORK;
}

static int explain_conflict(const struct api_resource *r, const char *name, const char *ns,
                            struct ferry_error *err)
{
    return ferry_fail(err, FERRY_CONFLICT,
                      "there is a %s '%s'%s%s%s already; choose another name or delete that one",
                      is_machine(r->kind) ? "virtual machine" : r->singular, name,
                      ns ? " in namespace '" : "", ns ? ns : "", ns ? "'" : "");
}

/* A VirtualMachine and an instance of one name would be in each other's way. */
static int check_free(struct create *c, const struct api_resource *r, const char *name,
                      const char *ns, struct ferry_error *err)
{
    api_cleanup_object struct api_object *other = NULL;
    enum api_kind kind = r->kind == API_KIND_VM ? API_KIND_VMI : API_KIND_VM;

    if (!is_machine(r->kind) || ferry_str_empty(name)) {
        return 0;
    }
    int rc = kube_client_get(c->session->client, kube_ref(kind, ns, name), &other, err);
    return rc == 0 ? explain_conflict(r, name, ns, err) : 0;
}

static int begin(struct create *c, const struct api_object *made, struct ferry_error *err)
{
    if (made->kind != API_KIND_VM || !ferry_streq(made->u.vm.run_strategy, "Manual")) {
        return 0;
    }
    int rc = kube_client_patch(c->session->client, kube_ref_status(made), KUBE_PATCH_MERGE,
                               POWER_START_REQUEST, NULL, err);
    return rc < 0 ? ferry_wrap(err, "%s was created, but not started", made->meta->name) : 0;
}

static bool is_to_run(const struct api_object *made)
{
    return made->kind == API_KIND_VMI ||
           (made->kind == API_KIND_VM && !ferry_streq(made->u.vm.run_strategy, "Halted"));
}

static int create_json(struct create *c, const struct api_resource *r, const char *json,
                       struct ferry_error *err)
{
    api_cleanup_object struct api_object *wanted = NULL, *made = NULL;
    int rc = api_object_parse(r->kind, json, strlen(json), &wanted, err);

    if (rc < 0) {
        return rc;
    }
    const char *ns = wanted->meta->namespace_, *name = wanted->meta->name;
    if (ns && c->asked_ns && !ferry_streq(ns, c->session->ns)) {
        return ferry_fail(err, FERRY_INVALID,
                          "the manifest is for namespace '%s', --namespace says '%s'", ns,
                          c->session->ns);
    }
    ns = !r->namespaced ? NULL : ns ? ns : c->session->ns;
    if ((rc = check_free(c, r, name, ns, err)) < 0) {
        return rc;
    }
    rc = kube_client_create(c->session->client, kube_ref(r->kind, ns, NULL), json, &made, err);
    if (rc == -FERRY_CONFLICT) {
        return explain_conflict(r, name, ns, err);
    }
    if (rc < 0 || (rc = begin(c, made, err)) < 0) {
        return session_explain(err);
    }
    if (c->format == OUTPUT_TABLE || c->format == OUTPUT_WIDE) {
        printf("%s %s created\n", is_machine(r->kind) ? "virtual machine" : r->singular,
               made->meta->name);
    } else {
        output_print(made, c->format);
    }
    fflush(stdout);
    return c->wait && is_to_run(made)
               ? vm_wait_running(c->session, ns, made->meta->name, c->timeout_s, err)
               : 0;
}

/* Puts the name asked for into the object; owned by the caller. */
static char *with_name(yyjson_val *root, const char *name)
{
    yyjson_mut_doc *doc = json_doc_new();
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
    return json_doc_take(doc);
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
    } else if (!is_machine(resource->kind) && !may_stand_beside(resource->kind)) {
        rc = ferry_fail(err, FERRY_INVALID,
                        "document %zu is a %s, not a VirtualMachine, a VirtualMachineInstance or a "
                        "volume, claim, secret or network that they use; 'kubectl apply -f' takes "
                        "other kinds",
                        c->documents, resource->kind_name);
    } else if (c->name && c->documents > 1) {
        rc = ferry_fail(err, FERRY_INVALID,
                        "the manifest holds several objects: leave out the name '%s'", c->name);
    } else {
        ferry_cleanup_free char *text = with_name(root, c->name);

        rc = create_json(c, resource, text, err);
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

int verb_vm_create(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    struct manifest_vm vm = {.memory = "128Mi", .dirty_rate = 1};
    struct create c = {.timeout_s = VM_WAIT_DEFAULT_S};
    const char *file = NULL, *output = NULL;
    const struct ferry_option options[] = {
        {"memory", 0, FERRY_OPTION_STRING, &vm.memory, "SIZE", "memory of the guest (128Mi)"},
        {"dirty-rate", 0, FERRY_OPTION_INT, &vm.dirty_rate, "N",
         "MiB per second that the test guest rewrites (1)"},
        {"working-set", 0, FERRY_OPTION_INT, &vm.working_set, "N",
         "MiB that the test guest rewrites (a quarter of its memory)"},
        {"heartbeat", 0, FERRY_OPTION_INT, &vm.heartbeat, "N",
         "lines per second that the test guest writes on its serial line (20)"},
        {"run-strategy", 0, FERRY_OPTION_STRING, &vm.run_strategy, "STRATEGY",
         "Manual (you start it), Always, RerunOnFailure, Once, Halted"},
        {"file", 'f', FERRY_OPTION_STRING, &file, "MANIFEST",
         "create what this file describes instead ('-': standard input)"},
        {"wait", 0, FERRY_OPTION_FLAG, &c.wait, NULL, "return when the guest runs"},
        {"timeout", 0, FERRY_OPTION_INT, &c.timeout_s, "S", "wait at most S seconds (120)"},
        OUTPUT_OPTION_ROW(&output),
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry vm create",
        .usage = "[OPTION]... NAME",
        .summary =
            "Creates a virtual machine. Without a manifest it runs Ferry's small test guest,\n"
            "which writes a heartbeat, rewrites memory, and checks all of it on request. A\n"
            "manifest holds VirtualMachines or VirtualMachineInstances, and the volumes, claims,\n"
            "secrets and networks that they use.",
        .options = options,
    };
    const struct cli_call call = {&cmd, .what = "a name", .may_miss = true, .output = &output,
                                  .format = &c.format};
    int rc = cli_parse(&call, argc, argv, &c.name, err);

    if (rc == 0 && !c.name && !file) {
        return ferry_fail(err, FERRY_INVALID, "a name is missing (see ferry vm create --help)");
    }
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
    return json ? create_json(&c, api_resource_of_kind(API_KIND_VM), json, err)
                : create_from_file(&c, file, err);
}
