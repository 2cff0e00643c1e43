/* ferry-apiserver backup, restore: a whole site in one file. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/store/backup.h"
#include "apiserver/store/store.h"
#include "base/fd.h"
#include "base/str.h"
#include "http/client.h"
#include "kube/client.h"
#include "programs/ferry-apiserver.h"

enum { BACKUP_TIMEOUT_MS = 600000, BACKUP_MAX = 1 << 30 };

/* From the server that runs on this data. */
static int backup_running(const char *data, struct ferry_buf *out, struct ferry_error *err)
{
    ferry_cleanup_free char *config = ferry_asprintf("%s/admin.kubeconfig", data);
    kube_cleanup_client struct kube_client *client = NULL;
    http_cleanup_reply struct http_reply reply = {0};
    int rc = kube_client_open(config, &client, err);

    if (rc == 0) {
        rc = http_client_call(kube_client_http(client),
                              &(struct http_call){.method = "GET",
                                                  .path = "/ferry/v1/backup",
                                                  .timeout_ms = BACKUP_TIMEOUT_MS,
                                                  .max_reply = BACKUP_MAX},
                              &reply, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (reply.status != 200) {
        return kube_status_error(reply.status, reply.body.data, reply.body.len, "backup", err);
    }
    ferry_buf_append(out, reply.body.data, reply.body.len);
    return 0;
}

/* From the database, when no server has it. */
static int backup_stopped(const char *data, struct ferry_buf *out, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/api.db", data);
    struct store *store = NULL;

    if (access(path, F_OK) < 0) {
        return ferry_fail_errno(err, errno, "no site in %s", data);
    }
    int rc = store_open(path, &store, err);
    if (rc == 0) {
        backup_objects(store, out);
    }
    store_close(store);
    return rc;
}

static int collect(const char *data, struct ferry_buf *out, struct ferry_error *err)
{
    struct ferry_error why;
    int rc = backup_running(data, out, &why);

    if (rc < 0) {
        rc = backup_stopped(data, out, err);
        if (rc == -FERRY_CONFLICT) { /* it runs, and did not answer */
            *err = why;
            return rc;
        }
    }
    return rc < 0 ? rc : backup_finish(data, out, err);
}

static int run_backup(const struct site_options *o, const char *file, struct ferry_error *err)
{
    ferry_cleanup_free char *data = apiserver_site_dir(o);
    ferry_cleanup_buf struct ferry_buf out = {0};
    /* Opening a database makes files beside it, which the server has to be able to use. */
    int rc = apiserver_be_owner(data, false, err);

    rc = rc < 0 ? rc : collect(data, &out, err);
    rc = rc < 0 ? rc : ferry_user_return(err);
    rc = rc < 0 ? rc : ferry_write_file(file, out.data, out.len, 0600, err);
    if (out.data) {
        explicit_bzero(out.data, out.len);
    }
    return rc;
}

static int run_restore(const struct site_options *o, const char *file, struct ferry_error *err)
{
    ferry_cleanup_free char *data = apiserver_site_dir(o);
    ferry_cleanup_buf struct ferry_buf text = {0};
    int rc = ferry_read_file(file, BACKUP_MAX, &text, err);

    rc = rc < 0 ? rc : apiserver_be_owner(data, true, err);
    rc = rc < 0 ? rc : backup_restore(data, text.data ? text.data : "", text.len, err);
    if (text.data) {
        explicit_bzero(text.data, text.len);
    }
    return rc < 0 ? ferry_wrap(err, "restoring %s", file) : 0;
}

static int main_file(int argc, char **argv, const char *name, const char *summary,
                     int (*run)(const struct site_options *o, const char *file,
                                struct ferry_error *err))
{
    struct site_options o = {0};
    struct ferry_error err;
    const struct ferry_option rows[] = {
        SITE_OPTION_ROWS(&o, "where the site is"),
        {.name = NULL},
    };
    const struct ferry_command command = {
        .name = name, .usage = "FILE [OPTION]...", .summary = summary, .options = rows};
    int first = apiserver_site_parse(&command, &o, argc, argv, &err);

    if (first < 0) {
        return apiserver_misused(&err);
    }
    if (argc - first != 1) {
        ferry_fail(&err, FERRY_INVALID, "expected one file (see %s --help)", name);
        return apiserver_misused(&err);
    }
    return run(&o, argv[first], &err) < 0 ? apiserver_failed(&err) : FERRY_EXIT_OK;
}

int apiserver_verb_backup(int argc, char **argv)
{
    return main_file(argc, argv, "ferry-apiserver backup",
                     "Writes all objects and the site's CA to FILE (0600), also while the server "
                     "runs. FILE holds\nevery secret of the site.",
                     run_backup);
}

int apiserver_verb_restore(int argc, char **argv)
{
    return main_file(argc, argv, "ferry-apiserver restore",
                     "Makes the site of a backup in a data directory that holds none.",
                     run_restore);
}
