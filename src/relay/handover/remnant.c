#include "relay/handover/remnant.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"

static const char *const prefixes[] = {[RELAY_TARGET] = "target ", [RELAY_SOURCE] = "source "};

void remnant_put(char ret[REMNANT_TEXT], enum remnant_order order, enum relay_role role,
                 const char *key)
{
    if (order == REMNANT_END_ALL) {
        snprintf(ret, REMNANT_TEXT, "end");
    } else {
        snprintf(ret, REMNANT_TEXT, "%s%s", prefixes[role], key);
    }
}

enum remnant_order remnant_get(const char *text, enum relay_role *ret_role,
                               char ret_key[RELAY_KEY_MAX + 1])
{
    if (ferry_streq(text, "end")) {
        return REMNANT_END_ALL;
    }
    for (enum relay_role role = RELAY_TARGET; role <= RELAY_SOURCE; role++) {
        const char *key = text + strlen(prefixes[role]);

        if (ferry_str_starts(text, prefixes[role]) && relay_spec_key_valid(key)) {
            *ret_role = role;
            snprintf(ret_key, RELAY_KEY_MAX + 1, "%s", key);
            return REMNANT_END_MOVE;
        }
    }
    return REMNANT_NONE;
}

bool remnant_send(int fd, enum remnant_order order, enum relay_role role, const char *key)
{
    char text[REMNANT_TEXT];

    remnant_put(text, order, role, key);
    return send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno == EAGAIN;
}

enum remnant_order remnant_receive(int fd, enum relay_role *ret_role,
                                   char ret_key[RELAY_KEY_MAX + 1], bool *ret_gone)
{
    char text[REMNANT_TEXT + 1];
    ssize_t n = recv(fd, text, REMNANT_TEXT, MSG_DONTWAIT);

    *ret_gone = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (n <= 0) {
        return REMNANT_NONE;
    }
    text[n] = '\0';
    return remnant_get(text, ret_role, ret_key);
}
