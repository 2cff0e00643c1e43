#include "launcher/libvirt/daemon_config.h"

#include "base/str.h"

#define KEEPALIVE "keepalive_interval = 5\nkeepalive_count = 60\n"

/* No virtlogd: QEMU's output goes to files. */
#define SETTINGS                                                                                   \
    "security_driver = \"none\"\n"                                                                 \
    "security_default_confined = 0\n"                                                              \
    "dynamic_ownership = 0\n"                                                                      \
    "remember_owner = 0\n"                                                                         \
    "cgroup_controllers = []\n"                                                                    \
    "namespaces = []\n"                                                                            \
    "stdio_handler = \"file\"\n"                                                                   \
    "seccomp_sandbox = 1\n"                                                                        \
    "max_core = 0\n"                                                                               \
    "set_process_name = 0\n" KEEPALIVE

char *daemon_config_libvirtd(const struct daemon_config *c)
{
    return ferry_asprintf("unix_sock_dir = \"%s\"\n"
                          "unix_sock_ro_perms = \"0700\"\n"
                          "unix_sock_rw_perms = \"0700\"\n" /* a move comes in by the filter */
                          "unix_sock_admin_perms = \"0700\"\n"
                          "auth_unix_ro = \"none\"\n"
                          "auth_unix_rw = \"none\"\n"
                          "host_uuid = \"%s\"\n"
                          "max_clients = 32\n"
                          "min_workers = 2\n"
                          "max_workers = 8\n"
                          "prio_workers = 2\n" KEEPALIVE "admin_keepalive_interval = -1\n"
                          "audit_level = 0\n"
                          "log_level = 3\n"
                          "log_outputs = \"3:stderr\"\n",
                          c->socket_dir, c->host_uuid);
}

char *daemon_config_qemu(bool root, bool gate, const char *disk_dir)
{
    return ferry_asprintf("%s%s%sshared_filesystems = [ \"%s\" ]\n" SETTINGS, DAEMON_CONFIG_MARK,
                          root ? "user = \"root\"\ngroup = \"root\"\n" : "",
                          gate ? "lock_manager = \"ferry\"\n" : "", disk_dir);
}
