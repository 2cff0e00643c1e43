#include "handler/local/records.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define ENDING ".jsonl"

bool records_uid_valid(const char *uid)
{
    size_t n = strspn(uid, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

    return n > 0 && n <= 128 && !uid[n];
}

static char *path_of(const char *dir, const char *uid)
{
    return ferry_asprintf("%s/%s" ENDING, dir, uid);
}

bool records_have(const char *dir, const char *uid)
{
    ferry_cleanup_free char *path = path_of(dir, uid);

    return access(path, F_OK) == 0;
}

struct aged {
    char *path;
    struct timespec at;
};

static int newest_first(const void *a, const void *b)
{
    const struct aged *x = a, *y = b;

    if (x->at.tv_sec != y->at.tv_sec) {
        return x->at.tv_sec < y->at.tv_sec ? 1 : -1;
    }
    return (x->at.tv_nsec < y->at.tv_nsec) - (x->at.tv_nsec > y->at.tv_nsec);
}

static void prune(const char *dir)
{
    DIR *d = opendir(dir);
    struct aged *all = NULL;
    size_t n = 0;

    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        struct stat st;

        if (ferry_str_ends(e->d_name, ENDING) && fstatat(dirfd(d), e->d_name, &st, 0) == 0) {
            all = ferry_xrealloc(all, n + 1, sizeof(*all));
            all[n++] = (struct aged){ferry_asprintf("%s/%s", dir, e->d_name), st.st_mtim};
        }
    }
    if (n > 1) {
        qsort(all, n, sizeof(*all), newest_first);
    }
    for (size_t i = 0; i < n; i++) {
        if (i >= RECORDS_KEPT) {
            unlink(all[i].path);
        }
        free(all[i].path);
    }
    free(all);
    if (d) {
        closedir(d);
    }
}

int records_save(const char *dir, const char *uid, const char *text, size_t n,
                 struct ferry_error *err)
{
    if (!records_uid_valid(uid)) {
        return ferry_fail(err, FERRY_INVALID, "'%.100s' cannot name a record", uid);
    }
    ferry_cleanup_free char *path = path_of(dir, uid);
    int rc = ferry_mkdir_p(dir, 0700, err);

    if (rc == 0) {
        rc = ferry_write_file(path, text, n, 0600, err);
    }
    if (rc == 0) {
        prune(dir);
    }
    return rc;
}

int records_load(const char *dir, const char *uid, struct ferry_buf *ret, struct ferry_error *err)
{
    if (!records_uid_valid(uid) || !records_have(dir, uid)) {
        return ferry_fail(err, FERRY_NOT_FOUND, "this node has no record of migration '%.100s'",
                          uid);
    }
    ferry_cleanup_free char *path = path_of(dir, uid);
    return ferry_read_file(path, RECORD_MAX, ret, err);
}
