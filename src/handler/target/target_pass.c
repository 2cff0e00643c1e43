/* The target's decisions, carried out, as on the source. */
#include "handler/target/target_pass.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_move.h"
#include "base/channels.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"
#include "handler/local/relay_client.h"
#include "handler/move/move_disks.h"
#include "handler/move/move_pass.h"
#include "handler/node/address.h"
#include "handler/node/migration_net.h"
#include "handler/source/source_decide.h"
#include "handler/target/target_decide.h"

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
    int rc = launcher_prepare(&pass->launcher, uid, pass->vmi, options, source, &reply, err);

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
    if ((rc = move_pass_owner(dir, &owner, err)) < 0) {
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
    int rc = launcher_withdraw(&pass->launcher, pass->vmi->u.vmi.migration.uid, &err);

    if (rc == 0) {
        return TARGET_WITHDRAWN;
    }
    ferry_info("target keeps the move, retrying", F_STR("vmi", pass->vmi->meta->name), F_ERR(&err));
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
    move_pass_silence(pass, &in.trouble);
    for (int i = 0; i < MOVE_PASS_STEPS; i++) {
        enum move_part part = MOVE_PART_LAUNCHER;
        int rc = 0;

        in.launcher = pass->view;
        struct target_decision d = target_decide(&in);
        switch (d.action) {
        case TARGET_NOTHING:
            move_pass_settled(pass, &in.trouble);
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
            rc = launcher_recover(&pass->launcher, uid, LAUNCHER_ROLE_TARGET, err);
            in.recovered = rc == 0;
            break;
        case TARGET_LISTEN:
            /* After a restart what was prepared is asked for again: it is the same. */
            rc = ferry_streq(pass->memory->disks_move, uid) ? 0 : prepare_target(pass, err);
            rc = rc < 0 ? rc : listen_target(pass, address, &in.relay, &part, err);
            in.disks = pass->memory->disks;
            break;
        case TARGET_FINALIZE:
            rc = launcher_finalize(&pass->launcher, uid, err);
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
            move_pass_trouble(pass, &in.trouble, part, err);
        }
    }
    return move_pass_restless(pass, err);
}
