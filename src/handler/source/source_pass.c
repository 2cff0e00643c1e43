/* The source's decisions, carried out. The loop ends when a decision asks for nothing more: its
 * actions change what the next decision sees. */
#include "handler/source/source_pass.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_move.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"
#include "handler/local/records.h"
#include "handler/local/relay_client.h"
#include "handler/move/move_disks.h"
#include "handler/move/move_pass.h"
#include "handler/move/vmi_edit.h"
#include "handler/source/source_decide.h"

#define PATH_TELL_NS (1 * FERRY_NS_PER_S)

/* All that was found good. */
static char *name_of_order(const struct api_vmi *vmi)
{
    const struct api_migration_state *m = &vmi->migration;

    return ferry_asprintf("%s %s %s", m->uid ? m->uid : "", m->target_node ? m->target_node : "",
                          m->target_pod ? m->target_pod : "");
}

/* Asks the API, not a cache: the pod and the migration that the VMI's status leads to. What was
 * found good once stays so: who ends a migration ends the move of the VMI, too. */
static int find_order(struct pass *pass, struct source_input *in, struct ferry_error *err)
{
    const struct api_vmi *vmi = &pass->vmi->u.vmi;
    const char *ns = pass->vmi->meta->namespace_, *pod_name = vmi->migration.target_pod;
    struct kube_client *client = pass->node->client;
    api_cleanup_object struct api_object *pod = NULL, *migration = NULL;
    int rc = ferry_str_empty(pod_name)
                 ? 0
                 : kube_client_get(client, kube_ref(API_KIND_POD, ns, pod_name), &pod, err);
    const char *job =
        pod ? api_map_get(&pod->meta->annotations, ANNOTATION_MIGRATION_JOB_NAME) : NULL;

    if (rc == 0 && !ferry_str_empty(job)) {
        rc = kube_client_get(client, kube_ref(API_KIND_MIGRATION, ns, job), &migration, err);
    }
    if (rc < 0 && rc != -FERRY_NOT_FOUND) {
        return ferry_wrap(err, "looking for the migration that asks for this move");
    }
    in->order = source_order_of(vmi, pass->node->name, pod ? &pod->u.pod : NULL,
                                migration ? &migration->u.migration : NULL, &in->order_lacks);
    if (in->order == SOURCE_ORDER_GIVEN) {
        free(pass->memory->ordered_move);
        pass->memory->ordered_move = name_of_order(vmi);
    } else if (in->order == SOURCE_ORDER_NONE) {
        ferry_warn("nobody asked for this move, nothing is sent",
                   F_STR("vmi", pass->vmi->meta->name), F_STR("move", vmi->migration.uid),
                   F_STR("why", in->order_lacks));
    }
    return 0;
}

static bool is_ordered(const struct pass *pass)
{
    ferry_cleanup_free char *name = name_of_order(&pass->vmi->u.vmi);

    return ferry_streq(pass->memory->ordered_move, name);
}

static int connect_source(struct pass *pass, struct ferry_error *err)
{
    const struct api_migration_state *m = &pass->vmi->u.vmi.migration;
    ferry_cleanup_free char *dir = ferry_asprintf("%s/m", pass->pod_dir);
    uid_t owner = 0;
    int rc = move_pass_owner(dir, &owner, err);

    if (rc < 0) {
        return rc;
    }
    rc = relay_put_source(
        pass->node->relay_socket,
        &(struct relay_source){
            .key = pass->vmi->meta->uid,
            .move = m->uid,
            .target_node = m->target_node,
            .address = m->target_address,
            .ports = m->ports,
            .n_ports = m->n_ports,
            .dir = dir,
            .generation = 1 + wire_move_generation(&pass->vmi->u.vmi, ANNOTATION_PORTS_GENERATION),
            .rate = m->config.bandwidth_bytes_per_s,
            .resume_window_s = pass->node->resume_window_s,
            .plain = m->config.disable_tls,
            .owner = owner},
        err);
    pass->memory->source_clean = false;
    return rc;
}

static int start_move(struct pass *pass, struct ferry_error *err)
{
    const struct api_migration_state *m = &pass->vmi->u.vmi.migration;
    /* Without the path's last rate: a link that has become slower since would make QEMU switch over
     * too early, and the guest stand still for longer than it may. What the move itself has of the
     * path is told while it runs (tell_path). */
    ferry_cleanup_free char *options = source_options(&pass->vmi->u.vmi, 0);
    ferry_cleanup_free char *disks = move_disks_of(&pass->vmi->u.vmi, ANNOTATION_TARGET_DISKS);
    int rc = launcher_migrate(&pass->launcher, m->uid, pass->vmi, options, disks, err);

    if (rc < 0) {
        return rc;
    }
    ferry_info("move started", F_STR("vmi", pass->vmi->meta->name), F_STR("move", m->uid),
               F_STR("target", m->target_node));
    kube_record(pass->node->recorder, pass->vmi, KUBE_EVENT_NORMAL, "Migrating",
                "VirtualMachineInstance is migrating.");
    return 0;
}

