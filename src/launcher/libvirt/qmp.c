#include "launcher/libvirt/qmp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/object.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

enum { ANSWER_MAX = 1 << 20, LINES_MAX = 10000 };

struct qmp {
    int fd;
    struct ferry_buf in; /* what was read and not yet taken */
};

struct qmp *qmp_adopt(int fd)
{
    struct qmp *q = ferry_xcalloc(1, sizeof(*q));

    q->fd = fd;
    return q;
}

int qmp_fd(const struct qmp *q)
{
    return q->fd;
}

void qmp_close(struct qmp *q)
{
    if (q) {
        ferry_closep(&q->fd);
        ferry_buf_done(&q->in);
        free(q);
    }
}

static int fill(struct qmp *q, int64_t deadline_ns, struct ferry_error *err)
{
    char piece[4096];
    int64_t left_ms = (deadline_ns - ferry_now_ns()) / FERRY_NS_PER_MS;
    struct pollfd p = {.fd = q->fd, .events = POLLIN};

    if (left_ms <= 0 || poll(&p, 1, (int)left_ms) == 0) {
        return ferry_fail(err, FERRY_RETRY, "QEMU's monitor does not answer");
    }
    ssize_t n = read(q->fd, piece, sizeof(piece));
    if (n < 0 && errno == EINTR) {
        return 0;
    }
    if (n <= 0) {
        return ferry_fail(err, FERRY_RETRY, "QEMU's monitor closed the connection");
    }
    if (q->in.len + (size_t)n > ANSWER_MAX) {
        return ferry_fail(err, FERRY_FATAL, "QEMU's monitor says too much");
    }
    ferry_buf_append(&q->in, piece, (size_t)n);
    return 0;
}

/* The next line, parsed. The rest of a line whose begin a predecessor took is skipped. */
static int read_line(struct qmp *q, int64_t deadline_ns, yyjson_doc **ret, struct ferry_error *err)
{
    for (;;) {
        char *end = q->in.len ? memchr(q->in.data, '\n', q->in.len) : NULL;

        if (!end) {
            int rc = fill(q, deadline_ns, err);
            if (rc < 0) {
                return rc;
            }
            continue;
        }
        size_t len = (size_t)(end - q->in.data);
        int rc = api_json_parse(q->in.data, len, ret, NULL);

        q->in.len -= len + 1;
        memmove(q->in.data, end + 1, q->in.len);
        if (rc == 0) {
            return 0;
        }
    }
}

/* The answer to command `id`; 1 when `doc` is something else: an event, or what a predecessor
 * asked for. */
static int answer(yyjson_doc *doc, const char *id, const char *command, struct ferry_error *err)
{
    yyjson_val *root = yyjson_doc_get_root(doc), *error = yyjson_obj_get(root, "error");

    if (!ferry_streq(api_json_str(root, "/id"), id)) {
        return 1;
    }
    if (error) {
        const char *why = yyjson_get_str(yyjson_obj_get(error, "desc"));

        return ferry_fail(err, FERRY_CONFLICT, "QEMU refuses %s: %s", command, why ? why : "?");
    }
    return yyjson_obj_get(root, "return") ? 0 : 1;
}

int qmp_execute(struct qmp *q, const struct qmp_command *c, int64_t deadline_ns, yyjson_doc **ret,
                struct ferry_error *err)
{
    char id[40];
    int rc;

    /* Of this process and this instant: nobody else's answer is taken for ours. */
    snprintf(id, sizeof(id), "%ld-%lld", (long)getpid(), (long long)ferry_now_ns());
    ferry_cleanup_free char *line = ferry_asprintf(
        "{\"%s\":\"%s\",\"arguments\":%s,\"id\":\"%s\"}\n", c->at_once ? "exec-oob" : "execute",
        c->name, c->arguments ? c->arguments : "{}", id);
    if (ferry_write_all(q->fd, line, strlen(line), err) < 0) {
        return ferry_fail(err, FERRY_RETRY, "QEMU's monitor closed the connection");
    }
    for (int i = 0; i < LINES_MAX; i++) {
        yyjson_doc *doc = NULL;

        rc = read_line(q, deadline_ns, &doc, err);
        if (rc < 0) {
            return rc;
        }
        rc = answer(doc, id, c->name, err);
        if (rc == 0 && ret) {
            *ret = doc;
            return 0;
        }
        yyjson_doc_free(doc);
        if (rc <= 0) {
            return rc;
        }
    }
    return ferry_fail(err, FERRY_FATAL, "QEMU's monitor never answers %s", c->name);
}

int qmp_open(const char *path, int64_t deadline_ns, struct qmp **ret, struct ferry_error *err)
{
    const struct qmp_command agree = {.name = "qmp_capabilities",
                                      .arguments = "{\"enable\":[\"oob\"]}"};
    int fd = ferry_unix_connect(path, deadline_ns, err);
    yyjson_doc *greeting = NULL;

    if (fd < 0) {
        return ferry_wrap(err, "QEMU's monitor");
    }
    struct qmp *q = qmp_adopt(fd);
    int rc = read_line(q, deadline_ns, &greeting, err);
    yyjson_doc_free(greeting);
    if (rc == 0) {
        rc = qmp_execute(q, &agree, deadline_ns, NULL, err);
    }
    if (rc < 0) {
        qmp_close(q);
        return rc;
    }
    *ret = q;
    return 0;
}

int qmp_call(const char *path, const char *command, const char *arguments, int64_t deadline_ns,
             yyjson_doc **ret, struct ferry_error *err)
{
    struct qmp *q;
    int rc = qmp_open(path, deadline_ns, &q, err);

    if (rc < 0) {
        return rc;
    }
    rc = qmp_execute(q, &(struct qmp_command){.name = command, .arguments = arguments}, deadline_ns,
                     ret, err);
    qmp_close(q);
    return rc;
}
