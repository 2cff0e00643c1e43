#include "relay/state/fds.h"

#include <unistd.h>

#include "base/str.h"

int relay_fds_add(struct relay_fds *f, int fd)
{
    if (fd < 0) {
        return -1;
    }
    f->fd = ferry_xrealloc(f->fd, f->n + 1, sizeof(*f->fd));
    f->fd[f->n] = fd;
    return (int)f->n++;
}

int relay_fds_take(struct relay_fds *f, int place)
{
    if (place < 0 || (size_t)place >= f->n) {
        return -1;
    }
    int fd = f->fd[place];
    f->fd[place] = -1;
    return fd;
}

void relay_fds_done(struct relay_fds *f, bool close_them)
{
    for (size_t i = 0; close_them && i < f->n; i++) {
        if (f->fd[i] >= 0) {
            close(f->fd[i]);
        }
    }
    free(f->fd);
    *f = (struct relay_fds){0};
}
