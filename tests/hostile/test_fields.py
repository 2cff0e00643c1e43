#!/usr/bin/env python3
"""A node that was taken over writes what it likes into VMIs: a real API server, and certificates of nodes. The attacks themselves, which
tests/kubernetes makes against a real kube-apiserver as well, are in tests/lib/fieldattacks.py."""
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
os.environ["FERRY_BUILD"] = os.path.join(os.path.abspath(sys.argv[1]), "..")
sys.path[:0] = [os.path.join(HERE, "../lib"), os.path.join(HERE, "../api")]
import fieldattacks
import scenario
from lab import EmbeddedLab


NODES = ("n1", "n2", "n3", "a", "b", "c")


def fields():
    """The server, and whose calls are whose."""
    lab = EmbeddedLab()
    clients = {"admin": lab.admin, "controller": lab.controller(), **{n: lab.node(n) for n in NODES}}
    return lab, fieldattacks.Fields(clients.__getitem__)


def with_server(what):
    lab, f = fields()
    try:
        return what(f)
    finally:
        lab.close()


def test_attacks(_):
    print(f"{with_server(fieldattacks.Fields.attacks)} attacks refused")


def test_every_way_to_write(_):
    with_server(fieldattacks.Fields.every_way_to_write)


def test_what_handlers_write(_):
    with_server(fieldattacks.Fields.honest)


def test_rows_of_the_table(bin_dir):
    print(f"{with_server(lambda f: f.rows(bin_dir))} rows")


scenario.main(globals())
