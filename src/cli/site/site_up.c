#include "cli/site/site_up.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/options.h"
#include "base/proc.h"
#include "base/str.h"
#include "cli/site/site_down.h"
#include "cli/site/site_net.h"
#include "cli/site/site_state.h"
#include "cli/site/site_wait.h"
#include "cli/site/site_way.h"
#include "cli/site/supervise.h"
#include "kvm/kvm_probe.h"

/* Programs that every site needs; looked for beside this one. */
static const char *const programs[] = {
    "ferry-apiserver", "ferry-controller", "ferry-relay", "ferry-pods",
    "ferry-handler",   "ferry-launcher",   "ferry-init",  NULL};

static int check_programs(const struct site_settings *s, struct ferry_error *err)
{
    for (const char *const *p = programs; *p; p++) {
        ferry_cleanup_free char *path = ferry_asprintf("%s/%s", s->bin_dir, *p);

        if (access(path, X_OK) < 0) {
            return ferry_fail(err, FERRY_NOT_FOUND,
                              "there is no %s: all of Ferry's programs must stand in one "
                              "directory; build and stage them with 'make'",
                              path);
        }
    }
    return 0;
}

/* What virtual machines need of the system. */
static const struct {
    const char *program, *package; /* Debian's */
} tools[] = {{"ip", "iproute2"},
             {"bwrap", "bubblewrap"},
             {"/usr/sbin/libvirtd", "libvirt-daemon"},
             {"/usr/bin/qemu-system-x86_64", "qemu-system-x86"}};

static int check_tools(struct ferry_error *err)
{
    for (size_t i = 0; i < FERRY_COUNT(tools); i++) {
        ferry_cleanup_free char *path = ferry_find_program(tools[i].program, NULL);

        if (!path || access(path, X_OK) < 0) {
            return ferry_fail(err, FERRY_NOT_FOUND,
                              "there is no %s on this machine, and without it no virtual machine "
                              "can run: install the package %s (scripts/setup installs all that is "
                              "needed)",
                              tools[i].program, tools[i].package);
        }
    }
    return 0;
}

static int check_port(int port, struct ferry_error *err)
{
    struct ferry_error why;
    ferry_cleanup_fd int fd = site_net_listen(NULL, "127.0.0.1", port, &why);

    if (fd >= 0) {
        return 0;
    }
    if (why.sys == EADDRINUSE) {
        return ferry_fail(err, FERRY_INVALID,
                          "port %d of 127.0.0.1, wanted for the API server, is taken by another "
                          "program; end that one or choose another port with --port",
                          port);
    }
    return ferry_fail(err, why.cls, "%s", why.msg);
}

/* True when nothing of somebody else's is in the directory. */
static bool usable_directory(const char *root)
{
    DIR *d = opendir(root);
    struct dirent *e;
    bool usable = true;

    while (d && (e = readdir(d))) {
        usable = usable && (ferry_streq(e->d_name, ".") || ferry_streq(e->d_name, "..") ||
                            ferry_streq(e->d_name, "lock"));
    }
    if (d) {
        closedir(d);
    }
    return usable;
}

/* The site's own settings win where none are asked for; a wish that contradicts them is refused. */
static int merge_settings(const struct site_state *state, struct site_settings *s,
                          struct ferry_error *err)
{
    if (s->nodes >= 0 && s->nodes != state->nodes) {
        return ferry_fail(err, FERRY_INVALID,
                          "the site at %s has %d node%s, not %d; 'ferry down' first, or choose "
                          "another --root",
                          s->root, state->nodes, state->nodes == 1 ? "" : "s", s->nodes);
    }
    if (s->port >= 0 && s->port != state->port) {
        return ferry_fail(err, FERRY_INVALID,
                          "the site at %s has its API on port %d, not %d; 'ferry down' first, or "
                          "choose another --root",
                          s->root, state->port, s->port);
    }
    s->nodes = state->nodes;
    s->port = state->port;
    return 0;
}

static struct site_settings with_defaults(struct site_settings s)
{
    s.nodes = s.nodes < 0 ? SITE_DEFAULT_NODES : s.nodes;
    s.port = s.port < 0 ? SITE_DEFAULT_PORT : s.port;
    return s;
}

