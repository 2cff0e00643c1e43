/* Theory of operation. A guest is started once in the life of its pod. "Starting" goes into the
 * state file before libvirt is asked, "started" afterwards: a launcher that died in between asks
 * libvirt whether the domain runs and starts it if not; one that finds "started" never does.
 *
 * The domain is defined (persistent): when the guest is gone, libvirt still says why. */
#include "launcher/control/vm.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "launcher/domain/disk_image.h"
#include "launcher/domain/disk_made.h"
#include "launcher/move/rescue.h"

struct vm {
    const struct context *c;
    pthread_mutex_t starting; /* one start at a time */
    bool shutdown_sent;       /* by vm_tend_stop()'s thread only */
    int64_t destroy_again_ns; /* likewise */
};

struct vm *vm_new(const struct context *c)
{
    struct vm *vm = ferry_xcalloc(1, sizeof(*vm));

    vm->c = c;
    pthread_mutex_init(&vm->starting, NULL);
    return vm;
}

void vm_free(struct vm *vm)
{
    if (vm) {
        pthread_mutex_destroy(&vm->starting);
        free(vm);
    }
}

/* ---- start -------------------------------------------------------------------------------------
 */

static int define_and_start(struct vm *vm, const char *xml, struct ferry_error *err)
{
    virConnectPtr conn = virt_connection(vm->c->virt, err);

    if (!conn) {
        return -FERRY_RETRY;
    }
    virt_cleanup_domain virDomainPtr d = virDomainDefineXML(conn, xml);
    int rc = 0;
    if (!d) {
        rc = virt_fail(err, "defining the domain");
    } else if (virDomainCreate(d) < 0) {
        rc = virt_fail(err, "starting the domain");
        if (rc == -FERRY_RETRY && virConnectIsAlive(conn) == 1) {
            err->cls = FERRY_FATAL; /* QEMU does not start; trying again would not help */
            rc = -FERRY_FATAL;
        }
    }
    virConnectClose(conn);
    return rc;
}

static int set_phase(struct vm *vm, enum state_vm phase, const struct api_vmi *vmi,
                     struct ferry_error *err)
{
    struct state_values *v = state_lock(vm->c->state);

    v->vm = phase;
    v->grace_s = vmi->grace_s;
    v->memory_bytes = vmi->memory_bytes;
    return state_commit(vm->c->state, err);
}

static int start(struct vm *vm, const struct api_vmi *vmi, struct ferry_error *err)
{
    ferry_cleanup_free char *xml = NULL;
    struct disks disks;
    struct view now;
    int rc = disk_image_find(vmi, vm->c->domain.disk_dir, &disks, err);

    if (rc < 0 || (rc = disk_made_initial(vmi, &disks, vm->c->domain.disk_dir, err)) < 0 ||
        (rc = context_domain(vm->c, vmi, &xml, err)) < 0 ||
        (rc = virt_view(vm->c->virt, &now, err)) < 0 ||
        (rc = set_phase(vm, STATE_VM_STARTING, vmi, err)) < 0) {
        return rc;
    }
    if (!view_active(&now) && (rc = define_and_start(vm, xml, err)) < 0) {
        return rc;
    }
    ferry_info("guest started", F_STR("domain", vm->c->name));
    return set_phase(vm, STATE_VM_STARTED, vmi, err);
}

int vm_sync(struct vm *vm, const struct api_vmi *vmi, struct ferry_error *err)
{
    struct state_values v;
    int rc = context_check_vmi(vm->c, vmi, err);

    if (rc < 0) {
        return rc;
    }
    pthread_mutex_lock(&vm->starting);
    state_get(vm->c->state, &v);
    if (v.stop) {
        rc = ferry_fail(err, FERRY_CONFLICT, "this launcher was asked to stop");
    } else if (v.vm == STATE_VM_STARTED) {
        rc = 0;
    } else if (v.migration.role == LAUNCHER_ROLE_TARGET) {
        rc = ferry_fail(err, FERRY_CONFLICT,
                        "this launcher is the target of migration %s and starts no guest itself",
                        v.migration.uid);
    } else {
        rc = start(vm, vmi, err);
    }
    pthread_mutex_unlock(&vm->starting);
    return rc;
}

