#include "api/json.h"
#include "base/printable.h"
#include "cli/session/output.h"
#include "cli/why/why.h"
#include "json/doc.h"

void why_output(const struct why_answer *a, bool yaml, struct ferry_buf *out)
{
    static const char *const states[] = {"ok", "waits", "broken"};
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc), *links = yyjson_mut_arr(doc);
    const struct why_link *first = why_first(a);

    yyjson_mut_doc_set_root(doc, root);
    if (first && first->state == WHY_BROKEN) {
        yyjson_mut_obj_add_str(doc, root, "broken", first->name);
    } else {
        yyjson_mut_obj_add_null(doc, root, "broken");
    }
    yyjson_mut_obj_add_val(doc, root, "links", links);
    for (size_t i = 0; i < a->n; i++) {
        yyjson_mut_val *l = yyjson_mut_arr_add_obj(doc, links);

        yyjson_mut_obj_add_str(doc, l, "name", a->links[i].name);
        yyjson_mut_obj_add_str(doc, l, "state", states[a->links[i].state]);
        yyjson_mut_obj_add_str(doc, l, "text", a->links[i].text);
        yyjson_mut_obj_add_str(doc, l, "remedy", a->links[i].remedy);
    }
    output_document(doc, yaml, out);
}

void why_render(const struct why_answer *a, struct ferry_buf *out)
{
    static const char *const words[] = {"ok", "waits", "BROKEN"};

    for (size_t i = 0; i < a->n; i++) {
        const struct why_link *l = &a->links[i];
        ferry_cleanup_free char *text = ferry_printable_dup(l->text);
        ferry_cleanup_free char *remedy = ferry_printable_dup(l->remedy);

        if (l->text[0]) {
            ferry_buf_printf(out, "%-6s  %-15s  %s\n", words[l->state], l->name, text);
        } else {
            ferry_buf_printf(out, "%-6s  %s\n", words[l->state], l->name);
        }
        if (l->remedy[0]) {
            ferry_buf_printf(out, "%-6s  %-15s  what to do: %s\n", "", "", remedy);
        }
    }
}
