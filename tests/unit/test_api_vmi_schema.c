/* What is made of the table of fields (src/api/spec): the schemas of VirtualMachine and
 * VirtualMachineInstance in deploy/kubernetes/crds, between two marks, and docs/vmi-fields.md.
 * `test_api_vmi_schema --write` writes them; the test fails when they say something else. */
#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

#include "api/spec/vmi_fields.h"
#include "apiserver/kinds/core_schema.h"
#include "base/fd.h"
#include "base/str.h"

enum { FILE_MAX = 4 << 20, DEPTH = 2, PATH_SIZE = 256 };

#define QUANTITY "^[0-9]+(\\.[0-9]+)?([EPTGMK]i|[EPTGMkmun]|[eE][+-]?[0-9]+)?$"
#define BEGIN "# Made of src/api/spec by `test_api_vmi_schema --write`: do not edit.\n"
#define END "# The end of what is made.\n"

/* ---- the rows ----------------------------------------------------------------------------------
 */

struct view {
    enum vmi_fields_of of;
    struct ferry_buf *out;
};

/* Rows of the table that has what is below `path`; of a VM, those of a VMI below the template. */
static size_t rows_of(enum vmi_fields_of of, const struct vmi_fields *ret[8])
{
    size_t n = 0;

    if (of == VMI_FIELDS_OF_VM) {
        ret[n++] = &vmi_fields_vm;
        return n;
    }
    for (const struct vmi_fields *const *t = vmi_fields_of_vmi(); *t; t++) {
        ret[n++] = *t;
    }
    return n;
}

static const char *bare(const char *path, char ret[PATH_SIZE])
{
    size_t len = strlen(path);

    snprintf(ret, PATH_SIZE, "%.*s", (int)(len > 2 && path[len - 1] == ']' ? len - 2 : len), path);
    return ret;
}

/* The name of a field that is directly below `parent`, or NULL. */
static const char *name_below(const char *parent, const char *path)
{
    size_t len = strlen(parent);

    if (strncmp(path, parent, len) != 0 || (len && path[len] != '.')) {
        return NULL;
    }
    path += len ? len + 1 : 0;
    return *path && !strchr(path, '.') ? path : NULL;
}

/* ---- YAML --------------------------------------------------------------------------------------
 */

static void line(struct ferry_buf *b, int depth, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void line(struct ferry_buf *b, int depth, const char *fmt, ...)
{
    va_list ap;

    ferry_buf_printf(b, "%*s", depth * DEPTH, "");
    va_start(ap, fmt);
    char text[4096];
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ferry_buf_printf(b, "%s\n", text);
}

/* Text in quotes, in one line: our descriptions have no backslashes. */
static char *quoted(const char *text)
{
    struct ferry_buf b = {0};

    ferry_buf_puts(&b, "\"");
    for (; *text; text++) {
        ferry_buf_printf(&b, "%s%c", *text == '"' ? "\\" : "", *text);
    }
    ferry_buf_puts(&b, "\"");
    return ferry_buf_take(&b);
}

static char *description_of(const struct vmi_field *f)
{
    switch (f->verdict) {
    case VMI_FIELD_REFUSED:
        return ferry_asprintf("Refused, because %s.", f->text);
    case VMI_FIELD_NO_EFFECT:
        return ferry_asprintf("Without effect, because %s.", f->text);
    case VMI_FIELD_BELOW:
        return ferry_strdup("Refused with what it is in.");
    case VMI_FIELD_PARTS:
    case VMI_FIELD_HONOURED:
        break;
    }
    return f->values ? ferry_asprintf("%s Supported: %s.", f->text, f->values)
                     : ferry_strdup(f->text);
}

/* A value of a core kind's schema, as block YAML; every property has a description. */
static void put_core(struct ferry_buf *b, int depth, yyjson_val *v, bool properties, bool top)
{
    yyjson_val *key, *value;
    size_t i, max;

    yyjson_obj_foreach(v, i, max, key, value)
    {
        const char *name = yyjson_get_str(key);

        if (top && strcmp(name, "description") == 0) {
            continue; /* the table has its own */
        }
        if (yyjson_is_obj(value)) {
            line(b, depth, "%s:", name);
            if (properties && !yyjson_obj_get(value, "description")) {
                line(b, depth + 1, "description: As for pods.");
            }
            put_core(b, depth + 1, value, !properties && strcmp(name, "properties") == 0, false);
        } else {
            ferry_cleanup_free char *text = yyjson_val_write(value, 0, NULL);

            line(b, depth, "%s: %s", name, text);
        }
    }
}

static yyjson_val *core_type(const char *type)
{
    static const struct {
        const char *type, *plural, *pointer;
    } known[] = {
        {"Affinity", "pods", "/properties/spec/properties/affinity"},
        {"[]Toleration", "pods", "/properties/spec/properties/tolerations"},
        {"[]TopologySpreadConstraint", "pods",
         "/properties/spec/properties/topologySpreadConstraints"},
        {"PersistentVolumeClaimSpec", "persistentvolumeclaims", "/properties/spec"},
    };

    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (strcmp(known[i].type, type) == 0) {
            const struct api_resource *r = api_resource_find("", "v1", known[i].plural);

            return yyjson_ptr_get((yyjson_val *)core_schema(r), known[i].pointer);
        }
    }
    return NULL;
}

