#include "apiserver/action/subresource.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "apiserver/action/power.h"
#include "apiserver/object/prepare.h"
#include "apiserver/request/finish.h"
#include "apiserver/request/rights.h"
#include "apiserver/request/write.h"
#include "base/str.h"
#include "json/doc.h"

static const char prefix[] = "/apis/subresources.kubevirt.io/";
enum { PART = 254 };

struct call {
    char version[PART], ns[PART], plural[PART], name[PART], verb[PART];
};

bool subresource_is_path(const char *path)
{
    return ferry_str_starts(path, prefix) && strstr(path, "/namespaces/");
}

static bool parse(const char *path, struct call *ret)
{
    int end = 0;

    return sscanf(path + strlen(prefix), "%253[^/]/namespaces/%253[^/]/%253[^/]/%253[^/]/%253s%n",
                  ret->version, ret->ns, ret->plural, ret->name, ret->verb, &end) == 5 &&
           (ferry_streq(ret->version, "v1") || ferry_streq(ret->version, "v1alpha3")) &&
           (ferry_streq(ret->plural, "virtualmachines") ||
            ferry_streq(ret->plural, "virtualmachineinstances"));
}

/* The VMI of that name, or a 404. */
static struct entry *find_vmi(struct request *r, const struct call *c)
{
    const struct api_resource *vmis = api_resource_of_kind(API_KIND_VMI);
    struct entry *e = store_get(r->store, vmis, c->ns, c->name);

    if (!e) {
        status_not_found(&r->st, vmis, c->name);
    }
    return e;
}

/* ---- migrate -----------------------------------------------------------------------------------
 */

static yyjson_mut_doc *new_migration(const struct call *c, const yyjson_val *options)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_val *selector = yyjson_obj_get((yyjson_val *)options, "addedNodeSelector");

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, yyjson_mut_obj_add_obj(doc, root, "metadata"), "generateName",
                           "kubevirt-migrate-vm-");
    yyjson_mut_val *spec = yyjson_mut_obj_add_obj(doc, root, "spec");
    yyjson_mut_obj_add_strcpy(doc, spec, "vmiName", c->name);
    if (yyjson_obj_size(selector)) {
        yyjson_mut_obj_add_val(doc, spec, "addedNodeSelector", yyjson_val_mut_copy(doc, selector));
    }
    return doc;
}

static int check_running(struct request *r, const struct call *c)
{
    cleanup_entry struct entry *e = find_vmi(r, c);

    if (!e) {
        return -1;
    }
    api_cleanup_doc yyjson_doc *vmi = entry_doc(e);
    if (!wire_phase_is(api_json_str(yyjson_doc_get_root(vmi), "/status/phase"), PHASE_RUNNING)) {
        return status_conflict(&r->st, e->resource, c->name, "VM is not running");
    }
    return 0;
}

static int migrate(struct request *r, const struct call *c, const yyjson_val *options)
{
    bool dry_run = yyjson_arr_size(yyjson_obj_get((yyjson_val *)options, "dryRun")) > 0;
    api_cleanup_mut_doc yyjson_mut_doc *doc = new_migration(c, options);

    if (check_running(r, c) < 0) {
        return -1;
    }
    r->route =
        (struct route){.resource = api_resource_of_kind(API_KIND_MIGRATION), .verb = ROUTE_CREATE};
    snprintf(r->route.ns, sizeof(r->route.ns), "%s", c->ns);
    r->auth = AUTH_YES;
    return write_create_document(r, doc, dry_run, 202);
}

/* ---- evacuate/cancel ---------------------------------------------------------------------------
 */

/* nodeDrainTaintKey of the site; owned by the caller. */
static char *drain_key(struct request *r)
{
    cleanup_entry_list struct entry_list list = {0};

    store_list(r->store, api_resource_find("kubevirt.io", "v1", "kubevirts"), NULL, &list);
    for (size_t i = 0; i < list.n; i++) {
        api_cleanup_doc yyjson_doc *doc = entry_doc(list.items[i]);
        const char *key = api_json_str(yyjson_doc_get_root(doc),
                                       "/spec/configuration/migrations/nodeDrainTaintKey");

        if (!ferry_str_empty(key)) {
            return ferry_strdup(key);
        }
    }
    return ferry_strdup(TAINT_DRAIN);
}

