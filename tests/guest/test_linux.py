#!/usr/bin/env python3
"""The Linux test guest says what it lacks, in one line and instead of READY, and a test that waits for its heartbeat names it: a network card
or a disk that was asked for and is not there, a module that cannot be loaded. get-linux makes a guest anew when apt has others packages to
give, and says when it could not ask."""
import contextlib
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
import heartbeat
import linuxguest
import scenario

BOOT_S = 300


@contextlib.contextmanager
def guest(made, directory, args, devices=(), initrd=None):
    """A guest in a QEMU of its own; what listens to it."""
    console = os.path.join(directory, "node1/run/ferry/pods/p/console")
    os.makedirs(console)
    command = ["qemu-system-x86_64", "-accel", "tcg", "-m", "192", "-machine", "q35", "-nodefaults", "-display", "none", "-no-reboot",
               "-serial", "file:" + os.path.join(console, "serial.log"), "-kernel", os.path.join(made, "vmlinuz"),
               "-initrd", initrd or os.path.join(made, "initrd.gz"), "-append", linuxguest.boot(args)["kernelArgs"], *devices]
    monitor = heartbeat.Monitor(directory)
    process = subprocess.Popen(command)
    try:
        yield monitor
    finally:
        process.kill()
        process.wait()
        monitor.stop()


def fault_of(made, args, devices=(), initrd=None):
    """What a test says that waits for this guest."""
    with tempfile.TemporaryDirectory() as directory, guest(made, directory, args, devices, initrd) as monitor:
        try:
            monitor.wait_beats(1, BOOT_S, 0)
        except AssertionError as error:
            return str(error)
        return None


def archive(directory, name, data):
    """A cpio archive with one file, which takes the place of that of the archive before it."""
    path = os.path.join(directory, "more")
    fields = [1, 0o100644, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    head = "070701" + "".join(f"{f:08x}" for f in fields)
    body = (head + name + "\0").encode()
    body += b"\0" * (-len(body) % 4) + data
    body += b"\0" * (-len(body) % 4)
    trailer = "TRAILER!!!"
    end = ("070701" + "".join(f"{f:08x}" for f in [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, len(trailer) + 1, 0]) + trailer + "\0").encode()
    with open(path, "wb") as f:
        f.write(body + end + b"\0" * (-len(end) % 4))
    return path


def test_no_card(made):
    said = fault_of(made, "net=10.0.0.1/24")
    assert said and "no network card" in said and "eth0" in said, said


def test_no_disk(made):
    said = fault_of(made, "disk=vda net=10.0.0.1/24", ["-device", "virtio-net-pci,netdev=n", "-netdev", "hubport,id=n,hubid=0"])
    assert said and "no disk" in said and "vda" in said, said


def test_bad_module(made):
    """One of its modules is not what the kernel takes: the others' order does not matter, this one is named."""
    listed = subprocess.run(["gzip", "-dc", os.path.join(made, "initrd.gz")], capture_output=True, check=True).stdout
    name = re.search(rb"lib/modules/\d+-virtio_net\.ko", listed)[0].decode()
    with tempfile.TemporaryDirectory() as directory:
        more, whole = archive(directory, name, b"this is no module"), os.path.join(directory, "initrd")
        with open(whole, "wb") as out:
            for part in (os.path.join(made, "initrd.gz"), more):
                with open(part, "rb") as f:
                    out.write(f.read())
                out.write(b"\0" * (-out.tell() % 4))  # the kernel looks for the next one at such places
        said = fault_of(made, "", initrd=whole)
    assert said and "module virtio_net of linux" in said and "cannot be loaded" in said, said


def fetch(directory, path=None):
    env = dict(os.environ, PATH=f"{path}:{os.environ['PATH']}") if path else None
    return subprocess.run([os.path.join(HERE, "get-linux"), directory], capture_output=True, text=True, env=env, check=False)


def test_cache(made):
    """A guest of other packages is made anew; it is used as it is, and that is said, only where apt cannot be asked."""
    with tempfile.TemporaryDirectory() as directory:
        for name in ("vmlinuz", "initrd.gz", "made-of"):
            with open(os.path.join(made, name), "rb") as source, open(os.path.join(directory, name), "wb") as copy:
                copy.write(source.read())
        stamp = os.path.join(directory, "made-of")
        with open(stamp) as f:
            recipe, packages = f.read().splitlines()
        assert fetch(directory).stderr == "" and open(stamp).read().splitlines()[1] == packages
        os.remove(os.path.join(directory, "checked"))
        with open(stamp, "w") as f:
            f.write(f"{recipe}\nlinux-image-5.10.0-1-cloud-amd64 and 3 packages, old\n")
        broken = os.path.join(directory, "bin")
        os.mkdir(broken)
        for name in ("apt-get", "apt-cache"):
            with open(os.path.join(broken, name), "w", opener=lambda p, f: os.open(p, f, 0o755)) as f:
                f.write("#!/bin/sh\nexit 100\n")
        done = fetch(directory, broken)
        assert done.returncode == 0 and "guest made earlier is used: linux-image-5.10.0-1" in done.stderr, done
        done = fetch(directory)
        assert done.returncode == 0 and done.stderr == "" and open(stamp).read().splitlines()[1] == packages, done
        with open(stamp, "w") as f:
            f.write("another recipe\nsomething\n")
        done = fetch(directory, broken)
        assert done.returncode == 1 and "apt-get update failed" in done.stderr, done


sys.argv[1:] = [linuxguest.need(), *sys.argv[2:]]
scenario.main(globals())
