/* How much memory the bodies of all requests of a program may take together. A body is counted in
 * steps as it grows, and with what is made of it while it is worked on. Of the whole nobody but
 * operators may take the last part, so that a flood by others leaves them room. Any thread, no
 * lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who asks, by how far the budget may be used before it is refused. */
enum body_rank {
    BODY_STRANGER,
    BODY_PERSON,
    BODY_NODE,
    BODY_OPERATOR, /* admins, and the site's own programs */
    BODY_RANK_COUNT
};

/* Pure. What a body of `len` bytes counts while it is read, and while it is worked on: texts,
 * documents and what is stored of it. */
size_t body_budget_reading(size_t len);
size_t body_budget_working(size_t len);
/* Pure: whether `want` more bytes fit beside those that are `used`. */
bool body_budget_fits(uint64_t total, uint64_t used, size_t want, enum body_rank rank);

struct body_budget;

struct body_budget *body_budget_new(uint64_t total);
void body_budget_free(struct body_budget *b); /* takes NULL */
/* Brings what a request holds from `*held` to `need`, which `*held` is then; false when there is no
 * room, and nothing changes. Less is always possible. */
bool body_budget_hold(struct body_budget *b, enum body_rank rank, size_t need, size_t *held);
/* Of a body of `len` bytes that is about to be read: holds what reading it takes, where there is
 * room to work on it, too. So of those that are read together at least one can be worked on. */
bool body_budget_begin(struct body_budget *b, enum body_rank rank, size_t len, size_t *held);
uint64_t body_budget_used(const struct body_budget *b);
