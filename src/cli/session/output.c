#include "cli/session/output.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/object.h"
#include "base/count.h"
#include "json/doc.h"

int output_parse(const char *text, enum output_format *ret, struct ferry_error *err)
{
    static const struct {
        const char *name;
        enum output_format format;
    } known[] = {
        {"wide", OUTPUT_WIDE}, {"json", OUTPUT_JSON}, {"yaml", OUTPUT_YAML}, {"name", OUTPUT_NAME}};

    if (!text) {
        *ret = OUTPUT_TABLE;
        return 0;
    }
    for (size_t i = 0; i < FERRY_COUNT(known); i++) {
        if (ferry_streq(text, known[i].name)) {
            *ret = known[i].format;
            return 0;
        }
    }
    return ferry_fail(err, FERRY_INVALID, "--output: '%s' is none of json, yaml, name, wide", text);
}

/* ---- YAML ---------------------------------------------------------------------------------- */

/* A word that no YAML reader takes for anything but itself. */
static bool plain_word(const char *s)
{
    static const char *const special[] = {"true", "false", "null", "yes", "no",
                                          "on",   "off",   "y",    "n",   NULL};

    if (!isalpha((unsigned char)s[0])) {
        return false;
    }
    for (const char *const *w = special; *w; w++) {
        if (strcasecmp(s, *w) == 0) {
            return false;
        }
    }
    return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-")] ==
           '\0';
}

/* A JSON string is a YAML string. */
static void put_scalar(const yyjson_val *v, struct ferry_buf *out)
{
    const char *s = yyjson_get_str((yyjson_val *)v);

    if (s && plain_word(s)) {
        ferry_buf_puts(out, s);
        return;
    }
    ferry_cleanup_free char *text = json_doc_val_text(v, 0, NULL);
    ferry_buf_puts(out, text ? text : "null");
}

static bool is_leaf(const yyjson_val *v)
{
    return !yyjson_is_ctn((yyjson_val *)v) || yyjson_get_len((yyjson_val *)v) == 0;
}

/* `first`: the cursor stands where the first line of the value begins. Objects come from the API,
 * which limits their depth. */
static void put_value(const yyjson_val *v, int indent, bool first, struct ferry_buf *out)
{
    size_t i, n;
    yyjson_val *key, *item;

    if (yyjson_is_obj((yyjson_val *)v)) {
        yyjson_obj_foreach((yyjson_val *)v, i, n, key, item)
        {
            ferry_buf_printf(out, "%*s", i == 0 && first ? 0 : indent, "");
            put_scalar(key, out);
            ferry_buf_puts(out, is_leaf(item) ? ": " : ":\n");
            if (is_leaf(item)) {
                put_scalar(item, out);
                ferry_buf_puts(out, "\n");
            } else {
                put_value(item, yyjson_is_arr(item) ? indent : indent + 2, false, out);
            }
        }
        return;
    }
    yyjson_arr_foreach((yyjson_val *)v, i, n, item)
    {
        ferry_buf_printf(out, "%*s- ", i == 0 && first ? 0 : indent, "");
        if (is_leaf(item)) {
            put_scalar(item, out);
            ferry_buf_puts(out, "\n");
        } else {
            put_value(item, indent + 2, true, out);
        }
    }
}

void output_yaml(const yyjson_val *v, struct ferry_buf *out)
{
    if (is_leaf(v)) {
        put_scalar(v, out);
        ferry_buf_puts(out, "\n");
        return;
    }
    put_value(v, 0, false, out);
}

void output_document(const yyjson_mut_doc *doc, bool yaml, struct ferry_buf *out)
{
    if (yaml) {
        yyjson_doc *plain = yyjson_mut_doc_imut_copy((yyjson_mut_doc *)doc, NULL);

        output_yaml(yyjson_doc_get_root(plain), out);
        yyjson_doc_free(plain);
        return;
    }
    ferry_cleanup_free char *text = json_doc_text(doc, YYJSON_WRITE_PRETTY, NULL);
    ferry_buf_printf(out, "%s\n", text ? text : "null");
}

/* ---- lists --------------------------------------------------------------------------------- */

static const struct api_resource *resource_of(const struct api_object *o)
{
    const char *kind = api_json_str(o->root, "/kind");

    for (const struct api_resource *r = api_resources(); kind && r->plural; r++) {
        if (ferry_streq(r->kind_name, kind)) {
            return r;
        }
    }
    return api_resource_of_kind(o->kind);
}

static void put_names(struct api_object *const *items, size_t n, struct ferry_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct api_resource *r = resource_of(items[i]);

        ferry_buf_printf(out, "%s%s%s/%s\n", r ? r->singular : "object",
                         r && r->group[0] ? "." : "", r ? r->group : "", items[i]->meta->name);
    }
}

void output_objects(struct api_object *const *items, size_t n, enum output_format format,
                    struct ferry_buf *out)
{
    if (format == OUTPUT_NAME) {
        put_names(items, n, out);
        return;
    }
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "apiVersion", "v1");
    yyjson_mut_obj_add_str(doc, root, "kind", "List");
    yyjson_mut_obj_add_val(doc, root, "items", list);
    for (size_t i = 0; i < n; i++) {
        yyjson_mut_arr_append(list, yyjson_val_mut_copy(doc, (yyjson_val *)items[i]->root));
    }
    output_document(doc, format == OUTPUT_YAML, out);
    yyjson_mut_doc_free(doc);
}

void output_object(struct api_object *o, enum output_format format, struct ferry_buf *out)
{
    if (format == OUTPUT_NAME) {
        put_names(&o, 1, out);
    } else if (format == OUTPUT_JSON) {
        ferry_cleanup_free char *text = json_doc_val_text(o->root, YYJSON_WRITE_PRETTY, NULL);

        ferry_buf_printf(out, "%s\n", text ? text : "null");
    } else {
        output_yaml(o->root, out);
    }
}

void output_print(struct api_object *o, enum output_format format)
{
    ferry_cleanup_buf struct ferry_buf out = {0};

    output_object(o, format, &out);
    fputs(out.data, stdout);
}
