/* Verbs for nodes: node list. */
#include "api/object.h"
#include "api/wire/wire_accelerator.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/verbs/verbs.h"
#include "cli/views/listing.h"
#include "cli/views/progress.h"

static void put_ready(const struct api_object *o, const struct listing_context *context,
                      struct ferry_buf *out)
{
    (void)context;
    ferry_buf_puts(out, api_condition_true(&o->u.node.conditions, CONDITION_READY) ? "yes" : "no");
}

static void put_takes(const struct api_object *o, const struct listing_context *context,
                      struct ferry_buf *out)
{
    (void)context;
    ferry_buf_puts(out, o->u.node.unschedulable ? "no, drained" : "yes");
}

static void put_vms(const struct api_object *o, const struct listing_context *context,
                    struct ferry_buf *out)
{
    size_t vms = 0;

    for (size_t i = 0; i < context->n_beside; i++) {
        const struct api_vmi *v = &context->beside[i]->u.vmi;

        vms += ferry_streq(v->node_name, o->meta->name) && wire_phase_is(v->phase, PHASE_RUNNING);
    }
    ferry_buf_printf(out, "%zu", vms);
}

static void put_address(const struct api_object *o, const struct listing_context *context,
                        struct ferry_buf *out)
{
    (void)context;
    ferry_buf_puts(out, o->u.node.internal_ip ? o->u.node.internal_ip : "");
}

static void put_memory(const struct api_object *o, const struct listing_context *context,
                       struct ferry_buf *out)
{
    char memory[PROGRESS_TEXT];

    (void)context;
    ferry_buf_puts(out, progress_bytes(o->u.node.memory_bytes, memory));
}

static void put_kvm(const struct api_object *o, const struct listing_context *context,
                    struct ferry_buf *out)
{
    (void)context;
    ferry_buf_puts(out, wire_accelerator_is_offered(&o->u.node) ? "yes" : "no");
}

static int gather(struct session *s, const char *ns, struct kube_list *list,
                  struct kube_list *beside, struct ferry_error *err)
{
    (void)ns;
    (void)list;
    return kube_client_list(s->client, kube_ref(API_KIND_VMI, NULL, NULL), NULL, beside, err);
}

static int node_list(int argc, char **argv, struct ferry_error *err)
{
    static const struct listing_column columns[] = {
        LISTING_NAME,
        {"READY", put_ready},
        {"TAKES VMS", put_takes},
        {"VMS", put_vms},
        {"AGE", listing_put_age},
        {"ADDRESS", put_address, .wide = true},
        {"MEMORY", put_memory, .wide = true},
        {"KVM", put_kvm, .wide = true},
        {0},
    };
    static const struct listing nodes = {
        .name = "ferry node list",
        .summary =
            "Lists nodes: whether they are ready and take virtual machines, and how many run\n"
            "there.",
        .kind = API_KIND_NODE,
        .columns = columns,
        .what = "nodes",
        .advice = "'ferry up' starts a site, 'ferry join' adds a host to one",
        .gather = gather,
    };

    return listing_verb(&nodes, argc, argv, err);
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
