#include "launcher/libvirt/cpu_ask.h"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/str.h"
#include "launcher/domain/cpu_report.h"
#include "launcher/libvirt/virt.h"

#define ARCH "x86_64"

/* They come back as errors. */
static void ignore(void *ctx, virErrorPtr e)
{
    (void)ctx;
    (void)e;
}

static void on_tick(int timer, void *ctx)
{
    (void)timer;
    (void)ctx;
}

static void *events(void *ctx)
{
    for (;;) {
        virEventRunDefaultImpl();
    }
    return ctx;
}

/* The driver talks to QEMU through the event loop. */
static int start_events(struct ferry_error *err)
{
    pthread_t thread;

    virSetErrorFunc(NULL, ignore);
    if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0) {
        return virt_fail(err, "starting libvirt's library");
    }
    virEventAddTimeout(1000, on_tick, NULL, NULL); /* the loop wakes up to see what is new */
    int rc = pthread_create(&thread, NULL, events, NULL);
    if (rc != 0) {
        return ferry_fail_errno(err, rc, "starting a thread");
    }
    pthread_detach(thread);
    return 0;
}

/* All features of the host's model; NULL when libvirt cannot say. */
static char *expand(virConnectPtr conn, const char *emulator, const char *type, const char *host)
{
    char *expanded = virConnectBaselineHypervisorCPU(conn, emulator, ARCH, NULL, type, &host, 1,
                                                     VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES);

    if (!expanded) {
        struct ferry_error err;

        virt_fail(&err, "asking for the features of this host's CPU model");
        ferry_warn("CPU capabilities incomplete", F_ERR(&err));
    }
    return expanded;
}

int cpu_ask(const char *emulator, bool kvm, const char *dir, char **ret_json,
            struct ferry_error *err)
{
    ferry_cleanup_free char *uri = ferry_asprintf("qemu:///embed?root=%s", dir);
    ferry_cleanup_free char *capabilities = NULL;
    ferry_cleanup_free char *host = NULL;
    ferry_cleanup_free char *expanded = NULL;
    ferry_cleanup_free char *machines = NULL;
    const char *type = kvm ? "kvm" : "qemu";
    int rc = start_events(err);

    if (rc < 0) {
        return rc;
    }
    virConnectPtr conn = virConnectOpen(uri);
    if (!conn) {
        return virt_fail(err, "opening %s", uri);
    }
    capabilities = virConnectGetDomainCapabilities(conn, emulator, ARCH, NULL, type, 0);
    rc = capabilities ? cpu_report_host(capabilities, &host, err)
                      : virt_fail(err, "asking what %s can do", emulator);
    if (rc == 0 && host) {
        expanded = expand(conn, emulator, type, host);
    }
    machines = rc == 0 ? virConnectGetCapabilities(conn) : NULL;
    if (rc == 0 && !machines) {
        rc = virt_fail(err, "asking what machines %s has", emulator);
    }
    if (rc == 0) {
        rc = cpu_report(capabilities, expanded, machines, ret_json, err);
    }
    return rc; /* the connection goes with the process */
}
