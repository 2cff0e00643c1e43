/* A set of UIDs. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

struct uid_set {
    void *tree;
};

void uid_set_add(struct uid_set *s, struct ferry_span uid); /* copied; none is not added */
bool uid_set_has(const struct uid_set *s, struct ferry_span uid);
void uid_set_done(struct uid_set *s); /* empty again */
#define cleanup_uid_set ferry_cleanup(uid_set_done)
