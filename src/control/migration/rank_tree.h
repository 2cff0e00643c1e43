/* An ordered set that knows ranks: a treap whose nodes are part of what they order, so that put,
 * remove and rank take O(log n) and allocate nothing. No locks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rank_node {
    struct rank_node *left, *right;
    size_t size;   /* of the subtree; 0 = not in a tree */
    uint32_t heap; /* any spread of values will do; set before the node is put */
    void *item;
};

struct rank_tree {
    struct rank_node *root;
    int (*compare)(const void *a, const void *b); /* of items; a total order */
};

size_t rank_tree_size(const struct rank_tree *t);
void rank_tree_put(struct rank_tree *t, struct rank_node *n);    /* must not be in a tree */
void rank_tree_remove(struct rank_tree *t, struct rank_node *n); /* nothing when not in one */
/* How many items come before this one, which is in the tree. */
size_t rank_tree_rank(const struct rank_tree *t, const struct rank_node *n);
/* The item of that rank, or NULL. */
void *rank_tree_at(const struct rank_tree *t, size_t rank);
