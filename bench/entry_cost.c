/* entry_cost [VMIS [ROUNDS]]: what the API server's objects cost as it keeps them (text, and where
 * in it stands what is asked for all the time), and what they would cost as parsed documents:
 * memory of all of them, and the time of what is done to one. Prints a table. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/store/entry.h"
#include "base/clock.h"
#include "vmi_text.h"

enum { MAX_ROUNDS = 101 };

struct cost {
    double make, parse, write; /* ns for one */
};

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

static struct entry *entry_of(const struct api_resource *r, const struct ferry_buf *text, int i)
{
    char name[32];

    snprintf(name, sizeof(name), "web-%06d", i);
    struct entry *e = entry_new(r, 100000 + (uint64_t)i, "shop", name, text->data, text->len);
    if (!e) {
        fprintf(stderr, "VMI %d is no object\n", i);
        exit(1);
    }
    return e;
}

static yyjson_doc *doc_of(const struct ferry_buf *text)
{
    yyjson_doc *doc = yyjson_read(text->data, text->len, 0);

    if (!doc) {
        fprintf(stderr, "no JSON\n");
        exit(1);
    }
    return doc;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *all, int n)
{
    qsort(all, (size_t)n, sizeof(*all), by_value);
    return all[n / 2];
}

/* All of them, once in each way. */
static struct cost round_of(const struct api_resource *r, const struct ferry_buf *texts, int n)
{
    int64_t make = 0, parse = 0, write = 0;

    for (int i = 0; i < n; i++) {
        int64_t t0 = ferry_now_ns();
        cleanup_entry struct entry *e = entry_of(r, &texts[i], i);
        int64_t t1 = ferry_now_ns();
        yyjson_doc *doc = entry_doc(e);
        int64_t t2 = ferry_now_ns();
        char *again = yyjson_write(doc, 0, NULL);
        int64_t t3 = ferry_now_ns();

        make += t1 - t0;
        parse += t2 - t1;
        write += t3 - t2;
        free(again);
        yyjson_doc_free(doc);
    }
    return (struct cost){(double)make / n, (double)parse / n, (double)write / n};
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10000, rounds = argc > 2 ? atoi(argv[2]) : 11;
    double make[MAX_ROUNDS], parse[MAX_ROUNDS], write[MAX_ROUNDS];
    const struct api_resource *r = api_resource_of_kind(API_KIND_VMI);
    size_t bytes = 0;

    if (n < 1 || n > 1000000 || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: entry_cost [VMIS [ROUNDS]]\n");
        return 2;
    }
    struct ferry_buf *texts = ferry_xcalloc((size_t)n, sizeof(*texts));
    struct entry **entries = ferry_xcalloc((size_t)n, sizeof(struct entry *));
    yyjson_doc **docs = ferry_xcalloc((size_t)n, sizeof(yyjson_doc *));

    for (int i = 0; i < n; i++) {
        vmi_text_put(&texts[i], i);
        bytes += texts[i].len;
    }
    size_t before = in_use();
    for (int i = 0; i < n; i++) {
        entries[i] = entry_of(r, &texts[i], i);
    }
    size_t as_text = in_use() - before;
    for (int i = 0; i < n; i++) {
        docs[i] = doc_of(&texts[i]);
    }
    size_t as_docs = in_use() - before - as_text;
    for (int i = 0; i < rounds; i++) {
        struct cost c = round_of(r, texts, n);

        make[i] = c.make;
        parse[i] = c.parse;
        write[i] = c.write;
    }
    printf("%d VMIs of %zu bytes; medians of %d rounds\n\n", n, bytes / (size_t)n, rounds);
    printf("| | MiB | of the text's |\n|---|---|---|\n");
    printf("| text and positions, as it is | %.1f | 1.00 |\n", (double)as_text / 0x1p20);
    printf("| parsed documents instead | %.1f | %.2f |\n", (double)as_docs / 0x1p20,
           (double)as_docs / (double)as_text);
    printf("| parsed documents beside it | %.1f | %.2f |\n\n", (double)(as_text + as_docs) / 0x1p20,
           (double)(as_text + as_docs) / (double)as_text);
    printf("| of one | ns |\n|---|---|\n");
    printf("| an entry is made of its text | %.0f |\n", median(make, rounds));
    printf("| it is parsed, when all of it is asked for | %.0f |\n", median(parse, rounds));
    printf("| a parsed document is written, for who gets, lists or watches | %.0f |\n",
           median(write, rounds));
    for (int i = 0; i < n; i++) {
        entry_unref(entries[i]);
        yyjson_doc_free(docs[i]);
        ferry_buf_done(&texts[i]);
    }
    free(entries);
    free(docs);
    free(texts);
    return 0;
}
