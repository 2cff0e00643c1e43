#include "apiserver/request/request.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_progress.h"
#include "apiserver/message/protobuf.h"
#include "base/clock.h"
#include "json/doc.h"

enum { WARNING_MAX = 2000, KEPT_MAX = 1 << 20 };

bool request_flag(const struct request *r, const char *name)
{
    const char *v = http_query(r->x, name);

    return v && (!*v || ferry_streq(v, "1") || ferry_streq(v, "true"));
}

int request_dry_run(struct request *r, bool *ret)
{
    const char *v = http_query(r->x, "dryRun");

    if (v && !ferry_streq(v, "All")) {
        return status_fail(&r->st, 400, "dryRun: must be 'All'");
    }
    *ret = v != NULL;
    return 0;
}

int request_dry_run_of(struct request *r, const yyjson_val *options, bool *dry_run)
{
    yyjson_val *list = yyjson_obj_get((yyjson_val *)options, "dryRun"), *v;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, v)
    {
        if (!ferry_streq(yyjson_get_str(v), "All")) {
            return status_fail(&r->st, 422, "dryRun: Unsupported value: must be 'All'");
        }
        *dry_run = true;
    }
    return 0;
}

static int one_document(void *ctx, const char *json, size_t len, struct ferry_error *err)
{
    yyjson_doc **ret = ctx;

    if (*ret) {
        return ferry_fail(err, FERRY_INVALID, "more than one YAML document");
    }
    return api_json_parse_depth(json, len, API_JSON_DEPTH, ret, err);
}

static bool is_type(const char *header, const char *type)
{
    size_t n = strlen(type);

    return strncmp(header, type, n) == 0 && (!header[n] || header[n] == ';' || header[n] == ' ');
}

static int body_of_protobuf(struct request *r, const char *body, size_t len, yyjson_doc **ret)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = NULL;
    struct ferry_error err;
    int rc = protobuf_parse(body, len, &doc, &err);

    if (rc < 0) {
        return rc == -FERRY_NOT_FOUND ? status_fail(&r->st, 415, "%s", err.msg)
                                      : status_of_error(&r->st, &err);
    }
    *ret = yyjson_mut_doc_imut_copy(doc, NULL);
    return *ret ? 0 : status_fail(&r->st, 500, "out of memory");
}

int request_body(struct request *r, yyjson_doc **ret)
{
    const char *type = http_header(r->x, "Content-Type");
    api_cleanup_doc yyjson_doc *doc = NULL;
    struct ferry_error err;
    size_t len = 0;
    const char *body = http_body(r->x, &len);
    int rc;

    if (len == 0) {
        return status_fail(&r->st, 400, "the request has no body");
    }
    if (type && is_type(type, "application/vnd.kubernetes.protobuf")) {
        return body_of_protobuf(r, body, len, ret);
    }
    if (!type || is_type(type, "application/json") || strstr(type, "-patch+json")) {
        rc = api_json_parse_depth(body, len, API_JSON_DEPTH, &doc, &err);
    } else if (is_type(type, "application/yaml") || is_type(type, "application/apply-patch+yaml")) {
        rc = api_yaml_each(body, len, one_document, &doc, &err);
        if (rc == 0 && !doc) {
            rc = ferry_fail(&err, FERRY_INVALID, "the YAML document is empty");
        }
    } else {
        return status_fail(&r->st, 415,
                           "the body of the request was in an unknown format (%.100s); accepted "
                           "are application/json and application/yaml",
                           type);
    }
    if (rc < 0) {
        return status_of_error(&r->st, &err);
    }
    *ret = ferry_take_ptr(doc);
    return 0;
}

bool request_wants_table(const struct request *r, enum table_include *ret_include)
{
    const char *accept = http_header(r->x, "Accept");
    const char *include = http_query(r->x, "includeObject");

    *ret_include = TABLE_METADATA;
    if (ferry_streq(include, "Object")) {
        *ret_include = TABLE_OBJECT;
    } else if (ferry_streq(include, "None")) {
        *ret_include = TABLE_NONE;
    }
    return accept && strstr(accept, "as=Table;v=v1;g=meta.k8s.io");
}

