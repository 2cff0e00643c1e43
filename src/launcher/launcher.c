/* Theory of operation. The main thread looks after libvirtd and the connection to it, carries out
 * stop requests, and waits for signals. Requests come in on threads of the HTTP server; migrations
 * have threads of their own. An observer thread turns libvirt's events into lines for readers of
 * the control API.
 *
 * The launcher does not end by itself when the guest does: its last status stays readable until it
 * is told to go (DELETE /v1/vm, SIGTERM). */
#include "launcher/launcher.h"

#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/channels.h"
#include "base/clock.h"
#include "base/daemon.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "launcher/control/control.h"
#include "launcher/libvirt/libvirt_uri.h"
#include "launcher/libvirt/libvirtd.h"
#include "launcher/libvirt/qmp_session.h"
#include "launcher/move/gate.h"
#include "launcher/move/migrate_call.h"
#include "launcher/move/unplug.h"
#include "launcher/report/guest_note.h"
#include "json/doc.h"

enum {
    TICK_MS = 250,
    FIRST_TICK_MS = 20,      /* until libvirtd answered for the first time */
    SOCKET_PATH_MAX = 107,   /* what fits into a sockaddr_un */
    LEAVE_ANYWAY_MS = 10000, /* after the stop's deadline, when libvirtd cannot be asked */
    COMPLAIN_MS = 5000,
    PLUG_AGAIN_MS = 5000,
};

struct launcher {
    struct context context;
    struct libvirtd *daemon;
    struct vm *vm;
    struct migrate *migrate;
    struct target *target;
    struct control *control;
    char *libvirt_socket, *record_dir, *devices_path, *qmp_path, *qmp_session_path, *gate_dir;
    char *gate_driver, *control_socket;
    bool attached; /* libvirt was connected once, and what was going on was taken up */
    bool warm;     /* what a move asks libvirt first has been asked */
    bool cold;     /* nobody has given libvirt what it finds out about QEMU */
    int64_t complain_ns, plug_ns;
    pthread_t observer;
    bool observed;
    atomic_bool ending, libvirtd_hangs;
};

/* ---- observer ----------------------------------------------------------------------------------
 */

static void publish_domain(struct launcher *l, const struct view *now)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = json_doc_object(doc);

    yyjson_mut_obj_add_str(doc, o, "state", wire_launcher_domain_text(now->state));
    yyjson_mut_obj_add_str(doc, o, "reason", wire_launcher_reason_text(now->reason));
    events_publish(l->context.events, "domain", doc);
    ferry_info("domain", F_STR("state", wire_launcher_domain_text(now->state)),
               F_STR("reason", wire_launcher_reason_text(now->reason)));
}

/* The state first: whoever is woken by the line reads it. */
static void note_guest(struct launcher *l, const struct guest_event *e)
{
    static const char *const words[] = {
        [GUEST_RESET] = "reset",
        [GUEST_WATCHDOG] = "watchdog",
        [GUEST_DISK_ERROR] = "disk-error",
        [GUEST_PANICKED] = "panicked",
    };
    struct state_values *v = state_lock(l->context.state);
    struct ferry_error err;

    if (!guest_note(v, e, ferry_now_unix_ms())) {
        state_unlock(l->context.state);
        return;
    }
    if (state_commit(l->context.state, &err) < 0) {
        ferry_warn("what happened to the guest cannot be written down", F_ERR(&err));
    }
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_obj_add_str(doc, json_doc_object(doc), "what", words[e->what]);
    events_publish(l->context.events, "guest", doc);
    ferry_info("guest", F_STR("what", words[e->what]), F_STR("volume", e->volume));
}

/* What the kernel killed before is no reason for what becomes of a guest that runs now. */
static void note_kills(struct launcher *l, const struct view *now)
{
    int64_t kills = now->state == LAUNCHER_DOMAIN_RUNNING ? context_oom_kills(&l->context) : 0;
    struct state_values *v = state_lock(l->context.state);

    if (kills <= v->oom_kills) {
        state_unlock(l->context.state);
        return;
    }
    v->oom_kills = kills;
    if (state_commit(l->context.state, NULL) < 0) {
        ferry_warn("the state cannot be written");
    }
}

