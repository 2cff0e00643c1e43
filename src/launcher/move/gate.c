#include "launcher/move/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/wire/wire_reason.h"
#include "base/fd.h"
#include "base/str.h"

struct gate {
    char *closed, *started; /* paths; what they mean: src/gate/gate_driver.c */
};

int gate_new(const char *dir, struct gate **ret, struct ferry_error *err)
{
    int rc = ferry_mkdir_p(dir, 0700, err);

    if (rc < 0) {
        return rc;
    }
    struct gate *g = ferry_xcalloc(1, sizeof(*g));
    g->closed = ferry_asprintf("%s/closed", dir);
    g->started = ferry_asprintf("%s/started", dir);
    *ret = g;
    return 0;
}

void gate_free(struct gate *g)
{
    if (g) {
        free(g->closed);
        free(g->started);
        free(g);
    }
}

static int remove_file(const char *path, struct ferry_error *err)
{
    return unlink(path) < 0 && errno != ENOENT ? ferry_fail_errno(err, errno, "removing %s", path)
                                               : 0;
}

int gate_open(struct gate *g, struct ferry_error *err)
{
    return remove_file(g->closed, err);
}

int gate_close(struct gate *g, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = open(g->closed, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    return fd < 0 ? ferry_fail_errno(err, errno, "making %s", g->closed) : 0;
}

int gate_reset(struct gate *g, struct ferry_error *err)
{
    int rc = remove_file(g->started, err);

    return rc < 0 ? rc : gate_open(g, err);
}

bool gate_started(const struct gate *g)
{
    return access(g->started, F_OK) == 0 || errno != ENOENT;
}

bool gate_must_be_closed(const struct state_values *v)
{
    const struct state_migration *m = &v->migration;

    switch (m->role) {
    case LAUNCHER_ROLE_SOURCE: /* only a move that failed leaves a guest here that may run */
        return m->phase != LAUNCHER_FAILED || wire_reason_of(m->reason_code) == REASON_TARGET_LOST;
    case LAUNCHER_ROLE_TARGET:
        return m->phase == LAUNCHER_FAILED;
    default:
        return false;
    }
}
