/* libvirt's capability cache of this node. Probing QEMU takes a cold libvirtd most of a second, so
 * what a pod found out before it had a guest is copied into each later one. A copy, never shared:
 * libvirt throws a stale cache away and writes a new one, and pods must not see each other's
 * files. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* True when `node_dir` has a cache that is younger than the installed QEMU and libvirt. */
bool cache_fresh(const char *node_dir);

/* Copies the node's cache into the pod's home, for its owner. No cache is fine. */
int cache_seed(const char *node_dir, const char *home, uid_t uid, gid_t gid,
               struct ferry_error *err);

/* Copies the pod's cache to the node; returns the number of files. The pod is not trusted: only
 * plain files of the expected names and a sane size are taken. */
int cache_harvest(const char *home, const char *node_dir, struct ferry_error *err);
