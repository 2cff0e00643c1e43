#!/usr/bin/env python3
"""The command line and its manual say the same: every verb has its help, its page, its completion, and no option is told in one place alone."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import scenario

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = os.path.join(ROOT, "docs/man/ferry.1.rst")
COMMON = {"--help", "--version", "--namespace", "--all-namespaces", "--output", "--kubeconfig"}


def ferry(bin_dir, *args):
    return subprocess.run([os.path.join(bin_dir, "ferry"), *args], text=True, timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


def verbs(bin_dir):
    """Every verb with those below it: ("vm", "create"), ("why",), ..."""
    def below(*prefix):
        text = ferry(bin_dir, *prefix, "--help").stdout
        listed = text.partition("\nVerbs:\n")[2].partition("\n\n")[0]
        return re.findall(r"^  (\S+) ", listed, re.M)
    found = []
    for verb in below():
        subs = below(verb) if "\nVerbs:\n" in ferry(bin_dir, verb, "--help").stdout else []
        found += [(verb, sub) for sub in subs] or [(verb,)]
    return found


def page_of(verb):
    done = subprocess.run([os.path.join(ROOT, "tools/verb-page"), verb, PAGE], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def options_of(text):
    """Long options that a help text lists."""
    return set(re.findall(r"^  (?:-\w,|   ) (--[a-z][a-z-]*)", text, re.M))


def test_help(bin_dir):
    found = verbs(bin_dir)
    assert len(found) > 25 and ("vm", "pause") in found and ("why",) in found, found
    for verb in found:
        for word in ("--help", "-h"):
            done = ferry(bin_dir, *verb, word)
            assert done.returncode == 0 and done.stdout.startswith(f"Usage: ferry {' '.join(verb)}") and not done.stderr, (verb, done)
            assert max(len(line) for line in done.stdout.split("\n")) <= 100, (verb, done.stdout)


def test_every_verb_has_its_page(bin_dir):
    for verb in verbs(bin_dir):
        page = page_of(verb[0])
        help_text = ferry(bin_dir, *verb, "--help").stdout
        assert f"ferry {verb[0]}" in page and (len(verb) == 1 or re.search(rf"\b{verb[1]}\b", page)), verb
        for option in options_of(help_text):
            assert option in page, f"ferry {' '.join(verb)}: {option} is not in the page of ferry {verb[0]}"


def test_every_program_has_its_page(bin_dir):
    """With each option that its help lists."""
    programs = [name for name in os.listdir(bin_dir) if re.fullmatch(r"ferry-\w+", name)]
    assert len(programs) >= 7, programs
    for name in programs:
        pages = [p for p in os.listdir(os.path.join(ROOT, "docs/man")) if re.fullmatch(rf"{name}(-\w+)?\.8\.rst", p)]
        text = ""
        for page in pages:
            with open(os.path.join(ROOT, "docs/man", page), encoding="utf8") as f:
                text += f.read()
        for include in re.findall(r"^\.\. include:: (\S+)", text, re.M):
            with open(os.path.join(ROOT, "docs/man", include), encoding="utf8") as f:
                text += f.read()
        assert pages, f"{name} has no manual page"
        done = subprocess.run([os.path.join(bin_dir, name), "--help"], text=True, timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert done.returncode == 0 and options_of(done.stdout), (name, done)
        for option in options_of(done.stdout) - {"--help", "--version"}:
            assert option in text, f"{name}: {option} is not in its page"


def test_no_option_that_is_not_there(bin_dir):
    """What the page tells of a verb it takes."""
    known = {}
    for verb in verbs(bin_dir):
        known.setdefault(verb[0], set()).update(options_of(ferry(bin_dir, *verb, "--help").stdout))
    for verb, options in known.items():
        about = page_of(verb).partition("COMMON OPTIONS")[0].partition("DESCRIPTION")[2]
        for option in re.findall(r"^(?:-\w, )?(--[a-z][a-z-]*)", about, re.M):
            assert option in options | COMMON, f"the page of ferry {verb} tells of {option}, which is not there"


def test_completion(bin_dir):
    """Both scripts know every verb, and are scripts."""
    for shell in ("bash", "zsh"):
        done = ferry(bin_dir, "completion", shell)
        assert done.returncode == 0, done.stderr
        for verb in verbs(bin_dir):
            assert re.search(rf"\b{verb[-1]}\b", done.stdout), (shell, verb)
    subprocess.run(["bash", "-n"], input=ferry(bin_dir, "completion", "bash").stdout, text=True, check=True)
    for args in (("completion",), ("completion", "fish"), ("completion", "bash", "zsh")):
        done = ferry(bin_dir, *args)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (args, done)


def test_wrong_calls(bin_dir):
    """Every verb refuses an option that it does not know, and arguments that it does not take, in one sentence, with code 2."""
    for verb in verbs(bin_dir):
        for more in (["--no-such-option"], ["--output"], ["a", "b", "c", "--no-such-option"]):
            done = ferry(bin_dir, *verb, *more)
            assert done.returncode == 2, (verb, more, done)
            assert done.stderr.startswith("ferry: ") and done.stderr.count("\n") == 1 and not done.stdout, (verb, more, done)


def test_output_that_cannot_be_written(bin_dir):
    """A full disk below standard output is no success."""
    for args in (["--help"], ["completion", "bash"], ["why", "--help"], ["--version"]):
        with open("/dev/full", "w", encoding="utf8") as full:
            done = subprocess.run([os.path.join(bin_dir, "ferry"), *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 1 and "standard output" in done.stderr, (args, done)


scenario.main(globals())
