#include "apiserver/collect/uid_set.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

bool uid_set_has(const struct uid_set *s, const char *uid)
{
    return tfind(uid, &s->tree, compare) != NULL;
}

void uid_set_add(struct uid_set *s, const char *uid)
{
    if (!uid_set_has(s, uid) && !tsearch(ferry_strdup(uid), &s->tree, compare)) {
        abort(); /* out of memory */
    }
}

void uid_set_done(struct uid_set *s)
{
    tdestroy(s->tree, free);
    s->tree = NULL;
}
