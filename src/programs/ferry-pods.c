/* ferry-pods: runs the pods that are bound to this node as sandboxes (kubelet's part, on the
 * embedded engine). */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/daemon.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/options.h"
#include "jail/users.h"
#include "kube/client.h"
#include "pods/agent.h"
#include "pods/host_path.h"

#define PROGRAM "ferry-pods"

enum { RELAY_ID = 61200, VM_ID = 61201 };

struct settings {
    const char *root, *node, *kubeconfig, *launcher, *guest_dir, *vm_user, *host_path_roots;
    int relay_gid;
    bool no_cgroups;
};

/* "UID:GID", or a user's name. */
static int parse_user(const char *text, uid_t *uid, gid_t *gid, struct ferry_error *err)
{
    unsigned u, g;
    int end = 0;

    if (sscanf(text, "%u:%u%n", &u, &g, &end) == 2 && !text[end]) {
        *uid = u;
        *gid = g;
    } else if (ferry_streq(text, "root")) {
        *uid = 0;
        *gid = 0;
        return 0;
    } else {
        const struct passwd *pw = getpwnam(text);

        if (!pw) {
            return ferry_fail(err, FERRY_INVALID,
                              "--vm-user: '%s' is neither UID:GID nor a user of this host", text);
        }
        *uid = pw->pw_uid;
        *gid = pw->pw_gid;
    }
    return *uid && *gid
               ? 0
               : ferry_fail(err, FERRY_INVALID,
                            "--vm-user: '%s' is root; if that is what you want, say 'root'", text);
}

static int need_program(const char *path, struct ferry_error *err)
{
    return access(path, X_OK) == 0 ? 0 : ferry_fail_errno(err, errno, "%s cannot be run", path);
}

/* What lies beside this program when it is not named. */
struct places {
    char *init, *launcher, *guest_dir, *pods_dir, *cache_dir, *kubeconfig;
};

static void places_done(struct places *p)
{
    free(p->init);
    free(p->launcher);
    free(p->guest_dir);
    free(p->pods_dir);
    free(p->cache_dir);
    free(p->kubeconfig);
}

static int find_places(const struct settings *s, struct places *p, struct ferry_error *err)
{
    p->init = ferry_daemon_beside("ferry-init");
    p->launcher = s->launcher ? ferry_strdup(s->launcher) : ferry_daemon_beside("ferry-launcher");
    p->guest_dir =
        s->guest_dir ? ferry_strdup(s->guest_dir) : ferry_daemon_beside("../lib/ferry/guest");
    p->pods_dir = ferry_asprintf("%s/run/ferry/pods", s->root);
    p->cache_dir = ferry_asprintf("%s/var/lib/ferry/libvirt-cache", s->root);
    p->kubeconfig = s->kubeconfig ? ferry_strdup(s->kubeconfig)
                                  : ferry_asprintf("%s/var/lib/ferry/node.kubeconfig", s->root);
    if (!p->init || !p->launcher || !p->guest_dir) {
        return ferry_fail(err, FERRY_FATAL, "this program's own path cannot be found");
    }
    if (s->guest_dir && access(s->guest_dir, R_OK | X_OK) < 0) {
        return ferry_fail_errno(err, errno, "--guest-dir %s", s->guest_dir);
    }
    int rc = need_program(p->init, err);
    return rc < 0 ? rc : need_program(p->launcher, err);
}

/* Said once, since nobody reads the logs of all pods: ferry-init tries it for each. */
static void say_user_namespaces(uid_t uid, gid_t gid)
{
    struct ferry_error why;

    if (!uid) {
        ferry_info("guests have no user namespaces of their own: they run as root");
    } else if (jail_users_try(uid, gid, &why) < 0) {
        ferry_warn("guests have no user namespaces of their own: this host does not allow them",
                   F_ERR(&why));
    } else {
        ferry_info("guests have user namespaces of their own");
    }
}

