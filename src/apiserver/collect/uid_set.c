#include "apiserver/collect/uid_set.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return ferry_span_cmp(*(const struct ferry_span *)a, *(const struct ferry_span *)b);
}

bool uid_set_has(const struct uid_set *s, struct ferry_span uid)
{
    return uid.at && tfind(&uid, &s->tree, compare) != NULL;
}

void uid_set_add(struct uid_set *s, struct ferry_span uid)
{
    if (!uid.at || uid_set_has(s, uid)) {
        return;
    }
    struct ferry_span *copy = ferry_xcalloc(1, sizeof(*copy) + uid.len);
    copy->at = memcpy(copy + 1, uid.at, uid.len);
    copy->len = uid.len;
    if (!tsearch(copy, &s->tree, compare)) {
        abort(); /* out of memory */
    }
}

void uid_set_done(struct uid_set *s)
{
    tdestroy(s->tree, free);
    s->tree = NULL;
}
