#include "pods/pod_dialect.h"

#include <stdbool.h>
#include <string.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_user.h"
#include "base/str.h"

/* yyjson's readers take non-const values. */
static yyjson_val *field(const yyjson_val *v, const char *name)
{
    return yyjson_obj_get((yyjson_val *)v, name);
}

static bool given(const yyjson_val *v)
{
    yyjson_val *x = (yyjson_val *)v;

    return x && !yyjson_is_null(x) && !yyjson_is_false(x) &&
           !(yyjson_is_arr(x) && yyjson_arr_size(x) == 0) &&
           !(yyjson_is_obj(x) && yyjson_obj_size(x) == 0);
}

static int refuse_fields(const yyjson_val *v, const char *where, const char *const *names,
                         struct ferry_error *err)
{
    for (; *names; names++) {
        if (given(field(v, *names))) {
            return ferry_fail(err, FERRY_INVALID, "%s.%s is not supported", where, *names);
        }
    }
    return 0;
}

static int add_args(const yyjson_val *list, const char *where, struct pod_command *cmd,
                    struct ferry_error *err)
{
    size_t i, max;
    yyjson_val *v;

    if (given(list) && !yyjson_is_arr((yyjson_val *)list)) {
        return ferry_fail(err, FERRY_INVALID, "%s: must be a list", where);
    }
    yyjson_arr_foreach((yyjson_val *)list, i, max, v)
    {
        const char *word = yyjson_get_str(v);

        if (!word || strlen(word) > POD_ARG_BYTES) {
            return ferry_fail(err, FERRY_INVALID, "%s[%zu]: must be a string of at most %d bytes",
                              where, i, POD_ARG_BYTES);
        }
        if (cmd->n == POD_ARGS_MAX) {
            return ferry_fail(err, FERRY_INVALID, "%s: more than %d words", where, POD_ARGS_MAX);
        }
        cmd->args[cmd->n++] = word;
    }
    return 0;
}

/* Asked for as KubeVirt's device plugins have it. */
static int read_device(const yyjson_val *c, const char *resource, bool *ret,
                       struct ferry_error *err)
{
    const yyjson_val *v = field(field(field(c, "resources"), "limits"), resource);
    int64_t n = 0;

    if (v && api_quantity_val(v, 1, &n, err) < 0) {
        return ferry_wrap(err, "spec.containers[0].resources.limits");
    }
    *ret = n > 0;
    return 0;
}

/* One of the users that the controller gives to guests, and its group; nobody else's. */
static int read_user(const yyjson_val *context, const char *where, int64_t *ret,
                     struct ferry_error *err)
{
    yyjson_val *user = field(context, "runAsUser"), *group = field(context, "runAsGroup");

    if (!user && !group) {
        return 0;
    }
    if (!yyjson_is_int(user) || !wire_user_is_guest(yyjson_get_sint(user)) ||
        (group && !yyjson_equals(user, group))) {
        return ferry_fail(err, FERRY_INVALID,
                          "%s.runAsUser: must be a guest's user, %d to %d, and runAsGroup the same",
                          where, WIRE_USER_FIRST, WIRE_USER_FIRST + WIRE_USERS - 1);
    }
    *ret = yyjson_get_sint(user);
    return 0;
}

static int read_container(const yyjson_val *spec, const yyjson_val *c, struct pod_command *ret,
                          struct ferry_error *err)
{
    static const char *const unsupported[] = {
        "env",       "envFrom", "livenessProbe", "readinessProbe", "startupProbe",
        "lifecycle", "ports",   "workingDir",    "stdin",          "tty",
        NULL};
    struct pod_command cmd = {.n = 0};

    if (!ferry_streq(yyjson_get_str(field(c, "name")), "compute")) {
        return ferry_fail(err, FERRY_INVALID,
                          "spec.containers[0].name: the container must be named 'compute'");
    }
    int rc = refuse_fields(c, "spec.containers[0]", unsupported, err);
    if (rc == 0) {
        rc = add_args(field(c, "command"), "spec.containers[0].command", &cmd, err);
    }
    if (rc == 0 && (cmd.n == 0 || !ferry_streq(cmd.args[0], "ferry-launcher"))) {
        return ferry_fail(err, FERRY_INVALID,
                          "spec.containers[0].command: only 'ferry-launcher' can be run");
    }
    if (rc == 0) {
        rc = add_args(field(c, "args"), "spec.containers[0].args", &cmd, err);
    }
    if (rc == 0) {
        rc = pod_volumes_read(spec, c, &cmd.volumes, err);
    }
    if (rc == 0) {
        rc = cgroup_limits_read(c, &cmd.limits, err);
    }
    if (rc == 0) {
        rc = read_device(c, RESOURCE_VHOST_NET, &cmd.vhost_net, err);
    }
    if (rc == 0) {
        rc = read_device(c, RESOURCE_KVM, &cmd.kvm, err);
    }
    if (rc == 0) {
        rc = read_user(field(spec, "securityContext"), "spec.securityContext", &cmd.user, err);
    }
    if (rc == 0) {
        rc = read_user(field(c, "securityContext"), "spec.containers[0].securityContext", &cmd.user,
                       err);
    }
    if (rc < 0) {
        return rc;
    }
    *ret = (struct pod_command){.n = cmd.n - 1,
                                .volumes = cmd.volumes,
                                .limits = cmd.limits,
                                .vhost_net = cmd.vhost_net,
                                .kvm = cmd.kvm,
                                .user = cmd.user};
    memcpy(ret->args, cmd.args + 1, ret->n * sizeof(ret->args[0]));
    return 0;
}

int pod_dialect_read(const yyjson_val *spec, struct pod_command *ret, struct ferry_error *err)
{
    static const char *const unsupported[] = {
        "initContainers", "ephemeralContainers",   "hostNetwork",           "hostPID", "hostIPC",
        "hostAliases",    "shareProcessNamespace", "activeDeadlineSeconds", NULL};
    yyjson_val *containers = field(spec, "containers");
    yyjson_val *restart = field(spec, "restartPolicy");
    int rc = refuse_fields(spec, "spec", unsupported, err);

    if (rc < 0) {
        return rc;
    }
    if (restart && !ferry_streq(yyjson_get_str(restart), "Never")) {
        return ferry_fail(err, FERRY_INVALID, "spec.restartPolicy: only 'Never' is supported");
    }
    if (!yyjson_is_arr(containers) || yyjson_arr_size(containers) != 1) {
        return ferry_fail(err, FERRY_INVALID, "spec.containers: exactly one is supported");
    }
    return read_container(spec, yyjson_arr_get_first(containers), ret, err);
}
