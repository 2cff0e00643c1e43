#include "apiserver/access/auth.h"

#include <stdio.h>
#include <string.h>

#include "api/address_name.h"
#include "api/json.h"
#include "api/wire/wire_phase.h"
#include "base/count.h"
#include "base/str.h"

static const char *const role_names[] = {
    [AUTH_ANONYMOUS] = "anonymous", [AUTH_NOBODY] = "nobody", [AUTH_PERSON] = "person",
    [AUTH_VIEWER] = "viewer",       [AUTH_NODE] = "node",     [AUTH_CONTROLLER] = "controller",
    [AUTH_ADMIN] = "admin",
};
_Static_assert(FERRY_COUNT(role_names) == AUTH_ROLE_COUNT, "one name per role");

const char *auth_role_name(enum auth_role role)
{
    return role_names[role];
}

static bool in_group(const struct http_peer *peer, const char *group)
{
    for (size_t i = 0; i < peer->n_groups; i++) {
        if (ferry_streq(peer->groups[i], group)) {
            return true;
        }
    }
    return false;
}

/* Names that are given to programs: nobody who bears one without being that program is a person. */
static bool is_reserved(const char *name)
{
    static const char *const prefixes[] = {"ferry-relay:", "system:node:", "system:ferry-"};

    for (size_t i = 0; i < FERRY_COUNT(prefixes); i++) {
        if (ferry_str_starts(name, prefixes[i])) {
            return true;
        }
    }
    return !*name || ferry_streq(name, "system:anonymous");
}

static enum auth_role role_of(const struct http_peer *peer)
{
    static const char node_prefix[] = "system:node:";
    const char *name = peer->common_name;

    if (in_group(peer, "ferry:admins")) {
        return AUTH_ADMIN;
    }
    if (ferry_streq(name, "system:ferry-controller")) {
        return AUTH_CONTROLLER;
    }
    if (ferry_str_starts(name, node_prefix) && name[strlen(node_prefix)] &&
        in_group(peer, "system:nodes")) {
        return AUTH_NODE;
    }
    if (in_group(peer, "ferry:viewers")) {
        return AUTH_VIEWER;
    }
    if (is_reserved(name)) {
        return AUTH_NOBODY;
    }
    return in_group(peer, "system:masters") ? AUTH_ADMIN : AUTH_PERSON;
}

static void add_group(struct auth_who *who, const char *group)
{
    if (who->n_groups < AUTH_GROUPS_MAX) {
        snprintf(who->groups[who->n_groups++], sizeof(who->groups[0]), "%s", group);
    }
}

/* As Kubernetes gives them to "system:serviceaccount:NAMESPACE:NAME". */
static void add_account_groups(struct auth_who *who)
{
    static const char prefix[] = "system:serviceaccount:";
    const char *ns = who->user + strlen(prefix);
    char group[HTTP_NAME_MAX];

    if (!ferry_str_starts(who->user, prefix) || !strchr(ns, ':')) {
        return;
    }
    add_group(who, "system:serviceaccounts");
    snprintf(group, sizeof(group), "system:serviceaccounts:%.*s", (int)strcspn(ns, ":"), ns);
    add_group(who, group);
}

void auth_identify(const struct http_peer *peer, struct auth_who *ret)
{
    *ret = (struct auth_who){.role = AUTH_ANONYMOUS, .user = "system:anonymous"};
    if (!peer->certificate) {
        add_group(ret, "system:unauthenticated");
        return;
    }
    memcpy(ret->user, peer->common_name, sizeof(ret->user));
    ret->role = role_of(peer);
    if (ret->role == AUTH_NODE) {
        snprintf(ret->node, sizeof(ret->node), "%s", ret->user + strlen("system:node:"));
    }
    for (size_t i = 0; i < peer->n_groups; i++) {
        add_group(ret, peer->groups[i]);
    }
    add_account_groups(ret);
    add_group(ret, "system:authenticated");
}

bool auth_is_person(const struct auth_who *who)
{
    return who->role == AUTH_PERSON || who->role == AUTH_VIEWER;
}

/* ---- rules -------------------------------------------------------------------------------------
 */

enum {
    READ = AUTH_READ,
    CREATE = AUTH_CREATE,
    CHANGE = AUTH_CHANGE,
    DELETE = AUTH_DELETE,
    ALL_WRITES = CREATE | CHANGE | DELETE
};

