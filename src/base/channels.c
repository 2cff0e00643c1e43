#include "base/channels.h"

#include <stdio.h>

#include "base/str.h"

const enum ferry_channel ferry_channels[FERRY_CHANNELS] = {
    FERRY_CHANNEL_CONTROL, FERRY_CHANNEL_MEMORY, FERRY_CHANNEL_DISKS};

bool ferry_channel_is_known(int64_t number)
{
    for (size_t i = 0; i < FERRY_CHANNELS; i++) {
        if (number == (int64_t)ferry_channels[i]) {
            return true;
        }
    }
    return false;
}

const char *ferry_channel_socket(const char *key, enum ferry_channel channel,
                                 char ret[FERRY_CHANNEL_NAME])
{
    char number[16] = "";

    if (channel != FERRY_CHANNEL_CONTROL) {
        snprintf(number, sizeof(number), "-%d", (int)channel);
    }
    snprintf(ret, FERRY_CHANNEL_NAME, "%.*s%s-source.sock", FERRY_CHANNEL_KEY_MAX, key, number);
    return ret;
}

char *ferry_channel_path(const char *dir, const char *key, enum ferry_channel channel)
{
    char name[FERRY_CHANNEL_NAME];

    return ferry_asprintf("%s/%s", dir, ferry_channel_socket(key, channel, name));
}
