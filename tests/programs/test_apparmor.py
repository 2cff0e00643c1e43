#!/usr/bin/env python3
"""The AppArmor profile is one: its parser takes it, without a kernel that has AppArmor. Skipped where there is no parser."""
import shutil
import subprocess
import sys

parser = shutil.which("apparmor_parser", path="/usr/sbin:/sbin:/usr/bin:/bin")
if not parser:
    print("skipped: there is no apparmor_parser here (package apparmor)")
    sys.exit(77)
done = subprocess.run([parser, "--skip-kernel-load", "--skip-cache", sys.argv[1]], text=True, capture_output=True, check=False, timeout=60)
assert done.returncode == 0, done.stderr
with open(sys.argv[1]) as f:
    text = f.read()
bad = subprocess.run([parser, "--skip-kernel-load", "--skip-cache"], input=text.replace("capability setuid,", "capability nonsense,"), text=True,
                     capture_output=True, check=False, timeout=60)
assert bad.returncode != 0, "the parser takes anything"