static void put_below(const struct view *v, const char *parent, int depth);

static void put_required(const struct view *v, const char *parent, int depth)
{
    const struct vmi_fields *tables[8];
    size_t n = rows_of(v->of, tables);
    ferry_cleanup_buf struct ferry_buf names = {0};

    for (size_t t = 0; t < n; t++) {
        for (size_t i = 0; i < tables[t]->n; i++) {
            const char *name = name_below(parent, tables[t]->rows[i].path);

            if (name && tables[t]->rows[i].required) {
                ferry_buf_printf(&names, "%s%s", names.len ? ", " : "", name);
            }
        }
    }
    if (names.len) {
        line(v->out, depth, "required: [%s]", names.data);
    }
}

/* What a value is, without its description. */
static void put_type(const struct view *v, const struct vmi_field *f, const char *path, int depth)
{
    static const struct {
        const char *type, *lines[4];
    } simple[] = {
        {"string", {"type: string"}},
        {"boolean", {"type: boolean"}},
        {"number", {"type: number"}},
        {"int32", {"type: integer", "format: int32"}},
        {"int64", {"type: integer", "format: int64"}},
        {"intorstring", {"x-kubernetes-int-or-string: true"}},
        {"any", {"x-kubernetes-preserve-unknown-fields: true"}},
        {"map", {"type: object", "additionalProperties: {type: string}"}},
        {"quantity", {"x-kubernetes-int-or-string: true", "pattern: " QUANTITY}},
        {"quantities",
         {"type: object", "additionalProperties:", "  x-kubernetes-int-or-string: true",
          "  pattern: " QUANTITY}},
    };

    for (size_t i = 0; i < COUNT_OF(simple); i++) {
        for (size_t k = 0; strcmp(f->type, simple[i].type) == 0 && k < 4 && simple[i].lines[k];
             k++) {
            line(v->out, depth, "%s", simple[i].lines[k]);
        }
    }
    if (strcmp(f->type, "object") == 0) {
        line(v->out, depth, "type: object");
        put_required(v, path, depth);
        put_below(v, path, depth);
    }
    if (f->schema) { /* "KEY: VALUE, KEY: VALUE", with lists in brackets */
        ferry_cleanup_free char *text = ferry_strdup(f->schema);
        int nested = 0;

        for (char *p = text, *from = text;; p++) {
            nested += strchr("[{", *p) && *p ? 1 : *p == ']' || *p == '}' ? -1 : 0;
            if (*p == '\0' || (*p == ',' && !nested)) {
                line(v->out, depth, "%.*s", (int)(p - from), from);
                from = p + 2;
            }
            if (!*p) {
                break;
            }
        }
    }
    put_core(v->out, depth, core_type(f->type), false, true);
}