/* All machines are to leave the node: one that stays would be marked again at once. */
static bool is_drained(struct request *r, const char *node)
{
    cleanup_entry struct entry *e =
        store_get(r->store, api_resource_of_kind(API_KIND_NODE), "", node);
    api_cleanup_doc yyjson_doc *doc = entry_doc(e);
    yyjson_val *taints = yyjson_ptr_get(yyjson_doc_get_root(doc), "/spec/taints"), *t;
    ferry_cleanup_free char *key = drain_key(r);
    size_t i, max;

    yyjson_arr_foreach(taints, i, max, t)
    {
        if (ferry_streq(api_json_str(t, "/key"), key)) {
            return true;
        }
    }
    return false;
}

/* Ends the transaction. */
static int unmark(struct request *r, const struct call *c, const char *node, bool dry_run)
{
    cleanup_entry struct entry *e = find_vmi(r, c);
    api_cleanup_doc yyjson_doc *old = entry_doc(e);
    const char *marked = api_json_str(yyjson_doc_get_root(old), "/status/evacuationNodeName");
    struct ferry_error err;

    if (marked && is_drained(r, marked)) {
        status_fail(&r->st, 400, "all machines are to leave node \"%.250s\": it is tainted",
                    marked);
        return finish_unchanged(r, -1, 0, NULL);
    }
    if (!e || !marked || dry_run) {
        return finish_unchanged(r, e ? 0 : -1, 0, NULL);
    }
    if (!ferry_str_empty(node) && !ferry_streq(node, marked)) {
        status_conflict(&r->st, e->resource, c->name, "the VMI is asked to leave another node");
        return finish_unchanged(r, -1, 0, NULL);
    }
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_copy(old);
    yyjson_mut_obj_remove_key(yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "status"),
                              "evacuationNodeName");
    if (store_put(r->store, e->resource, e->ns, e->name, doc, &err) < 0) {
        return finish_unchanged(r, finish_failed(r, &err), 0, NULL);
    }
    return store_commit(r->store, NULL, &err) < 0 ? finish_failed(r, &err) : 0;
}

static int cancel_evacuation(struct request *r, const struct call *c, const yyjson_val *options)
{
    bool dry_run = yyjson_arr_size(yyjson_obj_get((yyjson_val *)options, "dryRun")) > 0;

    if (!options) {
        return status_fail(&r->st, 400, "the request has no body");
    }
    store_begin(r->store);
    if (unmark(r, c, api_json_str(options, "/evacuationNodeName"), dry_run) < 0) {
        return -1;
    }
    request_answer_status(r, &(struct status){.code = 200});
    return 0;
}

/* ---- start, stop, restart -----------------------------------------------------------------------
 */

/* Ends the transaction. */
static int change_power(struct request *r, const struct call *c, bool dry_run)
{
    const struct api_resource *vms = api_resource_of_kind(API_KIND_VM);
    cleanup_entry struct entry *e = store_get(r->store, vms, c->ns, c->name);
    cleanup_entry struct entry *instance =
        store_get(r->store, api_resource_of_kind(API_KIND_VMI), c->ns, c->name);
    api_cleanup_doc yyjson_doc *old = entry_doc(e);
    api_cleanup_doc yyjson_doc *vmi = entry_doc(instance);
    api_cleanup_mut_doc yyjson_mut_doc *doc = old ? json_doc_copy(old) : NULL;
    struct ferry_error err;
    int rc = 0;

    if (!e) {
        rc = status_not_found(&r->st, vms, c->name);
    } else {
        rc = power_request(c->verb, c->name, doc, yyjson_doc_get_root(vmi), &r->st);
    }
    if (rc < 0 || dry_run) {
        return finish_unchanged(r, rc, 0, NULL);
    }
    prepare_generation(yyjson_doc_get_root(old), doc);
    if (store_put(r->store, e->resource, e->ns, e->name, doc, &err) < 0) {
        return finish_unchanged(r, finish_failed(r, &err), 0, NULL);
    }
    return store_commit(r->store, NULL, &err) < 0 ? finish_failed(r, &err) : 0;
}

static int power(struct request *r, const struct call *c, const yyjson_val *options)
{
    bool dry_run = yyjson_arr_size(yyjson_obj_get((yyjson_val *)options, "dryRun")) > 0;

    store_begin(r->store);
    if (change_power(r, c, dry_run) < 0) {
        return -1;
    }
    request_answer_status(r, &(struct status){.code = 202});
    return 0;
}

