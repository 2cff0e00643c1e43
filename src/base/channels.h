/* The logical channels of a move: each is a byte stream of its own between the two hypervisors, and
 * a unix socket in the pod at either end. Numbers and names are KubeVirt's. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ferry_channel {
    FERRY_CHANNEL_CONTROL = 0, /* libvirt to libvirt */
    FERRY_CHANNEL_MEMORY = 49152,
    FERRY_CHANNEL_DISKS = 49153, /* that are copied */
};
enum {
    FERRY_CHANNELS = 3,
    FERRY_CHANNEL_KEY_MAX = 56, /* so that a socket's name keeps below 80 bytes */
    FERRY_CHANNEL_NAME = 80,
};

/* All of them, by number. */
extern const enum ferry_channel ferry_channels[FERRY_CHANNELS];
bool ferry_channel_is_known(int64_t number);

/* The name of its socket, KEY[-49152|-49153]-source.sock; KEY is cut at FERRY_CHANNEL_KEY_MAX
 * bytes. Returns `ret`. */
const char *ferry_channel_socket(const char *key, enum ferry_channel channel,
                                 char ret[FERRY_CHANNEL_NAME]);
/* The same with a directory before it, owned by the caller. */
char *ferry_channel_path(const char *dir, const char *key, enum ferry_channel channel);
