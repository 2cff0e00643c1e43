/* Theory of operation
 *
 * OpenSSL makes and takes records in buffers of its own, each at the same place for the life of a
 * connection; here they stand one behind the other, a record and its 22 bytes of framing apart. So
 * the distance between both ends of a copy, modulo a page, walks on by 22 bytes from record to
 * record. Some CPUs copy 30 times slower while the destination is 1 to 31 bytes ahead of the source
 * modulo a page, and without care one record of each batch would be there, for good on a
 * connection with bad luck. A batch therefore begins where its copies walk away from that range:
 * CLEAR bytes beyond it when sending, before it when receiving. A batch has far fewer than the
 * 180 records that would walk all the way round. */
#include "tls/wire.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/bio.h>

enum {
    PAGE = 4096,
    CLEAR = 64,
    IN_BYTES = TLS_WIRE_BATCH,
    /* A batch and the record with which it becomes one. */
    OUT_BYTES = TLS_WIRE_BATCH + 32 * 1024,
    FULL_RECORD = 24 * 1024, /* with what surrounds it, and hundreds of messages about keys */
};

static bool have(struct tls_wire_buffer *b, size_t bytes)
{
    if (!b->data) {
        b->data = aligned_alloc(PAGE, bytes + PAGE); /* the first page is for starts_at() */
        b->at = b->len = 0;
    }
    return b->data != NULL;
}

/* Where in an empty buffer the bytes are to begin that will be copied from or to `other`. */
static size_t starts_at(const void *other)
{
    return ((uintptr_t)other + CLEAR) % PAGE;
}

int tls_wire_flush(struct tls_wire *w)
{
    struct tls_wire_buffer *b = &w->out;

    while (b->len > 0) {
        ssize_t n = send(w->fd, b->data + b->at, b->len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            w->error = errno;
            return errno == EAGAIN ? 0 : -1;
        }
        b->at += (size_t)n;
        b->len -= (size_t)n;
    }
    b->at = 0;
    return 1;
}

/* Room for `n` bytes behind what is collected. */
static int make_room(struct tls_wire *w, size_t n)
{
    struct tls_wire_buffer *b = &w->out;

    if (b->at + b->len + n <= PAGE + OUT_BYTES) {
        return 1;
    }
    int rc = tls_wire_flush(w);
    if (rc < 0) {
        return rc;
    }
    if (b->len + n > OUT_BYTES) {
        return 0;
    }
    if (b->at + b->len + n > PAGE + OUT_BYTES) {
        memmove(b->data, b->data + b->at, b->len);
        b->at = 0;
    }
    return 1;
}

int tls_wire_ready(struct tls_wire *w)
{
    if (w->out.len + FULL_RECORD <= OUT_BYTES) {
        return 1;
    }
    int rc = tls_wire_flush(w);
    return rc < 0 ? rc : w->out.len + FULL_RECORD <= OUT_BYTES;
}

static int take(struct tls_wire *w, const void *data, size_t n)
{
    struct tls_wire_buffer *b = &w->out;

    if (!have(b, OUT_BYTES)) {
        w->error = ENOMEM;
        return -1;
    }
    n = n < OUT_BYTES ? n : OUT_BYTES;
    int rc = make_room(w, n);
    if (rc > 0) {
        b->at = b->len == 0 ? starts_at(data) : b->at;
        memcpy(b->data + b->at + b->len, data, n);
        b->len += n;
        return (int)n;
    }
    return rc;
}

/* More bytes from the socket, on their way to `dest`, into the empty buffer: as recv(). */
static ssize_t fill(struct tls_wire *w, const void *dest)
{
    struct tls_wire_buffer *b = &w->in;
    ssize_t n;

    if (w->drained) {
        /* Whoever asks again after this has waited for the socket in between. */
        w->drained = false;
        errno = EAGAIN;
        return -1;
    }
    if (!have(b, IN_BYTES)) {
        errno = ENOMEM;
        return -1;
    }
    b->at = starts_at(dest);
    do {
        n = recv(w->fd, b->data + b->at, IN_BYTES, 0);
    } while (n < 0 && errno == EINTR);
    b->len = n > 0 ? (size_t)n : 0;
    w->eof = n == 0;
    w->drained = n > 0 && (size_t)n < IN_BYTES;
    return n;
}

/* Up to `n` bytes; 0 at the end, -1 with `error`. */
static int give(struct tls_wire *w, void *buf, size_t n)
{
    struct tls_wire_buffer *b = &w->in;

    if (b->len == 0) {
        ssize_t got = fill(w, buf);

        if (got <= 0) {
            w->error = got < 0 ? errno : 0;
            return (int)got;
        }
    }
    n = n < b->len ? n : b->len;
    memcpy(buf, b->data + b->at, n);
    b->at += n;
    b->len -= n;
    return (int)n;
}

/* ---- as a BIO ---------------------------------------------------------------------------------
 */

static int bio_read(BIO *bio, char *buf, int n)
{
    struct tls_wire *w = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    int got = give(w, buf, (size_t)n);
    if (got < 0 && w->error == EAGAIN) {
        BIO_set_retry_read(bio);
    }
    return got;
}

static int bio_write(BIO *bio, const char *data, int n)
{
    struct tls_wire *w = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    int took = take(w, data, (size_t)n);
    if (took == 0) {
        BIO_set_retry_write(bio);
        return -1;
    }
    return took;
}

static long bio_ctrl(BIO *bio, int command, long larg, void *parg)
{
    struct tls_wire *w = BIO_get_data(bio);

    (void)larg;
    (void)parg;
    switch (command) {
    case BIO_CTRL_FLUSH:
        /* What the socket does not take now goes out with a later flush. To say "try again" would
         * be taken for a failure: the buffer that OpenSSL puts in between does not pass it on. */
        return tls_wire_flush(w) < 0 ? -1 : 1;
    case BIO_CTRL_EOF:
        return w->eof;
    default:
        return 0;
    }
}

static BIO_METHOD *method;

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ferry wire");
    if (method) {
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_ctrl(method, bio_ctrl);
    }
}

BIO *tls_wire_bio(struct tls_wire *w)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_method);
    BIO *bio = method ? BIO_new(method) : NULL;
    if (bio) {
        BIO_set_data(bio, w);
        BIO_set_init(bio, 1);
    }
    return bio;
}

/* ---- memory -----------------------------------------------------------------------------------
 */

static void drop(struct tls_wire_buffer *b)
{
    free(b->data);
    *b = (struct tls_wire_buffer){0};
}

void tls_wire_trim(struct tls_wire *w)
{
    if (w->in.len == 0) {
        drop(&w->in);
    }
    if (w->out.len == 0) {
        drop(&w->out);
    }
}

void tls_wire_done(struct tls_wire *w)
{
    drop(&w->in);
    drop(&w->out);
}
