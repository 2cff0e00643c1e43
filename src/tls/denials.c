#include "tls/denials.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/str.h"
#include "tls/identity.h"

struct tls_denials {
    atomic_uint version;
    pthread_rwlock_t lock; /* over the rest */
    struct tls_denial *list;
    size_t n;
};

struct tls_denials *tls_denials_new(void)
{
    struct tls_denials *d = ferry_xcalloc(1, sizeof(*d));

    pthread_rwlock_init(&d->lock, NULL);
    return d;
}

void tls_denials_list_free(struct tls_denial *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free((char *)(uintptr_t)list[i].node);
        free((char *)(uintptr_t)list[i].generation);
    }
    free(list);
}

void tls_denials_free(struct tls_denials *d)
{
    if (d) {
        tls_denials_list_free(d->list, d->n);
        pthread_rwlock_destroy(&d->lock);
        free(d);
    }
}

static bool same(const struct tls_denial *a, const struct tls_denial *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!ferry_streq(a[i].node, b[i].node) || a[i].before_s != b[i].before_s ||
            !ferry_streq(a[i].generation ? a[i].generation : "",
                         b[i].generation ? b[i].generation : "")) {
            return false;
        }
    }
    return true;
}

static struct tls_denial *copy_of(const struct tls_denial *list, size_t n)
{
    struct tls_denial *copy = ferry_xcalloc(n + 1, sizeof(*copy));

    for (size_t i = 0; i < n; i++) {
        copy[i] = (struct tls_denial){.node = ferry_strdup(list[i].node),
                                      .generation = ferry_strdup(list[i].generation),
                                      .before_s = list[i].before_s};
    }
    return copy;
}

bool tls_denials_set(struct tls_denials *d, const struct tls_denial *list, size_t n)
{
    struct tls_denial *copy = copy_of(list, n);

    pthread_rwlock_wrlock(&d->lock);
    bool changed = n != d->n || !same(d->list, list, n);
    struct tls_denial *old = d->list;
    size_t n_old = d->n;
    d->list = copy;
    d->n = n;
    if (changed) {
        atomic_fetch_add(&d->version, 1);
    }
    pthread_rwlock_unlock(&d->lock);
    tls_denials_list_free(old, n_old);
    return changed;
}

unsigned tls_denials_version(const struct tls_denials *d)
{
    return atomic_load_explicit(&((struct tls_denials *)(uintptr_t)d)->version,
                                memory_order_acquire);
}

size_t tls_denials_copy(struct tls_denials *d, struct tls_denial **ret)
{
    pthread_rwlock_rdlock(&d->lock);
    size_t n = d->n;
    *ret = copy_of(d->list, n);
    pthread_rwlock_unlock(&d->lock);
    return n;
}

bool tls_denials_has_all(struct tls_denials *d, const char *node)
{
    bool found = false;

    pthread_rwlock_rdlock(&d->lock);
    for (size_t i = 0; i < d->n && !found; i++) {
        found = ferry_streq(d->list[i].node, node) && ferry_str_empty(d->list[i].generation) &&
                d->list[i].before_s == 0;
    }
    pthread_rwlock_unlock(&d->lock);
    return found;
}

bool tls_denials_has(struct tls_denials *d, const X509 *leaf)
{
    bool found = false;

    if (!d || !leaf) {
        return false;
    }
    pthread_rwlock_rdlock(&d->lock);
    for (size_t i = 0; i < d->n && !found; i++) {
        found = tls_identity_is_denied(leaf, &d->list[i]);
    }
    pthread_rwlock_unlock(&d->lock);
    return found;
}
