#include "cli/site/site_sweep.h"

#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#include "base/fd.h"
#include "base/proc.h"
#include "base/str.h"
#include "cli/site/site_plan.h"
#include "cli/site/supervise.h"

enum { ENVIRON_MAX = 1 << 20, SANDBOX_MAX = 1 << 16 };

struct seen {
    pid_t pid, parent;
    bool ours, sandbox;
    char name[32];
};
struct table {
    struct seen *items;
    size_t n;
};

bool site_sweep_marked(const char *environ_text, size_t len, const char *root)
{
    ferry_cleanup_free char *mark = ferry_asprintf(SUPERVISE_MARK "=%s", root);
    const char *p = environ_text, *end = environ_text + len;

    while (p && p < end) {
        size_t n = strnlen(p, (size_t)(end - p));

        if (n == strlen(mark) && memcmp(p, mark, n) == 0) {
            return true;
        }
        p += n + 1;
    }
    return false;
}

pid_t site_sweep_sandbox(const char *json, size_t len, uint64_t *ret_pid_ns)
{
    /* bubblewrap appends further lines ({"exit-code": 0}) to the first object. */
    yyjson_doc *doc = yyjson_read(json, len, YYJSON_READ_STOP_WHEN_DONE);
    yyjson_val *root = yyjson_doc_get_root(doc);
    pid_t pid = (pid_t)yyjson_get_int(yyjson_obj_get(root, "child-pid"));

    *ret_pid_ns = yyjson_get_uint(yyjson_obj_get(root, "pid-namespace"));
    yyjson_doc_free(doc);
    return pid > 1 ? pid : 0;
}

/* ---- processes ----------------------------------------------------------------------------- */

static bool read_stat(pid_t pid, struct seen *ret)
{
    char path[64];
    ferry_cleanup_buf struct ferry_buf b = {0};
    int parent;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (ferry_read_file(path, 65536, &b, NULL) < 0 || !b.len) {
        return false;
    }
    const char *open = strchr(b.data, '('), *close = strrchr(b.data, ')');
    if (!open || !close || sscanf(close + 1, " %*c %d", &parent) != 1) {
        return false;
    }
    ret->pid = pid;
    ret->parent = parent;
    snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

static bool is_marked(pid_t pid, const char *root)
{
    char path[64];
    ferry_cleanup_buf struct ferry_buf b = {0};

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    return ferry_read_file(path, ENVIRON_MAX, &b, NULL) == 0 && b.data &&
           site_sweep_marked(b.data, b.len, root);
}

static struct table all_processes(const char *root)
{
    struct table t = {0};
    DIR *d = opendir("/proc");
    struct dirent *e;

    while (d && (e = readdir(d))) {
        long long pid;
        struct seen s = {0};

        if (ferry_parse_int(e->d_name, 2, 1 << 30, &pid, NULL) < 0 || pid == getpid() ||
            !read_stat((pid_t)pid, &s)) {
            continue;
        }
        s.ours = is_marked(s.pid, root);
        t.items = ferry_xrealloc(t.items, t.n + 1, sizeof(*t.items));
        t.items[t.n++] = s;
    }
    if (d) {
        closedir(d);
    }
    return t;
}

static struct seen *find(struct table *t, pid_t pid)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->items[i].pid == pid) {
            return &t->items[i];
        }
    }
    return NULL;
}

/* Children may stand before their parents in the table: until nothing changes any more. */
static void mark_descendants(struct table *t)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < t->n; i++) {
            struct seen *s = &t->items[i], *parent = find(t, s->parent);

            if (!s->ours && parent && parent->ours) {
                s->ours = changed = true;
            }
        }
    }
}

/* ---- sandboxes ----------------------------------------------------------------------------- */

/* The pid may have been given to another process since: its pid namespace tells. */
static bool in_pid_ns(pid_t pid, uint64_t inode)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    return stat(path, &st) == 0 && st.st_ino == inode;
}

static void mark_sandboxes(struct table *t, const char *root)
{
    ferry_cleanup_free char *pattern =
        ferry_asprintf("%s/node*/run/ferry/pods/*/sandbox.json", root);
    glob_t g = {0};

    if (glob(pattern, 0, NULL, &g) != 0) {
        return;
    }
    for (size_t i = 0; i < g.gl_pathc; i++) {
        ferry_cleanup_buf struct ferry_buf b = {0};
        uint64_t pid_ns = 0;

        if (ferry_read_file(g.gl_pathv[i], SANDBOX_MAX, &b, NULL) < 0 || !b.data) {
            continue;
        }
        struct seen *s = find(t, site_sweep_sandbox(b.data, b.len, &pid_ns));
        if (s && pid_ns && in_pid_ns(s->pid, pid_ns)) {
            s->ours = s->sandbox = true;
        }
    }
    globfree(&g);
}

struct site_found *site_sweep(const char *root, size_t *ret_n)
{
    struct table t = all_processes(root);
    struct site_found *found = ferry_xcalloc(t.n + 1, sizeof(*found));
    size_t n = 0;

    mark_sandboxes(&t, root);
    mark_descendants(&t);
    for (size_t i = 0; i < t.n; i++) {
        const struct seen *s = &t.items[i];
        uint64_t start = s->ours ? ferry_proc_start_time(s->pid) : 0;

        if (start) {
            found[n] =
                (struct site_found){.pid = s->pid, .start_time = start, .sandbox = s->sandbox};
            memcpy(found[n].name, s->name, sizeof(found[n].name));
            n++;
        }
    }
    free(t.items);
    *ret_n = n;
    return found;
}
