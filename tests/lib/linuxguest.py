"""The Linux test guest (tests/guest/linux): Debian's kernel for clouds, busybox, and a redis that is written to all the time. Its
heartbeat says how many writes redis has acknowledged, and v on its serial line has all of them read back."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MEMORY = "192Mi"
BOOT_S = 300  # under emulation, on a busy machine


def need():
    """Its directory; where Debian's packages cannot be had, the test is skipped."""
    done = subprocess.run([os.path.join(HERE, "../guest/get-linux")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"skipped: no Linux guest: {done.stderr.strip()}")
        sys.exit(77)
    if done.stderr:
        print(done.stderr.strip(), flush=True)  # a guest of older packages
    return done.stdout.strip()


def install(bin_dir):
    """Where the site looks for kernels."""
    made, there = need(), os.path.join(os.path.abspath(bin_dir), "../lib/ferry/guest")
    for name in ("vmlinuz", "initrd.gz"):
        copy, path = tempfile.mkstemp(dir=there)  # other tests do the same
        os.close(copy)
        shutil.copy(os.path.join(made, name), path)
        os.chmod(path, 0o644)
        os.replace(path, os.path.join(there, name))


def boot(args=""):
    """firmware.kernelBoot of a VMI."""
    return {"kernelArgs": f"console=ttyS0 quiet loglevel=3 tsc=reliable {args}".strip(),
            "container": {"image": "ferry.io/builtin", "kernelPath": "/vmlinuz", "initrdPath": "/initrd.gz"}}


def start(lab):
    """One that runs on the first of a lab's nodes (tests/vm/lab.py): (VMI, pod)."""
    import lab as labs  # pylint: disable=import-outside-toplevel

    guest = labs.new_guest(memory=MEMORY)
    guest["spec"]["domain"]["firmware"]["kernelBoot"] = boot()
    pod = labs.Pod(lab.nodes[0], "virt-launcher-1", guest)
    pod.ok("PUT", "/v1/vm", {"vmi": guest})
    lab.monitor.wait_beats(5, BOOT_S, 0)
    print(next(text for _, _, text in lab.monitor.lines if text.startswith("READY")))
    lab.share_cache(pod)
    return guest, pod
