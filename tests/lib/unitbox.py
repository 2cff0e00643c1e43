#!/usr/bin/env python3
"""unitbox.py UNIT [--keep DIR]... COMMAND [ARGUMENT]...: becomes COMMAND, confined as systemd would confine it by the settings of UNIT,
where there is no systemd: user, capabilities, mounts, filters of system calls. What stands in `--root DIR` of the command is where the
unit's own paths are looked for. DIRs stay where they are, also where the unit hides what is around them.

Devices (DevicePolicy, DeviceAllow) are confined where there is the controller of version 1, in a control group that everything inherits
that is started; who uses this calls forget_groups() at the end. What is not done: limits of control groups (MemoryMax, TasksMax) and how
systemd itself behaves (Restart, Delegate, KillMode, the descriptor store)."""
import contextlib
import ctypes
import functools
import glob
import os
import pwd
import re
import resource
import secrets
import shutil
import stat
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 19
CLONE = {"mnt": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000,
         "net": 0x40000000}
SYS_MOUNT_SETATTR, ATTR_RDONLY, AT_RECURSIVE = 442, 1, 0x8000
IDS = {"ferry-apiserver": 61202, "ferry-controller": 61203}  # where this machine has no such users
CAPS = ("CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST "
        "NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE "
        "SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM "
        "BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE").split()
AF = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16, "AF_PACKET": 17}
# Those that this tool knows how to do, or may leave to systemd. Any other one in a unit is a mistake here.
LEFT = {"ExecStart", "ExecStartPre", "ExecReload", "EnvironmentFile", "Type", "Restart", "RestartSec", "KillMode", "SendSIGKILL",
        "Delegate", "TasksMax", "MemoryMax", "FileDescriptorStoreMax", "TimeoutStopSec", "RuntimeDirectoryPreserve",
        "SystemCallErrorNumber", "Group"}
DIRECTORIES = {"Runtime": "/run/", "Logs": "/var/log/"}


def need_systemd_analyze():
    """It knows which calls are in which group."""
    if not shutil.which("systemd-analyze"):
        print("skipped: there is no systemd-analyze")
        sys.exit(77)


class Unit:
    def __init__(self, path):
        self.values = {}
        section = ""
        for line in open(path).read().splitlines():
            if line.startswith("["):
                section = line
            elif section == "[Service]" and line and not line.startswith("#"):
                name, value = line.split("=", 1)
                self.values[name] = self.values.get(name, []) + [value] if value else [""]
        self.used = set(LEFT)

    def words(self, name):
        self.used.add(name)
        return " ".join(self.values.get(name, [])).split()

    def one(self, name, default=""):
        self.used.add(name)
        return self.values.get(name, [default])[-1]

    def yes(self, name):
        return self.one(name, "no") == "yes"

    def check(self):
        left = set(self.values) - self.used
        assert not left, f"settings that this tool does not know: {left}"


def done(rc, what):
    if rc < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source, target, kind=None, flags=0, data=None):
    done(LIBC.mount(source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags), data and data.encode()),
         f"mount {source} {target}")


class Attr(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("set", "clear", "propagation", "userns")]


def writable(path, yes, deep=True):
    attr = Attr(clear=ATTR_RDONLY) if yes else Attr(set=ATTR_RDONLY)
    done(LIBC.syscall(SYS_MOUNT_SETATTR, -100, path.encode(), AT_RECURSIVE if deep else 0, ctypes.byref(attr), ctypes.sizeof(attr)),
         f"mount_setattr {path}")


def bind(path, onto=None):
    mount(path, onto or path, None, MS_BIND | MS_REC)


def mounts():
    """(point, whether it can be written) of all mounts, outermost first."""
    with open("/proc/self/mountinfo") as f:
        return [(w[4], "rw" in w[5].split(",")) for w in (line.split() for line in f)]


# ---- what is seen of the file system ---------------------------------------------------------------------------------------------


def hide(places, keep):
    """An empty directory in the place of each; what is to be kept is there again."""
    fds = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in keep}
    for place in (p for p in places if os.path.isdir(p)):
        mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777" if "tmp" in place else "mode=0711")
    for path, fd in fds.items():
        if not os.path.exists(path):
            os.makedirs(path, 0o755)
            bind(f"/proc/self/fd/{fd}", path)
        os.close(fd)


