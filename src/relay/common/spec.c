#include "relay/common/spec.h"

#include <arpa/inet.h>
#include <string.h>

#include <yyjson.h>

#include "base/clock.h"
#include "base/str.h"
#include "relay/protocol/protocol.h"
#include "json/doc.h"

enum {
    NAME_MAX_BYTES = 253, /* of a node */
    MOVE_MAX_BYTES = 64,
    PATH_MAX_BYTES = 1024,
    FIELDS_MAX = 64,
};

const char *relay_role_name(enum relay_role role)
{
    return role == RELAY_TARGET ? "target" : "source";
}

static const char *const mode_names[] = {
    [RELAY_FERRY] = "ferry", [RELAY_RAW] = "raw", [RELAY_PLAIN] = "plain"};

const char *relay_mode_name(enum relay_mode mode)
{
    return mode_names[mode];
}

const char *relay_spec_peer(const struct relay_spec *s)
{
    const char *name = s->peer_node ? s->peer_node : s->peer_cn;

    return name ? name : s->peer_address ? s->peer_address : s->address;
}

void relay_spec_free(struct relay_spec *s)
{
    if (!s) {
        return;
    }
    free(s->key);
    free(s->move);
    free(s->peer_node);
    free(s->peer_cn);
    free(s->peer_address);
    free(s->address);
    free(s->interface);
    free(s->dir);
    for (size_t i = 0; i < s->n_channels; i++) {
        free(s->channels[i].unix_path);
    }
    free(s);
}

/* ---- values -----------------------------------------------------------------------------------
 */

static bool plain_name(const char *s, size_t max)
{
    size_t n = strlen(s);

    if (n == 0 || n > max || s[0] == '.') {
        return false;
    }
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == n;
}

bool relay_spec_key_valid(const char *key)
{
    return plain_name(key, RELAY_KEY_MAX);
}

static bool numeric_address(const char *s)
{
    struct in6_addr scratch;
    const char *scope = strchr(s, '%');
    char bare[INET6_ADDRSTRLEN];
    size_t n = scope ? (size_t)(scope - s) : strlen(s);

    if (n >= sizeof(bare)) {
        return false;
    }
    memcpy(bare, s, n);
    bare[n] = '\0';
    return inet_pton(AF_INET6, bare, &scratch) == 1 ||
           (!scope && inet_pton(AF_INET, bare, &scratch) == 1);
}

/* Absolute and without parts that lead elsewhere than they say. */
static bool absolute_path(const char *s)
{
    size_t n = strlen(s);

    return s[0] == '/' && n <= PATH_MAX_BYTES && !strstr(s, "/../") && !ferry_str_ends(s, "/..");
}

/* ---- fields -----------------------------------------------------------------------------------
 */

static int get_string(yyjson_val *obj, const char *field, char **ret, struct ferry_error *err)
{
    yyjson_val *v = yyjson_obj_get(obj, field);

    if (!v) {
        return ferry_fail(err, FERRY_INVALID, "%s: missing", field);
    }
    /* A NUL inside would make two different values look the same. */
    if (!yyjson_is_str(v) || strlen(yyjson_get_str(v)) != yyjson_get_len(v)) {
        return ferry_fail(err, FERRY_INVALID, "%s: must be a string", field);
    }
    *ret = ferry_strdup(yyjson_get_str(v));
    return 0;
}

static int get_name(yyjson_val *obj, const char *field, size_t max, char **ret,
                    struct ferry_error *err)
{
    int rc = get_string(obj, field, ret, err);

    if (rc == 0 && !plain_name(*ret, max)) {
        return ferry_fail(err, FERRY_INVALID,
                          "%s: must have 1 to %zu letters, digits, '-', '_' or '.'", field, max);
    }
    return rc;
}

static int get_address(yyjson_val *obj, const char *field, char **ret, struct ferry_error *err)
{
    int rc = get_string(obj, field, ret, err);

    if (rc == 0 && !numeric_address(*ret)) {
        return ferry_fail(err, FERRY_INVALID, "%s: '%s' is not a numeric IPv4 or IPv6 address",
                          field, *ret);
    }
    return rc;
}

