/* Theory of operation. The listening socket is made here and kept, so that it is there while a
 * filter that died is replaced. A pair of sockets ties the filter to us: it writes a line on it for
 * each refusal, and stops listening when our end is closed, by control_filter_stop() or by our own
 * end. */
#include "launcher/move/control_filter.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/channels.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"
#include "launcher/move/migrate_call.h"
#include "rpc/rpc_agreement.h"

#define PROGRAM "ferry-rpc-filter"

enum { BACKLOG = 4, LEAVING_MAX = 8, AGAIN_MS = 1000 };

struct control_filter {
    const struct context *c;
    char *agreed_path;
    pthread_mutex_t lock; /* guards all that follows */
    int listener;         /* -1: nothing is expected */
    int line;             /* to the filter that listens; -1 = there is none */
    pid_t pid;
    int64_t next_try_ns;
    pid_t leaving[LEAVING_MAX];          /* those that serve their last connection, to be reaped */
    char refused[CONTROL_FILTER_REASON]; /* "" = nothing */
};

struct control_filter *control_filter_new(const struct context *c)
{
    struct control_filter *f = ferry_xcalloc(1, sizeof(*f));

    f->c = c;
    f->agreed_path = ferry_asprintf("%s.agreed", c->devices_path);
    f->listener = f->line = -1;
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

static void close_taken(int *fd)
{
    ferry_cleanup_fd int taken = ferry_take_fd(fd);

    (void)taken;
}

static void leave_locked(struct control_filter *f)
{
    close_taken(&f->line);
    for (int i = 0; f->pid && i < LEAVING_MAX; i++) {
        if (!f->leaving[i]) {
            f->leaving[i] = f->pid;
            f->pid = 0;
        }
    }
    f->pid = 0;
}

void control_filter_stop(struct control_filter *f)
{
    pthread_mutex_lock(&f->lock);
    leave_locked(f);
    if (f->listener >= 0) {
        unlink(f->c->control_socket);
        close_taken(&f->listener);
    }
    pthread_mutex_unlock(&f->lock);
}

void control_filter_free(struct control_filter *f)
{
    if (f) {
        close_taken(&f->line);
        close_taken(&f->listener);
        pthread_mutex_destroy(&f->lock);
        free(f->agreed_path);
        free(f);
    }
}

/* ---- what is agreed ----------------------------------------------------------------------------
 */

static char *socket_uri(const struct context *c, enum ferry_channel channel)
{
    ferry_cleanup_free char *path = ferry_channel_path(c->migration_dir, c->uid, channel);

    return ferry_asprintf("unix://%s", path);
}

int control_filter_agree(struct control_filter *f, const char *domain_xml,
                         const struct disks *disks, struct ferry_error *err)
{
    struct rpc_agreement a = {.connect =
                                  ferry_asprintf("qemu:///%s", f->c->system ? "system" : "session"),
                              .memory = socket_uri(f->c, FERRY_CHANNEL_MEMORY)};

    for (size_t i = 0; i < disks->n && a.n_copied < RPC_COPIED_MAX; i++) {
        if (disks->list[i].copied) {
            a.copied[a.n_copied++] = ferry_strdup(disks->list[i].dev);
        }
    }
    a.disks = a.n_copied ? socket_uri(f->c, FERRY_CHANNEL_DISKS) : NULL;
    ferry_cleanup_free char *text = rpc_agreement_write(&a, domain_xml, err);
    rpc_agreement_done(&a);
    return text ? ferry_write_file(f->agreed_path, text, strlen(text), 0600, err) : -FERRY_INVALID;
}

/* ---- the process -------------------------------------------------------------------------------
 */

/* Beside this program, as it is installed. */
static char *find_program(void)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[n < 0 ? 0 : n] = '\0';
    return ferry_asprintf("%s/" PROGRAM, dirname(self));
}

static int spawn_locked(struct control_filter *f, struct ferry_error *err)
{
    ferry_cleanup_free char *program = find_program();
    struct ferry_error why;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return ferry_fail_errno(err, errno, "making a pair of sockets");
    }
    ferry_cleanup_fd int theirs = pair[1];
    const char *const argv[] = {program,
                                "--agreed",
                                f->agreed_path,
                                "--libvirt",
                                f->c->libvirt_socket,
                                f->refused[0] ? "--refused" : NULL, /* by the one before */
                                f->refused,
                                NULL};
    int rc = ferry_spawn(&(struct ferry_spawn){.argv = argv,
                                               .out_fd = -1,
                                               .pass_fds = (int[]){f->listener, theirs},
                                               .n_pass_fds = 2,
                                               .new_session = true},
                         &f->pid, &why);
    if (rc < 0) { /* another pod will have it: this one was made while programs were replaced */
        close(pair[0]);
        f->pid = 0;
        return ferry_fail(err, FERRY_RETRY, "the filter of the control channel: %s", why.msg);
    }
    f->line = pair[0];
    f->next_try_ns = ferry_now_ns() + AGAIN_MS * FERRY_NS_PER_MS;
    return 0;
}

int control_filter_start(struct control_filter *f, struct ferry_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&f->lock);
    if (f->listener < 0) {
        f->listener = ferry_unix_listen(f->c->control_socket, 0660, BACKLOG, err);
        rc = f->listener < 0 ? f->listener : 0;
        f->refused[0] = '\0';
    }
    if (rc == 0 && f->line < 0) {
        rc = spawn_locked(f, err);
    }
    pthread_mutex_unlock(&f->lock);
    return rc;
}

static void reap_locked(struct control_filter *f)
{
    for (int i = 0; i < LEAVING_MAX; i++) {
        if (f->leaving[i] && waitpid(f->leaving[i], NULL, WNOHANG) != 0) {
            f->leaving[i] = 0;
        }
    }
}

/* What it said, of which the first counts; `*ret_over`: it is gone. */
static bool read_locked(struct control_filter *f, bool *ret_over)
{
    char text[CONTROL_FILTER_REASON];
    ssize_t n;
    bool said = false;

    *ret_over = false;
    while (f->line >= 0 && (n = recv(f->line, text, sizeof(text) - 1, MSG_DONTWAIT)) >= 0) {
        *ret_over = n == 0;
        if (n == 0) {
            break;
        }
        text[n] = '\0';
        text[strcspn(text, "\n")] = '\0';
        said = true;
        if (!f->refused[0]) {
            memcpy(f->refused, text, sizeof(text));
        }
    }
    return said;
}

bool control_filter_refused(struct control_filter *f, char ret_reason[CONTROL_FILTER_REASON])
{
    bool over;

    pthread_mutex_lock(&f->lock);
    read_locked(f, &over); /* of its end takes care who tends it */
    memcpy(ret_reason, f->refused, CONTROL_FILTER_REASON);
    pthread_mutex_unlock(&f->lock);
    return ret_reason[0];
}

bool control_filter_tend(struct control_filter *f)
{
    struct ferry_error err;
    bool over;

    pthread_mutex_lock(&f->lock);
    reap_locked(f);
    bool said = read_locked(f, &over);
    if (over) {
        ferry_warn("the filter of the control channel died", F_INT("pid", f->pid));
        leave_locked(f);
    }
    if (f->listener >= 0 && f->line < 0 && ferry_now_ns() >= f->next_try_ns &&
        spawn_locked(f, &err) < 0) {
        f->next_try_ns = ferry_now_ns() + AGAIN_MS * FERRY_NS_PER_MS;
        ferry_error("no filter for the control channel", F_ERR(&err));
    }
    pthread_mutex_unlock(&f->lock);
    return said;
}
