/* What a caller may bring along. Pure. */
#pragma once

#include "apiserver/access/auth.h"

enum {
    TERMS_BODY_MAX = 3 << 20,  /* as etcd's clusters have it, doubled: the largest of all */
    TERMS_JOIN_MAX = 32 << 10, /* two requests for certificates */
};

/* By role; `joins`: the body is for the door where nodes come in. */
struct http_terms terms_of(enum auth_role role, bool joins);
