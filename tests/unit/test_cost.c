/* Work grows with what somebody sends, not with its square: what takes keys without end gets n of
 * them and four times n, and may take eight times as long. A walk for each key would take sixteen
 * times. Of three tries the best counts, since other work on the machine only adds. */
#include "lib/unit.h"

#include <time.h>

#include "api/object.h"
#include "api/patch.h"
#include "api/selector.h"
#include "apiserver/message/protobuf.h"
#include "base/str.h"
#include "json/doc.h"
#include "json/keys.h"

enum { N = 5000, FEW = 2000, TRIES = 3, PROTOBUF_MOST = 800 * 1000 };

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* {"PREFIX0": "v", ...} */
static void put_object(struct ferry_buf *b, const char *prefix, size_t n)
{
    ferry_buf_puts(b, "{");
    for (size_t i = 0; i < n; i++) {
        ferry_buf_printf(b, "%s\"%s%zu\":\"v\"", i ? "," : "", prefix, i);
    }
    ferry_buf_puts(b, "}");
}

static yyjson_mut_doc *document(const struct ferry_buf *b)
{
    json_cleanup_doc yyjson_doc *doc = yyjson_read(b->data, b->len, YYJSON_READ_NOFLAG);

    assert_non_null(doc);
    return yyjson_doc_mut_copy(doc, NULL);
}

static double merge_patch(size_t n)
{
    ferry_cleanup_buf struct ferry_buf object = {0}, patch = {0};

    put_object(&object, "old", n);
    put_object(&patch, "new", n);
    json_cleanup_mut_doc yyjson_mut_doc *doc = document(&object);
    json_cleanup_doc yyjson_doc *p = yyjson_read(patch.data, patch.len, YYJSON_READ_NOFLAG);
    struct ferry_error err = {0};
    double begin = cpu_s();

    assert_int_equal(api_patch_apply_merge(doc, yyjson_doc_get_root(p), &err), 0);
    double took = cpu_s() - begin;
    assert_int_equal(yyjson_mut_obj_size(yyjson_mut_doc_get_root(doc)), 2 * n);
    return took;
}

/* A field of protobuf that has a length. */
static void put_bytes(struct ferry_buf *b, char tag, const void *bytes, size_t n)
{
    size_t rest = n;

    ferry_buf_append(b, &tag, 1);
    for (; rest > 127; rest >>= 7) {
        ferry_buf_append(b, (char[]){(char)(rest | 128)}, 1);
    }
    ferry_buf_append(b, (char[]){(char)rest}, 1);
    ferry_buf_append(b, bytes, n);
}

static double protobuf_map(size_t n)
{
    static const char type[] = "\x0a\x02v1\x12\x09"
                               "ConfigMap";
    ferry_cleanup_buf struct ferry_buf map = {0}, body = {0};
    json_cleanup_mut_doc yyjson_mut_doc *doc = NULL;
    struct ferry_error err = {0};

    for (size_t i = 0; i < n; i++) {
        char key[64];
        ferry_cleanup_buf struct ferry_buf entry = {0};

        put_bytes(
            &entry, 0x0a, key,
            (size_t)snprintf(key, sizeof(key), "a-longer-key-that-differs-at-its-end-%07zu", i));
        put_bytes(&entry, 0x12, "v", 1);
        put_bytes(&map, 0x12, entry.data, entry.len);
    }
    ferry_buf_append(&body, "k8s", 4);
    put_bytes(&body, 0x0a, type, sizeof(type) - 1);
    put_bytes(&body, 0x12, map.data, map.len);
    assert_true(n < (size_t)4 * N || body.len > PROTOBUF_MOST); /* as large as it was slow once */
    double begin = cpu_s();
    assert_int_equal(protobuf_parse(body.data, body.len, &doc, &err), 0);
    double took = cpu_s() - begin;
    yyjson_mut_val *data = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "data");
    assert_int_equal(yyjson_mut_obj_size(data), n);
    return took;
}

