#include "relay/handover/self.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

/* Above what ferry_spawn() gives to children, so that it is still there when they look. */
enum { LOWEST = 64 };

static int passed_on(void)
{
    const char *names = getenv("LISTEN_FDNAMES");

    return names && ferry_streq(names, RELAY_SELF_FD_NAMES) && ferry_listen_fds() == 2
               ? FERRY_LISTEN_FDS_START + 1
               : -1;
}

static int directory_of(const char *exe)
{
    ferry_cleanup_free char *path = ferry_strdup(exe);
    char *slash = strrchr(path, '/');

    if (!slash) {
        return -1;
    }
    slash[slash == path] = '\0';
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void relay_self_init(struct relay_self *self, int argc, char **argv)
{
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    exe[n > 0 ? n : 0] = '\0';
    self->exe = ferry_strdup(n > 0 ? exe : argv[0]);
    self->argv = ferry_xcalloc((size_t)argc + 1, sizeof(*self->argv));
    for (int i = 0; i < argc; i++) {
        self->argv[i] = ferry_strdup(argv[i]);
    }
    ferry_cleanup_fd int dir = passed_on();
    if (dir < 0) {
        dir = directory_of(self->exe);
    }
    self->dir = dir < 0 ? -1 : fcntl(dir, F_DUPFD_CLOEXEC, LOWEST);
}

void relay_self_done(struct relay_self *self)
{
    for (char **a = self->argv; *a; a++) {
        free(*a);
    }
    free(self->argv);
    free(self->exe);
    ferry_closep(&self->dir);
}