def private_devices():
    shown = [n for n in ("null", "zero", "full", "random", "urandom", "tty") if os.path.exists("/dev/" + n)]
    fds = {n: os.open("/dev/" + n, os.O_PATH) for n in shown}
    mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755")
    for name, fd in fds.items():
        open("/dev/" + name, "w").close()
        mount(f"/proc/self/fd/{fd}", "/dev/" + name, None, MS_BIND)
        os.close(fd)
    os.mkdir("/dev/shm", 0o1777)
    os.symlink("/proc/self/fd", "/dev/fd")


def read_only(path):
    if os.path.exists(path):
        bind(path)
        writable(path, False)


def closed(path):
    if os.path.isdir(path):
        mount("tmpfs", path, "tmpfs", MS_RDONLY, "mode=0")
    elif os.path.exists(path):
        mount("/dev/null", path, None, MS_BIND)


def protect_system(unit, root, private):
    mode = unit.one("ProtectSystem", "no")
    paths = [p.lstrip("-+") for p in unit.words("ReadWritePaths")]
    paths += [place + name for kind, place in DIRECTORIES.items() for name in unit.words(kind + "Directory")]
    rw = [root + p for p in paths if os.path.isdir(root + p)]
    if mode == "strict":
        before = mounts()
        for path in rw:
            bind(path)
        writable("/", False)
        for point, was in before:
            if was and any(point == p or point.startswith(p + "/") for p in ("/dev", "/proc", "/sys")):
                with contextlib.suppress(OSError):  # hidden below another one
                    writable(point, True, False)
        for path in private:
            writable(path, True, False)
        for path in rw:
            writable(path, True)
    elif mode == "full":
        for path in ("/usr", "/boot", "/efi", "/etc"):
            read_only(path)
    else:
        assert mode == "no", mode


OWN_MOUNTS = ("ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectProc", "ProcSubset", "ProtectKernelTunables",
              "ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups", "ReadWritePaths", "PrivateMounts")


def confine_files(unit, root, keep):
    for kind, place in DIRECTORIES.items():
        for name in unit.words(kind + "Directory"):
            path = root + place + name
            os.makedirs(path, exist_ok=True)
            os.chmod(path, int(unit.one(kind + "DirectoryMode", "0755"), 8))
            os.chown(path, *(id_of(unit.one("User")) if unit.one("User") else (0, 0)))
    unit.used.add("PrivateMounts")
    if not set(OWN_MOUNTS) & set(unit.values):
        return
    done(LIBC.unshare(CLONE["mnt"]), "unshare")
    mount("none", "/", None, MS_REC | MS_SLAVE)
    proc = ["hidepid=" + unit.one("ProtectProc")] if unit.one("ProtectProc") else []
    proc += ["subset=pid"] if unit.one("ProcSubset") == "pid" else []
    private = []
    if unit.yes("PrivateTmp"):
        private = ["/tmp", "/var/tmp"]
        hide(private, keep)
    if unit.yes("ProtectHome"):
        hide(["/home", "/root", "/run/user"], keep)
    if unit.yes("PrivateDevices"):
        private_devices()
    protect_system(unit, root, private)
    if proc:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, ",".join(proc))
    if unit.yes("ProtectKernelTunables"):
        for path in ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi"):
            read_only(path)
        bind("/sys")
        groups = [point for point, was in mounts() if was and point.startswith("/sys/fs/cgroup")]
        writable("/sys", False)
        for point in groups if not unit.yes("ProtectControlGroups") else []:
            with contextlib.suppress(OSError):
                writable(point, True, False)
    elif unit.yes("ProtectControlGroups"):
        read_only("/sys/fs/cgroup")
    if unit.yes("ProtectKernelModules"):
        closed("/usr/lib/modules")
    if unit.yes("ProtectKernelLogs"):
        closed("/proc/kmsg")
        closed("/dev/kmsg")


# ---- devices ---------------------------------------------------------------------------------------------------------------------

# What systemd adds to a list (DevicePolicy=closed).
CLOSED = [f"/dev/{n} rwm" for n in ("null", "zero", "full", "random", "urandom", "tty", "ptmx")] + ["char-pts rw"]


@functools.cache
def devices_mount():
    """Of version 1; None where there is none."""
    with open("/proc/self/mounts") as f:
        return next((w[1] for w in (line.split() for line in f) if w[2] == "cgroup" and "devices" in w[3].split(",")), None)


