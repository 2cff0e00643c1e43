/* Verbs for migration policies: list, show, create, delete. */
#include <stdio.h>

#include "api/object.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/output.h"
#include "cli/session/session.h"
#include "cli/verbs/manifest.h"
#include "cli/verbs/verbs.h"
#include "cli/views/listing.h"
#include "json/doc.h"

static struct kube_ref policy_ref(const char *name)
{
    return kube_ref(API_KIND_POLICY, NULL, name);
}

static int explain_missing(int rc, const char *name, struct ferry_error *err)
{
    if (rc == -FERRY_NOT_FOUND) {
        return ferry_fail(err, FERRY_NOT_FOUND,
                          "there is no policy '%s'; 'ferry policy list' shows them", name);
    }
    return rc < 0 ? session_explain(err) : 0;
}

/* ---- list ---------------------------------------------------------------------------------- */

/* The members of an object as "key=value key=value". */
static void put_pairs(const yyjson_val *o, const char *without, struct ferry_buf *out)
{
    size_t i, n;
    yyjson_val *key, *value;

    yyjson_obj_foreach((yyjson_val *)o, i, n, key, value)
    {
        if (ferry_streq(yyjson_get_str(key), without)) {
            continue;
        }
        ferry_cleanup_free char *json = json_doc_val_text(value, 0, NULL);
        const char *text = yyjson_get_str(value);

        ferry_buf_printf(out, "%s%s=%s", out->len ? " " : "", yyjson_get_str(key),
                         text   ? text
                         : json ? json
                                : "?");
    }
}

static yyjson_val *spec_of(const struct api_object *o)
{
    return yyjson_obj_get((yyjson_val *)o->root, "spec");
}

static void put_vms(const struct api_object *o, const struct listing_context *context,
                    struct ferry_buf *out)
{
    (void)context;
    put_pairs(yyjson_ptr_get(spec_of(o), "/selectors/virtualMachineInstanceSelector"), NULL, out);
}

static void put_namespaces(const struct api_object *o, const struct listing_context *context,
                           struct ferry_buf *out)
{
    (void)context;
    put_pairs(yyjson_ptr_get(spec_of(o), "/selectors/namespaceSelector"), NULL, out);
}

static void put_settings(const struct api_object *o, const struct listing_context *context,
                         struct ferry_buf *out)
{
    (void)context;
    put_pairs(spec_of(o), "selectors", out);
}

static int policy_list(int argc, char **argv, struct ferry_error *err)
{
    static const struct listing_column columns[] = {
        LISTING_NAME,
        {"VMS WITH", put_vms},
        {"NAMESPACES WITH", put_namespaces},
        {"SETTINGS", put_settings},
        {"AGE", listing_put_age, .wide = true},
        {0},
    };
    static const struct listing policies = {
        .name = "ferry policy list",
        .summary = "Lists migration policies: whom they are for, and what they say.",
        .kind = API_KIND_POLICY,
        .columns = columns,
        .what = "policies",
        .advice = "the KubeVirt object's settings are for every move; 'ferry policy create' makes "
                  "one",
    };

    return listing_verb(&policies, argc, argv, err);
}

/* ---- show ---------------------------------------------------------------------------------- */

static int policy_show(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const char *output = "yaml";
    enum output_format format;
    const struct ferry_option options[] = {
        OUTPUT_OPTION_ROW(&output),
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry policy show",
        .usage = "[OPTION]... NAME",
        .summary = "Shows one migration policy, as YAML unless told otherwise.",
        .options = options,
    };
    const struct cli_call call = {&cmd, &so, "a name", .output = &output, .format = &format};
    const char *name = NULL;
    session_cleanup struct session s = {0};
    api_cleanup_object struct api_object *o = NULL;
    ferry_cleanup_buf struct ferry_buf out = {0};
    int rc = cli_begin(&call, argc, argv, &name, &s, err);

    if (rc < 0) {
        return rc;
    }
    rc = kube_client_get(s.client, policy_ref(name), &o, err);
    if (rc < 0) {
        return explain_missing(rc, name, err);
    }
    output_object(o, format, &out);
    fputs(out.data, stdout);
    return FERRY_EXIT_OK;
}

/* ---- create -------------------------------------------------------------------------------- */

