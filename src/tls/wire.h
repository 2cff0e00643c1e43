/* A socket with a buffer in front of each direction, as an OpenSSL BIO.
 *
 * Records are small and system calls are not free: what is received is taken in large pieces, and
 * what is written is collected until tls_wire_flush(), or until more than a batch is together. The
 * buffers are made when they are first needed and given back by tls_wire_trim(). One thread at a
 * time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/types.h>

enum { TLS_WIRE_BATCH = 256 * 1024 };

struct tls_wire_buffer {
    uint8_t *data;
    size_t at, len; /* what is in it and not yet passed on */
};

struct tls_wire {
    int fd; /* non-blocking, borrowed */
    struct tls_wire_buffer in, out;
    bool eof;     /* the peer ended its side */
    bool drained; /* the last read took all there was: the next one would not get more */
    int error;    /* errno of a failed send or receive */
};

/* A BIO over `w`, which must outlive it; NULL when there is no memory. */
BIO *tls_wire_bio(struct tls_wire *w);

/* Sends what was collected. 1: all of it, 0: the socket takes no more now, -1: failed, see
 * `error`. */
int tls_wire_flush(struct tls_wire *w);

/* Whether a record of full size, and small ones of TLS's own behind it, find room without waiting;
 * sends when they do not. 1: yes, 0: the socket takes no more now, -1: failed, see `error`. */
int tls_wire_ready(struct tls_wire *w);

/* Gives back buffers that hold nothing. */
void tls_wire_trim(struct tls_wire *w);
void tls_wire_done(struct tls_wire *w);
