#!/usr/bin/env python3
"""README's "A virtual machine of your own", typed as it stands on a site of two nodes: the guest boots from the first block of its disk and
from nothing else, and goes on where it was after a move. In place of Debian's image curl brings one that only says that it runs."""
import contextlib
import glob
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
import scenario
from ferrysite import Site, wait_for

ROOT = os.path.join(HERE, "../..")
SAYS = b"FROM DISK "
# What BIOS loads to 0000:7C00: it writes SAYS, a letter and a newline to the first serial port some times per second, each time the next letter.
CODE = bytes.fromhex(
    "31c0 8ed8 b341"            # xor ax, ax; mov ds, ax; mov bl, 'A'
    "be 407c"                   # again: mov si, SAYS (behind the code)
    "ac 84c0 7405 e81e00 ebf6"  # next: lodsb; test al, al; jz letter; call put; jmp next
    "88d8 e81700 b00a e81200"   # letter: mov al, bl; call put; mov al, newline; call put
    "fec3 80fb5a 7602 b341"     # inc bl; cmp bl, 'Z'; jbe pause; mov bl, 'A'
    "b90400 fb f4 e2fc"         # pause: mov cx, 4; sti; hlt (until the timer ticks); loop
    "ebd7"                      # jmp again
    "88c4 bafd03 ec a820 74fb"  # put: mov ah, al; mov dx, line status; in al, dx; test al, 20h; jz in
    "baf803 88e0 ee c3"         # mov dx, data; mov al, ah; out dx, al; ret
)


def image():
    """A disk of 1 MiB that boots."""
    assert len(CODE) == 0x40, hex(len(CODE))
    return (CODE + SAYS + b"\0").ljust(510, b"\0") + b"\x55\xaa" + bytes((1 << 20) - 512)


def readme(site):
    """The commands, but for the console, which stays; with the directory of this site."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf8") as f:
        block = re.search(r"## A virtual machine of your own\n.*?```sh\n(.*?)```", f.read(), re.S)[1]
    assert block.startswith("S=/var/lib/ferry-site ") and " && ferry vm console debian " in block, block
    return block.replace("S=/var/lib/ferry-site ", f"S={site.root} ").replace(" && ferry vm console debian ", "")


def letters(site):
    """What the guest has said on this node."""
    return "".join(re.findall(f"{SAYS.decode()}([A-Z])\r?\n", site.ferry("vm", "console", "debian", "--once", "--tail", "20000").stdout))


def goes_on(site):
    """The guest says one letter after the other and never begins anew."""
    said = wait_for("the guest to boot from its disk", lambda: len(text := letters(site)) > 20 and text, 120)
    assert said in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" * (len(said) // 26 + 2), said


def command_lines():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, encoding="utf8", errors="replace") as f:
            yield f.read().replace("\0", " ")


def sized(site):
    """examples/instance-type.yaml: the guest has the CPUs and the memory that the VM names, and starts by kubectl alone."""
    site.kubectl("apply", "-f", os.path.join(ROOT, "examples/instance-type.yaml"))
    site.kubectl("wait", "vm/sized", "--for=jsonpath={.status.printableStatus}=Running", "--timeout=60s")
    [qemu] = [line for line in command_lines() if "guest=default_sized" in line]
    assert "cores=2" in qemu and "size=131072k" in qemu, qemu
    wait_for("its guest to speak", lambda: "HB " in site.ferry("vm", "console", "sized", "--once", "--tail", "500").stdout, 60)


def test_readme(bin_dir):
    with Site(bin_dir) as site:
        disk = os.path.join(os.path.dirname(site.root), "debian.img")
        with open(disk, "wb") as f:
            f.write(image())
        curl = f'curl() {{ [ "$1 $3" = "-L -o" ] && cp {disk} "$4"; }}; set -e\n'
        env = dict(site.environment(), PATH=site.bin + ":" + os.environ["PATH"])
        done = subprocess.run(["bash"], input=curl + readme(site), env=env, cwd=ROOT, text=True, timeout=180, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0 and "virtualmachine.kubevirt.io/debian created" in done.stdout, done.stdout
        goes_on(site)
        assert "moved from" in site.ferry("migrate", "debian", "--watch").stdout
        goes_on(site)
        sized(site)


scenario.need_root()
scenario.main(globals())