static int policy_create(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const char *output = NULL;
    enum output_format format;
    struct manifest_policy p = {.completion_timeout_s = -1, .max_downtime_ms = -1};
    const struct ferry_option options[] = {
        {"vm-label", 0, FERRY_OPTION_LIST, &p.vm_labels, "KEY=VALUE",
         "for virtual machines with this label (may be given more than once)"},
        {"namespace-label", 0, FERRY_OPTION_LIST, &p.namespace_labels, "KEY=VALUE",
         "for namespaces with this label (may be given more than once)"},
        {"allow-auto-converge", 0, FERRY_OPTION_FLAG, &p.auto_converge, NULL,
         "a guest that writes too fast may be slowed down"},
        {"allow-post-copy", 0, FERRY_OPTION_FLAG, &p.post_copy, NULL,
         "the guest may run on the target before all memory is there"},
        {"allow-disruption", 0, FERRY_OPTION_FLAG, &p.disruption, NULL,
         "the guest may be stopped for the rest of the transfer"},
        {"bandwidth", 0, FERRY_OPTION_STRING, &p.bandwidth, "SIZE",
         "bytes per second of one move at most (64Mi); 0 = no limit"},
        {"completion-timeout", 0, FERRY_OPTION_INT, &p.completion_timeout_s, "S",
         "seconds per GiB that a move may take"},
        {"max-downtime", 0, FERRY_OPTION_INT, &p.max_downtime_ms, "MS",
         "milliseconds that the guest may stand still"},
        OUTPUT_OPTION_ROW(&output),
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry policy create",
        .usage = "[OPTION]... NAME",
        .summary =
            "Creates a migration policy: settings for the moves of some virtual machines. What it\n"
            "does not set stays as in the KubeVirt object. The policy that matches most labels\n"
            "wins; one without labels matches every virtual machine.",
        .options = options,
    };
    const struct cli_call call = {&cmd, &so, "a name", .output = &output, .format = &format};
    session_cleanup struct session s = {0};
    api_cleanup_object struct api_object *made = NULL;
    ferry_cleanup_free char *json = NULL;
    int rc = cli_parse(&call, argc, argv, &p.name, err);

    if (rc < 0 || (rc = manifest_policy(&p, &json, err)) < 0 ||
        (rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    rc = kube_client_create(s.client, policy_ref(NULL), json, &made, err);
    if (rc == -FERRY_CONFLICT) {
        return ferry_fail(err, FERRY_CONFLICT,
                          "there is a policy '%s' already; delete it or choose another name",
                          p.name);
    }
    if (rc < 0) {
        return session_explain(err);
    }
    if (format != OUTPUT_TABLE && format != OUTPUT_WIDE) {
        output_print(made, format);
        return FERRY_EXIT_OK;
    }
    printf("policy %s created; it is for moves that begin from now on\n", p.name);
    return FERRY_EXIT_OK;
}

/* ---- delete -------------------------------------------------------------------------------- */

static int policy_delete(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const struct ferry_option options[] = {
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry policy delete",
        .usage = "[OPTION]... NAME...",
        .summary = "Deletes migration policies. Moves that have begun keep their settings.",
        .options = options,
    };
    int first = ferry_options_parse(&cmd, argc, argv, err), rc;
    session_cleanup struct session s = {0};

    if (first < 0) {
        return first;
    }
    if (first == argc) {
        return ferry_fail(err, FERRY_INVALID, "a name is missing (see ferry policy delete --help)");
    }
    if ((rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    for (int i = first; i < argc; i++) {
        rc = kube_client_delete(s.client, policy_ref(argv[i]), NULL, err);
        if (rc < 0) {
            return explain_missing(rc, argv[i], err);
        }
        printf("policy %s deleted\n", argv[i]);
    }
    return FERRY_EXIT_OK;
}

const struct cli_verb policy_verbs[] = {
    {"list", "list policies", policy_list},
    {"show", "show a policy", policy_show, .completes = "policies"},
    {"create", "create a policy", policy_create},
    {"delete", "delete policies", policy_delete, .completes = "policies"},
    {0},
};

int verb_policy(int argc, char **argv, struct ferry_error *err)
{
    return cli_dispatch("ferry policy",
                        "Settings for the moves of some virtual machines, chosen by labels.",
                        policy_verbs, argc, argv, err);
}
