/* Which part of a list is asked for, as of when: limit, continue, resourceVersion. Pure.
 *
 * A continue token is the version of the first page and where the last one ended, so that all pages
 * show one instant; it is opaque to clients. */
#pragma once

#include <stdint.h>

#include "apiserver/message/status.h"
#include "apiserver/store/entry.h"

enum { PAGE_KEY_MAX = 600, PAGE_TOKEN_MAX = 640 };

/* As they come in a request; NULL = not given. */
struct page_query {
    const char *limit, *token, *version, *match;
};

struct page {
    int64_t limit;            /* 0 = none */
    uint64_t version;         /* exactly this one; 0 = now */
    char after[PAGE_KEY_MAX]; /* "NAMESPACE/NAME" of the last object of the page before, or "" */
};

/* `current`: version of the store. 410 and 504 as Kubernetes answers them. */
int page_parse(const struct page_query *q, uint64_t current, struct page *ret, struct status *st);
/* A version that a reader says it has seen: 504 when the store is behind it. */
int page_check_version(const char *version, uint64_t current, struct status *st);

/* Cuts the list, whose order is that of namespace and name, down to the page. `ret_token` is for
 * the next one, or ""; `ret_left` the number of objects after this page. */
void page_cut(const struct page *p, struct entry_list *list, char ret_token[PAGE_TOKEN_MAX],
              size_t *ret_left);
