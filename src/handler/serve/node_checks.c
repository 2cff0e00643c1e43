#include "handler/serve/node_checks.h"

#include "api/json.h"
#include "base/str.h"
#include "json/doc.h"

struct report {
    yyjson_mut_doc *doc;
    yyjson_mut_val *list;
    bool all_ok;
};

enum { NO_CHANNEL = -1 };

static void add_channel(struct report *r, const char *name, int channel, bool ok,
                        const char *message)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(r->doc, r->list);

    yyjson_mut_obj_add_strcpy(r->doc, o, "name", name);
    if (channel != NO_CHANNEL) {
        yyjson_mut_obj_add_int(r->doc, o, "channel", channel);
    }
    yyjson_mut_obj_add_bool(r->doc, o, "ok", ok);
    yyjson_mut_obj_add_strcpy(r->doc, o, "message", message ? message : "");
    r->all_ok = r->all_ok && ok;
}

static void add(struct report *r, const char *name, bool ok, const char *message)
{
    add_channel(r, name, NO_CHANNEL, ok, message);
}

static void check_pod(struct report *r, const struct check_facts *f)
{
    static const char *const words[] = {
        [LAUNCHER_NO_POD] = "the pod of this move is not on this node",
        [LAUNCHER_ENDED] = "the pod is over",
        [LAUNCHER_STARTING] = "the pod does not run yet",
        [LAUNCHER_SILENT] = "running",
        [LAUNCHER_UP] = "running",
    };

    add(r, "pod", f->launcher.reach >= LAUNCHER_SILENT, words[f->launcher.reach]);
}

static void check_launcher(struct report *r, const struct check_facts *f)
{
    const struct launcher_status *s = f->launcher.status;

    if (f->launcher.reach != LAUNCHER_UP) {
        add(r, "launcher", false, "the launcher does not answer");
        return;
    }
    const struct launcher_migration *m = launcher_status_migration(
        s, f->vmi->migration.uid,
        f->role == NODE_ROLE_TARGET ? LAUNCHER_ROLE_TARGET : LAUNCHER_ROLE_SOURCE);
    if (!m) {
        bool source = f->role != NODE_ROLE_TARGET;

        add(r, "launcher", source,
            source ? "answers; the migration has not begun" : "the launcher is not prepared");
        return;
    }
    ferry_cleanup_free char *text =
        ferry_asprintf("%s%s%s", wire_launcher_phase_text(m->phase),
                       m->failure_reason[0] ? ": " : "", m->failure_reason);
    add(r, "launcher", m->phase != LAUNCHER_FAILED, text);
}

/* "43117=49152 43118=0": the VMI's map against the relay's. */
static void check_ports(struct report *r, const struct check_facts *f)
{
    const struct api_migration_state *ms = &f->vmi->migration;
    yyjson_val *map = yyjson_obj_get((yyjson_val *)f->relay, "ports"), *k, *v;
    const char *address = api_json_str(f->relay, "/address");
    size_t i, max, equal = 0;

    if (ferry_str_empty(ms->target_address) || ms->n_ports == 0) {
        add(r, "published", false, "the target has not published address and ports");
        return;
    }
    add(r, "published", true, ms->target_address);
    yyjson_obj_foreach(map, i, max, k, v)
    {
        for (size_t n = 0; n < ms->n_ports; n++) {
            ferry_cleanup_free char *port = ferry_asprintf("%d", ms->ports[n].port);

            equal +=
                ferry_streq(yyjson_get_str(k), port) && yyjson_get_sint(v) == ms->ports[n].logical;
        }
    }
    bool same = equal == ms->n_ports && yyjson_obj_size(map) == ms->n_ports;
    if (same && !ferry_streq(address, ms->target_address)) {
        ferry_cleanup_free char *text =
            ferry_asprintf("the relay has address %s, the VMI %s", address ? address : "(none)",
                           ms->target_address);
        add(r, "port map", false, text);
        return;
    }
    add(r, "port map", same,
        same ? "as in the VMI" : "the relay's ports are not those that the VMI names");
}