static unsigned bit_of(enum route_verb verb)
{
    switch (verb) {
    case ROUTE_GET:
    case ROUTE_LIST:
    case ROUTE_WATCH:
        return READ;
    case ROUTE_CREATE:
        return CREATE;
    case ROUTE_UPDATE:
    case ROUTE_PATCH:
        return CHANGE;
    case ROUTE_DELETE:
    case ROUTE_DELETE_COLLECTION:
        return DELETE;
    case ROUTE_VERB_COUNT:
        break;
    }
    return 0;
}

static const struct auth_rule rules[] = {
    {"*", "*", AUTH_CONTROLLER, READ, AUTH_YES, false},
    {"virtualmachineinstances", "*", AUTH_CONTROLLER, ALL_WRITES, AUTH_YES, false},
    {"virtualmachineinstancemigrations", "*", AUTH_CONTROLLER, ALL_WRITES, AUTH_YES, false},
    {"virtualmachines", "*", AUTH_CONTROLLER, CHANGE, AUTH_YES, false},
    {"persistentvolumes", "*", AUTH_CONTROLLER, CHANGE, AUTH_YES, false},
    {"pods", "*", AUTH_CONTROLLER, ALL_WRITES, AUTH_YES, false},
    {"kubevirts", "status", AUTH_CONTROLLER, CHANGE, AUTH_YES, false},
    {"events", "*", AUTH_CONTROLLER, ALL_WRITES, AUTH_YES, false},
    {"controllerrevisions", "*", AUTH_CONTROLLER, CREATE, AUTH_YES, false},
    {"leases", "*", AUTH_CONTROLLER, ALL_WRITES, AUTH_YES, false},
    {"nodes", "*", AUTH_CONTROLLER, CHANGE, AUTH_YES, false},

    {"configmaps", "*", AUTH_NODE, READ, AUTH_IF_OWN, false},
    {"secrets", "*", AUTH_NODE, READ, AUTH_IF_OWN, false},
    {"*", "*", AUTH_NODE, READ, AUTH_YES, false},
    {"nodes", "*", AUTH_NODE, CREATE, AUTH_YES, true},
    {"nodes", "*", AUTH_NODE, CHANGE, AUTH_IF_OWN, true},
    {"leases", "", AUTH_NODE, CREATE | DELETE, AUTH_IF_OWN, .claims = true},
    {"leases", "", AUTH_NODE, CREATE | CHANGE, AUTH_YES, true},
    {"pods", "", AUTH_NODE, DELETE, AUTH_IF_OWN, false},
    {"pods", "status", AUTH_NODE, CHANGE, AUTH_IF_OWN, false},
    {"virtualmachineinstances", "", AUTH_NODE, CHANGE, AUTH_IF_OWN, false},
    {"events", "", AUTH_NODE, CREATE | CHANGE, AUTH_YES, false},

    {"*", "*", AUTH_VIEWER, READ, AUTH_YES, false},
};

const struct auth_rule *auth_rules(size_t *ret_n)
{
    *ret_n = FERRY_COUNT(rules);
    return rules;
}

/* A new one has its name in the body: until that is read it may be one. */
static bool is_claim(const struct route *route)
{
    bool unnamed = route->verb == ROUTE_CREATE && !*route->name;
    struct api_ip ip;

    return ferry_streq(route->resource->plural, "leases") &&
           ferry_streq(route->ns, API_ADDRESS_NAMESPACE) &&
           (unnamed || api_address_of_name(route->name, &ip));
}

/* What bears a node's name elsewhere is not the node's: another lease of that name may be what a
 * leader holds. */
static bool is_at_home(const struct auth_rule *rule, const struct route *route)
{
    return !rule->named_as_node || !route->resource->namespaced ||
           ferry_streq(route->ns, "kube-node-lease");
}

static bool rule_fits(const struct auth_rule *rule, const struct auth_who *who,
                      const struct route *route)
{
    const char *plural = route->resource->plural;
    bool any = ferry_streq(rule->plural, "*") && !ferry_streq(plural, "secrets");

    return rule->role == who->role && (any || ferry_streq(rule->plural, plural)) &&
           (!rule->claims || is_claim(route)) && is_at_home(rule, route) &&
           (ferry_streq(rule->subresource, "*") ||
            ferry_streq(rule->subresource, route->subresource)) &&
           (rule->verbs & bit_of(route->verb));
}

