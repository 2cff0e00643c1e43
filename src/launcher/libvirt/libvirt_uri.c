#include "launcher/libvirt/libvirt_uri.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"

enum { URI_MAX = 1024, PORT_MAX = 65535 };

static const struct {
    const char *name;
    bool remote; /* needs a host */
} transports[] = {
    {"unix", false}, {"ext", false},   {"tcp", true},     {"tls", true},
    {"ssh", true},   {"libssh", true}, {"libssh2", true},
};

static int fail(struct ferry_error *err, const char *text, const char *why)
{
    return ferry_fail(err, FERRY_INVALID, "libvirt URI '%.100s': %s", text, why);
}

/* "%2F" and the like; NULL when broken, or when it hides a NUL. */
static char *decode(const char *s, size_t n)
{
    char *ret = ferry_xcalloc(n + 1, 1), *to = ret;

    for (size_t i = 0; i < n; i++) {
        if (s[i] != '%') {
            *to++ = s[i];
            continue;
        }
        char hex[3] = {i + 1 < n ? s[i + 1] : 0, i + 2 < n ? s[i + 2] : 0, 0};
        if (!isxdigit((unsigned char)hex[0]) || !isxdigit((unsigned char)hex[1]) ||
            strcmp(hex, "00") == 0) {
            free(ret);
            return NULL;
        }
        *to++ = (char)strtol(hex, NULL, 16);
        i += 2;
    }
    return ret;
}

static char *part(const char *from, const char *to)
{
    return ferry_asprintf("%.*s", (int)(to - from), from);
}

static int parse_scheme(const char *text, const char *end, struct libvirt_uri *u,
                        struct ferry_error *err)
{
    const char *plus = memchr(text, '+', (size_t)(end - text));
    ferry_cleanup_free char *driver = part(text, plus ? plus : end);

    u->transport = plus ? part(plus + 1, end) : ferry_strdup("");
    if (!*driver) {
        return fail(err, text, "the driver before :// is missing, e.g. qemu:///session");
    }
    if (!ferry_streq(driver, "qemu")) {
        return fail(err, text, "the driver must be qemu");
    }
    for (size_t i = 0; plus && i < FERRY_COUNT(transports); i++) {
        if (ferry_streq(u->transport, transports[i].name)) {
            return 0;
        }
    }
    return plus ? fail(err, text,
                       "the transport after + must be unix, ext, tcp, tls, ssh, libssh or libssh2")
                : 0;
}

static int parse_port(const char *text, const char *s, const char *end, int *ret,
                      struct ferry_error *err)
{
    long port = 0;

    for (const char *p = s; p < end; p++) {
        port = isdigit((unsigned char)*p) && port <= PORT_MAX ? port * 10 + (*p - '0') : -1;
        if (port < 0) {
            break;
        }
    }
    if (s == end || port < 1 || port > PORT_MAX) {
        return fail(err, text, "the port must be a number from 1 to 65535");
    }
    *ret = (int)port;
    return 0;
}

static bool is_host(const char *s, bool v6)
{
    for (; *s; s++) {
        if (v6 ? !isxdigit((unsigned char)*s) && !strchr(":.%", *s)
               : !isalnum((unsigned char)*s) && !strchr("-._", *s)) {
            return false;
        }
    }
    return true;
}

/* [user@][host][:port] */
static int parse_authority(const char *text, const char *s, const char *end, struct libvirt_uri *u,
                           struct ferry_error *err)
{
    const char *at = memchr(s, '@', (size_t)(end - s));
    const char *host = at ? at + 1 : s, *host_end = end, *colon;
    bool v6 = host < end && *host == '[';

    if (at) {
        u->user = decode(s, (size_t)(at - s));
        if (!u->user || !*u->user || strpbrk(u->user, ":@/ ")) {
            return fail(err, text, "the user before @ is not a name; a password has no place here");
        }
    }
    if (v6) {
        const char *close = memchr(host, ']', (size_t)(end - host));

        if (!close || (close + 1 < end && close[1] != ':')) {
            return fail(err, text, "the host: ']' and then a port or '/' must end it");
        }
        u->host = part(host + 1, close);
        colon = close + 1 < end ? close + 1 : NULL;
    } else {
        colon = memchr(host, ':', (size_t)(end - host));
        host_end = colon ? colon : end;
        u->host = part(host, host_end);
    }
    if (!is_host(u->host, v6) || (v6 && !*u->host)) {
        return fail(err, text, "the host is not a name or an address");
    }
    if (!*u->host && (at || colon)) {
        return fail(err, text, "a user or a port, but no host");
    }
    return colon ? parse_port(text, colon + 1, end, &u->port, err) : 0;
}