/* ---- pause, unpause -----------------------------------------------------------------------------
 */

static bool is_paused(const yyjson_val *vmi)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)vmi, "/status/conditions"), *c;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, c)
    {
        if (ferry_streq(api_json_str(c, "/type"), CONDITION_PAUSED)) {
            return ferry_streq(api_json_str(c, "/status"), "True");
        }
    }
    return false;
}

/* The node of a VMI that can be paused, or go on; owned by the caller. NULL with r->st set. */
static char *node_to_tell(struct request *r, const struct call *c, bool pauses)
{
    cleanup_entry struct entry *e = find_vmi(r, c);
    api_cleanup_doc yyjson_doc *doc = entry_doc(e);
    const yyjson_val *vmi = yyjson_doc_get_root(doc);
    const char *node = api_json_str(vmi, "/status/nodeName");

    if (!e) {
        return NULL;
    }
    if (!wire_phase_is(api_json_str(vmi, "/status/phase"), PHASE_RUNNING) ||
        ferry_str_empty(node)) {
        status_conflict(&r->st, e->resource, c->name, "VM is not running");
        return NULL;
    }
    if (is_paused(vmi) == pauses) {
        status_conflict(&r->st, e->resource, c->name,
                        pauses ? "VMI is already paused" : "VMI is not paused");
        return NULL;
    }
    return ferry_strdup(node);
}

/* Only the guest's node can do it; its handler then says so in the VMI's conditions. */
static int pause_or_not(struct request *r, struct node_proxy *nodes, const struct call *c,
                        const yyjson_val *options)
{
    bool dry_run = yyjson_arr_size(yyjson_obj_get((yyjson_val *)options, "dryRun")) > 0;
    ferry_cleanup_free char *node = node_to_tell(r, c, ferry_streq(c->verb, "pause"));
    ferry_cleanup_free char *rest = ferry_asprintf("/v1/%s/%s/%s", c->verb, c->ns, c->name);

    if (!node) {
        return -1;
    }
    if (!nodes) {
        return status_fail(&r->st, 503, "this API server has no way to its nodes");
    }
    if (!dry_run && node_proxy_tell(r, nodes, node, rest) < 0) {
        return -1;
    }
    request_answer_status(r, &(struct status){.code = 202});
    return 0;
}

static int check(struct request *r, struct call *ret)
{
    if (!parse(http_path(r->x), ret)) {
        return status_fail(&r->st, 404, "the server could not find the requested resource");
    }
    bool puts = ferry_streq(http_method(r->x), "PUT");
    if (rights_check(r, &(struct rbac_ask){.verb = puts ? "update" : "get",
                                           .group = "subresources.kubevirt.io",
                                           .resource = ret->plural,
                                           .subresource = ret->verb,
                                           .ns = ret->ns,
                                           .name = ret->name}) < 0) {
        return -1;
    }
    if (!puts) {
        return status_fail(&r->st, 405, "the server does not allow this method here");
    }
    return 0;
}

int subresource_check(struct request *r)
{
    struct call c = {0};

    return check(r, &c);
}

int subresource_serve(struct request *r, struct node_proxy *nodes)
{
    struct call c = {0};
    api_cleanup_doc yyjson_doc *options = NULL;
    size_t len = 0;

    if (check(r, &c) < 0) {
        return -1;
    }
    http_body(r->x, &len);
    if (len && request_body(r, &options) < 0) {
        return -1;
    }
    if (ferry_streq(c.verb, "migrate") && ferry_streq(c.plural, "virtualmachines")) {
        return migrate(r, &c, yyjson_doc_get_root(options));
    }
    if (power_is_verb(c.verb) && ferry_streq(c.plural, "virtualmachines")) {
        return power(r, &c, yyjson_doc_get_root(options));
    }
    if (ferry_streq(c.plural, "virtualmachineinstances") &&
        (ferry_streq(c.verb, "pause") || ferry_streq(c.verb, "unpause"))) {
        return pause_or_not(r, nodes, &c, yyjson_doc_get_root(options));
    }
    if (ferry_streq(c.verb, "evacuate/cancel")) {
        return cancel_evacuation(r, &c, yyjson_doc_get_root(options));
    }
    return status_fail(&r->st, 404, "the server could not find the requested resource");
}