static int get_path(yyjson_val *obj, const char *field, char **ret, struct ferry_error *err)
{
    int rc = get_string(obj, field, ret, err);

    if (rc == 0 && !absolute_path(*ret)) {
        return ferry_fail(err, FERRY_INVALID, "%s: must be an absolute path without '..'", field);
    }
    return rc;
}

static int get_uint(yyjson_val *v, const char *field, uint64_t max, uint64_t *ret,
                    struct ferry_error *err)
{
    if (!v) {
        return ferry_fail(err, FERRY_INVALID, "%s: missing", field);
    }
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) > max) {
        return ferry_fail(err, FERRY_INVALID, "%s: must be a whole number from 0 to %llu", field,
                          (unsigned long long)max);
    }
    *ret = yyjson_get_uint(v);
    return 0;
}

static int get_mode(yyjson_val *obj, struct relay_spec *s, struct ferry_error *err)
{
    ferry_cleanup_free char *mode = NULL;
    int rc = get_string(obj, "tls", &mode, err);

    if (rc < 0) {
        return rc;
    }
    for (enum relay_mode m = RELAY_FERRY; m <= RELAY_PLAIN; m++) {
        if (ferry_streq(mode, mode_names[m])) {
            s->mode = m;
            return 0;
        }
    }
    return ferry_fail(err, FERRY_INVALID, "tls: '%s' is not one of \"ferry\", \"raw\", \"plain\"",
                      mode);
}

/* A number that may be missing. */
static int get_optional(yyjson_val *obj, const char *field, uint64_t max, uint64_t *value,
                        struct ferry_error *err)
{
    yyjson_val *v = yyjson_obj_get(obj, field);

    return v ? get_uint(v, field, max, value, err) : 0;
}

/* What only some modes need. */
static int get_mode_fields(yyjson_val *obj, struct relay_spec *s, struct ferry_error *err)
{
    uint64_t window = PROTOCOL_RESUME_MAX / FERRY_NS_PER_S;
    int rc = get_optional(obj, "resumeWindowS", window, &window, err);

    if (rc == 0) {
        rc = get_optional(obj, "rateBytesPerS", INT64_MAX, &s->rate, err);
    }
    if (rc == 0 && s->mode == RELAY_PLAIN && s->role == RELAY_TARGET) {
        rc = get_address(obj, "sourceAddress", &s->peer_address, err);
    }
    s->resume_window_ns = (int64_t)window * FERRY_NS_PER_S;
    return rc;
}

static int get_owner(yyjson_val *obj, struct relay_spec *s, struct ferry_error *err)
{
    yyjson_val *v = yyjson_obj_get(obj, "owner");
    uint64_t uid = 0;

    if (!v) {
        return 0;
    }
    int rc = get_uint(v, "owner", UINT32_MAX - 1, &uid, err);
    s->has_owner = rc == 0;
    s->owner = (uid_t)uid;
    return rc;
}

/* ---- channels ---------------------------------------------------------------------------------
 */

/* Keeps them ordered, so that the order in a request makes no difference. */
static int add_channel(struct relay_spec *s, const struct relay_channel *c, const char *field,
                       struct ferry_error *err)
{
    size_t at = 0;

    for (size_t i = 0; i < s->n_channels; i++) {
        if (s->channels[i].logical == c->logical) {
            return ferry_fail(err, FERRY_INVALID, "%s: channel %d is there twice", field,
                              c->logical);
        }
        if (s->role == RELAY_SOURCE && s->channels[i].port == c->port) {
            return ferry_fail(err, FERRY_INVALID, "%s: port %d is there twice", field, c->port);
        }
        at += s->channels[i].logical < c->logical;
    }
    memmove(&s->channels[at + 1], &s->channels[at], (s->n_channels - at) * sizeof(*c));
    s->channels[at] = *c;
    s->n_channels++;
    return 0;
}