static double edited_keys(size_t n)
{
    ferry_cleanup_buf struct ferry_buf object = {0};

    put_object(&object, "k", n);
    json_cleanup_mut_doc yyjson_mut_doc *doc = document(&object);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    double begin = cpu_s();
    struct json_keys *keys = json_keys_of(root, n);

    for (size_t i = 0; i < n; i++) {
        ferry_cleanup_free char *gone = ferry_asprintf("k%zu", i);
        ferry_cleanup_free char *added = ferry_asprintf("a%zu", i);

        json_keys_put(keys, yyjson_mut_strcpy(doc, gone), NULL);
        json_keys_put(keys, yyjson_mut_strcpy(doc, added), yyjson_mut_int(doc, 1));
    }
    json_keys_done(keys);
    double took = cpu_s() - begin;
    assert_int_equal(yyjson_mut_obj_size(root), n);
    return took;
}

static int one_document(void *ctx, const char *json, size_t len, struct ferry_error *err)
{
    size_t *count = ctx;

    (void)json, (void)len, (void)err;
    (*count)++;
    return 0;
}

static double yaml(const struct ferry_buf *b, size_t documents)
{
    struct ferry_error err = {0};
    size_t count = 0;
    double begin = cpu_s();

    assert_int_equal(api_yaml_each(b->data, b->len, one_document, &count, &err), 0);
    assert_int_equal(count, documents);
    return cpu_s() - begin;
}

static double yaml_map(size_t n)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    for (size_t i = 0; i < n; i++) {
        ferry_buf_printf(&b, "key%zu: value\n", i);
    }
    return yaml(&b, 1);
}

static double yaml_documents(size_t n)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    for (size_t i = 0; i < n; i++) {
        ferry_buf_printf(&b, "---\nkey: [%zu]\n", i);
    }
    return yaml(&b, n);
}

/* A long list inside of as many others as may be. */
static double yaml_deep(size_t n)
{
    enum { DEEP = 60 };
    ferry_cleanup_buf struct ferry_buf b = {0};

    for (size_t i = 0; i < DEEP; i++) {
        ferry_buf_puts(&b, "[");
    }
    for (size_t i = 0; i < n; i++) {
        ferry_buf_puts(&b, "1, ");
    }
    for (size_t i = 0; i < DEEP; i++) {
        ferry_buf_puts(&b, "]");
    }
    return yaml(&b, 1);
}

static double json_text(size_t n)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    json_cleanup_doc yyjson_doc *doc = NULL;
    struct ferry_error err = {0};

    put_object(&b, "key", n);
    double begin = cpu_s();
    assert_int_equal(api_json_parse(b.data, b.len, &doc, &err), 0);
    return cpu_s() - begin;
}

static double selector(size_t n)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    api_cleanup_selector struct api_selector *s = NULL;
    struct ferry_error err = {0};

    for (size_t i = 0; i < n; i++) {
        ferry_buf_printf(&b, "%skey%zu in (a,b)", i ? "," : "", i);
    }
    double begin = cpu_s();
    (void)api_selector_parse_labels(b.data, &s, &err); /* it may be too much for it */
    return cpu_s() - begin;
}

static void grows_with_the_input(void **state)
{
    static const struct {
        const char *what;
        double (*run)(size_t n);
        size_t n;
    } cases[] = {
        {"a merge patch", merge_patch, N},
        {"a map of protobuf", protobuf_map, N},
        {"keys of an object", edited_keys, N},
        {"a map of YAML", yaml_map, FEW}, /* an object has 8,192 keys at most */
        {"documents of YAML", yaml_documents, N},
        {"a list deep in YAML", yaml_deep, N},
        {"an object of JSON", json_text, FEW},
        {"a selector", selector, FEW},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        double best = 0;

        for (int try = 0; try < TRIES; try++) {
            double once = cases[i].run(cases[i].n), ratio = cases[i].run(4 * cases[i].n) / once;

            best = try == 0 || ratio < best ? ratio : best;
        }
        print_message("%s: four times as much takes %.1f times as long\n", cases[i].what, best);
        if (best > 8) {
            fail_msg("%s: four times as much takes %.1f times as long", cases[i].what, best);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_with_the_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