static void put_field(const struct view *v, const struct vmi_field *f, const char *name, int depth)
{
    char text[PATH_SIZE];
    bool list = name[strlen(name) - 1] == ']';
    ferry_cleanup_free char *description = description_of(f);
    ferry_cleanup_free char *in_quotes = quoted(description);

    line(v->out, depth, "%s:", bare(name, text));
    line(v->out, depth + 1, "description: %s", in_quotes);
    if (list) {
        line(v->out, depth + 1, "type: array");
        line(v->out, depth + 1, "x-kubernetes-list-type: atomic");
        line(v->out, depth + 1, "items:");
    }
    if (v->of == VMI_FIELDS_OF_VM && strcmp(f->path, "template.spec") == 0) {
        const struct view below = {VMI_FIELDS_OF_VMI, v->out};

        line(v->out, depth + 1, "type: object");
        put_required(&below, "", depth + 1);
        put_below(&below, "", depth + 1);
        return;
    }
    put_type(v, f, f->path, depth + (list ? 2 : 1));
}

static void put_fields(const struct view *v, const char *parent, int depth)
{
    const struct vmi_fields *tables[8];
    size_t n = rows_of(v->of, tables);

    for (size_t t = 0; t < n; t++) {
        for (size_t i = 0; i < tables[t]->n; i++) {
            const char *name = name_below(parent, tables[t]->rows[i].path);

            if (name) {
                put_field(v, &tables[t]->rows[i], name, depth);
            }
        }
    }
}

static void put_below(const struct view *v, const char *parent, int depth)
{
    ferry_cleanup_buf struct ferry_buf fields = {0};
    const struct view below = {v->of, &fields};

    put_fields(&below, parent, depth + 1);
    if (fields.len) {
        line(v->out, depth, "properties:");
        ferry_buf_append(v->out, fields.data, fields.len);
    }
}

/* ---- the page ----------------------------------------------------------------------------------
 */

static const char head[] =
    "# Fields of a machine\n\n"
    "Made of the table in `src/api/spec` by `test_api_vmi_schema --write`; do not edit.\n\n"
    "Every field that KubeVirt v1.8.4 has in the spec of a VirtualMachine or a "
    "VirtualMachineInstance is here.\n"
    "A field of an instance is the same field of a VirtualMachine below `spec.template.spec`.\n\n"
    "- *honoured*: the function that acts upon it is named.\n"
    "- *refused*: with all that is in it, when the object is applied, with the reason and what to "
    "do instead.\n"
    "  What asks for nothing is taken: `false`, `0`, an empty list, `enabled: false`.\n"
    "- *without effect*: with all that is in it, on purpose; whoever applies it is told by a "
    "warning.\n\n"
    "A field that is not here is unknown, and follows `fieldValidation`.\n"
    "`kubectl apply` asks for `Strict` and is refused; with `Warn` and `Ignore` the field is "
    "dropped.\n\n"
    "What an object has had before stays, whatever a later version refuses: only what is new in it "
    "is judged.\n"
    "What the controller makes of a VirtualMachine is not judged again.\n\n"
    "As in KubeVirt, a disk has a volume, a volume of an instance a disk, an interface a network "
    "and a network an interface; names and places in the boot order are there once.\n"
    "A volume that no disk shows gets one on sata when an instance is made.\n"
    "The annotation `hooks.kubevirt.io/hookSidecars` is refused like a field.\n";

/* One sentence to a line, as pages have it. */
static void put_sentences(struct ferry_buf *b, const char *text)
{
    for (; *text; text++) {
        bool ends = *text == '.' && text[1] == ' ' &&
                    !strchr("abcdefghijklmnopqrstuvwxyz0123456789", text[2]);

        ferry_buf_append(b, text, 1);
        if (ends) {
            ferry_buf_puts(b, "\n  ");
            text++;
        }
    }
    ferry_buf_puts(b, "\n");
}

