/* The request to libvirt that moves a guest: made once per migration, blocks until it is over. */
#pragma once

#include "api/wire/wire_options.h"
#include "api/wire/wire_reason.h"
#include "launcher/domain/disks.h"
#include "launcher/report/context.h"
#include "launcher/report/record.h"

struct request {
    const struct context *c;
    const struct wire_options *options;
    bool paused; /* the guest is paused by its user and must stay so */
    bool vfio;   /* a device of the host is attached */
    const struct disks *disks;
    const struct disks_sizes *target_disks; /* images at the destination; empty = not known */
    struct record *record;
};

/* What it came back with. It says nothing certain about where the guest is. */
struct request_result {
    bool known; /* it was seen: false when the launcher was restarted meanwhile */
    bool ok;
    enum wire_reason refused; /* libvirt was not asked, `text` says why; or none */
    int code;                 /* virErrorNumber */
    char text[512];
};

void request_make(const struct request *r, struct request_result *ret);