/* ---- pause -------------------------------------------------------------------------------------
 */

int vm_set_paused(struct vm *vm, bool paused, struct ferry_error *err)
{
    struct view now;
    int rc = virt_view(vm->c->virt, &now, err);

    if (rc < 0) {
        return rc;
    }
    bool by_user = now.state == LAUNCHER_DOMAIN_PAUSED && now.reason == LAUNCHER_REASON_USER;
    bool by_error =
        now.state == LAUNCHER_DOMAIN_PAUSED &&
        (now.reason == LAUNCHER_REASON_IO_ERROR || now.reason == LAUNCHER_REASON_WATCHDOG);
    if (paused ? by_user : now.state == LAUNCHER_DOMAIN_RUNNING) {
        return 0;
    }
    if (paused ? now.state != LAUNCHER_DOMAIN_RUNNING : !by_user && !by_error) {
        return ferry_fail(err, FERRY_CONFLICT, "the guest is %s%s%s",
                          wire_launcher_domain_text(now.state), now.reason ? ", " : "",
                          wire_launcher_reason_text(now.reason));
    }
    virt_cleanup_domain virDomainPtr d = virt_domain(vm->c->virt, err);
    if (!d) {
        return -(int)err->cls;
    }
    if ((paused ? virDomainSuspend(d) : virDomainResume(d)) < 0) {
        return virt_fail(err, paused ? "pausing the guest" : "letting the guest go on");
    }
    ferry_info(paused ? "guest paused" : "guest resumed", F_STR("domain", vm->c->name));
    return 0;
}

/* ---- stop --------------------------------------------------------------------------------------
 */

int vm_stop(struct vm *vm, int64_t grace_s, struct ferry_error *err)
{
    struct state_values *v = state_lock(vm->c->state);
    int64_t deadline = ferry_now_unix_ms() + (grace_s < 0 ? v->grace_s : grace_s) * 1000;

    if (v->stop && v->stop_deadline_ms <= deadline) {
        state_unlock(vm->c->state);
        return 0;
    }
    v->stop = true;
    v->stop_deadline_ms = deadline;
    return state_commit(vm->c->state, err);
}

static void shut_down(struct vm *vm, bool forced)
{
    struct ferry_error err;
    virt_cleanup_domain virDomainPtr d = virt_domain(vm->c->virt, &err);
    struct state_values v;
    int rc = -1;

    state_get(vm->c->state, &v);
    if (d && !forced && v.rescued) {
        rc = rescue_power_down(vm->c, &err);
    } else if (d) {
        rc = forced ? virDomainDestroy(d) : virDomainShutdown(d);
        if (rc < 0) {
            virt_fail(&err, "ending the domain");
        }
    }
    if (rc < 0 && err.cls != FERRY_NOT_FOUND) {
        ferry_warn("cannot shut the guest down yet", F_STR("how", forced ? "destroy" : "shutdown"),
                   F_ERR(&err));
        return;
    }
    ferry_info("shutting the guest down", F_STR("how", forced ? "destroy" : "shutdown"));
    vm->shutdown_sent = true;
}

bool vm_tend_stop(struct vm *vm)
{
    struct state_values v;
    struct view now;

    state_get(vm->c->state, &v);
    if (!v.stop || virt_view(vm->c->virt, &now, NULL) < 0) {
        return false;
    }
    if (!view_active(&now)) {
        return true;
    }
    if (ferry_now_unix_ms() >= v.stop_deadline_ms) {
        if (ferry_now_ns() >= vm->destroy_again_ns) {
            vm->destroy_again_ns = ferry_now_ns() + 5 * FERRY_NS_PER_S;
            shut_down(vm, true);
        }
    } else if (!vm->shutdown_sent && state_migration_over(&v.migration)) {
        shut_down(vm, false); /* not under a migration: libvirt would only make us wait for it */
    }
    return false;
}
