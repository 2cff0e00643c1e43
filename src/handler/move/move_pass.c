/* The decisions of the two ends of a move, carried out. Each loop ends when a decision asks for
 * nothing more: its actions change what the next decision sees. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_move.h"
#include "api/wire/wire_phase.h"
#include "base/channels.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"
#include "handler/local/records.h"
#include "handler/local/relay_client.h"
#include "handler/move/move_disks.h"
#include "handler/move/pass.h"
#include "handler/move/vmi_edit.h"
#include "handler/node/address.h"
#include "handler/node/migration_net.h"
#include "handler/source/source_decide.h"
#include "handler/target/target_decide.h"

/* No honest course of events needs more steps in one pass. */
enum {
    STEPS_MAX = 6,
    TELL_MS = 1000,
    /* An ordinary move is confirmed well within this after its guest has arrived. */
    CONFIRM_MS = 3000,
};
#define PATH_TELL_NS (1 * FERRY_NS_PER_S)

static int too_many_steps(struct pass *pass, struct ferry_error *err)
{
    return ferry_fail(err, FERRY_RETRY, "VMI %s does not come to rest as %s", pass->vmi->meta->name,
                      node_role_name(pass->role));
}

/* ---- what the other side is known to be -------------------------------------------------------
 */

/* GONE when the target's pod is over: no hypervisor runs there and none will; NEVER_RAN when the
 * target's launcher saw to that; ACTIVE when the guest arrived and this side still has something of
 * it; else UNKNOWN. */
static enum outcome_target target_state(struct pass *pass)
{
    const struct api_migration_state *m = &pass->vmi->u.vmi.migration;
    api_cleanup_object struct api_object *pod = NULL;

    if (m->target_domain_ready_ms) {
        return pass->now_ms - m->target_domain_ready_ms >= CONFIRM_MS ? OUTCOME_TARGET_ACTIVE
                                                                      : OUTCOME_TARGET_UNKNOWN;
    }
    if (launcher_status_active(&pass->status) || ferry_str_empty(m->target_pod)) {
        return OUTCOME_TARGET_UNKNOWN;
    }
    if (wire_move_never_ran(&pass->vmi->u.vmi)) {
        return OUTCOME_TARGET_NEVER_RAN;
    }
    int rc = kube_client_get(pass->node->client,
                             kube_ref(API_KIND_POD, pass->vmi->meta->namespace_, m->target_pod),
                             &pod, NULL);
    bool over = rc == 0 && wire_pod_is_over(&pod->u.pod);
    return over || rc == -FERRY_NOT_FOUND ? OUTCOME_TARGET_GONE : OUTCOME_TARGET_UNKNOWN;
}

/* Where the source's launcher cannot know what became of the guest, it is told, with evidence. */
void pass_tell_target_state(struct pass *pass)
{
    const char *uid = pass->vmi->u.vmi.migration.uid;
    const struct launcher_migration *m =
        pass->view.reach == LAUNCHER_UP && uid
            ? launcher_status_migration(pass->view.status, uid, LAUNCHER_ROLE_SOURCE)
            : NULL;
    bool there = pass->status.domain == LAUNCHER_DOMAIN_RUNNING ||
                 pass->status.domain == LAUNCHER_DOMAIN_PAUSED;
    struct ferry_error err;

    if (!m || !there || m->phase == LAUNCHER_SUCCEEDED || !m->start_ms ||
        pass->now_ms - pass->memory->told_ms < TELL_MS) {
        return;
    }
    pass->memory->told_ms = pass->now_ms;
    enum outcome_target state = target_state(pass);
    if (state == OUTCOME_TARGET_UNKNOWN) {
        return;
    }
    ferry_warn("the source's launcher is told of the target", F_STR("vmi", pass->vmi->meta->name),
               F_STR("move", uid), F_STR("state", wire_launcher_target_text(state)));
    if (launcher_target_state(pass->socket, uid, state, &err) < 0) {
        ferry_debug("the launcher did not take it", F_ERR(&err));
    }
    pass_refresh(pass);
}

