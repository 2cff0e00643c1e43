#!/usr/bin/env python3
"""scripts/release: what must not be released is refused, and what is made is whole: the tarball is the commit, the checksums are right, the
list of parts names what the package depends on, and a second time gives the same bytes."""
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
import scenario

ROOT = os.path.join(HERE, "../..")
# Neither this machine's settings nor another owner of the directory shall matter.
ENVIRONMENT = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_COUNT="3", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*",
                   GIT_CONFIG_KEY_1="user.name", GIT_CONFIG_VALUE_1="test", GIT_CONFIG_KEY_2="user.email", GIT_CONFIG_VALUE_2="test@localhost")


def run(*words, cwd=None, code=0, **more):
    done = subprocess.run(words, cwd=cwd, env=dict(ENVIRONMENT, **more), text=True, timeout=300, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == code, f"{words}: {done.returncode}, not {code}\n{done.stdout}"
    return done.stdout.strip()


class Tree:
    """A repository with as much of the project as a release looks at."""

    def __init__(self, base):
        self.top = os.path.join(base, "tree")
        os.makedirs(os.path.join(self.top, "scripts"))
        for name in ("release", "sbom"):
            shutil.copy(os.path.join(ROOT, "scripts", name), os.path.join(self.top, "scripts"))
        shutil.copy(os.path.join(ROOT, "meson.build"), self.top)
        self.version = re.search(r"^  version: '(.*)',$", self.read("meson.build"), re.M)[1]
        self.write("NEWS.md", f"# News\n\n## {self.version} (2026-01-31)\n\n- It moves.\n\n## 0.1.0 (2025-01-31)\n")
        self.write(".gitignore", "/dist/\n")
        self.git("init", "-q", "-b", "main")
        self.commit("first")

    def read(self, name):
        with open(os.path.join(self.top, name), encoding="utf8") as f:
            return f.read()

    def write(self, name, text):
        with open(os.path.join(self.top, name), "w", encoding="utf8") as f:
            f.write(text)

    def git(self, *words):
        return run("git", *words, cwd=self.top)

    def commit(self, what):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", what)

    def release(self, *words, code=0):
        return run("scripts/release", *words, cwd=self.top, code=code)


def in_a_directory(test):
    @functools.wraps(test)
    def wrapped(_):
        with tempfile.TemporaryDirectory(prefix="ferry-release-") as base:
            test(base)
    return wrapped


@in_a_directory
def test_refused(base):
    tree = Tree(base)
    for words in ((), ("publish",), ("make",)):
        assert "usage: release" in tree.release(*words, code=1)
    assert tree.release("check") == ""
    tree.write("stray", "")
    assert "not committed" in tree.release("check", code=1)
    os.remove(os.path.join(tree.top, "stray"))
    news = tree.read("NEWS.md")
    for wrong in (news.replace(f"## {tree.version} (2026-01-31)", f"## {tree.version} (unreleased)"), news.replace(tree.version, "9" + tree.version)):
        tree.write("NEWS.md", wrong)
        tree.commit("news")
        assert f"NEWS.md has no entry for {tree.version}" in tree.release("check", code=1)
    tree.write("NEWS.md", news)
    tree.commit("news again")
    tree.git("tag", f"v{tree.version}")
    assert tree.release("check") == ""  # the tagged commit may be made again
    tree.write("more", "")
    tree.commit("more")
    assert f"v{tree.version} is tagged already" in tree.release("check", code=1)
    tree.write("meson.build", tree.read("meson.build").replace(f"'{tree.version}'", "'1.x'"))
    tree.commit("version")
    assert "'1.x' is not a version" in tree.release("check", code=1)


@in_a_directory
def test_made(base):
    build = os.path.dirname(os.path.abspath(sys.argv[1]))
    tree = Tree(base)
    dist = os.path.join(tree.top, "dist")
    os.mkdir(dist)
    assert "make deb makes it" in tree.release("make", "dist", code=1)
    deb = run(os.path.join(ROOT, "scripts/deb"), build, dist, DEB_COMPRESSION="none").splitlines()[-1]
    made = [os.path.basename(line) for line in tree.release("make", "dist").splitlines()]
    stem = os.path.basename(deb)[:-len(".deb")]
    assert made == [f"ferry-{tree.version}.tar.gz", f"{stem}.deb", f"{stem}.cdx.json", "SHA256SUMS"] and sorted(made) == sorted(os.listdir(dist)), made
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=dist)
    with tarfile.open(os.path.join(dist, made[0])) as tar:
        names = {n for n in tar.getnames() if n.count("/") >= 1}
    assert names == {f"ferry-{tree.version}/{n}" for n in [*tree.git("ls-files").splitlines(), "scripts"]}, names
    with open(os.path.join(dist, made[2]), encoding="utf8") as f:
        parts = json.load(f)
    with open(deb, "rb") as f:
        assert parts["metadata"]["component"]["hashes"][0]["content"] == hashlib.sha256(f.read()).hexdigest()
    by_name = {c["name"]: c for c in parts["components"]}
    assert {"libc6", "libvirt0", "bubblewrap", "iproute2"} <= set(by_name) and by_name["libc6"]["scope"] == "required", sorted(by_name)
    assert re.fullmatch(r"pkg:deb/debian/libc6@[^?]+\?arch=\w+&distro=debian-\d+", by_name["libc6"]["purl"]), by_name["libc6"]
    assert by_name["qemu-system-x86"]["scope"] == "optional" and set(parts["dependencies"][0]["dependsOn"]) == set(by_name)
    before = {name: open(os.path.join(dist, name), "rb").read() for name in made}
    tree.release("make", "dist")
    assert before == {name: open(os.path.join(dist, name), "rb").read() for name in made}, "a second time gives other bytes"


scenario.main(globals())
