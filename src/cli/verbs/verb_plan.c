/* The verb that predicts a move. */
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "api/policy.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/node_client.h"
#include "cli/session/output.h"
#include "cli/verbs/preflight.h"
#include "cli/verbs/verbs.h"
#include "cli/views/plan_text.h"
#include "cli/views/progress.h"

/* What the settings are made from; those that may not be read count as absent. */
struct settings {
    struct kube_list kubevirts, policies;
    struct api_object *ns;
};

static void settings_done(struct settings *s)
{
    kube_list_done(&s->kubevirts);
    kube_list_done(&s->policies);
    api_object_unref(s->ns);
}

static void read_settings(struct session *s, struct settings *ret)
{
    struct ferry_error err;

    kube_client_list(
        s->client,
        (struct kube_ref){.resource = api_resource_find("kubevirt.io", "v1", "kubevirts")}, NULL,
        &ret->kubevirts, &err);
    kube_client_list(
        s->client,
        (struct kube_ref){.resource = api_resource_find("migrations.kubevirt.io", "v1alpha1",
                                                        "migrationpolicies")},
        NULL, &ret->policies, &err);
    kube_client_get(
        s->client,
        (struct kube_ref){.resource = api_resource_find("", "v1", "namespaces"), .name = s->ns},
        &ret->ns, &err);
}

/* The body of the question: where to, and under which settings. */
static char *question(struct session *s, const struct api_vmi *vm, const char *to, char **policy,
                      struct ferry_error *err)
{
    ferry_cleanup(settings_done) struct settings all = {0};
    const struct api_object *chosen = NULL;

    read_settings(s, &all);
    const struct policy_sources sources = {
        .kubevirt = all.kubevirts.n ? all.kubevirts.items[0] : NULL,
        .policies = (const struct api_object *const *)all.policies.items,
        .n_policies = all.policies.n,
        .ns_labels = all.ns ? &all.ns->meta->labels : NULL,
        .vmi_labels = &vm->meta.labels,
    };
    ferry_cleanup_free char *config = policy_resolve(&sources, &chosen, err);
    if (!config) {
        return NULL;
    }
    *policy = chosen ? ferry_strdup(chosen->meta->name) : NULL;
    return ferry_asprintf("{%s%s%s\"configuration\":%s}", to ? "\"to\":\"" : "", to ? to : "",
                          to ? "\"," : "", config);
}

/* Without a wish: the one node that is left to move to, if it is one. */
static const char *only_target(const struct kube_list *nodes, const struct api_vmi *vm)
{
    const char *found = NULL;

    for (size_t i = 0; i < nodes->n; i++) {
        const struct api_node *n = &nodes->items[i]->u.node;

        if (ferry_streq(n->meta.name, vm->node_name) || !preflight_usable(n)) {
            continue;
        }
        if (found) {
            return NULL;
        }
        found = n->meta.name;
    }
    return found;
}

/* Returns when the guest has run for long enough to be sampled. */
static void let_it_boot(const char *name, int64_t started_ms)
{
    int64_t now = ferry_now_unix_ms(), wait = plan_text_too_early_ms(started_ms, now);
    char text[PROGRESS_TEXT];

    if (wait > 0) {
        fprintf(stderr,
                "%s was started just now: it is sampled in %s, when it should have booted\n", name,
                progress_seconds((wait + 999) / 1000, text));
        ferry_sleep_ms(wait);
    }
}

static int plan(struct session *s, const char *name, const char *to, enum output_format format,
                struct ferry_error *err)
{
    api_cleanup_object struct api_object *vm = NULL;
    kube_cleanup_list struct kube_list nodes = {0};
    http_cleanup_reply struct http_reply reply = {0};
    ferry_cleanup_buf struct ferry_buf out = {0};
    ferry_cleanup_free char *policy = NULL;
    struct plan_text p;
    int rc = cli_get_vm(s, name, &vm, err);

    if (rc < 0) {
        return rc;
    }
    if (kube_client_list(s->client, kube_ref(API_KIND_NODE, NULL, NULL), NULL, &nodes, err) < 0) {
        return session_explain(err);
    }
    rc = preflight_check(&vm->u.vmi, nodes.items, nodes.n, to, err);
    if (rc < 0) {
        return rc;
    }
    int64_t started = plan_text_started_ms(vm);
    let_it_boot(name, started);
    to = to ? to : only_target(&nodes, &vm->u.vmi);
    ferry_cleanup_free char *body = question(s, &vm->u.vmi, to, &policy, err);
    ferry_cleanup_free char *path = ferry_asprintf("/v1/plan/%s/%s", s->ns, name);
    if (!body) {
        return -(int)err->cls;
    }
    if ((rc = node_client_post(s, vm->u.vmi.node_name, path, body, strlen(body), &reply, err)) <
            0 ||
        (rc = plan_text_parse(reply.body.data, reply.body.len, &p, err)) < 0) {
        return rc;
    }
    if (format == OUTPUT_JSON) {
        ferry_buf_printf(&out, "%s\n", reply.body.data);
    } else if (format == OUTPUT_YAML) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(reply.body.data, reply.body.len, 0);

        output_yaml(yyjson_doc_get_root(doc), &out);
    } else {
        plan_text_render(&p, name, vm->u.vmi.node_name, to, policy,
                         wire_accelerator_of_vmi(vm->meta),
                         started ? ferry_now_unix_ms() - started : -1, &out);
    }
    fputs(out.data, stdout);
    return FERRY_EXIT_OK;
}

int verb_plan(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const char *output = NULL, *to = NULL;
    enum output_format format;
    const struct ferry_option options[] = {
        {"to", 0, FERRY_OPTION_STRING, &to, "NODE", "as if it moved there (any other node)"},
        {"output", 'o', FERRY_OPTION_STRING, &output, "FORMAT", "json or yaml"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry plan",
        .usage = "[OPTION]... VM",
        .summary =
            "Predicts a move without making it: how much there is to send, how fast the\n"
            "guest dirties memory (sampled for a second), and what follows from the\n"
            "settings: rounds, time and downtime, at best and at worst. A guest that was just\n"
            "started is sampled when it has run for 10 seconds.",
        .options = options,
    };
    const struct cli_call call = {&cmd, &so, "the name of a virtual machine", .output = &output,
                                  .format = &format};
    const char *name = NULL;
    session_cleanup struct session s = {0};
    int rc = cli_parse(&call, argc, argv, &name, err);

    if (rc < 0) {
        return rc;
    }
    if (format != OUTPUT_TABLE && format != OUTPUT_JSON && format != OUTPUT_YAML) {
        return ferry_fail(err, FERRY_INVALID, "a plan is text, json or yaml, not '%s'", output);
    }
    rc = session_open(&so, &s, err);
    return rc < 0 ? rc : plan(&s, name, to, format, err);
}