static int get_logical(yyjson_val *v, const char *field, int *ret, struct ferry_error *err)
{
    if (!yyjson_is_uint(v) || !ferry_channel_is_known((int64_t)yyjson_get_uint(v))) {
        return ferry_fail(err, FERRY_INVALID, "%s: must be %d, %d or %d", field,
                          FERRY_CHANNEL_CONTROL, FERRY_CHANNEL_MEMORY, FERRY_CHANNEL_DISKS);
    }
    *ret = (int)yyjson_get_uint(v);
    return 0;
}

static int get_target_channel(struct relay_spec *s, yyjson_val *item, size_t index,
                              struct ferry_error *err)
{
    struct relay_channel c = {0};
    ferry_cleanup_free char *path = NULL;

    if (!yyjson_is_obj(item)) {
        return ferry_fail(err, FERRY_INVALID, "channels[%zu]: must be an object", index);
    }
    if (get_logical(yyjson_obj_get(item, "logical"), "logical", &c.logical, err) < 0 ||
        get_path(item, "unix", &path, err) < 0) {
        return ferry_wrap(err, "channels[%zu]", index);
    }
    c.unix_path = path;
    int rc = add_channel(s, &c, "channels", err);
    if (rc == 0) {
        path = NULL;
    }
    return rc;
}

