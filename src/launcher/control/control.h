/* The launcher's control API: HTTP/JSON on a unix socket (docs/contracts/launcher.md). */
#pragma once

#include "base/error.h"
#include "launcher/control/vm.h"
#include "launcher/move/migrate.h"
#include "launcher/move/target.h"
#include "launcher/report/context.h"

struct control;

struct control_parts {
    const struct context *context;
    struct vm *vm;
    struct migrate *migrate;
    struct target *target;
};

/* Serves on `listen_fd`, which is taken, also on failure. */
int control_start(const struct control_parts *parts, int listen_fd, struct control **ret,
                  struct ferry_error *err);
void control_stop(struct control *c); /* takes NULL */