static int run_agent(const struct settings *s, const struct places *p, struct ferry_error *err)
{
    kube_cleanup_client struct kube_client *client = NULL;
    struct agent_config cfg = {
        .node = s->node,
        .host = {.root = s->root,
                 .host_path_roots = s->host_path_roots,
                 .pods_dir = p->pods_dir,
                 .init_path = p->init,
                 .launcher_path = p->launcher,
                 .guest_dir = access(p->guest_dir, F_OK) == 0 ? p->guest_dir : NULL,
                 .cache_dir = p->cache_dir,
                 .vm_uid = VM_ID,
                 .vm_gid = VM_ID,
                 .relay_uid = RELAY_ID,
                 .relay_gid = RELAY_ID},
    };
    ferry_cleanup(cgroup_layout_done) struct cgroup_layout cgroups = {0};
    const struct passwd *relay = getpwnam("ferry-relay");
    struct agent *agent = NULL;

    if (relay) {
        cfg.host.relay_uid = relay->pw_uid;
        cfg.host.relay_gid = relay->pw_gid;
    }
    if (s->relay_gid) {
        cfg.host.relay_gid = (gid_t)s->relay_gid;
    }
    cfg.host.cgroups = &cgroups;
    cfg.host.one_user = s->vm_user != NULL;
    int rc = s->vm_user ? parse_user(s->vm_user, &cfg.host.vm_uid, &cfg.host.vm_gid, err) : 0;
    if (rc == 0) {
        rc = kube_client_open(p->kubeconfig, &client, err);
    }
    /* Not before: a wrong call changes nothing on the host. */
    if (rc == 0 && !s->no_cgroups) {
        cgroup_detect(cfg.host.pods_dir, &cgroups);
    }
    if (rc == 0) {
        say_user_namespaces(cfg.host.vm_uid, cfg.host.vm_gid);
        cfg.client = client;
        rc = agent_start(&cfg, ferry_daemon_stopping, &agent, err);
    }
    if (rc < 0) {
        return rc;
    }
    ferry_info("running pods", F_STR("node", s->node));
    ferry_signals_wait(INT64_MAX);
    ferry_info("stopping; sandboxes keep running");
    agent_stop(agent);
    return 0;
}

static int check(void *ctx, struct ferry_error *err)
{
    const struct settings *s = ctx;

    if (ferry_str_empty(s->node)) {
        return ferry_fail(err, FERRY_INVALID, "--node is missing (see " PROGRAM " --help)");
    }
    return ferry_daemon_check_root(s->root, err);
}

static int run(void *ctx, struct ferry_error *err)
{
    const struct settings *s = ctx;
    ferry_cleanup(places_done) struct places places = {0};

    umask(022);
    /* Two would fight over the same sandboxes. */
    ferry_cleanup_fd int lock = ferry_daemon_lock(s->root, "pods.lock", PROGRAM, err);
    int rc = lock < 0 ? lock : find_places(s, &places, err);
    return rc < 0 ? rc : run_agent(s, &places, err);
}

int main(int argc, char **argv)
{
    struct settings s = {.root = ""};
    struct ferry_log_options lo = {0};
    const struct ferry_option options[] = {
        {"node", 0, FERRY_OPTION_STRING, &s.node, "NAME", "name of this node (required)"},
        {"root", 0, FERRY_OPTION_STRING, &s.root, "DIR", "prefix of all paths (default: none)"},
        {"kubeconfig", 0, FERRY_OPTION_STRING, &s.kubeconfig, "FILE",
         "how to reach the API (default: ROOT/var/lib/ferry/node.kubeconfig)"},
        {"launcher", 0, FERRY_OPTION_STRING, &s.launcher, "FILE",
         "program of the pods (default: ferry-launcher beside this program)"},
        {"guest-dir", 0, FERRY_OPTION_STRING, &s.guest_dir, "DIR",
         "guest kernels (default: ../lib/ferry/guest)"},
        {"vm-user", 0, FERRY_OPTION_STRING, &s.vm_user, "UID:GID",
         "run all guests as this user, in place of one for each: UID:GID, a user's name, or root "
         "for qemu:///system"},
        {"host-path-roots", 0, FERRY_OPTION_STRING, &s.host_path_roots, "DIRS",
         "below which directories, separated by colons, a pod may name a path of this host as a "
         "volume "
         "(default: " HOST_PATH_ROOTS ")"},
        {"relay-gid", 0, FERRY_OPTION_INT, &s.relay_gid, "GID",
         "group of the relay (default: that of user ferry-relay, or 61200)"},
        {"no-cgroups", 0, FERRY_OPTION_FLAG, &s.no_cgroups, NULL,
         "make no control groups: the limits of pods are not kept"},
        FERRY_LOG_OPTION_ROWS(&lo),
        {0},
    };
    const struct ferry_command cmd = {
        .name = PROGRAM,
        .usage = "--node NAME [OPTION]...",
        .summary = "Runs the pods that are bound to this node, each in a sandbox of its own.\n"
                   "Sandboxes outlive this program and are adopted when it starts again.",
        .options = options,
        .config = PROGRAM,
    };
    const struct ferry_daemon daemon = {
        .program = PROGRAM,
        .command = &cmd,
        .log = &lo,
        .root_for = "it makes namespaces for the pods",
        .check = check,
        .run = run,
        .ctx = &s,
    };

    return ferry_daemon_main(&daemon, argc, argv);
}
