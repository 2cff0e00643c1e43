#include "launcher/report/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "json/doc.h"

enum { RECORD_MAX_BYTES = 4 << 20, RECORDS_KEPT = 8 };
#define ENDING ".jsonl"

struct record {
    int fd;
    pthread_mutex_t lock;
    size_t used; /* guarded by lock */
    bool full;   /* guarded by lock */
};

/* Removes the oldest file of `dir` when there are RECORDS_KEPT or more. True when one went. */
static bool drop_oldest(const char *dir)
{
    DIR *d = opendir(dir);
    char oldest[256] = "";
    struct timespec when = {0};
    int count = 0;

    if (!d) {
        return false;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        struct stat st;

        if (!ferry_str_ends(e->d_name, ENDING) || fstatat(dirfd(d), e->d_name, &st, 0) < 0) {
            continue;
        }
        bool older = st.st_mtim.tv_sec < when.tv_sec ||
                     (st.st_mtim.tv_sec == when.tv_sec && st.st_mtim.tv_nsec < when.tv_nsec);
        if (count++ == 0 || older) {
            when = st.st_mtim;
            snprintf(oldest, sizeof(oldest), "%s", e->d_name);
        }
    }
    bool removed = count >= RECORDS_KEPT && unlinkat(dirfd(d), oldest, 0) == 0;
    closedir(d);
    return removed;
}

struct record *record_open(const char *dir, const char *uid)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s" ENDING, dir, uid);
    struct ferry_error err;
    struct stat st;

    if (ferry_mkdir_p(dir, 0700, &err) < 0) {
        ferry_warn("no flight record", F_STR("migration", uid), F_ERR(&err));
        return NULL;
    }
    if (access(path, F_OK) < 0) {
        while (drop_oldest(dir)) {
        }
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) < 0) {
        ferry_fail_errno(&err, errno, "opening %s", path);
        ferry_warn("no flight record", F_STR("migration", uid), F_ERR(&err));
        ferry_closep(&fd);
        return NULL;
    }
    struct record *r = ferry_xcalloc(1, sizeof(*r));
    r->fd = fd;
    r->used = (size_t)st.st_size;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void record_close(struct record *r)
{
    if (r) {
        close(r->fd);
        pthread_mutex_destroy(&r->lock);
        free(r);
    }
}

static void write_line(struct record *r, const char *line)
{
    static const char full[] = "{\"type\":\"full\"}\n";
    size_t n = strlen(line);

    pthread_mutex_lock(&r->lock);
    if (!r->full && r->used + n + sizeof(full) > RECORD_MAX_BYTES) {
        r->full = true;
        ferry_write_all(r->fd, full, sizeof(full) - 1, NULL);
    }
    if (!r->full) {
        ferry_cleanup_free char *whole = ferry_asprintf("%s\n", line);

        ferry_write_all(r->fd, whole, n + 1, NULL);
        r->used += n + 1;
    }
    pthread_mutex_unlock(&r->lock);
}

void record_add(struct record *r, const char *type, yyjson_mut_doc *doc_take)
{
    yyjson_mut_val *o = yyjson_mut_doc_get_root(doc_take);
    char time_text[FERRY_RFC3339_SIZE];

    if (r) {
        ferry_rfc3339_micro(ferry_now_unix_ms(), time_text);
        yyjson_mut_obj_insert(o, yyjson_mut_str(doc_take, "type"), yyjson_mut_str(doc_take, type),
                              0);
        yyjson_mut_obj_insert(o, yyjson_mut_str(doc_take, "time"),
                              yyjson_mut_str(doc_take, time_text), 0);
        ferry_cleanup_free char *line = json_doc_text(doc_take, 0, NULL);
        write_line(r, line);
    }
    yyjson_mut_doc_free(doc_take);
}

void record_note(struct record *r, const char *type, const char *text)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = json_doc_object(doc);

    yyjson_mut_obj_add_strcpy(doc, o, "text", text);
    record_add(r, type, doc);
}

int record_read(const char *dir, const char *uid, struct ferry_buf *ret, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s" ENDING, dir, uid);

    return ferry_read_file(path, RECORD_MAX_BYTES + 4096, ret, err);
}
