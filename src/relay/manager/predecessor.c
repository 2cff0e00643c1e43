#include "relay/manager/predecessor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"

static const char *const prefixes[] = {[RELAY_TARGET] = "target ", [RELAY_SOURCE] = "source "};

void predecessor_put(char ret[PREDECESSOR_TEXT], enum predecessor_order order, enum relay_role role,
                     const char *key)
{
    if (order == PREDECESSOR_END_ALL) {
        snprintf(ret, PREDECESSOR_TEXT, "end");
    } else {
        snprintf(ret, PREDECESSOR_TEXT, "%s%s", prefixes[role], key);
    }
}

enum predecessor_order predecessor_get(const char *text, enum relay_role *ret_role,
                                       char ret_key[RELAY_KEY_MAX + 1])
{
    if (ferry_streq(text, "end")) {
        return PREDECESSOR_END_ALL;
    }
    for (enum relay_role role = RELAY_TARGET; role <= RELAY_SOURCE; role++) {
        const char *key = text + strlen(prefixes[role]);

        if (ferry_str_starts(text, prefixes[role]) && relay_spec_key_valid(key)) {
            *ret_role = role;
            snprintf(ret_key, RELAY_KEY_MAX + 1, "%s", key);
            return PREDECESSOR_END_MOVE;
        }
    }
    return PREDECESSOR_NONE;
}

bool predecessor_send(int fd, enum predecessor_order order, enum relay_role role, const char *key)
{
    char text[PREDECESSOR_TEXT];

    predecessor_put(text, order, role, key);
    return send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno == EAGAIN;
}

enum predecessor_order predecessor_receive(int fd, enum relay_role *ret_role,
                                           char ret_key[RELAY_KEY_MAX + 1], bool *ret_gone)
{
    char text[PREDECESSOR_TEXT + 1];
    ssize_t n = recv(fd, text, PREDECESSOR_TEXT, MSG_DONTWAIT);

    *ret_gone = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (n <= 0) {
        return PREDECESSOR_NONE;
    }
    text[n] = '\0';
    return predecessor_get(text, ret_role, ret_key);
}
