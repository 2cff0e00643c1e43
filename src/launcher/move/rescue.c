#include "launcher/move/rescue.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/object.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "launcher/libvirt/qmp_session.h"

enum { CALL_MS = 5000, ANSWER_SIZE = 256 };

static int64_t soon(void)
{
    return ferry_now_ns() + CALL_MS * FERRY_NS_PER_MS;
}

static int command(const struct context *c, const char *name, const char *arguments,
                   struct ferry_error *err)
{
    return qmp_session_execute(c->qmp, &(struct qmp_command){.name = name, .arguments = arguments},
                               soon(), NULL, err);
}

static int is_running(const struct context *c, bool *ret, struct ferry_error *err)
{
    yyjson_doc *doc = NULL;
    int rc = qmp_session_execute(c->qmp, &(struct qmp_command){.name = "query-status"}, soon(),
                                 &doc, err);

    if (rc == 0) {
        *ret = api_json_bool(yyjson_doc_get_root(doc), "/return/running", false);
        yyjson_doc_free(doc);
    }
    return rc;
}

/* Where the stub listens: where QEMU's monitors are. */
static int gdb_stub(const struct context *c, const char *where, struct ferry_error *err)
{
    ferry_cleanup_free char *arguments =
        ferry_asprintf("{\"command-line\":\"gdbserver %s\"}", where);

    return command(c, "human-monitor-command", arguments, err);
}

/* Detaches from all: the stub then lets the vCPUs run. It answers "OK". */
static int detach(const char *path, struct ferry_error *err)
{
    static const char packet[] = "$D#44";
    int64_t deadline = soon();
    char answer[ANSWER_SIZE + 1] = "";
    size_t n = 0;
    ferry_cleanup_fd int fd = ferry_unix_connect(path, deadline, err);

    if (fd < 0) {
        return ferry_wrap(err, "QEMU's gdb stub");
    }
    if (ferry_write_all(fd, packet, sizeof(packet) - 1, err) < 0) {
        return ferry_wrap(err, "QEMU's gdb stub");
    }
    while (n < ANSWER_SIZE && !strchr(answer, '+')) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t got =
            poll(&p, 1, ferry_ms_left(deadline)) > 0 ? read(fd, answer + n, ANSWER_SIZE - n) : 0;
        if (got <= 0) {
            return ferry_fail(err, FERRY_RETRY, "QEMU's gdb stub does not answer");
        }
        n += (size_t)got;
        answer[n] = '\0';
    }
    return 0;
}

int rescue_run(const struct context *c, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s.gdb", c->domain.qmp_session_path);
    ferry_cleanup_free char *where = ferry_asprintf("unix:%s,server=on,wait=off", path);
    struct ferry_error inner;
    bool running = false;
    int rc = is_running(c, &running, err);

    if (rc < 0 || running) {
        return rc;
    }
    /* The images were given away at the switch-over. */
    rc = command(c, "blockdev-set-active", "{\"active\":true}", err);
    if (rc < 0 || (rc = gdb_stub(c, where, err)) < 0) {
        return rc;
    }
    rc = detach(path, err);
    if (gdb_stub(c, "none", &inner) < 0) {
        ferry_warn("QEMU's gdb stub stays open", F_ERR(&inner));
    }
    unlink(path);
    if (rc < 0 || (rc = is_running(c, &running, err)) < 0) {
        return rc;
    }
    return running ? 0 : ferry_fail(err, FERRY_RETRY, "the guest does not run in spite of all");
}

int rescue_continue(const struct context *c, bool *ret_ran, struct ferry_error *err)
{
    bool running = false;
    int rc = is_running(c, ret_ran, err);

    if (rc < 0 || *ret_ran) {
        return rc;
    }
    rc = command(c, "cont", NULL, err);
    if (rc < 0 || (rc = is_running(c, &running, err)) < 0) {
        return rc;
    }
    return running ? 0 : ferry_fail(err, FERRY_RETRY, "the guest does not run on");
}

int rescue_power_down(const struct context *c, struct ferry_error *err)
{
    return command(c, "system_powerdown", NULL, err);
}