static int cancel_move(struct pass *pass, struct ferry_error *err)
{
    const char *uid = pass->vmi->u.vmi.migration.uid;
    int rc = launcher_cancel(&pass->launcher, uid, err);

    if (rc == 0) {
        ferry_info("move is being cancelled", F_STR("vmi", pass->vmi->meta->name),
                   F_STR("move", uid));
        kube_record(pass->node->recorder, pass->vmi, KUBE_EVENT_NORMAL, "Migrating",
                    "VirtualMachineInstance is aborting migration.");
    }
    return rc == -FERRY_CONFLICT || rc == -FERRY_NOT_FOUND ? 0 : rc;
}

static int recover_source(struct pass *pass, bool *failed, struct ferry_error *err)
{
    const struct api_vmi *vmi = &pass->vmi->u.vmi;
    int64_t generation = wire_move_generation(vmi, ANNOTATION_PORTS_GENERATION);
    int rc = launcher_recover(&pass->launcher, vmi->migration.uid, LAUNCHER_ROLE_SOURCE, err);

    pass->memory->recovered = generation;
    pass->memory->recovered_ms = rc == 0 ? pass->now_ms : 0;
    if (rc == 0) {
        ferry_info("post-copy resumed over new streams", F_STR("vmi", vmi->meta.name),
                   F_INT("generation", generation));
    } else {
        ferry_warn("cannot resume post-copy yet", F_STR("vmi", vmi->meta.name),
                   F_INT("generation", generation), F_ERR(err));
        *failed = true;
    }
    return 0;
}

static int finish_source(struct pass *pass, struct source_decision *d, struct ferry_error *err)
{
    struct pass_memory *m = pass->memory;
    int rc = pass_patch(pass, d->patch, err);

    m->undecided_since_ms = !d->undecided           ? 0
                            : m->undecided_since_ms ? m->undecided_since_ms
                                                    : pass->now_ms;
    pass->again_ms = d->again_ms;
    if (rc == 0 && d->progress) {
        m->progress_ms = pass->now_ms;
    }
    if (rc == 0 && d->failed) {
        const char *uid = pass->vmi->u.vmi.migration.uid;

        ferry_warn("move failed", F_STR("vmi", pass->vmi->meta->name), F_STR("move", uid),
                   F_STR("reason", wire_reason_text(d->failed)));
        kube_record(pass->node->recorder, pass->vmi, KUBE_EVENT_WARNING, "Migrated",
                    "VirtualMachineInstance migration uid %s failed. reason: %s", uid,
                    wire_reason_text(d->failed));
    }
    return rc;
}

/* The pod goes soon after the move: its record is kept here. Best effort, before the VMI says that
 * it is over. */
static void keep_record(struct pass *pass)
{
    const char *uid = pass->vmi->u.vmi.migration.uid, *dir = pass->node->records_dir;
    const struct launcher_migration *m =
        pass->view.reach == LAUNCHER_UP
            ? launcher_status_migration(pass->view.status, uid, LAUNCHER_ROLE_SOURCE)
            : NULL;
    http_cleanup_reply struct http_reply record = {0};
    struct ferry_error err;

    if (!m || (m->phase != LAUNCHER_SUCCEEDED && m->phase != LAUNCHER_FAILED) ||
        !records_uid_valid(uid) || records_have(dir, uid)) {
        return;
    }
    int rc = launcher_get_record(&pass->launcher, uid, &record, &err);
    if (rc == 0) {
        rc = records_save(dir, uid, record.body.data, record.body.len, &err);
    }
    if (rc < 0) {
        ferry_warn("cannot write the flight record", F_STR("move", uid), F_ERR(&err));
    }
}

/* Tells the launcher of the path: at once when it went away or came back, and every second what it
 * carries of this move (what all moves to that node have is no measure for one of them). */
static void tell_path(struct pass *pass, bool away)
{
    const char *uid = pass->vmi->u.vmi.migration.uid;
    bool changed = away != pass->memory->path_told_away;
    int64_t now = ferry_now_ns(), rate = 0;
    struct ferry_error err;

    if (!changed &&
        (away || now - pass->memory->path_told_ns < PATH_TELL_NS ||
         relay_get_source_rate(pass->node->relay_socket, pass->vmi->meta->uid, &rate, &err) < 0 ||
         rate <= 0)) {
        return;
    }
    if (launcher_tell_path(&pass->launcher, uid, away, rate, &err) < 0) {
        ferry_debug("the launcher was not told of the path, trying on", F_ERR(&err));
        return;
    }
    pass->memory->path_told_away = away;
    pass->memory->path_told_ns = now;
    if (changed) {
        ferry_info(away ? "path to the target is away" : "path to the target is up again",
                   F_STR("vmi", pass->vmi->meta->name), F_STR("move", uid),
                   F_STR("target", pass->vmi->u.vmi.migration.target_node));
    }
}

