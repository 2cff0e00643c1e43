#!/usr/bin/env python3
"""test_banned.py COMPILER SRC: nothing of src can call a function that src/base/banned.h bans, and everything else can be called."""
import pathlib
import re
import subprocess
import sys


def compile_call(compiler, src, call):
    return subprocess.run([compiler, "-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only", "-I", src, "-include", "base/banned.h", "-x", "c", "-"],
                          input=f"int main(void)\n{{\n    {call};\n}}\n", capture_output=True, text=True, check=False)


def main():
    compiler, src = sys.argv[1:]
    banned = re.findall(r"^#define (\w+)\(\.\.\.\)", (pathlib.Path(src) / "base/banned.h").read_text(), re.M)
    assert len(banned) > 20, banned
    for name in banned:
        done = compile_call(compiler, src, f"{name}(0)")
        assert done.returncode != 0 and f"{name}_is_banned_use_" in done.stderr, (name, done.stderr)
    done = compile_call(compiler, src, 'char b[2]; snprintf(b, sizeof(b), "x")')
    assert done.returncode == 0, done.stderr
    print(f"{len(banned)} functions")


main()
