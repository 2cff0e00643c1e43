/* What an API server sends: the stream of a watch (first byte even; the second says in which pieces
 * it arrives), or a page of a list. */
#include "fuzz.h"

#include "kube/change.h"
#include "kube/client.h"

static int each(void *ctx, struct ferry_buf *line, struct ferry_error *err)
{
    const struct api_resource *r = ctx;
    kube_cleanup_change struct kube_change e = {0};

    if (kube_change_read(line, r, &e, err) == 0) {
        must((e.type == KUBE_CHANGE_PUT) == (e.object != NULL));
        must(e.type != KUBE_CHANGE_DELETED || e.name);
    }
    return 0;
}

static void watch(const struct api_resource *r, const uint8_t *data, size_t size, size_t piece)
{
    kube_cleanup_lines struct kube_lines lines = {0};
    struct ferry_error err;

    for (size_t at = 0; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;

        if (kube_lines_feed(&lines, (const char *)data + at, n, each, (void *)(uintptr_t)r, &err) <
            0) {
            return;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    const struct api_resource *r =
        api_resource_of_kind((enum api_kind)(1 + data[0] / 2 % (API_KIND_COUNT - 1)));
    if (data[0] % 2 == 0) {
        watch(r, data + 2, size - 2, data[1] ? data[1] : 1);
    } else {
        ferry_cleanup_free char *text = fuzz_text(data + 2, size - 2);
        kube_cleanup_list struct kube_list list = {0};
        ferry_cleanup_free char *next = NULL;
        struct ferry_error err;

        if (kube_list_add_page(&list, r, text, size - 2, &next, &err) == 0) {
            must(list.resource_version != NULL);
        }
    }
    return 0;
}
