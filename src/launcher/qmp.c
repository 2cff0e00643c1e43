#include "launcher/qmp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/object.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

enum { ANSWER_MAX = 1 << 20, LINES_MAX = 1000 };

struct link {
    int fd;
    int64_t deadline_ns;
    struct ferry_buf in; /* what was read and not yet taken */
};

static void link_done(struct link *l)
{
    ferry_closep(&l->fd);
    ferry_buf_done(&l->in);
}
#define cleanup_link ferry_cleanup(link_done)

static int fill(struct link *l, struct ferry_error *err)
{
    char piece[4096];
    int64_t left_ms = (l->deadline_ns - ferry_now_ns()) / FERRY_NS_PER_MS;
    struct pollfd p = {.fd = l->fd, .events = POLLIN};

    if (left_ms <= 0 || poll(&p, 1, (int)left_ms) == 0) {
        return ferry_fail(err, FERRY_RETRY, "QEMU's monitor does not answer");
    }
    ssize_t n = read(l->fd, piece, sizeof(piece));
    if (n < 0 && errno == EINTR) {
        return 0;
    }
    if (n <= 0) {
        return ferry_fail(err, FERRY_RETRY, "QEMU's monitor closed the connection");
    }
    if (l->in.len + (size_t)n > ANSWER_MAX) {
        return ferry_fail(err, FERRY_FATAL, "QEMU's monitor says too much");
    }
    ferry_buf_append(&l->in, piece, (size_t)n);
    return 0;
}

/* The next line, parsed. */
static int read_line(struct link *l, yyjson_doc **ret, struct ferry_error *err)
{
    for (;;) {
        char *end = l->in.len ? memchr(l->in.data, '\n', l->in.len) : NULL;

        if (end) {
            size_t len = (size_t)(end - l->in.data);
            int rc = api_json_parse(l->in.data, len, ret, err);

            l->in.len -= len + 1;
            memmove(l->in.data, end + 1, l->in.len);
            return rc < 0 ? ferry_wrap(err, "QEMU's monitor") : 0;
        }
        int rc = fill(l, err);
        if (rc < 0) {
            return rc;
        }
    }
}

/* Sends a command and waits for its answer; events in between are skipped. */
static int execute(struct link *l, const char *verb, const char *command, const char *arguments,
                   yyjson_doc **ret, struct ferry_error *err)
{
    ferry_cleanup_free char *line = ferry_asprintf("{\"%s\":\"%s\",\"arguments\":%s}\n", verb,
                                                   command, arguments ? arguments : "{}");
    int rc = ferry_write_all(l->fd, line, strlen(line), err);

    for (int i = 0; rc == 0 && i < LINES_MAX; i++) {
        yyjson_doc *doc = NULL;

        rc = read_line(l, &doc, err);
        if (rc < 0) {
            return rc;
        }
        yyjson_val *root = yyjson_doc_get_root(doc), *error = yyjson_obj_get(root, "error");
        if (error) {
            const char *why = yyjson_get_str(yyjson_obj_get(error, "desc"));

            rc = ferry_fail(err, FERRY_CONFLICT, "QEMU refuses %s: %s", command, why ? why : "?");
        } else if (yyjson_obj_get(root, "return")) {
            if (ret) {
                *ret = doc;
                return 0;
            }
            yyjson_doc_free(doc);
            return 0;
        }
        yyjson_doc_free(doc);
    }
    return rc < 0 ? rc : ferry_fail(err, FERRY_FATAL, "QEMU's monitor never answers %s", command);
}

int qmp_call(const char *path, const char *command, const char *arguments, bool at_once,
             int64_t deadline_ns, yyjson_doc **ret, struct ferry_error *err)
{
    cleanup_link struct link l = {.fd = ferry_unix_connect(path, deadline_ns, err),
                                  .deadline_ns = deadline_ns};
    yyjson_doc *greeting = NULL;

    if (l.fd < 0) {
        return ferry_wrap(err, "QEMU's monitor");
    }
    int rc = read_line(&l, &greeting, err);
    yyjson_doc_free(greeting);
    if (rc == 0) {
        rc = execute(&l, "execute", "qmp_capabilities", "{\"enable\":[\"oob\"]}", NULL, err);
    }
    return rc < 0 ? rc
                  : execute(&l, at_once ? "exec-oob" : "execute", command, arguments, ret, err);
}

int qmp_migration_status(const char *path, char *ret, size_t size, int64_t deadline_ns,
                         struct ferry_error *err)
{
    yyjson_doc *doc = NULL;
    int rc = qmp_call(path, "query-migrate", NULL, false, deadline_ns, &doc, err);

    if (rc < 0) {
        return rc;
    }
    const char *s = api_json_str(yyjson_doc_get_root(doc), "/return/status");
    snprintf(ret, size, "%s", s ? s : "none");
    yyjson_doc_free(doc);
    return 0;
}
