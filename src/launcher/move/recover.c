#include "launcher/move/recover.h"

#include <string.h>

#include "base/channels.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "launcher/libvirt/qmp_session.h"
#include "launcher/move/migrate_call.h"

enum {
    STATUS_SIZE = 40,
    CALL_MS = 5000,
    WAIT_MS = 10000,
    STEP_MS = 50,
    NOTICE_MS = 1500, /* QEMU gets so long to see by itself that its streams are dead */
};

static int64_t soon(void)
{
    return ferry_now_ns() + CALL_MS * FERRY_NS_PER_MS;
}

/* Has the source's QEMU drop streams that it still believes in: we are asked because they are dead.
 */
static void drop_streams(const struct context *c)
{
    const struct qmp_command command = {.name = "migrate-pause", .at_once = true};
    struct ferry_error err;

    if (qmp_session_execute(c->qmp, &command, soon(), NULL, &err) < 0) {
        ferry_info("QEMU keeps its streams", F_ERR(&err));
    }
}

static bool is(const char *status, const char *wanted)
{
    return ferry_streq(status, wanted);
}

/* Waits until QEMU has seen that its streams are dead. `*ret_done`: there is nothing to recover. */
static int wait_broken(const struct context *c, bool *ret_done, struct ferry_error *err)
{
    int64_t begin = ferry_now_ns(), deadline = begin + WAIT_MS * FERRY_NS_PER_MS;
    char status[STATUS_SIZE];
    bool dropped = false;

    do {
        int rc = qmp_session_migration_status(c->qmp, status, sizeof(status), soon(), err);

        if (rc < 0) {
            return rc;
        }
        *ret_done = is(status, "completed");
        if (*ret_done || is(status, "postcopy-paused")) {
            return 0;
        }
        if (!dropped && is(status, "postcopy-active") &&
            ferry_now_ns() - begin >= NOTICE_MS * FERRY_NS_PER_MS) {
            drop_streams(c);
            dropped = true;
        }
        ferry_sleep_ms(STEP_MS);
    } while (ferry_now_ns() < deadline);
    return ferry_fail(err, FERRY_RETRY, "QEMU is not ready to recover: it says %s", status);
}

/* Waits until the source goes on over the new streams. */
static int wait_going(const struct context *c, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + WAIT_MS * FERRY_NS_PER_MS;
    char status[STATUS_SIZE];

    do {
        int rc = qmp_session_migration_status(c->qmp, status, sizeof(status), soon(), err);

        /* QEMU may be gone: libvirt ends it when all has arrived */
        if (rc < 0 || is(status, "postcopy-active") || is(status, "completed")) {
            return 0;
        }
        if (is(status, "postcopy-paused")) {
            break;
        }
        ferry_sleep_ms(STEP_MS);
    } while (ferry_now_ns() < deadline);
    return ferry_fail(err, FERRY_RETRY, "the new streams broke before the migration went on: %s",
                      status);
}

static int recover_source(const struct context *c, const char *uri, struct ferry_error *err)
{
    ferry_cleanup_free char *arguments = ferry_asprintf("{\"uri\":\"%s\",\"resume\":true}", uri);
    const struct qmp_command command = {.name = "migrate", .arguments = arguments};
    bool done;
    int rc = wait_broken(c, &done, err);

    if (rc < 0 || done) {
        return rc;
    }
    rc = qmp_session_execute(c->qmp, &command, soon(), NULL, err);
    return rc < 0 ? rc : wait_going(c, err);
}

/* When streams die just after a recovery, QEMU can be left waiting for the second one on the socket
 * it made then, and sees nothing else. A connection that says nothing is what it takes to go on and
 * find out that the first is dead. */
static void knock(const char *path)
{
    ferry_cleanup_fd int fd = ferry_unix_connect(path, soon(), NULL);

    (void)fd;
}

/* All out of band and on the connection that was agreed upon before: the main loop may wait for
 * memory that only the recovery brings. The target is never told to drop its streams
 * (migrate-pause): QEMU 10.0 crashes when it is about to find out by itself, and the guest with it.
 * To ask twice is no error since QEMU 7.1: the second try takes the place of the first. */
static int recover_target(const struct context *c, const char *path, const char *uri,
                          struct ferry_error *err)
{
    ferry_cleanup_free char *arguments = ferry_asprintf("{\"uri\":\"%s\"}", uri);
    const struct qmp_command command = {
        .name = "migrate-recover", .arguments = arguments, .at_once = true};
    int64_t begin = ferry_now_ns();
    bool knocked = false;

    for (;;) {
        int rc = qmp_session_execute(c->qmp, &command, soon(), NULL, err);

        if (rc == 0) {
            return 0;
        }
        int64_t waited_ms = (ferry_now_ns() - begin) / FERRY_NS_PER_MS;
        if (rc != -FERRY_CONFLICT || waited_ms >= WAIT_MS) {
            return rc;
        }
        if (!knocked && waited_ms >= NOTICE_MS) {
            knock(path);
            knocked = true;
        }
        ferry_sleep_ms(STEP_MS);
    }
}

/* The socket's path, checked: it goes into a command to QEMU. */
static int check_path(const struct context *c, const char *path, struct ferry_error *err)
{
    size_t dir = strlen(c->migration_dir);

    if (strncmp(path, c->migration_dir, dir) != 0 || path[dir] != '/' ||
        strchr(path + dir + 1, '/') || strpbrk(path, "\"\\,") || strlen(path) > 107) {
        return ferry_fail(err, FERRY_INVALID, "unix: must be a socket in %s", c->migration_dir);
    }
    return 0;
}

static int check(const struct context *c, const char *uid, enum launcher_role role,
                 struct ferry_error *err)
{
    struct state_values v;

    state_get(c->state, &v);
    if (!state_uid_known(&v, uid)) {
        return ferry_fail(err, FERRY_NOT_FOUND, "there is no migration %s here", uid);
    }
    if (!ferry_streq(v.migration.uid, uid) || state_migration_over(&v.migration)) {
        return ferry_fail(err, FERRY_CONFLICT, "migration %s is over", uid);
    }
    if (v.migration.role != role) {
        return ferry_fail(err, FERRY_CONFLICT, "this launcher is not the %s of migration %s",
                          wire_launcher_role_text(role), uid);
    }
    if (role == LAUNCHER_ROLE_SOURCE && v.migration.mode != MODE_POST_COPY) {
        return ferry_fail(err, FERRY_CONFLICT, "migration %s is not in post-copy", uid);
    }
    return 0;
}

int recover_run(const struct context *c, const char *uid, enum launcher_role role,
                const char *unix_path, struct ferry_error *err)
{
    ferry_cleanup_free char *usual =
        ferry_channel_path(c->migration_dir, c->uid, FERRY_CHANNEL_MEMORY);
    const char *path = unix_path ? unix_path : usual;
    ferry_cleanup_free char *uri = ferry_asprintf("unix:%s", path);
    int rc = check(c, uid, role, err);

    if (rc < 0 || (rc = check_path(c, path, err)) < 0) {
        return rc;
    }
    rc = role == LAUNCHER_ROLE_SOURCE ? recover_source(c, uri, err)
                                      : recover_target(c, path, uri, err);
    ferry_info("post-copy recovery", F_STR("role", wire_launcher_role_text(role)),
               F_STR("migration", uid), F_STR("result", rc < 0 ? err->msg : "ok"));
    if (rc < 0) {
        return rc;
    }
    state_lock(c->state)->migration.recoveries++;
    return state_commit(c->state, err);
}
