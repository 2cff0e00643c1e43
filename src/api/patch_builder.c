/* JSON Patch under construction; what it does to an object is in patch.c. */
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "api/json.h"
#include "api/object.h"
#include "base/clock.h"
#include "base/str.h"
#include "json/doc.h"

struct api_patch {
    yyjson_mut_doc *doc;
    yyjson_mut_val *ops;
};

struct api_patch *api_patch_new(void)
{
    struct api_patch *p = ferry_xcalloc(1, sizeof(*p));

    p->doc = json_doc_new();
    p->ops = yyjson_mut_arr(p->doc);
    yyjson_mut_doc_set_root(p->doc, p->ops);
    return p;
}

void api_patch_free(struct api_patch *p)
{
    if (p) {
        yyjson_mut_doc_free(p->doc);
        free(p);
    }
}

bool api_patch_empty(const struct api_patch *p)
{
    return yyjson_mut_arr_size(p->ops) == 0;
}

bool api_patch_adds(const struct api_patch *p, const char *path)
{
    yyjson_mut_val *op;
    size_t i, max;

    yyjson_mut_arr_foreach(p->ops, i, max, op)
    {
        if (ferry_streq(yyjson_mut_get_str(yyjson_mut_obj_get(op, "op")), "add") &&
            ferry_streq(yyjson_mut_get_str(yyjson_mut_obj_get(op, "path")), path)) {
            return true;
        }
    }
    return false;
}

static void put(struct api_patch *p, const char *op, const char *path, yyjson_mut_val *value)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(p->doc, p->ops);

    yyjson_mut_obj_add_strcpy(p->doc, o, "op", op);
    yyjson_mut_obj_add_strcpy(p->doc, o, "path", path);
    if (value) {
        yyjson_mut_obj_add_val(p->doc, o, "value", value);
    }
}

/* JSON that this program wrote itself: a mistake in it is a bug here. */
static yyjson_mut_val *raw(struct api_patch *p, const char *json)
{
    api_cleanup_doc yyjson_doc *doc = yyjson_read(json, strlen(json), YYJSON_READ_NOFLAG);

    if (!doc) {
        abort();
    }
    return yyjson_val_mut_copy(p->doc, yyjson_doc_get_root(doc));
}

void api_patch_test_str(struct api_patch *p, const char *path, const char *value)
{
    put(p, "test", path, yyjson_mut_strcpy(p->doc, value));
}

void api_patch_test_raw(struct api_patch *p, const char *path, const char *json)
{
    put(p, "test", path, raw(p, json));
}

void api_patch_add_str(struct api_patch *p, const char *path, const char *value)
{
    put(p, "add", path, yyjson_mut_strcpy(p->doc, value));
}

void api_patch_add_int(struct api_patch *p, const char *path, int64_t value)
{
    put(p, "add", path, yyjson_mut_sint(p->doc, value));
}

void api_patch_add_bool(struct api_patch *p, const char *path, bool value)
{
    put(p, "add", path, yyjson_mut_bool(p->doc, value));
}

void api_patch_add_time(struct api_patch *p, const char *path, int64_t unix_ms)
{
    char text[FERRY_RFC3339_SIZE];

    api_patch_add_str(p, path, ferry_rfc3339(unix_ms, text));
}

void api_patch_add_raw(struct api_patch *p, const char *path, const char *json)
{
    put(p, "add", path, raw(p, json));
}

void api_patch_add_val(struct api_patch *p, const char *path, const yyjson_val *value)
{
    put(p, "add", path, yyjson_val_mut_copy(p->doc, (yyjson_val *)value));
}

void api_patch_remove(struct api_patch *p, const char *path)
{
    put(p, "remove", path, NULL);
}

char *api_patch_take(struct api_patch *p)
{
    char *text = json_doc_text(p->doc, YYJSON_WRITE_NOFLAG, NULL);

    api_patch_free(p);
    return text;
}

char *api_pointer_escape(const char *key)
{
    struct ferry_buf b = {0};

    for (; *key; key++) {
        if (*key == '~') {
            ferry_buf_puts(&b, "~0");
        } else if (*key == '/') {
            ferry_buf_puts(&b, "~1");
        } else {
            ferry_buf_append(&b, key, 1);
        }
    }
    return ferry_buf_take(&b);
}
