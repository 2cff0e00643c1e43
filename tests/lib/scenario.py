"""Runs the test_* functions of a file one after the other and says how each went.

A test file ends with `scenario.main(globals())`. Its arguments: the directory with the programs, then names of
tests to run instead of all. Exit code 77 means that the machine cannot run them at all.
"""
import os
import sys
import time
import traceback


def need_root():
    if os.geteuid() != 0:
        print("skipped: network namespaces need root")
        sys.exit(77)


def main(names):
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} BIN_DIR [TEST]...")
    tests = [f for n, f in names.items() if n.startswith("test_") and (not sys.argv[2:] or n in sys.argv[2:])]
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
