/* The network of a site: makes and removes its namespaces, opens sockets inside them. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/site/site_plan.h"

/* Runs the plan's commands. What a failed call made is left for site_net_remove(). */
int site_net_make(const struct site_plan *p, struct ferry_error *err);

/* Removes every namespace that a site at `root` can have; returns how many there were. With
 * `unmount` the mount at /run/netns goes, too, when nothing is left in it. */
int site_net_remove(const char *root, bool unmount, struct ferry_error *err);

/* Whether something is mounted at /run/netns: `ip netns add` sees to that when it is called first.
 */
bool site_net_is_mounted(void);

/* A listening TCP socket; `netns` names the namespace, NULL is the caller's own. The calling
 * process must have one thread: it steps into the namespace and back. */
int site_net_listen(const char *netns, const char *address, int port, struct ferry_error *err);