/* Whether the way to the target is away: the launcher's clocks stand still meanwhile. A relay that
 * does not answer holds its streams no less: what was known holds. */
static bool follow_path(struct pass *pass)
{
    const struct api_migration_state *m = &pass->vmi->u.vmi.migration;
    const struct launcher_migration *run =
        pass->view.reach == LAUNCHER_UP && m->uid
            ? launcher_status_migration(pass->view.status, m->uid, LAUNCHER_ROLE_SOURCE)
            : NULL;
    struct relay_path path = {.away = pass->memory->path_told_away};
    struct ferry_error err;

    if (!run || run->phase != LAUNCHER_RUNNING || ferry_str_empty(m->target_node)) {
        pass->memory->path_told_away = false;
        return false;
    }
    if (relay_get_path(pass->node->relay_socket, m->target_node, &path, &err) < 0) {
        ferry_debug("the relay does not tell of the path", F_ERR(&err));
    }
    tell_path(pass, path.away);
    return path.away;
}

/* Says how large the disks are for which the target may have to make images. */
static int publish_disks(struct pass *pass, struct move_trouble *trouble, struct ferry_error *err)
{
    const char *uid = pass->vmi->u.vmi.migration.uid;
    http_cleanup_reply struct http_reply reply = {0};

    if (pass->view.reach != LAUNCHER_UP || ferry_str_empty(uid) ||
        !move_disks_awaited(&pass->vmi->u.vmi)) {
        return 0;
    }
    int rc = launcher_disks(&pass->launcher, pass->vmi, &reply, err);
    if (rc < 0) {
        move_pass_trouble(pass, trouble, MOVE_PART_LAUNCHER, err);
        return 0;
    }
    ferry_cleanup_free char *value = move_disks_publish(uid, reply.body.data, reply.body.len);
    if (!value) {
        return 0;
    }
    struct vmi_edit e = vmi_edit_begin_move(&pass->vmi->u.vmi, pass->now_ms);
    vmi_edit_annotation(&e, ANNOTATION_SOURCE_DISKS, value);
    rc = pass_patch(pass, vmi_edit_end(&e), err);
    return rc < 0 ? rc : 1;
}

int pass_as_source(struct pass *pass, struct ferry_error *err)
{
    struct source_input in = {.vmi = &pass->vmi->u.vmi,
                              .order = is_ordered(pass) ? SOURCE_ORDER_GIVEN : SOURCE_ORDER_UNKNOWN,
                              .undecided_since_ms = pass->memory->undecided_since_ms,
                              .progress_ms = pass->memory->progress_ms,
                              .now_ms = pass->now_ms};
    int published = publish_disks(pass, &in.trouble, err);

    if (published != 0) {
        pass->again_ms = 1;
        return published < 0 ? published : 0;
    }
    move_pass_silence(pass, &in.trouble);
    pass_tell_target_state(pass);
    in.path_away = follow_path(pass);
    for (int i = 0; i < MOVE_PASS_STEPS; i++) {
        enum move_part part = MOVE_PART_LAUNCHER;
        int rc = 0;

        in.launcher = pass->view;
        in.recovered = pass->memory->recovered;
        in.recovered_ms = pass->memory->recovered_ms;
        struct source_decision d = source_decide(&in);
        switch (d.action) {
        case SOURCE_NOTHING:
            move_pass_settled(pass, &in.trouble);
            keep_record(pass);
            return finish_source(pass, &d, err);
        case SOURCE_ASK:
            rc = find_order(pass, &in, err);
            if (rc < 0) {
                return rc; /* the API is away: nothing could be told either */
            }
            break;
        case SOURCE_CONNECT:
            rc = connect_source(pass, err);
            in.relay_ready = true;
            part = MOVE_PART_RELAY;
            break;
        case SOURCE_START:
            rc = start_move(pass, err);
            pass_refresh(pass);
            break;
        case SOURCE_RECOVER:
            rc = recover_source(pass, &in.recover_failed, err);
            pass_refresh(pass);
            break;
        case SOURCE_CANCEL:
            rc = cancel_move(pass, err);
            in.cancelled = true;
            pass_refresh(pass);
            break;
        }
        if (rc < 0) {
            move_pass_trouble(pass, &in.trouble, part, err);
        }
    }
    return move_pass_restless(pass, err);
}
