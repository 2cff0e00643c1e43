/* Where the server listens: sockets that were asked for, and those that came with LISTEN_FDS. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/options.h"

enum { SOCKETS_MAX = 24, SOCKETS_ADDRESS_SIZE = 64 };

struct listening {
    int fd;
    char address[SOCKETS_ADDRESS_SIZE]; /* numeric */
    bool v6;
    int port;
};
struct sockets {
    struct listening items[SOCKETS_MAX];
    size_t n;
};

/* "ADDRESS:PORT" each; when nothing is asked for and nothing came, 127.0.0.1:6443. */
int sockets_open(const struct ferry_option_list *listen, struct sockets *ret,
                 struct ferry_error *err);
/* Closes what was not taken. */
void sockets_done(struct sockets *s);
#define cleanup_sockets ferry_cleanup(sockets_done)
/* "https://127.0.0.1:6443". Owned by the caller. */
char *sockets_url(const struct listening *s);