static void *observe(void *ctx)
{
    struct launcher *l = ctx;
    struct view last = view_none();
    uint64_t seen = 0;

    while (!atomic_load(&l->ending)) {
        struct virt_event e;
        struct view now;

        if (!virt_next_event(l->context.virt, seen, ferry_now_ns() + FERRY_NS_PER_S, &e)) {
            continue;
        }
        seen = e.seq;
        if (e.type == VIRT_EVENT_GUEST) {
            note_guest(l, &e.guest);
        }
        bool opened = e.type == VIRT_EVENT_OPENED; /* readers could not be answered before */
        if ((e.type == VIRT_EVENT_LIFECYCLE || opened) &&
            context_view(&l->context, &now, NULL) == 0 && (opened || !view_equal(&now, &last))) {
            note_kills(l, &now);
            publish_domain(l, &now);
            last = now;
        }
    }
    return NULL;
}

/* ---- set-up ------------------------------------------------------------------------------------
 */

/* A UUID of its own for our libvirtd, the same after each restart. */
static int ensure_host_uuid(struct state *state, char ret[40], struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    int rc = 0;
    struct state_values *v = state_lock(state);

    if (v->host_uuid[0]) {
        snprintf(ret, 40, "%s", v->host_uuid);
        state_unlock(state);
        return 0;
    }
    rc = ferry_read_file("/proc/sys/kernel/random/uuid", 64, &text, err);
    if (rc < 0 || text.len < 36) {
        state_unlock(state);
        return rc < 0 ? rc : ferry_fail(err, FERRY_FATAL, "the kernel gave no UUID");
    }
    snprintf(v->host_uuid, sizeof(v->host_uuid), "%.36s", text.data);
    snprintf(ret, 40, "%s", v->host_uuid);
    return state_commit(state, err);
}

static int check_config(const struct launcher_config *cfg, struct ferry_error *err)
{
    ferry_cleanup_free char *longest =
        ferry_channel_path(cfg->migration_dir, cfg->uid, FERRY_CHANNEL_MEMORY);

    if (strlen(longest) > SOCKET_PATH_MAX) {
        return ferry_fail(err, FERRY_INVALID,
                          "%s is %zu bytes long; QEMU takes socket paths of up to %d", longest,
                          strlen(longest), SOCKET_PATH_MAX);
    }
    return 0;
}

/* Directory of the lock driver: beside this program as it is installed. NULL when there is none. */
static char *find_gate_driver(void)
{
    ferry_cleanup_free char *dir = ferry_daemon_beside("../lib/ferry/gate");
    ferry_cleanup_free char *file = ferry_asprintf("%s/ferry.so", dir ? dir : "");

    if (dir && access(file, R_OK) == 0) {
        return ferry_take_ptr(dir);
    }
    ferry_warn("no lock driver: libvirtd starts guests without asking", F_STR("file", file));
    return NULL;
}

/* As the state says; a predecessor may have died between the two. */
static int set_up_gate(struct launcher *l, const struct launcher_config *cfg,
                       struct ferry_error *err)
{
    struct context *c = &l->context;
    struct state_values v;

    l->gate_dir = ferry_asprintf("%s/gate", cfg->state_dir);
    l->gate_driver = cfg->libvirt_uri ? NULL : find_gate_driver();
    c->gated = l->gate_driver != NULL;
    if (cfg->libvirt_uri) {
        ferry_warn("this libvirt has no gate: it starts guests without asking");
    }
    int rc = gate_new(l->gate_dir, &c->gate, err);
    if (rc < 0) {
        return rc;
    }
    state_get(c->state, &v);
    return gate_must_be_closed(&v) ? gate_close(c->gate, err) : gate_open(c->gate, err);
}

static int use_own_libvirt(struct launcher *l, const struct launcher_config *cfg,
                           const char *domain, const char *host_uuid, struct ferry_error *err)
{
    struct context *c = &l->context;

    c->system = geteuid() == 0;
    c->libvirt_socket = l->libvirt_socket = ferry_asprintf("%s/libvirt-sock", cfg->libvirt_dir);
    ferry_cleanup_free char *uri = ferry_asprintf(
        "qemu+unix:///%s?socket=%s", c->system ? "system" : "session", l->libvirt_socket);
    int rc = virt_new(uri, domain, &c->virt, err);
    if (rc == 0) {
        rc = libvirtd_new(&(struct libvirtd_config){.program = cfg->libvirtd,
                                                    .socket_dir = cfg->libvirt_dir,
                                                    .gate_dir = l->gate_dir,
                                                    .gate_driver = l->gate_driver,
                                                    .disk_dir = cfg->disk_dir,
                                                    .host_uuid = host_uuid,
                                                    .system = c->system},
                          &l->daemon, err);
    }
    return rc;
}