static int get_target_channels(struct relay_spec *s, yyjson_val *obj, struct ferry_error *err)
{
    yyjson_val *list = yyjson_obj_get(obj, "channels");
    size_t n = yyjson_arr_size(list);

    if (!yyjson_is_arr(list) || n == 0 || n > RELAY_CHANNELS_MAX) {
        return ferry_fail(err, FERRY_INVALID, "channels: must be a list of 1 to %d",
                          RELAY_CHANNELS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        int rc = get_target_channel(s, yyjson_arr_get(list, i), i, err);

        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int get_source_ports(struct relay_spec *s, yyjson_val *obj, struct ferry_error *err)
{
    yyjson_val *map = yyjson_obj_get(obj, "ports");
    size_t index, max;
    yyjson_val *k, *v;

    if (!yyjson_is_obj(map) || yyjson_obj_size(map) == 0 ||
        yyjson_obj_size(map) > RELAY_CHANNELS_MAX) {
        return ferry_fail(err, FERRY_INVALID, "ports: must map 1 to %d ports to channels",
                          RELAY_CHANNELS_MAX);
    }
    yyjson_obj_foreach(map, index, max, k, v)
    {
        struct relay_channel c = {0};
        long long port = 0;
        int rc;

        if (strlen(yyjson_get_str(k)) != yyjson_get_len(k) ||
            ferry_parse_int(yyjson_get_str(k), 1, 65535, &port, NULL) < 0) {
            return ferry_fail(err, FERRY_INVALID, "ports: '%s' is not a port number",
                              yyjson_get_str(k));
        }
        c.port = (int)port;
        if ((rc = get_logical(v, "ports", &c.logical, err)) < 0 ||
            (rc = add_channel(s, &c, "ports", err)) < 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- whole ------------------------------------------------------------------------------------
 */

static int check_fields(yyjson_val *root, struct ferry_error *err)
{
    const char *seen[FIELDS_MAX];
    size_t index, max, n = 0;
    yyjson_val *k, *v;

    if (!yyjson_is_obj(root) || yyjson_obj_size(root) > FIELDS_MAX) {
        return ferry_fail(err, FERRY_INVALID, "the body must be an object");
    }
    yyjson_obj_foreach(root, index, max, k, v)
    {
        for (size_t i = 0; i < n; i++) {
            if (ferry_streq(seen[i], yyjson_get_str(k))) {
                return ferry_fail(err, FERRY_INVALID, "%s: given twice", seen[i]);
            }
        }
        seen[n++] = yyjson_get_str(k);
    }
    return 0;
}

static int fill(struct relay_spec *s, yyjson_val *root, struct ferry_error *err)
{
    bool target = s->role == RELAY_TARGET;
    int rc;

    if ((rc = check_fields(root, err)) < 0 ||
        (rc = get_name(root, "move", MOVE_MAX_BYTES, &s->move, err)) < 0 ||
        (rc = get_uint(yyjson_obj_get(root, "generation"), "generation", INT64_MAX, &s->generation,
                       err)) < 0 ||
        (rc = get_name(root, target ? "sourceNode" : "targetNode", NAME_MAX_BYTES, &s->peer_node,
                       err)) < 0 ||
        (rc = get_address(root, target ? "bind" : "address", &s->address, err)) < 0 ||
        (rc = get_mode(root, s, err)) < 0 || (rc = get_mode_fields(root, s, err)) < 0 ||
        (rc = get_owner(root, s, err)) < 0) {
        return rc;
    }
    if (target) {
        return get_target_channels(s, root, err);
    }
    rc = get_path(root, "dir", &s->dir, err);
    return rc < 0 ? rc : get_source_ports(s, root, err);
}

int relay_spec_parse(enum relay_role role, const char *key, const char *json, size_t len,
                     struct relay_spec **ret, struct ferry_error *err)
{
    yyjson_read_err bad;
    ferry_cleanup(relay_spec_freep) struct relay_spec *s = ferry_xcalloc(1, sizeof(*s));

    if (!relay_spec_key_valid(key)) {
        return ferry_fail(err, FERRY_INVALID,
                          "the key must have 1 to %d letters, digits, '-', '_' or '.'",
                          RELAY_KEY_MAX);
    }
    json_cleanup_doc yyjson_doc *doc =
        yyjson_read_opts((char *)(uintptr_t)json, len, 0, NULL, &bad);
    if (!doc) {
        return ferry_fail(err, FERRY_INVALID, "the body is not JSON: %s at byte %zu", bad.msg,
                          bad.pos);
    }
    s->role = role;
    s->key = ferry_strdup(key);
    int rc = fill(s, yyjson_doc_get_root(doc), err);
    if (rc < 0) {
        return rc;
    }
    *ret = ferry_take_ptr(s);
    return 0;
}

int relay_spec_parse_rate(const char *json, size_t len, uint64_t *ret, struct ferry_error *err)
{
    yyjson_read_err bad;
    json_cleanup_doc yyjson_doc *doc =
        yyjson_read_opts((char *)(uintptr_t)json, len, 0, NULL, &bad);

    if (!doc) {
        return ferry_fail(err, FERRY_INVALID, "the body is not JSON: %s at byte %zu", bad.msg,
                          bad.pos);
    }
    yyjson_val *root = yyjson_doc_get_root(doc);
    int rc = check_fields(root, err);
    return rc < 0 ? rc
                  : get_uint(yyjson_obj_get(root, "bytesPerS"), "bytesPerS", INT64_MAX, ret, err);
}

static bool same_channels(const struct relay_spec *a, const struct relay_spec *b)
{
    if (a->n_channels != b->n_channels) {
        return false;
    }
    for (size_t i = 0; i < a->n_channels; i++) {
        if (a->channels[i].logical != b->channels[i].logical ||
            a->channels[i].port != b->channels[i].port ||
            !ferry_streq(a->channels[i].unix_path, b->channels[i].unix_path)) {
            return false;
        }
    }
    return true;
}

static bool same(const struct relay_spec *a, const struct relay_spec *b)
{
    return ferry_streq(a->move, b->move) && a->generation == b->generation &&
           ferry_streq(a->peer_node, b->peer_node) && ferry_streq(a->address, b->address) &&
           ferry_streq(a->dir, b->dir) && a->mode == b->mode &&
           a->resume_window_ns == b->resume_window_ns &&
           ferry_streq(a->peer_address, b->peer_address) && a->has_owner == b->has_owner &&
           a->owner == b->owner && same_channels(a, b);
}

enum relay_change relay_spec_decide(const struct relay_spec *old, const struct relay_spec *wanted,
                                    bool draining)
{
    if (!old) {
        return draining ? RELAY_REFUSE : RELAY_CREATE;
    }
    if (!same(old, wanted)) {
        return RELAY_REPLACE;
    }
    return old->rate == wanted->rate ? RELAY_KEEP : RELAY_ADJUST;
}