static void check_relay(struct report *r, const struct check_facts *f)
{
    const char *name = f->role == NODE_ROLE_TARGET ? "listeners" : "sockets";

    if (f->relay_socket_gone) {
        add(r, "relay", false, f->relay_socket_gone);
        return;
    }
    add(r, "relay", true, "answers");
    if (!f->relay) {
        bool early =
            f->role != NODE_ROLE_TARGET && ferry_str_empty(f->vmi->migration.target_address);

        add(r, name, false,
            early            ? "not yet: the target has published nothing"
            : f->relay_error ? f->relay_error
                             : "the relay does not know the move");
        return;
    }
    bool ours = ferry_streq(api_json_str(f->relay, "/move"), f->vmi->migration.uid);
    add(r, name, ours, ours ? "open" : "they belong to another move");
    check_ports(r, f);
}

static void check_channels(struct report *r, const struct check_facts *f)
{
    for (size_t i = 0; i < f->n_listeners; i++) {
        const struct check_listener *l = &f->listeners[i];
        ferry_cleanup_free char *text =
            ferry_asprintf("port %d%s", l->port, l->open ? "" : ": nobody listens");

        add_channel(r, "listener", l->logical, l->open, text);
    }
    for (size_t i = 0; i < f->n_files; i++) {
        ferry_cleanup_free char *text =
            ferry_asprintf("%s%s", f->files[i].there ? "" : "missing: ", f->files[i].path);

        add_channel(r, "socket", f->files[i].logical, f->files[i].there, text);
    }
}

static void check_network(struct report *r, const struct check_facts *f)
{
    const char *published = f->vmi->migration.target_address;

    if (f->address_error) {
        add(r, "network", false, f->address_error);
    } else if (f->address && !ferry_str_empty(published)) {
        bool same = ferry_streq(f->address, published);
        ferry_cleanup_free char *text =
            same ? ferry_strdup(published)
                 : ferry_asprintf("the VMI names %s, this node takes moves in on %s", published,
                                  f->address);

        add(r, "network", same, text);
    }
    if (f->certificate_error) {
        add(r, "certificate", false, f->certificate_error);
    } else if (f->certificate) {
        add(r, "certificate", true, f->certificate);
    }
}

/* What was not come to is not reported. */
static void check_probes(struct report *r, const struct check_facts *f)
{
    static const char *const names[] = {"reach", "mtu", "handshake"};

    for (size_t i = 0; i < f->n_probes; i++) {
        const struct check_probe *p = &f->probes[i];

        for (int stage = 0; stage <= (int)p->stage && stage < NODE_PROBE_DONE; stage++) {
            bool ok = stage < (int)p->stage;

            add_channel(r, names[stage], p->logical, ok, ok ? "done" : p->message);
        }
    }
}

char *node_checks(const struct check_facts *f)
{
    const struct api_vmi *vmi = f->vmi;
    struct report r = {.doc = json_doc_new(), .all_ok = true};
    yyjson_mut_val *o = json_doc_object(r.doc);

    yyjson_mut_obj_add_str(r.doc, o, "node", f->node);
    yyjson_mut_obj_add_str(r.doc, o, "role", node_role_name(f->role));
    yyjson_mut_obj_add_str(r.doc, o, "namespace", vmi->meta.namespace_);
    yyjson_mut_obj_add_str(r.doc, o, "vmi", vmi->meta.name);
    yyjson_mut_obj_add_str(r.doc, o, "migration", vmi->migration.uid);
    r.list = yyjson_mut_arr(r.doc);
    check_pod(&r, f);
    check_launcher(&r, f);
    if (f->role == NODE_ROLE_SOURCE || f->role == NODE_ROLE_TARGET) {
        check_relay(&r, f);
    }
    check_channels(&r, f);
    check_network(&r, f);
    check_probes(&r, f);
    yyjson_mut_obj_add_bool(r.doc, o, "ok", r.all_ok);
    yyjson_mut_obj_add_val(r.doc, o, "checks", r.list);
    return json_doc_take(r.doc);
}
