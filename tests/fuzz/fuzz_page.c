/* What a list is asked with, one line each: limit, continue token, resourceVersion,
 * resourceVersionMatch. An empty line stands for "not given". */
#include "fuzz.h"

#include "apiserver/request/page.h"

static const char *given(const char *line)
{
    return *line ? line : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ferry_cleanup_free char *text = fuzz_text(data, size);
    char *rest = text;
    struct page_query q = {.limit = given(fuzz_line(&rest))};
    struct page page = {0};
    struct status st = {0};

    q.token = given(fuzz_line(&rest));
    q.version = given(fuzz_line(&rest));
    q.match = given(fuzz_line(&rest));
    if (page_parse(&q, 1000, &page, &st) == 0) {
        must(page.limit >= 0 && page.version <= 1000 &&
             memchr(page.after, '\0', sizeof(page.after)));
    }
    page_check_version(text, 1000, &st);
    return 0;
}
