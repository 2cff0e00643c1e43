#include "kube/change.h"

#include <string.h>

#include "api/json.h"

static const size_t LINE_MAX_BYTES = (size_t)16 << 20;

int kube_lines_feed(struct kube_lines *l, const char *data, size_t n,
                    int (*each)(void *ctx, struct ferry_buf *line, struct ferry_error *err),
                    void *ctx, struct ferry_error *err)
{
    while (n > 0) {
        const char *end = memchr(data, '\n', n);
        size_t part = end ? (size_t)(end - data) : n;
        int rc = ferry_buf_append_capped(&l->partial, data, part, LINE_MAX_BYTES, err);

        if (rc < 0) {
            return rc;
        }
        if (end) {
            rc = l->partial.len > 0 ? each(ctx, &l->partial, err) : 0;
            l->partial.len = 0;
            if (rc < 0) {
                return rc;
            }
            part++;
        }
        data += part;
        n -= part;
    }
    return 0;
}

void kube_lines_done(struct kube_lines *l)
{
    ferry_buf_done(&l->partial);
}

void kube_change_done(struct kube_change *e)
{
    api_object_unref(e->object);
    yyjson_doc_free(e->doc);
    *e = (struct kube_change){0};
}

/* ADDED, MODIFIED and DELETED. */
static int read_change(struct kube_change *e, const char *type, const yyjson_val *object,
                       const struct api_resource *resource, struct ferry_error *err)
{
    e->ns = api_json_str(object, "/metadata/namespace");
    e->name = api_json_str(object, "/metadata/name");
    if (ferry_str_empty(e->name)) {
        return ferry_fail(err, FERRY_PEER, "%.40s event without a name", type);
    }
    if (strcmp(type, "DELETED") == 0) {
        e->type = KUBE_CHANGE_DELETED;
    } else if (api_object_from_val(resource->kind, object, &e->object, &e->problem) < 0) {
        e->type = KUBE_CHANGE_BROKEN;
    } else {
        e->type = KUBE_CHANGE_PUT;
    }
    return 0;
}

static int read_line(struct kube_change *e, const struct api_resource *resource,
                     struct ferry_error *err)
{
    const yyjson_val *root = yyjson_doc_get_root(e->doc);
    const yyjson_val *object = yyjson_obj_get((yyjson_val *)root, "object");
    const char *type = api_json_str(root, "/type");

    if (!type || !object) {
        return ferry_fail(err, FERRY_PEER, "event without type or object");
    }
    if (strcmp(type, "ERROR") == 0) {
        const char *message = api_json_str(object, "/message");

        e->type = KUBE_CHANGE_ERROR;
        e->code = api_json_int(object, "/code", 0);
        ferry_fail(&e->problem, FERRY_RETRY, "%.400s", message ? message : "error event");
        return 0;
    }
    e->version = api_json_str(object, "/metadata/resourceVersion");
    if (strcmp(type, "BOOKMARK") == 0) {
        e->type = KUBE_CHANGE_BOOKMARK;
        return 0;
    }
    return read_change(e, type, object, resource, err);
}

int kube_change_read(struct ferry_buf *line, const struct api_resource *resource,
                     struct kube_change *ret, struct ferry_error *err)
{
    kube_cleanup_change struct kube_change e = {0};

    ferry_buf_reserve(line, YYJSON_PADDING_SIZE);
    int rc = api_json_parse_around(line->data, line->len, "object", &e.doc, err);
    rc = rc < 0 ? rc : read_line(&e, resource, err);
    if (rc < 0) {
        return rc;
    }
    *ret = e;
    e = (struct kube_change){0};
    return 0;
}