/* One that is there already, and is looked after by somebody else. */
static int use_libvirt_of_others(struct launcher *l, const char *text, const char *domain,
                                 struct ferry_error *err)
{
    struct context *c = &l->context;
    struct libvirt_uri uri;
    int rc = libvirt_uri_parse(text, &uri, err);

    if (rc < 0) {
        return rc;
    }
    c->system = uri.system;
    c->libvirt_socket = l->libvirt_socket = libvirt_uri_socket(&uri, getenv("XDG_RUNTIME_DIR"));
    libvirt_uri_done(&uri);
    return virt_new(text, domain, &c->virt, err);
}

static bool is_cold(void)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    ferry_cleanup_free char *path =
        ferry_asprintf("%s/libvirt/qemu/cache/capabilities", cache ? cache : "");

    return cache && access(path, F_OK) < 0;
}

static int set_up(struct launcher *l, const struct launcher_config *cfg, struct ferry_error *err)
{
    struct context *c = &l->context;
    ferry_cleanup_free char *state_path = ferry_asprintf("%s/state.json", cfg->state_dir);
    ferry_cleanup_free char *domain = domain_xml_name(cfg->namespace_, cfg->name);
    char host_uuid[40];
    int rc = check_config(cfg, err);

    if (rc < 0 || (rc = state_open(state_path, &c->state, err)) < 0 ||
        (rc = ensure_host_uuid(c->state, host_uuid, err)) < 0 ||
        (rc = set_up_gate(l, cfg, err)) < 0) {
        return rc;
    }
    l->qmp_path = ferry_asprintf("%s/qmp.sock", cfg->state_dir);
    l->qmp_session_path = ferry_asprintf("%s/qmp-kept.sock", cfg->state_dir);
    l->record_dir = ferry_asprintf("%s/records", cfg->state_dir);
    l->devices_path = ferry_asprintf("%s/devices.json", cfg->state_dir);
    l->control_socket = ferry_asprintf("%s/control.sock", cfg->libvirt_dir);
    c->namespace_ = cfg->namespace_;
    c->name = cfg->name;
    c->uid = cfg->uid;
    c->kills_fd = cfg->kills_fd;
    c->migration_dir = cfg->migration_dir;
    c->record_dir = l->record_dir;
    c->devices_path = l->devices_path;
    c->control_socket = l->control_socket;
    l->cold = !cfg->libvirt_uri && is_cold();
    c->domain = (struct domain_xml_options){.kvm = cfg->kvm,
                                            .emulator = cfg->emulator,
                                            .guest_dir = cfg->guest_dir,
                                            .console_dir = cfg->console_dir,
                                            .disk_dir = cfg->disk_dir,
                                            .environment = (const char *const *)environ,
                                            .qmp_path = l->qmp_path,
                                            .qmp_session_path = l->qmp_session_path};
    c->qmp = qmp_session_new(l->qmp_session_path, cfg->store_fds);
    c->libvirtd_hangs = &l->libvirtd_hangs;
    c->events = events_new();
    return cfg->libvirt_uri ? use_libvirt_of_others(l, cfg->libvirt_uri, domain, err)
                            : use_own_libvirt(l, cfg, domain, host_uuid, err);
}

static int start_parts(struct launcher *l, int *control_fd, struct ferry_error *err)
{
    l->vm = vm_new(&l->context);
    l->migrate = migrate_new(&l->context);
    l->target = target_new(&l->context);
    int rc = pthread_create(&l->observer, NULL, observe, l);
    if (rc != 0) {
        return ferry_fail_errno(err, rc, "starting a thread");
    }
    l->observed = true;
    return control_start(
        &(struct control_parts){
            .context = &l->context, .vm = l->vm, .migrate = l->migrate, .target = l->target},
        ferry_take_fd(control_fd), &l->control, err);
}

static void tear_down(struct launcher *l)
{
    atomic_store(&l->ending, true);
    if (l->context.virt) {
        virt_wake(l->context.virt);
    }
    control_stop(l->control);
    target_free(l->target);
    migrate_free(l->migrate);
    vm_free(l->vm);
    if (l->observed) {
        pthread_join(l->observer, NULL);
    }
    qmp_session_free(l->context.qmp);
    virt_free(l->context.virt);
    libvirtd_free(l->daemon);
    events_free(l->context.events);
    state_close(l->context.state);
    ferry_closep(&l->context.kills_fd);
    free(l->libvirt_socket);
    free(l->record_dir);
    free(l->devices_path);
    free(l->qmp_path);
    free(l->qmp_session_path);
    gate_free(l->context.gate);
    free(l->gate_dir);
    free(l->gate_driver);
    free(l->control_socket);
}

