"""Runs the test_* functions of a file one after the other and says how each went.

A test file ends with `scenario.main(globals())`. Its arguments: the directory with the programs, then names of
tests to run instead of all, or K/N: the Kth of N parts, so that a long file is several tests that run side by side. Exit code 77
means that the machine cannot run them at all.
"""
import os
import sys
import time
import traceback


def need_root():
    if os.geteuid() != 0:
        print("skipped: network namespaces need root")
        sys.exit(77)


def chosen(tests, words):
    """Those of the tests that the words ask for: names, one K/N, or nothing for all."""
    if len(words) == 1 and "/" in words[0]:
        part, parts = map(int, words[0].split("/"))
        return tests[part - 1 :: parts]
    unknown = set(words) - {t.__name__ for t in tests}
    if unknown:
        sys.exit(f"no such test: {', '.join(sorted(unknown))}")
    return [t for t in tests if not words or t.__name__ in words]


def main(names):
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} BIN_DIR [TEST]... | BIN_DIR K/N")
    tests = chosen([f for n, f in names.items() if n.startswith("test_")], sys.argv[2:])
    failed = []
    for test in tests:
        begin = time.monotonic()
        try:
            test(sys.argv[1])
            word = "ok"
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc(file=sys.stdout)
            failed.append(test.__name__)
            word = "FAILED"
        print(f"{word:6} {test.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)
