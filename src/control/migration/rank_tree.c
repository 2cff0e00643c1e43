#include "control/migration/rank_tree.h"

static size_t size_of(const struct rank_node *n)
{
    return n ? n->size : 0;
}

static void count(struct rank_node *n)
{
    n->size = 1 + size_of(n->left) + size_of(n->right);
}

/* Everything before `item` goes left, the rest right. */
static void split(const struct rank_tree *t, struct rank_node *n, const void *item,
                  struct rank_node **left, struct rank_node **right)
{
    if (!n) {
        *left = *right = NULL;
    } else if (t->compare(n->item, item) < 0) {
        split(t, n->right, item, &n->right, right);
        *left = n;
        count(n);
    } else {
        split(t, n->left, item, left, &n->left);
        *right = n;
        count(n);
    }
}

static struct rank_node *merge(struct rank_node *left, struct rank_node *right)
{
    if (!left || !right) {
        return left ? left : right;
    }
    if (left->heap > right->heap) {
        left->right = merge(left->right, right);
        count(left);
        return left;
    }
    right->left = merge(left, right->left);
    count(right);
    return right;
}

size_t rank_tree_size(const struct rank_tree *t)
{
    return size_of(t->root);
}

void rank_tree_put(struct rank_tree *t, struct rank_node *n)
{
    struct rank_node **at = &t->root;

    while (*at && (*at)->heap >= n->heap) {
        (*at)->size++;
        at = t->compare(n->item, (*at)->item) < 0 ? &(*at)->left : &(*at)->right;
    }
    split(t, *at, n->item, &n->left, &n->right);
    count(n);
    *at = n;
}

void rank_tree_remove(struct rank_tree *t, struct rank_node *n)
{
    struct rank_node **at = &t->root;

    if (!n->size) {
        return;
    }
    while (*at != n) {
        (*at)->size--;
        at = t->compare(n->item, (*at)->item) < 0 ? &(*at)->left : &(*at)->right;
    }
    *at = merge(n->left, n->right);
    n->left = n->right = NULL;
    n->size = 0;
}

size_t rank_tree_rank(const struct rank_tree *t, const struct rank_node *n)
{
    const struct rank_node *at = t->root;
    size_t rank = 0;

    while (at != n) {
        if (t->compare(n->item, at->item) < 0) {
            at = at->left;
        } else {
            rank += size_of(at->left) + 1;
            at = at->right;
        }
    }
    return rank + size_of(n->left);
}

void *rank_tree_at(const struct rank_tree *t, size_t rank)
{
    const struct rank_node *at = t->root;

    while (at && rank != size_of(at->left)) {
        if (rank < size_of(at->left)) {
            at = at->left;
        } else {
            rank -= size_of(at->left) + 1;
            at = at->right;
        }
    }
    return at ? at->item : NULL;
}
