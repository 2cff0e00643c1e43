/* api_decode [VMIS [ROUNDS]]: how fast a list of VMIs becomes an informer's cache: JSON text as it
 * comes from the API server, page by page, to decoded, indexed objects. Prints the size of the
 * list, MB/s (median and best of ROUNDS) and memory per object. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "vmi_text.h"

enum { PAGE = 500, MAX_ROUNDS = 101 };

static struct ferry_buf *make_pages(int vmis, size_t *ret_n, size_t *ret_bytes)
{
    size_t n = ((size_t)vmis + PAGE - 1) / PAGE;
    struct ferry_buf *pages = ferry_xcalloc(n, sizeof(*pages));

    *ret_bytes = 0;
    for (size_t p = 0; p < n; p++) {
        ferry_buf_puts(&pages[p],
                       "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":"
                       "\"VirtualMachineInstanceList\",\"metadata\":{\"resourceVersion\":"
                       "\"123\"},\"items\":[");
        for (int i = (int)p * PAGE; i < vmis && i < (int)(p + 1) * PAGE; i++) {
            ferry_buf_puts(&pages[p], i % PAGE ? "," : "");
            vmi_text_put(&pages[p], i);
        }
        ferry_buf_puts(&pages[p], "]}");
        *ret_bytes += pages[p].len;
    }
    *ret_n = n;
    return pages;
}

static char *by_node(const struct api_object *o)
{
    return ferry_strdup(o->u.vmi.node_name);
}

/* Seconds; the cache is the caller's. `scratch` holds a page: reading uses it up. */
static double decode(const struct ferry_buf *pages, size_t n, char *scratch,
                     struct kube_cache *cache)
{
    int64_t spent = 0;

    kube_cache_begin_round(cache);
    for (size_t p = 0; p < n; p++) {
        kube_cleanup_list struct kube_list list = {0};
        ferry_cleanup_free char *next = NULL;
        struct ferry_error err;

        memcpy(scratch, pages[p].data, pages[p].len); /* what receiving would have done */
        int64_t begin = ferry_now_ns();
        if (kube_list_add_page(&list, api_resource_of_kind(API_KIND_VMI), scratch, pages[p].len,
                               &next, &err) < 0) {
            fprintf(stderr, "%s\n", err.msg);
            exit(1);
        }
        for (size_t i = 0; i < list.n; i++) {
            api_cleanup_object struct api_object *old = NULL;

            kube_cache_put(cache, list.items[i], &old);
        }
        kube_list_done(&list);
        spent += ferry_now_ns() - begin;
    }
    size_t gone = 0;
    free(kube_cache_end_round(cache, &gone));
    return (double)spent / 1e9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    int vmis = argc > 1 ? atoi(argv[1]) : 10000, rounds = argc > 2 ? atoi(argv[2]) : 11;
    double took[MAX_ROUNDS];
    size_t n, bytes, most = 0;
    int64_t used = 0;

    if (vmis < 1 || vmis > 1000000 || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: api_decode [VMIS [ROUNDS]]\n");
        return 2;
    }
    struct ferry_buf *pages = make_pages(vmis, &n, &bytes);
    for (size_t p = 0; p < n; p++) {
        most = pages[p].len > most ? pages[p].len : most;
    }
    char *scratch = ferry_xcalloc(1, most + YYJSON_PADDING_SIZE);
    for (int r = 0; r < rounds; r++) {
        struct kube_cache cache = {.index = by_node};
        int64_t before = (int64_t)(mallinfo2().uordblks + mallinfo2().hblkhd);

        took[r] = decode(pages, n, scratch, &cache);
        used = (int64_t)(mallinfo2().uordblks + mallinfo2().hblkhd) - before;
        if (cache.n != (size_t)vmis) {
            fprintf(stderr, "%zu of %d VMIs are in the cache\n", cache.n, vmis);
            return 1;
        }
        kube_cache_done(&cache);
    }
    qsort(took, (size_t)rounds, sizeof(took[0]), by_value);
    printf("%d VMIs, %.1f MB: %.0f MB/s (best %.0f), %" PRId64
           " bytes of memory per object of %zu\n",
           vmis, (double)bytes / 1e6, (double)bytes / 1e6 / took[rounds / 2],
           (double)bytes / 1e6 / took[0], used / vmis, bytes / (size_t)vmis);
    for (size_t p = 0; p < n; p++) {
        ferry_buf_done(&pages[p]);
    }
    free(pages);
    free(scratch);
    return 0;
}
