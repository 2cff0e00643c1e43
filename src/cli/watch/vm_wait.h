/* Waiting until a virtual machine runs, stands or is gone. SIGINT ends a wait, not what is waited
 * for. */
#pragma once

#include "cli/session/session.h"

enum { VM_WAIT_DEFAULT_S = 120 };

/* Its instance runs; says where. Fails as soon as it cannot come to that. */
int vm_wait_running(struct session *s, const char *ns, const char *name, int timeout_s,
                    struct ferry_error *err);

/* No object of that kind and name is there, or one with another uid. With `over`, one that has
 * ended will do. */
int vm_wait_gone(struct session *s, const struct api_object *o, bool over, int timeout_s,
                 struct ferry_error *err);

/* Its instance says that it is paused, or that it is not. */
int vm_wait_paused(struct session *s, const char *name, bool paused, int timeout_s,
                   struct ferry_error *err);