/* What this pass could not do, for the next decision to see. */
static void keep_trouble(struct pass *pass, struct move_trouble *t, enum move_part part,
                         const struct ferry_error *err)
{
    const char *key =
        pass->role == NODE_ROLE_SOURCE ? ANNOTATION_SOURCE_TROUBLE : ANNOTATION_TARGET_TROUBLE;

    if (!pass->memory->trouble_ms) {
        pass->memory->trouble_ms = pass->now_ms;
    }
    *t = move_trouble_of(part, err, ferry_now_unix_ms() - pass->memory->trouble_ms);
    bool news = !t->fresh && !api_map_get(&pass->vmi->meta->annotations, key);
    FERRY_LOG(news ? FERRY_LOG_WARN : FERRY_LOG_DEBUG, "a step of the move does not work",
              F_STR("vmi", pass->vmi->meta->name), F_STR("move", pass->vmi->u.vmi.migration.uid),
              F_STR("as", node_role_name(pass->role)), F_STR("reason", wire_reason_text(t->reason)),
              F_STR("class", ferry_class_name(t->cls)), F_ERR(err));
}

static void keep_silence(struct pass *pass, struct move_trouble *t)
{
    struct ferry_error err;

    if (pass->view.reach == LAUNCHER_SILENT && !pass->vmi->u.vmi.migration.completed) {
        ferry_fail(&err, FERRY_RETRY, "the launcher does not answer");
        keep_trouble(pass, t, MOVE_PART_LAUNCHER, &err);
    }
}

static void end_trouble(struct pass *pass, const struct move_trouble *t)
{
    if (!t->reason || t->for_good) {
        pass->memory->trouble_ms = 0;
    }
}

/* The uid of the pod's hypervisor, who has its sockets in this directory of it. */
static int find_owner(const char *dir, uid_t *ret, struct ferry_error *err)
{
    struct stat st;

    if (stat(dir, &st) < 0) {
        return ferry_fail(err, FERRY_RETRY, "the pod has no directory %s", dir);
    }
    *ret = st.st_uid;
    return 0;
}

/* ---- source -----------------------------------------------------------------------------------
 */