def numbers_of(what):
    """A device, or a kind of them, in the words of the controller."""
    kind, dash, name = what.partition("-")
    if dash and kind in ("char", "block"):
        if name == "*":
            return [f"{kind[0]} *:*"]
        text = open("/proc/devices").read().split("Block devices:")[kind == "block"]
        return [f"{kind[0]} {major}:*" for major, found in re.findall(r"^ *(\d+) (\S+)$", text, re.M) if found == name]
    if re.match("/dev/(char|block)/", what):
        return [f"{what.split('/')[2][0]} {what.split('/')[3]}"]
    if not os.path.exists(what):
        return []
    st = os.stat(what)
    return [f"{'b' if stat.S_ISBLK(st.st_mode) else 'c'} {os.major(st.st_rdev)}:{os.minor(st.st_rdev)}"]


def confine_devices(unit):
    closed_list, allowed = unit.one("DevicePolicy") == "closed", unit.values.get("DeviceAllow", [])
    unit.used.add("DeviceAllow")
    assert closed_list or not allowed
    if not closed_list or not devices_mount():
        return
    while True:
        group = os.path.join(devices_mount(), "ferry-unitbox-" + secrets.token_hex(4))
        os.mkdir(group)
        try:
            put(group, "devices.deny", "a")
            for line in (*CLOSED, *allowed, *(["char-rtc r"] if unit.yes("ProtectClock") else [])):
                what, access = line.split()
                for words in numbers_of(what):
                    put(group, "devices.allow", f"{words} {access}")
            put(group, "cgroup.procs", str(os.getpid()))
            return
        except FileNotFoundError:
            pass  # another test has just tidied up


def put(group, name, text):
    with open(os.path.join(group, name), "w") as f:
        f.write(text)


def forget_groups():
    """Those that nobody is in any more, whosever they were."""
    for group in glob.glob(os.path.join(devices_mount() or "/none-such", "ferry-unitbox-*")):
        with contextlib.suppress(OSError):
            os.rmdir(group)


# ---- system calls ----------------------------------------------------------------------------------------------------------------


class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


NE, EQ, GT, MASKED = 1, 4, 6, 7
ALLOW = 0x7FFF0000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97


def errno(number):
    return 0x00050000 | number


class Filter:
    """One list; several are in force together."""

    def __init__(self, lib, default=ALLOW):
        self.lib, self.default = lib, default
        self.context = ctypes.c_void_p(lib.seccomp_init(ctypes.c_uint32(default)))

    def add(self, call, action, *compares):
        number = self.lib.seccomp_syscall_resolve_name(call.encode())
        if number < -100000 or number == -1 or action == self.default:
            return
        array = (Compare * max(1, len(compares)))(*[Compare(*c) for c in compares])
        rc = self.lib.seccomp_rule_add_array(self.context, ctypes.c_uint32(action), number, len(compares), array)
        assert rc == 0 or number < 0, f"{call}: {rc}"

    def load(self):
        rc = self.lib.seccomp_load(self.context)
        assert rc == 0, f"seccomp_load: {rc}"