static void put_row(struct ferry_buf *b, const struct vmi_field *f)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    char path[PATH_SIZE];

    switch (f->verdict) {
    case VMI_FIELD_HONOURED:
        ferry_buf_printf(&text, "- `%s`: *honoured* by `%s`. %s", bare(f->path, path), f->by,
                         f->text);
        if (f->values) {
            ferry_buf_printf(&text, " Only `%s`; of others: %s.", f->values, f->todo);
        }
        break;
    case VMI_FIELD_REFUSED:
        ferry_buf_printf(&text, "- `%s`: *refused*, because %s. Instead: %s.", bare(f->path, path),
                         f->text, f->todo);
        break;
    case VMI_FIELD_NO_EFFECT:
        ferry_buf_printf(&text, "- `%s`: *without effect*, because %s.", bare(f->path, path),
                         f->text);
        break;
    case VMI_FIELD_PARTS:
    case VMI_FIELD_BELOW:
        return;
    }
    put_sentences(b, text.data);
}

static void put_table(struct ferry_buf *b, const char *title, const struct vmi_fields *t)
{
    ferry_buf_printf(b, "\n## %s\n\n", title);
    for (size_t i = 0; i < t->n; i++) {
        put_row(b, &t->rows[i]);
    }
}

static char *make_page(void)
{
    struct ferry_buf b = {0};

    ferry_buf_puts(&b, head);
    put_table(&b, "The machine", &vmi_fields_domain);
    put_table(&b, "Its devices", &vmi_fields_devices);
    put_table(&b, "Its volumes", &vmi_fields_volumes);
    put_table(&b, "Beside them", &vmi_fields_rest);
    put_table(&b, "VirtualMachine", &vmi_fields_vm);
    return ferry_buf_take(&b);
}

/* ---- files -------------------------------------------------------------------------------------
 */

/* The file with what is between its marks made anew; NULL when it has none. */
static char *remade(const char *file, enum vmi_fields_of of)
{
    ferry_cleanup_buf struct ferry_buf old = {0};
    struct ferry_buf b = {0};
    const struct view v = {of, &b};

    if (ferry_read_file(file, FILE_MAX, &old, NULL) < 0) {
        return NULL;
    }
    char *from = strstr(old.data, BEGIN), *to = strstr(old.data, END);
    if (!from || !to) {
        return NULL;
    }
    int depth = 0;
    for (const char *p = from; p > old.data && p[-1] == ' '; p--) {
        depth++;
    }
    ferry_buf_append(&b, old.data, (size_t)(from - old.data) + strlen(BEGIN));
    put_fields(&v, "", depth / DEPTH);
    ferry_buf_printf(&b, "%*s%s", depth, "", to);
    return ferry_buf_take(&b);
}

static const struct {
    const char *file;
    enum vmi_fields_of of;
} crds[] = {{CRDS_DIR "/virtualmachineinstances.yaml", VMI_FIELDS_OF_VMI},
            {CRDS_DIR "/virtualmachines.yaml", VMI_FIELDS_OF_VM}};

static void must_be(const char *file, const char *wanted)
{
    ferry_cleanup_buf struct ferry_buf have = {0};

    ferry_read_file(file, FILE_MAX, &have, NULL);
    if (!wanted || !have.data || strcmp(have.data, wanted) != 0) {
        fail_msg("%s is not what the table says: run test_api_vmi_schema --write", file);
    }
}

static void schemas(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(crds); i++) {
        ferry_cleanup_free char *text = remade(crds[i].file, crds[i].of);

        must_be(crds[i].file, text);
    }
}

static void page(void **state)
{
    ferry_cleanup_free char *text = make_page();

    (void)state;
    must_be(DOCS_DIR "/vmi-fields.md", text);
}

static int write_all(void)
{
    ferry_cleanup_free char *text = make_page();
    int rc = ferry_write_file(DOCS_DIR "/vmi-fields.md", text, strlen(text), 0644, NULL);

    for (size_t i = 0; rc == 0 && i < COUNT_OF(crds); i++) {
        ferry_cleanup_free char *crd = remade(crds[i].file, crds[i].of);

        rc = crd ? ferry_write_file(crds[i].file, crd, strlen(crd), 0644, NULL) : -1;
    }
    return rc < 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemas),
        cmocka_unit_test(page),
    };

    if (argc > 1 && strcmp(argv[1], "--write") == 0) {
        return write_all();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