void request_warn(struct request *r, const char *text)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    ferry_buf_puts(&b, "299 - \"");
    for (; *text && b.len < WARNING_MAX; text++) {
        if (*text == '"' || *text == '\\') {
            ferry_buf_puts(&b, "\\");
        }
        ferry_buf_append(&b, (unsigned char)*text < 0x20 ? " " : text, 1);
    }
    ferry_buf_puts(&b, "\"");
    http_add_header(r->x, "Warning", b.data);
}

static void copy_text(const yyjson_val *vmi, const char *pointer, char *ret, size_t size)
{
    const char *text = api_json_str(vmi, pointer);

    if (text) {
        snprintf(ret, size, "%.*s", (int)ferry_utf8_fit(text, size - 1), text);
    }
}

/* Its nodes and mode, and what its source last said of the bytes. */
static struct table_move account_of(const yyjson_val *vmi, const char *uid)
{
    struct table_move move = {0};
    struct wire_progress told;

    if (wire_progress_of(wire_annotation(vmi, ANNOTATION_PROGRESS), uid, &told)) {
        move.total_bytes = told.total_bytes;
        move.remaining_bytes = told.remaining_bytes;
        memcpy(move.mode, told.mode, sizeof(move.mode));
    }
    if (ferry_streq(api_json_str(vmi, "/status/migrationState/migrationUid"), uid)) {
        copy_text(vmi, "/status/migrationState/sourceNode", move.source, sizeof(move.source));
        copy_text(vmi, "/status/migrationState/targetNode", move.target, sizeof(move.target));
        copy_text(vmi, "/status/migrationState/mode", move.mode, sizeof(move.mode));
    }
    return move;
}

struct table_move request_move(struct store *store, const struct api_resource *resource,
                               const yyjson_val *object)
{
    const char *ns = api_json_str(object, "/metadata/namespace");
    const char *name = api_json_str(object, "/spec/vmiName");
    const char *uid = api_json_str(object, "/metadata/uid");

    if (resource->kind != API_KIND_MIGRATION || !ns || !name || !uid) {
        return (struct table_move){0};
    }
    cleanup_entry struct entry *e = store_get(store, api_resource_of_kind(API_KIND_VMI), ns, name);
    api_cleanup_doc yyjson_doc *vmi = entry_doc(e);
    return account_of(yyjson_doc_get_root(vmi), uid);
}

void request_keep(struct request *r, const char *text, size_t len)
{
    if (!r->keeps_answer) {
        return;
    }
    if (len <= KEPT_MAX) {
        ferry_buf_append(&r->answer, text, len);
    } else {
        ferry_buf_printf(&r->answer, "{\"kind\":\"Unknown\",\"bytes\":%zu}", len);
    }
}

static void answer_table(struct request *r, int code, enum table_include include,
                         const yyjson_val *root, const char *json)
{
    struct table_move move = request_move(r->store, r->route.resource, root);
    ferry_cleanup_buf struct ferry_buf b = {0};

    table_begin(&b, r->route.resource, store_version(r->store));
    table_row(&b, r->route.resource, root, json, &move, include, ferry_now_unix_ms(), true);
    table_end(&b);
    http_answer(r->x, code, "application/json", b.data, b.len);
}

void request_answer_entry(struct request *r, int code, const struct entry *e)
{
    enum table_include include;

    r->code = code;
    request_keep(r, e->json, e->json_len);
    if (!request_wants_table(r, &include)) {
        http_answer(r->x, code, "application/json", e->json, e->json_len);
        return;
    }
    api_cleanup_doc yyjson_doc *doc = entry_doc(e);
    answer_table(r, code, include, yyjson_doc_get_root(doc), e->json);
}

void request_answer_document(struct request *r, int code, yyjson_mut_doc *doc)
{
    size_t len = 0;
    ferry_cleanup_free char *json = json_doc_text(doc, 0, &len);
    enum table_include include;

    r->code = code;
    request_keep(r, json ? json : "{}", json ? len : 2);
    if (!json || !request_wants_table(r, &include)) {
        http_answer(r->x, code, "application/json", json ? json : "{}", json ? len : 2);
        return;
    }
    api_cleanup_doc yyjson_doc *copy = yyjson_mut_doc_imut_copy(doc, NULL);
    answer_table(r, code, include, yyjson_doc_get_root(copy), json);
}

void request_answer_status(struct request *r, const struct status *st)
{
    ferry_cleanup_free char *json = status_text(st);

    r->code = st->code;
    http_answer_json(r->x, st->code, json);
}
