#include "json/doc.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* ---- memory --------------------------------------------------------------------------------- */

static void *get(void *ctx, size_t size)
{
    (void)ctx;
    return ferry_xrealloc(NULL, 1, size);
}

static void *grow(void *ctx, void *p, size_t old_size, size_t size)
{
    (void)ctx;
    (void)old_size;
    return ferry_xrealloc(p, 1, size);
}

static void give_back(void *ctx, void *p)
{
    (void)ctx;
    free(p);
}

static const yyjson_alc allocator = {.malloc = get, .realloc = grow, .free = give_back};

yyjson_mut_doc *json_doc_new(void)
{
    return yyjson_mut_doc_new(&allocator);
}

yyjson_mut_doc *json_doc_copy(const yyjson_doc *doc)
{
    return yyjson_doc_mut_copy((yyjson_doc *)doc, &allocator);
}

yyjson_mut_val *json_doc_object(yyjson_mut_doc *doc)
{
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, o);
    return o;
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* Takes a text; every byte that is no part of a whole character becomes one that says so. */
static char *mend(char *text_take, size_t *ret_len)
{
    ferry_cleanup_free char *text = text_take;
    ferry_cleanup_buf struct ferry_buf out = {0};

    for (const char *p = text; *p;) {
        size_t n = ferry_utf8_len(p);

        ferry_buf_append(&out, n ? p : "\xef\xbf\xbd", n ? n : 3);
        p += n ? n : 1;
    }
    if (ret_len) {
        *ret_len = out.len;
    }
    return ferry_buf_take(&out);
}

struct source {
    const yyjson_val *val;
    const yyjson_mut_val *mut;
};

static char *write_once(const struct source *s, yyjson_write_flag flags, size_t *ret_len,
                        yyjson_write_err *why)
{
    return s->mut ? yyjson_mut_val_write_opts(s->mut, flags, &allocator, ret_len, why)
                  : yyjson_val_write_opts(s->val, flags, &allocator, ret_len, why);
}

static char *write_text(const struct source *s, yyjson_write_flag flags, size_t *ret_len)
{
    yyjson_write_err why = {0};
    char *text = write_once(s, flags | YYJSON_WRITE_INF_AND_NAN_AS_NULL, ret_len, &why);

    if (text || why.code != YYJSON_WRITE_ERROR_INVALID_STRING) {
        return text;
    }
    flags |= YYJSON_WRITE_INF_AND_NAN_AS_NULL | YYJSON_WRITE_ALLOW_INVALID_UNICODE;
    text = write_once(s, flags, ret_len, &why);
    return text ? mend(text, ret_len) : NULL;
}

char *json_doc_val_text(const yyjson_val *val, yyjson_write_flag flags, size_t *ret_len)
{
    return val ? write_text(&(struct source){.val = val}, flags, ret_len) : NULL;
}

char *json_doc_mut_text(const yyjson_mut_val *val, yyjson_write_flag flags, size_t *ret_len)
{
    return val ? write_text(&(struct source){.mut = val}, flags, ret_len) : NULL;
}

char *json_doc_text(const yyjson_mut_doc *doc, yyjson_write_flag flags, size_t *ret_len)
{
    return json_doc_mut_text(yyjson_mut_doc_get_root((yyjson_mut_doc *)doc), flags, ret_len);
}

char *json_doc_take(yyjson_mut_doc *doc_take)
{
    char *text = json_doc_text(doc_take, YYJSON_WRITE_NOFLAG, NULL);

    yyjson_mut_doc_free(doc_take);
    return text;
}

bool json_doc_lists(const yyjson_val *list, const char *text)
{
    size_t i, max;
    yyjson_val *v;

    yyjson_arr_foreach((yyjson_val *)(uintptr_t)list, i, max, v)
    {
        if (ferry_streq(yyjson_get_str(v), text)) {
            return true;
        }
    }
    return false;
}

static yyjson_mut_val *named(yyjson_mut_val *list, const char *name)
{
    yyjson_mut_val *e;
    size_t i, max;

    yyjson_mut_arr_foreach(list, i, max, e)
    {
        if (ferry_streq(yyjson_mut_get_str(yyjson_mut_obj_get(e, "name")), name)) {
            return e;
        }
    }
    return NULL;
}

bool json_doc_has_named(const yyjson_mut_val *list, const char *name)
{
    return named((yyjson_mut_val *)list, name) != NULL;
}

yyjson_mut_val *json_doc_named(yyjson_mut_doc *doc, yyjson_mut_val *list, const char *name)
{
    yyjson_mut_val *e = named(list, name);

    if (!e) {
        e = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_strcpy(doc, e, "name", name);
    }
    return e;
}
