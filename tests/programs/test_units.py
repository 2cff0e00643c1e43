#!/usr/bin/env python3
"""The systemd units as they were built: systemd takes them without a word, and what they call is there and knows the options."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

BIN, UNITS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# The most that `systemd-analyze security` may find exposed, of 10.
BARS = {"ferry-apiserver": 2.5, "ferry-controller": 2.5, "ferry-relay": 2.5, "ferry-handler": 5.5, "ferry-pods": 5.5}
# What would break something: every guest inherits what ferry-pods may not do, and the handler asks QEMU what the host can.
DEVICES = ("PrivateDevices", "DevicePolicy", "DeviceAllow", "ProtectClock", "MemoryDenyWriteExecute")
OWN_MOUNTS = ("ProtectSystem", "ProtectHome", "ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups",
              "ProtectProc", "ProcSubset", "PrivateTmp", "PrivateMounts", "PrivateIPC", "ReadWritePaths", "ReadOnlyPaths",
              "InaccessiblePaths", "ExecPaths", "NoExecPaths", "BindPaths", "BindReadOnlyPaths", "TemporaryFileSystem", "MountFlags",
              "RootDirectory", "RootImage", "DynamicUser", "StateDirectory", "CacheDirectory", "LogsDirectory")
BREAKS = {"ferry-pods": (*OWN_MOUNTS, "PrivateDevices", "MemoryDenyWriteExecute", "MemoryMax", "ProtectHostname", "IPAddressDeny"),
          "ferry-handler": DEVICES,
          # Whether another controller lives (kube/lease.c).
          "ferry-controller": ("ProtectProc", "ProcSubset", "PrivatePIDs")}
# What pods can be given, by the kernel's list of minor numbers (Documentation/admin-guide/devices.txt).
MISC = {"kvm": 232, "net/tun": 200, "vfio/vfio": 196, "vhost-net": 238}
NAMES = ["ferry-apiserver", "ferry-controller", "ferry-handler", "ferry-pods", "ferry-relay"]


def command_of(text, setting="ExecStart"):
    [line] = re.findall(rf"^{setting}=\+?(.*)$", text, re.M)
    return line.split()


def options_are_known(name, text, setting="ExecStart"):
    program, *words = command_of(text, setting)
    assert os.path.basename(program) == name, program
    verbs = [w for w in words[:1] if not w.startswith("-")]
    done = subprocess.run([os.path.join(BIN, name), *verbs, "--help"], text=True, stdout=subprocess.PIPE, timeout=60, check=True)
    for option in (w for w in words if w.startswith("--")):
        assert re.search(rf"^\s.*{option}\b", done.stdout, re.M), f"{name} has no {option}"


def confined(name, text):
    for setting in ("CapabilityBoundingSet", "SystemCallFilter", "RestrictAddressFamilies", "RestrictNamespaces", "UMask", "TasksMax"):
        assert re.search(rf"^{setting}=", text, re.M), f"{name} has no {setting}"
    for setting in BREAKS.get(name, ()):
        assert not re.search(rf"^{setting}=", text, re.M), f"{name} has {setting}"
    if name in ("ferry-apiserver", "ferry-controller"):
        assert f"User={name}\n" in text
        options_are_known(name, text, "ExecStartPre")
    if name != "ferry-pods":
        assert re.search("^MemoryMax=", text, re.M) and "ProtectSystem=strict\n" in text, name


def bars_are_kept(directory):
    """Each alone: with a threshold it says by its exit code whether it is kept."""
    for name, bar in BARS.items():
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={round(bar * 10)}",
                               os.path.join(directory, name + ".service")], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=120)
        found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
        assert found, done.stdout[-2000:]
        print(f"{name}: {found[1]} of at most {bar}")
        assert done.returncode == 0 and float(found[1]) <= bar, done.stdout


def main():
    found = sorted(os.path.basename(p)[:-len(".service")] for p in glob.glob(os.path.join(UNITS, "*.service")))
    assert found == NAMES, found
    texts = {}
    for name in NAMES:
        with open(os.path.join(UNITS, name + ".service")) as f:
            texts[name] = f.read()
        options_are_known(name, texts[name])
        confined(name, texts[name])
    users = open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../deploy/systemd/ferry.sysusers")).read()
    assert all(f"u {user} -" in users for user in ("ferry-relay", "ferry-apiserver", "ferry-controller")), users
    # What outlives its agent must not be ended with it.
    assert "KillMode=process" in texts["ferry-pods"] and "SendSIGKILL=no" in texts["ferry-pods"]
    assert "Delegate=yes" in texts["ferry-pods"] and "TasksMax=infinity" in texts["ferry-pods"]
    devices = re.findall("^DeviceAllow=(.*)$", texts["ferry-pods"], re.M)
    assert sorted(devices) == sorted([*(f"/dev/char/10:{n} rwm" for n in MISC.values()), "/dev/userfaultfd rwm", "char-vfio rwm",
                                      "block-* rwm"]), devices
    assert "FileDescriptorStoreMax=" in texts["ferry-relay"] and "Type=notify" in texts["ferry-relay"]
    if not shutil.which("systemd-analyze"):
        print("systemd-analyze is not here: units were only read")
        return
    with tempfile.TemporaryDirectory() as d:
        for name, text in texts.items():  # systemd looks whether the program is there
            with open(os.path.join(d, name + ".service"), "w") as f:
                f.write(text.replace(command_of(text)[0], os.path.join(BIN, name)))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", *sorted(glob.glob(d + "/*.service"))], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        ours = [line for line in done.stdout.splitlines() if "ferry-" in line]  # of the host's own units it may complain, too
        assert not ours and (done.returncode == 0 or done.stdout), done.stdout
        bars_are_kept(d)


main()