static bool is_of_many(enum route_verb verb)
{
    return verb == ROUTE_LIST || verb == ROUTE_WATCH || verb == ROUTE_DELETE_COLLECTION;
}

enum auth_answer auth_check(const struct auth_who *who, const struct route *route)
{
    if (who->role == AUTH_ADMIN) {
        return AUTH_YES;
    }
    for (size_t i = 0; i < FERRY_COUNT(rules); i++) {
        if (!rule_fits(&rules[i], who, route)) {
            continue;
        }
        if (rules[i].answer == AUTH_IF_OWN && is_of_many(route->verb)) {
            return AUTH_NO; /* what is one's own is seen object by object */
        }
        /* A create has its name in the body: route.name is filled in from there by the caller. */
        return rules[i].named_as_node && !ferry_streq(route->name, who->node) ? AUTH_NO
                                                                              : rules[i].answer;
    }
    return AUTH_NO;
}

static bool at_is(const yyjson_val *v, const char *pointer, const char *node)
{
    return ferry_streq(api_json_str(v, pointer), node);
}

bool auth_owns(const struct auth_who *who, const struct api_resource *r, const yyjson_val *stored)
{
    if (!stored || !*who->node) {
        return false;
    }
    if (r->kind == API_KIND_POD) {
        return at_is(stored, "/spec/nodeName", who->node);
    }
    if (r->kind == API_KIND_NODE) {
        return at_is(stored, "/metadata/name", who->node);
    }
    if (r->kind == API_KIND_VMI) {
        return field_rules_concern(who->node, stored);
    }
    if (r->kind == API_KIND_LEASE) {
        struct api_ip ip;

        return api_address_of_name(api_json_str(stored, "/metadata/name"), &ip) &&
               at_is(stored, "/spec/holderIdentity", who->node);
    }
    return false;
}

bool auth_needs(const struct auth_who *who, const struct api_resource *r, const char *name,
                const yyjson_val *pod)
{
    const char *phase = api_json_str(pod, "/status/phase");
    const char *pointer = r->kind == API_KIND_SECRET ? "/secret/secretName" : "/configMap/name";
    yyjson_arr_iter it =
        yyjson_arr_iter_with(yyjson_ptr_get((yyjson_val *)(uintptr_t)pod, "/spec/volumes"));

    if (!*who->node || !at_is(pod, "/spec/nodeName", who->node) || wire_phase_is_over(phase)) {
        return false;
    }
    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (at_is(v, pointer, name)) {
            return true;
        }
    }
    return false;
}

/* What is no node's to change, of whatever kind. */
static const char *kept_part(const struct api_resource *r, const yyjson_val *stored,
                             const yyjson_val *changed)
{
    static const struct {
        const char *pointer, *what;
        bool pods_alone;
    } kept[] = {
        {"/spec", "the spec", false},
        {"/metadata/finalizers", "the finalizers", false},
        {"/metadata/ownerReferences", "the owners", false},
        {"/metadata/labels", "the labels", true}, /* by which a pod is known as some VMI's */
    };

    for (size_t i = 0; i < FERRY_COUNT(kept); i++) {
        yyjson_val *a = yyjson_ptr_get((yyjson_val *)stored, kept[i].pointer);
        yyjson_val *b = yyjson_ptr_get((yyjson_val *)changed, kept[i].pointer);
        bool same = a && b ? yyjson_equals(a, b) : yyjson_get_len(a) + yyjson_get_len(b) == 0;

        if (!same && (!kept[i].pods_alone || r->kind == API_KIND_POD)) {
            return kept[i].what;
        }
    }
    return NULL;
}

bool auth_overstepped(const struct auth_who *who, const struct api_resource *r,
                      const yyjson_val *stored, const yyjson_val *changed, char ret[AUTH_TEXT])
{
    const char *what = kept_part(r, stored, changed);

    if (what) {
        snprintf(ret, AUTH_TEXT, "%s", what);
        return true;
    }
    return r->kind == API_KIND_VMI &&
           !field_rules_allow(&(struct field_write){who->node, stored, changed}, ret);
}