static int parse_path(const char *text, const char *s, const char *end, struct libvirt_uri *u,
                      struct ferry_error *err)
{
    ferry_cleanup_free char *path = part(s, end);

    u->system = ferry_streq(path, "/system");
    if (!u->system && !ferry_streq(path, "/session")) {
        return fail(err, text, "the path must be /system or /session");
    }
    return 0;
}

/* name=value&name=value; of these only the socket matters to us, libvirt reads all of them. */
static int parse_parameters(const char *text, const char *s, struct libvirt_uri *u,
                            struct ferry_error *err)
{
    while (*s) {
        const char *end = s + strcspn(s, "&;"), *equals = memchr(s, '=', (size_t)(end - s));

        if (!equals || equals == s) {
            return fail(err, text, "parameters after ? must be name=value, with & between them");
        }
        ferry_cleanup_free char *name = part(s, equals);
        ferry_cleanup_free char *value = decode(equals + 1, (size_t)(end - equals - 1));
        if (!value) {
            return fail(err, text, "a parameter has a broken %-sequence");
        }
        if (ferry_streq(name, "socket")) {
            if (u->socket || *value != '/') {
                return fail(err, text, "the parameter socket must be given once, an absolute path");
            }
            u->socket = ferry_take_ptr(value);
        }
        s = *end ? end + 1 : end;
    }
    return 0;
}

static int check_whole(const char *text, const struct libvirt_uri *u, struct ferry_error *err)
{
    bool remote = false;

    for (size_t i = 0; i < FERRY_COUNT(transports); i++) {
        remote = remote || (ferry_streq(u->transport, transports[i].name) && transports[i].remote);
    }
    if (remote && !*u->host) {
        return fail(err, text, "this transport needs a host");
    }
    if (ferry_streq(u->transport, "unix") && *u->host) {
        return fail(err, text, "a unix socket is on this machine: no host may be given");
    }
    return 0;
}

static int parse(const char *text, struct libvirt_uri *u, struct ferry_error *err)
{
    const char *scheme = strstr(text, "://");

    if (strlen(text) > URI_MAX) {
        return fail(err, text, "too long");
    }
    for (const char *p = text; *p; p++) {
        if (!isgraph((unsigned char)*p) || *p == '#') {
            return fail(err, text, "holds a character that must be written as %XX");
        }
    }
    if (!scheme) {
        return fail(err, text, "'://' is missing, e.g. qemu:///session");
    }
    const char *authority = scheme + 3, *path = strchr(authority, '/');
    const char *question = strchr(authority, '?');
    if (!path || (question && question < path)) {
        return fail(err, text, "the path is missing: /system or /session");
    }
    int rc = parse_scheme(text, scheme, u, err);
    if (rc < 0 || (rc = parse_authority(text, authority, path, u, err)) < 0 ||
        (rc = parse_path(text, path, question ? question : path + strlen(path), u, err)) < 0 ||
        (rc = parse_parameters(text, question ? question + 1 : "", u, err)) < 0) {
        return rc;
    }
    return check_whole(text, u, err);
}

int libvirt_uri_parse(const char *text, struct libvirt_uri *ret, struct ferry_error *err)
{
    *ret = (struct libvirt_uri){0};
    int rc = parse(text, ret, err);

    if (rc < 0) {
        libvirt_uri_done(ret);
    }
    return rc;
}

void libvirt_uri_done(struct libvirt_uri *u)
{
    free(u->transport);
    free(u->user);
    free(u->host);
    free(u->socket);
    *u = (struct libvirt_uri){0};
}

char *libvirt_uri_socket(const struct libvirt_uri *u, const char *run_dir)
{
    bool local = ferry_streq(u->transport, "unix") || (!*u->transport && !*u->host);

    if (!local || (!u->socket && !u->system && ferry_str_empty(run_dir))) {
        return NULL;
    }
    if (u->socket) {
        return ferry_strdup(u->socket);
    }
    return u->system ? ferry_strdup("/run/libvirt/libvirt-sock")
                     : ferry_asprintf("%s/libvirt/libvirt-sock", run_dir);
}
