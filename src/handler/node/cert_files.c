#include "handler/node/cert_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

static char *path_of(const char *dir, const char *name, const char *ending)
{
    return ferry_asprintf("%s/%s%s", dir, name, ending);
}

enum cert_files_step cert_files_decide(bool key_waits, bool certificate_waits)
{
    if (key_waits) {
        return certificate_waits ? CERT_FILES_BOTH : CERT_FILES_DROP_KEY;
    }
    return certificate_waits ? CERT_FILES_REST : CERT_FILES_NOTHING;
}

static int write_for(const char *path, const char *pem, mode_t mode, const struct stat *owner,
                     struct ferry_error *err)
{
    int rc = ferry_write_file(path, pem, strlen(pem), mode, err);

    if (rc == 0 && owner && chown(path, owner->st_uid, owner->st_gid) < 0) {
        return ferry_fail_errno(err, errno, "giving %s its owner", path);
    }
    return rc;
}

int cert_files_stage(const char *dir, const char *name, const char *key_pem, const char *crt_pem,
                     struct ferry_error *err)
{
    ferry_cleanup_free char *had = path_of(dir, name, ".key");
    ferry_cleanup_free char *key = path_of(dir, name, ".key.new");
    ferry_cleanup_free char *crt = path_of(dir, name, ".crt.new");
    struct stat st;
    const struct stat *owner = stat(had, &st) == 0 ? &st : NULL;
    int rc = cert_files_settle(dir, name, err);

    if (rc >= 0) {
        rc = write_for(key, key_pem, 0600, owner, err);
    }
    /* From here on the pair is complete. */
    return rc < 0 ? rc : write_for(crt, crt_pem, 0644, owner, err);
}

static int put(const char *dir, const char *name, const char *ending, struct ferry_error *err)
{
    ferry_cleanup_free char *to = path_of(dir, name, ending);
    ferry_cleanup_free char *from = ferry_asprintf("%s.new", to);

    return rename(from, to) < 0 ? ferry_fail_errno(err, errno, "replacing %s", to) : 0;
}

int cert_files_settle(const char *dir, const char *name, struct ferry_error *err)
{
    ferry_cleanup_free char *key = path_of(dir, name, ".key.new");
    ferry_cleanup_free char *crt = path_of(dir, name, ".crt.new");
    int rc = 0;

    switch (cert_files_decide(access(key, F_OK) == 0, access(crt, F_OK) == 0)) {
    case CERT_FILES_NOTHING:
        return 0;
    case CERT_FILES_DROP_KEY:
        return unlink(key) < 0 ? ferry_fail_errno(err, errno, "removing %s", key) : 1;
    case CERT_FILES_BOTH:
        rc = put(dir, name, ".key", err);
        break;
    case CERT_FILES_REST:
        break;
    }
    rc = rc < 0 ? rc : put(dir, name, ".crt", err);
    return rc < 0 ? rc : 1;
}
