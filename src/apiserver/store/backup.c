#include "apiserver/store/backup.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "api/json.h"
#include "apiserver/store/database.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/str.h"
#include "json/doc.h"

enum { FORMAT = 1, CA_FILE_MAX = 64 << 10 };
#define VERSION_LEAP 1000000000ULL
static const char *const ca_files[] = {"ca/ca.crt", "ca/ca.key"};

void backup_objects(struct store *store, struct ferry_buf *out)
{
    cleanup_entry_list struct entry_list list = {0};

    store_list_all(store, &list);
    ferry_buf_printf(out, "{\"ferryBackup\":%d,\"version\":%llu,\"objects\":%zu}\n", FORMAT,
                     (unsigned long long)list.version, list.n);
    for (size_t i = 0; i < list.n; i++) {
        const struct entry *e = list.items[i];

        ferry_buf_printf(out,
                         "{\"group\":\"%s\",\"apiVersion\":\"%s\",\"resource\":\"%s\",\"object\":",
                         e->resource->group, e->resource->version, e->resource->plural);
        ferry_buf_append(out, e->json, e->json_len);
        ferry_buf_puts(out, "}\n");
    }
}

int backup_finish(const char *data, struct ferry_buf *out, struct ferry_error *err)
{
    for (size_t i = 0; i < FERRY_COUNT(ca_files); i++) {
        ferry_cleanup_free char *path = ferry_asprintf("%s/%s", data, ca_files[i]);
        ferry_cleanup_buf struct ferry_buf text = {0};
        int rc = ferry_read_file(path, CA_FILE_MAX, &text, err);

        if (rc < 0) {
            return rc;
        }
        ferry_buf_printf(out, "{\"file\":\"%s\",\"text\":", ca_files[i]);
        ferry_buf_json(out, text.data ? text.data : "");
        ferry_buf_puts(out, "}\n");
        if (text.data) {
            explicit_bzero(text.data, text.len);
        }
    }
    ferry_buf_puts(out, "{\"end\":true}\n");
    return 0;
}

/* ---- restore -----------------------------------------------------------------------------------
 */

struct restore {
    const char *data;
    struct database_row *rows;
    size_t n, expected;
    uint64_t version;
    bool began, ended;
    size_t files;
};

static void restore_done(struct restore *r)
{
    for (size_t i = 0; i < r->n; i++) {
        entry_unref((struct entry *)r->rows[i].entry);
    }
    free(r->rows);
}
#define cleanup_restore ferry_cleanup(restore_done)

static int take_object(struct restore *r, yyjson_val *line, struct ferry_error *err)
{
    yyjson_val *object = yyjson_obj_get(line, "object");
    const char *ns = api_json_str(object, "/metadata/namespace");
    const char *name = api_json_str(object, "/metadata/name");
    const char *group = api_json_str(line, "/group"), *plural = api_json_str(line, "/resource");
    const char *text = api_json_str(object, "/metadata/resourceVersion");
    const struct api_resource *resource =
        group && plural ? api_resource_find(group, api_json_str(line, "/apiVersion"), plural)
                        : NULL;
    long long version = 0;

    if (!resource || !name || !text || ferry_parse_int(text, 1, INT64_MAX, &version, NULL) < 0) {
        return ferry_fail(err, FERRY_INVALID, "not an object that this program serves");
    }
    if (r->n == r->expected) {
        return ferry_fail(err, FERRY_INVALID, "more objects than the first line says");
    }
    size_t len = 0;
    ferry_cleanup_free char *json = json_doc_val_text(object, 0, &len);
    r->rows[r->n++] = (struct database_row){
        .entry = entry_new(resource, (uint64_t)version, ns ? ns : "", name, json, len)};
    return 0;
}