static int write_first_state(const struct site_plan *p, struct site_made made,
                             struct ferry_error *err)
{
    struct site_state s = {
        .bin_dir = p->bin_dir,
        .guest_dir = p->guest_dir,
        .nodes = (int)p->n_nodes,
        .port = p->port,
        .made = made,
        .supervisor = {.name = "supervisor"},
    };

    return site_state_write(p->state_file, &s, err);
}

static int make_directories(const struct site_plan *p, struct ferry_error *err)
{
    int rc = ferry_mkdir_p(p->log_dir, 0755, err);

    if (rc == 0) {
        rc = ferry_mkdir_p(p->api_root, 0755, err);
    }
    for (size_t i = 0; i < p->n_nodes && rc == 0; i++) {
        rc = ferry_mkdir_p(p->nodes[i].root, 0755, err);
    }
    return rc;
}

static int start_supervisor(const struct site_plan *p, struct ferry_error *err)
{
    ferry_cleanup_free char *log = ferry_asprintf("%s/supervisor.log", p->log_dir);
    ferry_cleanup_fd int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ferry_cleanup_free char *self = ferry_asprintf("%s/ferry", p->bin_dir);
    pid_t pid;

    if (out < 0) {
        return ferry_fail_errno(err, errno, "opening %s", log);
    }
    setenv(SUPERVISE_MARK, p->root, 1); /* the supervisor itself is to be found by it, too */
    int rc = ferry_spawn(
        &(struct ferry_spawn){
            .argv = (const char *const[]){self, "supervise", "--root", p->root, NULL},
            .out_fd = out,
            .new_session = true,
        },
        &pid, err);
    unsetenv(SUPERVISE_MARK);
    return rc;
}

/* Signals are blocked: what came since the last step is waiting. */
static int check_interrupt(const char *when, struct ferry_error *err)
{
    return ferry_signals_wait(ferry_now_ns())
               ? ferry_fail(err, FERRY_CANCELLED, "interrupted %s", when)
               : 0;
}

static int make_credentials(const struct site_plan *p, struct ferry_error *err)
{
    for (size_t i = 0; i <= p->n_nodes; i++) {
        site_cleanup_strings char **argv =
            i < p->n_nodes ? site_plan_node_pki(p, i) : site_plan_controller_pki(p);
        int rc = ferry_run((const char *const *)argv, NULL, err);

        if (rc < 0) {
            return ferry_wrap(err, "making credentials");
        }
        if ((rc = check_interrupt("while making credentials", err)) < 0) {
            return rc;
        }
    }
    return 0;
}

/* All nodes of the site are this machine, and each finds the same. */
static void tell_accelerator(void)
{
    struct kvm_answer answer;
    char why[KVM_WHY_BYTES];

    kvm_probe(KVM_DEVICE, &answer);
    if (kvm_judge(&answer, KVM_DEVICE, why)) {
        printf("guests   are run by the hardware (KVM)\n");
    } else {
        printf("guests   are emulated, which is slow; no hardware virtualisation: %s\n", why);
    }
    fflush(stdout);
}

static int start(const struct site_plan *p, bool daemons_live, struct ferry_error *err)
{
    int rc = 0;

    if (!daemons_live) {
        rc = site_net_make(p, err);
        rc = rc < 0 ? rc : check_interrupt("while making the network", err);
        if (rc < 0) {
            return rc;
        }
        printf("network  %zu node%s in namespaces %s ...: eth0 (node network), migration0\n",
               p->n_nodes, p->n_nodes == 1 ? "" : "s", p->nodes[0].netns);
        fflush(stdout);
    }
    rc = start_supervisor(p, err);
    if (rc == 0) {
        rc = site_wait_api(p, err);
    }
    if (rc == 0) {
        printf("api      %s\n", p->api_url);
        fflush(stdout);
        rc = make_credentials(p, err);
    }
    if (rc == 0) {
        tell_accelerator();
        rc = site_wait_nodes(p, err);
    }
    return rc;
}

/* Whether any program of the site runs without its supervisor. */
static bool any_daemon_lives(const struct site_state *state)
{
    for (size_t i = 0; i < state->n_daemons; i++) {
        if (site_process_alive(&state->daemons[i])) {
            return true;
        }
    }
    return false;
}

static int prepare(const struct site_settings *asked, struct site_state **ret_state,
                   struct site_plan **ret_plan, struct ferry_error *err)
{
    ferry_cleanup_free char *state_file = ferry_asprintf("%s/site.json", asked->root);
    struct site_settings s = *asked;
    int rc = site_state_read(state_file, ret_state, err);