/* ---- the loop ----------------------------------------------------------------------------------
 */

static void keep_connected(struct launcher *l)
{
    struct ferry_error err;

    if (atomic_exchange(&l->libvirtd_hangs, false) && l->daemon) {
        libvirtd_kill(l->daemon);
    }
    if (l->daemon && !libvirtd_tend(l->daemon)) {
        return;
    }
    if (virt_open(l->context.virt, &err) < 0) {
        if (l->complain_ns == 0) {
            l->complain_ns = ferry_now_ns() + COMPLAIN_MS * FERRY_NS_PER_MS;
        } else if (ferry_now_ns() >= l->complain_ns) {
            ferry_warn("libvirtd does not answer", F_ERR(&err));
            l->complain_ns = ferry_now_ns() + COMPLAIN_MS * FERRY_NS_PER_MS;
        }
        return;
    }
    l->complain_ns = 0;
    if (!l->attached) {
        l->attached = true;
        ferry_info("libvirtd answers");
        migrate_reattach(l->migrate);
        target_reattach(l->target);
    }
}

/* Once a guest runs there is time to ask what a move would have to wait for. Where libvirt has to
 * find out what QEMU can do, and would for the first guest, it is asked before there is one: what
 * it writes down is given to other pods, and is nothing that a guest had a hand in. */
static void warm_up(struct launcher *l)
{
    unsigned long version;
    struct view now;

    if (l->attached && !l->warm && virt_view(l->context.virt, &now, NULL) == 0 &&
        (now.state == LAUNCHER_DOMAIN_RUNNING || l->cold)) {
        l->warm = virt_qemu_version(l->context.virt, &version, NULL) == 0;
    }
}

static void plug_in(struct launcher *l)
{
    if (l->attached && ferry_now_ns() >= l->plug_ns && !unplug_tend(&l->context)) {
        l->plug_ns = ferry_now_ns() + PLUG_AGAIN_MS * FERRY_NS_PER_MS;
    }
}

/* True when the launcher may leave. */
static bool stopped(struct launcher *l)
{
    struct state_values v;

    state_get(l->context.state, &v);
    if (!v.stop) {
        return false;
    }
    if (v.migration.role == LAUNCHER_ROLE_SOURCE && !state_migration_over(&v.migration)) {
        migrate_cancel(l->migrate, v.migration.uid, NULL);
    }
    if (vm_tend_stop(l->vm)) {
        return true;
    }
    bool nothing_here = v.vm == STATE_VM_NONE && v.migration.role == LAUNCHER_ROLE_NONE;
    bool too_late = ferry_now_unix_ms() >= v.stop_deadline_ms + LEAVE_ANYWAY_MS;
    /* Leaving ends PID 1 and so everything in the sandbox. */
    return !l->attached && (nothing_here || too_late);
}

static void loop(struct launcher *l)
{
    for (;;) {
        struct ferry_error err;

        keep_connected(l);
        if (stopped(l)) {
            return;
        }
        warm_up(l);
        plug_in(l);
        target_tend(l->target);
        int64_t tick = l->attached ? TICK_MS : FIRST_TICK_MS;
        int sig = ferry_signals_wait(ferry_now_ns() + tick * FERRY_NS_PER_MS);
        if ((sig == SIGTERM || sig == SIGINT) && vm_stop(l->vm, -1, &err) < 0) {
            ferry_error("cannot record the request to stop", F_ERR(&err));
        }
    }
}

int launcher_run(const struct launcher_config *cfg, struct ferry_error *err)
{
    struct launcher l = {.context.kills_fd = -1};
    ferry_cleanup_fd int control_fd = cfg->control_fd;
    int rc = set_up(&l, cfg, err);

    if (rc == 0) {
        rc = start_parts(&l, &control_fd, err);
    }
    if (rc == 0) {
        loop(&l);
        target_leave(l.target);
        if (l.daemon) {
            libvirtd_stop(l.daemon);
        }
        ferry_info("guest is gone, exiting");
    }
    tear_down(&l);
    return rc;
}