static int take_file(struct restore *r, yyjson_val *line, const char *name, struct ferry_error *err)
{
    const char *text = api_json_str(line, "/text");

    for (size_t i = 0; text && i < FERRY_COUNT(ca_files); i++) {
        if (strcmp(name, ca_files[i]) == 0) {
            ferry_cleanup_free char *path = ferry_asprintf("%s/%s", r->data, name);

            r->files++;
            return ferry_write_file(path, text, strlen(text),
                                    ferry_str_ends(name, ".key") ? 0600 : 0644, err);
        }
    }
    return ferry_fail(err, FERRY_INVALID, "an unknown file");
}

static int begin(struct restore *r, yyjson_val *line, struct ferry_error *err)
{
    int64_t format = api_json_int(line, "/ferryBackup", 0);
    int64_t n = api_json_int(line, "/objects", -1), version = api_json_int(line, "/version", -1);

    if (format != FORMAT || n < 0 || n > INT32_MAX || version < 1) {
        return ferry_fail(err, FERRY_INVALID, "not a backup that this program can read");
    }
    r->began = true;
    r->expected = (size_t)n;
    r->version = (uint64_t)version;
    r->rows = ferry_xcalloc(r->expected + 1, sizeof(*r->rows));
    return 0;
}

static int take_line(struct restore *r, const char *text, size_t len, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = yyjson_read(text, len, 0);
    yyjson_val *line = yyjson_doc_get_root(doc);
    const char *file = api_json_str(line, "/file");

    if (!r->began) {
        return begin(r, line, err);
    }
    if (r->ended) {
        return ferry_fail(err, FERRY_INVALID, "something after the end");
    }
    if (yyjson_obj_get(line, "object")) {
        return take_object(r, line, err);
    }
    if (file) {
        return take_file(r, line, file, err);
    }
    r->ended = api_json_bool(line, "/end", false);
    return r->ended ? 0 : ferry_fail(err, FERRY_INVALID, "not a line of a backup");
}

static int take_lines(struct restore *r, const char *text, size_t len, struct ferry_error *err)
{
    const char *end = text + len;

    for (size_t number = 1; text < end; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((newline ? newline : end) - text);
        int rc = take_line(r, text, n, err);

        if (rc < 0) {
            return ferry_wrap(err, "line %zu", number);
        }
        text += n + 1;
    }
    if (!r->ended || r->n != r->expected || r->files != FERRY_COUNT(ca_files)) {
        return ferry_fail(err, FERRY_INVALID, "it is not whole: %zu of %zu objects", r->n,
                          r->expected);
    }
    return 0;
}

static int check_empty(const char *data, struct ferry_error *err)
{
    static const char *const names[] = {"api.db", "ca"};

    for (size_t i = 0; i < 2; i++) {
        ferry_cleanup_free char *path = ferry_asprintf("%s/%s", data, names[i]);

        if (access(path, F_OK) == 0) {
            return ferry_fail(err, FERRY_CONFLICT,
                              "%s is there already: restore into a directory "
                              "without a site",
                              path);
        }
    }
    return 0;
}

static int write_database(const struct restore *r, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/api.db", r->data);
    struct database *db = NULL;
    int rc = database_open(path, &db, err);

    rc = rc < 0 ? rc : database_write(db, r->rows, r->n, r->version + VERSION_LEAP, err);
    database_close(db);
    return rc < 0 ? ferry_wrap(err, "%s", path) : 0;
}

int backup_restore(const char *data, const char *text, size_t len, struct ferry_error *err)
{
    cleanup_restore struct restore r = {.data = data};
    ferry_cleanup_free char *ca = ferry_asprintf("%s/ca", data);
    int rc = check_empty(data, err);

    rc = rc < 0 ? rc : ferry_mkdir_p(data, 0700, err);
    rc = rc < 0 ? rc : ferry_mkdir_p(ca, 0700, err);
    if (rc < 0) {
        return rc;
    }
    rc = take_lines(&r, text, len, err);
    rc = rc < 0 ? rc : write_database(&r, err);
    if (rc < 0) { /* half a site is none */
        ferry_cleanup_free char *db = ferry_asprintf("%s/api.db", data);

        (void)ferry_remove_tree(ca, NULL);
        (void)unlink(db);
    }
    return rc;
}