static int connect_source(struct pass *pass, struct ferry_error *err)
{
    const struct api_migration_state *m = &pass->vmi->u.vmi.migration;
    ferry_cleanup_free char *dir = ferry_asprintf("%s/m", pass->pod_dir);
    uid_t owner = 0;
    int rc = find_owner(dir, &owner, err);

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
    int rc = launcher_migrate(pass->socket, m->uid, pass->vmi, options, disks, err);

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
    int rc = launcher_cancel(pass->socket, uid, err);

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
    int rc = launcher_recover(pass->socket, vmi->migration.uid, LAUNCHER_ROLE_SOURCE, err);

    pass->memory->recovered = generation;
    pass->memory->recovered_ms = rc == 0 ? pass->now_ms : 0;
    if (rc == 0) {
        ferry_info("post-copy goes on over fresh streams", F_STR("vmi", vmi->meta.name),
                   F_INT("generation", generation));
    } else {
        ferry_warn("post-copy does not go on yet", F_STR("vmi", vmi->meta.name),
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
    int rc = launcher_get_record(pass->socket, uid, &record, &err);
    if (rc == 0) {
        rc = records_save(dir, uid, record.body.data, record.body.len, &err);
    }
    if (rc < 0) {
        ferry_warn("the flight record is not kept", F_STR("move", uid), F_ERR(&err));
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
    if (launcher_tell_path(pass->socket, uid, away, rate, &err) < 0) {
        ferry_debug("the launcher was not told of the path, trying on", F_ERR(&err));
        return;
    }
    pass->memory->path_told_away = away;
    pass->memory->path_told_ns = now;
    if (changed) {
        ferry_info(away ? "the way to the target is away" : "the way to the target is back",
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
    int rc = launcher_disks(pass->socket, pass->vmi, &reply, err);
    if (rc < 0) {
        keep_trouble(pass, trouble, MOVE_PART_LAUNCHER, err);
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
                              .undecided_since_ms = pass->memory->undecided_since_ms,
                              .progress_ms = pass->memory->progress_ms,
                              .now_ms = pass->now_ms};
    int published = publish_disks(pass, &in.trouble, err);

    if (published != 0) {
        pass->again_ms = 1;
        return published < 0 ? published : 0;
    }
    keep_silence(pass, &in.trouble);
    pass_tell_target_state(pass);
    in.path_away = follow_path(pass);
    for (int i = 0; i < STEPS_MAX; i++) {
        enum move_part part = MOVE_PART_LAUNCHER;
        int rc = 0;

        in.launcher = pass->view;
        in.recovered = pass->memory->recovered;
        in.recovered_ms = pass->memory->recovered_ms;
        struct source_decision d = source_decide(&in);
        switch (d.action) {
        case SOURCE_NOTHING:
            end_trouble(pass, &in.trouble);
            keep_record(pass);
            return finish_source(pass, &d, err);
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
            keep_trouble(pass, &in.trouble, part, err);
        }
    }
    return too_many_steps(pass, err);
}

/* ---- target -----------------------------------------------------------------------------------
 */

/* Where plain connections of the source come from. */
static int find_source(struct pass *pass, char ret[ADDRESS_SIZE], struct ferry_error *err)
{
    const char *name = pass->vmi->u.vmi.migration.source_node;
    api_cleanup_object struct api_object *node = NULL;
    int rc = kube_client_get(pass->node->client, kube_ref(API_KIND_NODE, NULL, name), &node, err);

    if (rc < 0) {
        return rc;
    }
    const char *address = api_map_get(&node->meta->annotations, ANNOTATION_MIGRATION_ADDRESS);
    address = ferry_str_empty(address) ? node->u.node.internal_ip : address;
    if (ferry_str_empty(address)) {
        return ferry_fail(err, FERRY_RETRY, "node %s has no address yet", name);
    }
    snprintf(ret, ADDRESS_SIZE, "%s", address);
    return 0;
}

/* Has the launcher prepare, and remembers which disks are to be copied to it. */
static int prepare_target(struct pass *pass, struct ferry_error *err)
{
    const char *uid = pass->vmi->u.vmi.migration.uid;
    http_cleanup_reply struct http_reply reply = {0};
    ferry_cleanup_free char *source = move_disks_of(&pass->vmi->u.vmi, ANNOTATION_SOURCE_DISKS);
    /* It refuses what it could not do: post-copy without userfaultfd. */
    ferry_cleanup_free char *options = source_options(&pass->vmi->u.vmi, 0);
    int rc = launcher_prepare(pass->socket, uid, pass->vmi, options, source, &reply, err);

    if (rc == 0) {
        free(pass->memory->disks_move);
        free(pass->memory->disks);
        pass->memory->disks_move = ferry_strdup(uid);
        pass->memory->disks = move_disks_publish(uid, reply.body.data, reply.body.len);
    }
    return rc;
}

/* `*part` is what did not do its own when it fails. */
static int listen_target(struct pass *pass, char address[RELAY_ADDRESS_SIZE],
                         struct target_relay *ret, enum move_part *part, struct ferry_error *err)
{
    const struct api_migration_state *m = &pass->vmi->u.vmi.migration;
    const char *key = pass->vmi->meta->uid;
    ferry_cleanup_free char *control = launcher_control_socket(pass->pod_dir, pass->view.status);
    ferry_cleanup_free char *dir = ferry_asprintf("%s/m", pass->pod_dir);
    ferry_cleanup_free char *memory = ferry_channel_path(dir, key, FERRY_CHANNEL_MEMORY);
    ferry_cleanup_free char *disks = ferry_channel_path(dir, key, FERRY_CHANNEL_DISKS);
    char bind[ADDRESS_SIZE], source[ADDRESS_SIZE];
    uid_t owner = 0;
    int rc = migration_net_address(pass->node->network, bind, err);

    *part = MOVE_PART_NETWORK;
    if (rc == 0 && m->config.disable_tls) {
        rc = find_source(pass, source, err);
    }
    if (rc < 0) {
        return rc;
    }
    *part = MOVE_PART_LAUNCHER;
    if ((rc = find_owner(dir, &owner, err)) < 0) {
        return rc;
    }
    *part = MOVE_PART_RELAY;
    return relay_put_target(
        pass->node->relay_socket,
        &(struct relay_target){.key = key,
                               .move = m->uid,
                               .source_node = m->source_node,
                               .bind = bind,
                               .control_socket = control,
                               .memory_socket = memory,
                               .disk_socket = pass->memory->disks ? disks : NULL,
                               .owner = owner,
                               .generation =
                                   1 + wire_move_generation(&pass->vmi->u.vmi, ANNOTATION_RECOVER),
                               .source_address = m->config.disable_tls ? source : NULL,
                               .resume_window_s = pass->node->resume_window_s},
        address, ret, err);
}

static void tell_target(struct pass *pass, enum target_event event, const struct target_input *in)
{
    const char *uid = pass->vmi->u.vmi.migration.uid, *name = pass->vmi->meta->name;
    struct kube_recorder *rec = pass->node->recorder;

    switch (event) {
    case TARGET_NO_EVENT:
        return;
    case TARGET_PUBLISHED:
        kube_record(rec, pass->vmi, KUBE_EVENT_NORMAL, "PreparingTarget",
                    "Migration Target is listening at %s", in->relay.address);
        break;
    case TARGET_OWNED:
        kube_record(rec, pass->vmi, KUBE_EVENT_NORMAL, "Migrated",
                    "The VirtualMachineInstance migrated to node %s.", pass->node->name);
        break;
    case TARGET_COMPLETED:
        break;
    case TARGET_REFUSED:
        kube_record(rec, pass->vmi, KUBE_EVENT_WARNING, "Migrated",
                    "VirtualMachineInstance migration uid %s failed. reason: %s", uid,
                    wire_reason_text(in->trouble.reason));
        break;
    case TARGET_FAILED:
        kube_record(rec, pass->vmi, KUBE_EVENT_WARNING, "Migrated",
                    "VirtualMachineInstance migration uid %s failed; its source is silent", uid);
        break;
    }
    static const char *const words[] = {"",
                                        "listening for a move",
                                        "the guest lives here now",
                                        "move completed",
                                        "move failed",
                                        "move refused"};
    ferry_info(words[event], F_STR("vmi", name), F_STR("move", uid));
}

/* What the launcher says to the end of a move that was given up. */
static enum target_withdrawn withdraw_target(struct pass *pass)
{
    struct ferry_error err;
    int rc = launcher_withdraw(pass->socket, pass->vmi->u.vmi.migration.uid, &err);

    if (rc == 0) {
        return TARGET_WITHDRAWN;
    }
    ferry_info("the target does not let go of the move", F_STR("vmi", pass->vmi->meta->name),
               F_ERR(&err));
    return err.cls == FERRY_NOT_FOUND || err.cls == FERRY_INVALID ? TARGET_NOT_ABLE : TARGET_KEPT;
}

int pass_as_target(struct pass *pass, struct ferry_error *err)
{
    const char *uid = pass->vmi->u.vmi.migration.uid;
    struct target_input in = {
        .vmi = &pass->vmi->u.vmi, .node = pass->node->name, .now_ms = pass->now_ms};
    char address[RELAY_ADDRESS_SIZE];
    int64_t asked = wire_move_generation(in.vmi, ANNOTATION_RECOVER);

    if (asked != pass->memory->asked) {
        pass->memory->asked = asked;
        pass->memory->asked_ms = pass->now_ms;
    }
    in.asked_ms = pass->memory->asked_ms;
    if (!ferry_streq(pass->memory->seen_move, uid)) {
        free(pass->memory->seen_move);
        pass->memory->seen_move = ferry_strdup(uid);
        pass->memory->seen_ms = pass->now_ms;
    }
    in.seen_ms = pass->memory->seen_ms;
    keep_silence(pass, &in.trouble);
    for (int i = 0; i < STEPS_MAX; i++) {
        enum move_part part = MOVE_PART_LAUNCHER;
        int rc = 0;

        in.launcher = pass->view;
        struct target_decision d = target_decide(&in);
        switch (d.action) {
        case TARGET_NOTHING:
            end_trouble(pass, &in.trouble);
            pass->again_ms = d.again_ms;
            rc = pass_patch(pass, d.patch, err);
            if (rc == 0) {
                tell_target(pass, d.event, &in);
            }
            return rc;
        case TARGET_PREPARE:
            rc = prepare_target(pass, err);
            pass_refresh(pass);
            break;
        case TARGET_RECOVER:
            rc = launcher_recover(pass->socket, uid, LAUNCHER_ROLE_TARGET, err);
            in.recovered = rc == 0;
            break;
        case TARGET_LISTEN:
            /* After a restart what was prepared is asked for again: it is the same. */
            rc = ferry_streq(pass->memory->disks_move, uid) ? 0 : prepare_target(pass, err);
            rc = rc < 0 ? rc : listen_target(pass, address, &in.relay, &part, err);
            in.disks = pass->memory->disks;
            break;
        case TARGET_FINALIZE:
            rc = launcher_finalize(pass->socket, uid, err);
            in.finalized = rc == 0;
            break;
        case TARGET_WITHDRAW:
            in.withdrawn = withdraw_target(pass);
            break;
        case TARGET_UNLISTEN:
            rc = relay_delete(pass->node->relay_socket, "targets", pass->vmi->meta->uid, err);
            if (rc < 0) {
                return rc; /* the move is over: nobody waits to be told */
            }
            in.unlistened = true;
            if (pass->view.reach == LAUNCHER_UP) {
                pass_refresh(pass); /* what the guest came to before the streams ended */
            }
            break;
        }
        if (rc < 0) {
            keep_trouble(pass, &in.trouble, part, err);
        }
    }
    return too_many_steps(pass, err);
}
