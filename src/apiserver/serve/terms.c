#include "apiserver/serve/terms.h"

enum {
    NODE_MAX = 1 << 20,    /* what a node reports */
    NOBODY_MAX = 64 << 10, /* may ask what it may do */
};

struct http_terms terms_of(enum auth_role role, bool joins)
{
    static const struct http_terms by_role[AUTH_ROLE_COUNT] = {
        [AUTH_NOBODY] = {.max_body = NOBODY_MAX, .rank = BODY_STRANGER},
        [AUTH_PERSON] = {.max_body = TERMS_BODY_MAX, .rank = BODY_PERSON},
        [AUTH_VIEWER] = {.max_body = TERMS_BODY_MAX, .rank = BODY_PERSON},
        [AUTH_NODE] = {.max_body = NODE_MAX, .rank = BODY_NODE},
        [AUTH_CONTROLLER] = {.max_body = TERMS_BODY_MAX, .rank = BODY_OPERATOR},
        [AUTH_ADMIN] = {.max_body = TERMS_BODY_MAX, .rank = BODY_OPERATOR},
    };
    struct http_terms terms = by_role[role];

    if (joins) {
        terms.max_body = TERMS_JOIN_MAX;
    }
    return terms;
}
