#include "cli/site/site_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <yyjson.h>

#include "base/fd.h"
#include "base/proc.h"
#include "base/str.h"
#include "json/doc.h"

enum { STATE_MAX = 1 << 20 };

void site_state_free(struct site_state *s)
{
    if (!s) {
        return;
    }
    free(s->bin_dir);
    free(s->guest_dir);
    free(s->daemons);
    free(s);
}

bool site_process_alive(const struct site_process *p)
{
    return p->pid > 0 && p->start_time && ferry_proc_start_time(p->pid) == p->start_time;
}

/* ---- text ---------------------------------------------------------------------------------- */

static yyjson_mut_val *encode_process(yyjson_mut_doc *doc, const struct site_process *p)
{
    yyjson_mut_val *v = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_str(doc, v, "name", p->name);
    yyjson_mut_obj_add_int(doc, v, "pid", p->pid);
    yyjson_mut_obj_add_uint(doc, v, "startTime", p->start_time);
    yyjson_mut_obj_add_int(doc, v, "restarts", p->restarts);
    yyjson_mut_obj_add_int(doc, v, "lastExit", p->last_exit);
    return v;
}

char *site_state_encode(const struct site_state *s)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_int(doc, root, "version", 1);
    yyjson_mut_obj_add_int(doc, root, "nodes", s->nodes);
    yyjson_mut_obj_add_int(doc, root, "port", s->port);
    yyjson_mut_obj_add_str(doc, root, "binDir", s->bin_dir);
    yyjson_mut_obj_add_str(doc, root, "guestDir", s->guest_dir);
    yyjson_mut_obj_add_bool(doc, root, "madeRoot", s->made.root);
    yyjson_mut_obj_add_bool(doc, root, "madeNetns", s->made.netns);
    yyjson_mut_obj_add_val(doc, root, "supervisor", encode_process(doc, &s->supervisor));
    for (size_t i = 0; i < s->n_daemons; i++) {
        yyjson_mut_arr_append(list, encode_process(doc, &s->daemons[i]));
    }
    yyjson_mut_obj_add_val(doc, root, "daemons", list);

    ferry_cleanup_free char *text = json_doc_text(doc, YYJSON_WRITE_PRETTY, NULL);
    char *line = ferry_asprintf("%s\n", text);
    yyjson_mut_doc_free(doc);
    return line;
}

static int decode_process(yyjson_val *v, struct site_process *p, struct ferry_error *err)
{
    const char *name = yyjson_get_str(yyjson_obj_get(v, "name"));

    if (!name || strlen(name) >= sizeof(p->name)) {
        return ferry_fail(err, FERRY_INVALID, "a process has no usable name");
    }
    memcpy(p->name, name, strlen(name) + 1);
    p->pid = (pid_t)yyjson_get_int(yyjson_obj_get(v, "pid"));
    p->start_time = yyjson_get_uint(yyjson_obj_get(v, "startTime"));
    p->restarts = yyjson_get_int(yyjson_obj_get(v, "restarts"));
    p->last_exit = yyjson_get_int(yyjson_obj_get(v, "lastExit"));
    return 0;
}

static int decode_root(yyjson_val *root, struct site_state *s, struct ferry_error *err)
{
    const char *bin = yyjson_get_str(yyjson_obj_get(root, "binDir"));
    const char *guest = yyjson_get_str(yyjson_obj_get(root, "guestDir"));
    yyjson_val *list = yyjson_obj_get(root, "daemons"), *item;
    size_t i, n;

    if (yyjson_get_int(yyjson_obj_get(root, "version")) != 1) {
        return ferry_fail(err, FERRY_INVALID, "it is not of version 1");
    }
    if (!bin || !guest) {
        return ferry_fail(err, FERRY_INVALID, "binDir or guestDir is missing");
    }
    s->bin_dir = ferry_strdup(bin);
    s->guest_dir = ferry_strdup(guest);
    s->nodes = yyjson_get_int(yyjson_obj_get(root, "nodes"));
    s->port = yyjson_get_int(yyjson_obj_get(root, "port"));
    s->made.root = yyjson_get_bool(yyjson_obj_get(root, "madeRoot"));
    s->made.netns = yyjson_get_bool(yyjson_obj_get(root, "madeNetns"));
    if (decode_process(yyjson_obj_get(root, "supervisor"), &s->supervisor, err) < 0) {
        return -FERRY_INVALID;
    }
    s->daemons = ferry_xcalloc(yyjson_arr_size(list) + 1, sizeof(*s->daemons));
    yyjson_arr_foreach(list, i, n, item)
    {
        if (decode_process(item, &s->daemons[s->n_daemons], err) < 0) {
            return -FERRY_INVALID;
        }
        s->n_daemons++;
    }
    return 0;
}

int site_state_decode(const char *text, size_t len, struct site_state **ret,
                      struct ferry_error *err)
{
    site_cleanup_state struct site_state *s = ferry_xcalloc(1, sizeof(*s));
    yyjson_doc *doc = yyjson_read(text, len, 0);

    if (!doc) {
        return ferry_fail(err, FERRY_INVALID, "it is not JSON");
    }
    int rc = decode_root(yyjson_doc_get_root(doc), s, err);
    yyjson_doc_free(doc);
    if (rc == 0) {
        *ret = ferry_take_ptr(s);
    }
    return rc;
}

/* ---- file ---------------------------------------------------------------------------------- */

int site_state_read(const char *path, struct site_state **ret, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    if (access(path, F_OK) < 0 && errno == ENOENT) {
        return ferry_fail(err, FERRY_NOT_FOUND, "there is no %s", path);
    }
    int rc = ferry_read_file(path, STATE_MAX, &b, err);
    if (rc < 0) {
        return rc;
    }
    if (site_state_decode(b.data ? b.data : "", b.len, ret, err) < 0) {
        return ferry_wrap(err, "reading the site's state %s", path);
    }
    return 0;
}

int site_state_write(const char *path, const struct site_state *s, struct ferry_error *err)
{
    ferry_cleanup_free char *text = site_state_encode(s);

    return ferry_write_file(path, text, strlen(text), 0644, err);
}

int site_state_lock(const char *root, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/lock", root);
    ferry_cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        return ferry_fail_errno(err, errno, "opening %s", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return ferry_fail(err, FERRY_CONFLICT,
                          "another 'ferry up' or 'ferry down' is working on the site at %s; wait "
                          "for it to end",
                          root);
    }
    return ferry_take_fd(&fd);
}

void site_state_drop_lock(const char *root)
{
    ferry_cleanup_free char *state = ferry_asprintf("%s/site.json", root);
    ferry_cleanup_free char *lock = ferry_asprintf("%s/lock", root);

    if (access(state, F_OK) < 0 && errno == ENOENT) {
        unlink(lock);
    }
}