@functools.cache
def groups():
    text = subprocess.run(["systemd-analyze", "syscall-filter"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        if line.startswith("@"):
            name = line.strip()
            found[name] = []
        elif name and line.startswith(" ") and not line.strip().startswith("#"):
            found[name].append(line.strip())
        elif line.startswith("#"):
            name = None
    return found


def calls(words):
    found = set()
    for word in words:
        found |= calls(groups()[word]) if word.startswith("@") else {word}
    return found


def by_list(lib, lines):
    """SystemCallFilter=: a list of what is allowed, or of what is not."""
    chosen, allow = set(), not lines[0].startswith("~")
    for line in lines:
        wanted = calls(line.lstrip("~").split())
        chosen = chosen | wanted if line.startswith("~") != allow else chosen - wanted
    f = Filter(lib, errno(EPERM) if allow else ALLOW)
    for call in sorted(chosen | (calls(["@default", "execve", "execveat"]) if allow else set())):
        f.add(call, ALLOW if allow else errno(EPERM))
    return f


def namespaces(lib, allowed):
    f = Filter(lib)
    f.add("clone3", errno(ENOSYS))
    if not allowed:
        f.add("setns", errno(EPERM))
    else:
        f.add("setns", errno(EPERM), (1, EQ, 0, 0))
    for name in set(CLONE) - allowed:
        f.add("unshare", errno(EPERM), (0, MASKED, CLONE[name], CLONE[name]))
        f.add("clone", errno(EPERM), (0, MASKED, CLONE[name], CLONE[name]))
        if allowed:
            f.add("setns", errno(EPERM), (1, MASKED, CLONE[name], CLONE[name]))
    return f


def details(unit, lib):
    f = Filter(lib)
    refused = set()
    for name, group in (("ProtectClock", "@clock"), ("ProtectKernelModules", "@module")):
        refused |= calls([group]) if unit.yes(name) else set()
    refused |= {"syslog"} if unit.yes("ProtectKernelLogs") else set()
    refused |= {"sethostname", "setdomainname"} if unit.yes("ProtectHostname") else set()
    for call in refused:
        f.add(call, errno(EPERM))
    if unit.words("RestrictAddressFamilies"):
        families = {AF[w] for w in unit.words("RestrictAddressFamilies")}
        for family in set(range(46)) - families:
            f.add("socket", errno(EAFNOSUPPORT), (0, EQ, family, 0))
        f.add("socket", errno(EAFNOSUPPORT), (0, GT, 45, 0))
    if unit.yes("RestrictRealtime"):
        for policy in (1, 2, 6):
            f.add("sched_setscheduler", errno(EPERM), (1, EQ, policy, 0))
    if unit.yes("RestrictSUIDSGID"):
        for call, arg in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("mkdir", 1), ("mkdirat", 2), ("mknod", 1), ("mknodat", 2)):
            for bit in (0o4000, 0o2000):
                f.add(call, errno(EPERM), (arg, MASKED, bit, bit))
    if unit.yes("MemoryDenyWriteExecute"):
        f.add("mmap", errno(EPERM), (2, MASKED, 6, 6))
        f.add("mprotect", errno(EPERM), (2, MASKED, 4, 4))
        f.add("pkey_mprotect", errno(EPERM), (2, MASKED, 4, 4))
        f.add("shmat", errno(EPERM), (2, MASKED, 0o100000, 0o100000))
    if unit.yes("LockPersonality"):
        f.add("personality", errno(EPERM), (0, NE, 0, 0))
    return f


def filters(unit):
    """Made before anything is given up; the architecture is the native one by itself."""
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    assert unit.one("SystemCallArchitectures", "native") == "native"
    found = [details(unit, lib)]
    restricted = unit.words("RestrictNamespaces")
    if restricted and restricted != ["no"]:
        found.append(namespaces(lib, set() if restricted == ["yes"] else set(restricted)))
    lines = [line for line in unit.values.get("SystemCallFilter", []) if line]
    unit.used.add("SystemCallFilter")
    return found + ([by_list(lib, lines)] if lines else [])


# ---- who it is -------------------------------------------------------------------------------------------------------------------


def id_of(name):
    try:
        return pwd.getpwnam(name).pw_uid, pwd.getpwnam(name).pw_gid
    except KeyError:
        return IDS[name], IDS[name]


def numbers(words):
    return {CAPS.index(w.removeprefix("CAP_")) for w in words}


def become(unit):
    bounding = numbers(unit.words("CapabilityBoundingSet")) if "CapabilityBoundingSet" in unit.values else set(range(len(CAPS)))
    ambient = numbers(unit.words("AmbientCapabilities"))
    more = [id_of(g)[1] for g in unit.words("SupplementaryGroups")]
    for cap in range(64):
        if cap not in bounding and LIBC.prctl(23, cap, 0, 0, 0) == 1:  # PR_CAPBSET_READ
            done(LIBC.prctl(24, cap, 0, 0, 0), f"dropping capability {cap}")
    if unit.one("User"):
        uid, gid = id_of(unit.one("User"))
        done(LIBC.prctl(8, 1, 0, 0, 0), "keeping capabilities")
        os.setgroups(more)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        bits = [sum(1 << c - 32 * i for c in ambient if c // 32 == i) for i in (0, 1)]
        header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[b for bit in bits for b in (bit, bit, bit)])
        done(LIBC.capset(header, sets), "capset")
        for cap in ambient:
            done(LIBC.prctl(47, 2, cap, 0, 0), "raising an ambient capability")


def main():
    unit, words, keep = Unit(sys.argv[1]), sys.argv[2:], []
    while words[0] == "--keep":
        keep.append(os.path.realpath(words[1]))
        words = words[2:]
    root = re.search(r" --root (\S+)", " ".join(words))
    root = os.path.realpath(root[1]) if root else ""
    keep += [root] if root else []
    lists = filters(unit)
    if unit.one("LimitNOFILE"):
        most = min(int(unit.one("LimitNOFILE")), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    confine_devices(unit)
    confine_files(unit, root, keep)
    os.umask(int(unit.one("UMask", "0022"), 8))
    become(unit)
    # One who is not root may only be filtered without new privileges: systemd takes care of that, too.
    if unit.yes("NoNewPrivileges") or unit.one("User"):
        done(LIBC.prctl(38, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
    unit.check()
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # it traces the program at its end
    for f in lists:  # the widest one last: it may refuse that another one is loaded
        f.load()
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