    if (rc == 0) {
        rc = merge_settings(*ret_state, &s, err);
    } else if (rc == -FERRY_NOT_FOUND) {
        s = with_defaults(s);
        rc =
            usable_directory(s.root)
                ? 0
                : ferry_fail(err, FERRY_INVALID,
                             "%s holds something other than a site; choose another --root", s.root);
    }
    return rc < 0 ? rc : site_plan_new(&s, ret_plan, err);
}

/* Ends what was begun, and says in `err` what became of it. */
static void take_back(const struct site_plan *p, bool keep_data, struct ferry_error *err)
{
    struct ferry_error first = *err, why;
    struct site_removed removed;

    if (site_down(p->root, keep_data, &removed, &why) < 0) {
        ferry_fail(err, first.cls,
                   "%.200s; and what was made is not all gone (%.150s): try 'ferry down --root %s'",
                   first.msg, why.msg, p->root);
    } else if (first.cls == FERRY_CANCELLED) {
        ferry_fail(err, first.cls,
                   keep_data ? "%.300s; what was started has been ended, the site's files stay"
                             : "%.300s; what was made of the site has been removed",
                   first.msg);
    }
}

static int bring_up(const struct site_plan *p, const struct site_state *state,
                    struct site_made made, struct ferry_error *err)
{
    bool daemons_live = state && any_daemon_lives(state);
    struct site_removed removed;
    int rc = check_interrupt("before anything of the site was made", err);

    if (rc == 0 && !daemons_live) {
        /* Names and processes that an earlier, broken site left would be in the way. */
        rc = site_down(p->root, true, &removed, err);
        if (rc == 0) {
            rc = check_port(p->port, err);
        }
        if (rc == 0) {
            rc = make_directories(p, err);
        }
        if (rc == 0) {
            rc = write_first_state(p, made, err);
        }
    }
    if (rc < 0) {
        return rc;
    }
    rc = start(p, daemons_live, err);
    if (rc < 0 && !daemons_live) {
        /* After a failure the files stay: the logs tell why. */
        take_back(p, state || rc != -FERRY_CANCELLED, err);
    }
    return rc;
}

static int check_call(const struct site_settings *settings, struct ferry_error *err)
{
    struct site_settings whole = with_defaults(*settings);
    site_cleanup_plan struct site_plan *p = NULL;
    int rc = site_plan_new(&whole, &p, err); /* is the call right, before anything else */

    if (rc == 0 && geteuid() != 0) {
        return ferry_fail(err, FERRY_DENIED,
                          "'ferry up' makes network namespaces, which only root may do; run it as "
                          "root, for example with sudo");
    }
    if (rc < 0 || (rc = check_programs(settings, err)) < 0 || (rc = check_tools(err)) < 0) {
        return rc;
    }
    return site_way_check(settings->root, err);
}

int site_up(const struct site_settings *settings, struct site_plan **ret_plan,
            struct ferry_error *err)
{
    site_cleanup_state struct site_state *state = NULL;
    site_cleanup_plan struct site_plan *p = NULL;
    bool existed = access(settings->root, F_OK) == 0;
    int rc = check_call(settings, err);

    if (rc < 0) {
        return rc;
    }
    umask(022); /* what the site makes others have to pass, whatever the caller keeps to itself */
    rc = ferry_mkdir_p(settings->root, 0755, err);
    if (rc < 0) {
        return rc;
    }
    ferry_cleanup_fd int lock = site_state_lock(settings->root, err);
    if (lock < 0) {
        return lock;
    }
    rc = prepare(settings, &state, &p, err);
    if (rc == 0 && state && site_process_alive(&state->supervisor)) {
        *ret_plan = ferry_take_ptr(p);
        return SITE_UP_WAS_RUNNING;
    }
    if (rc == 0) {
        struct site_made made = {.root = !existed, .netns = !site_net_is_mounted()};

        rc = bring_up(p, state, state ? state->made : made, err);
    }
    if (rc < 0) {
        site_state_drop_lock(settings->root);
        if (!existed) {
            rmdir(settings->root); /* fails where something of the site was kept */
        }
        return rc;
    }
    *ret_plan = ferry_take_ptr(p);
    return state ? SITE_UP_RESUMED : SITE_UP_STARTED;
}
