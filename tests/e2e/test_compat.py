#!/usr/bin/env python3
"""Programs of the version before (tests/compat/version) beside today's: node1 is all old, node2 and the API server and the
controller are today's. A VM moves each way; then node1's handler and relay are upgraded under a VM that the old ones started, as
an upgrade of a host does it, and it moves each way again."""
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
import scenario
from versions import Mixed, move, old_programs

OLD_NODE = "node1"
OF_A_NODE = ("ferry-handler", "ferry-pods", "ferry-relay")  # launcher, init and gate are those of ferry-pods


def name_of(program):
    """How the site calls the old node's `program`."""
    return f"{OLD_NODE}-{program.removeprefix('ferry-')}"


def close_node(site, node, closed):
    code, answer = site.api.call("PATCH", site.api.path("nodes", node), {"spec": {"unschedulable": closed}},
                                 "application/merge-patch+json")
    assert code == 200, answer


def test_versions_move_to_each_other(bin_dir):
    with Mixed(bin_dir, old_programs(), [OLD_NODE]) as site:
        for program in OF_A_NODE:
            assert site.program(name_of(program)).startswith(site.old), program
        close_node(site, "node2", True)
        site.ferry("vm", "create", "vm", "--memory", "64Mi", "--dirty-rate", "4", "--working-set", "16", "--heartbeat", "20", "--wait")
        close_node(site, "node2", False)
        monitor = site.monitor()
        try:
            monitor.wait_beats(5, 60)
            assert site.node_of("vm") == OLD_NODE and site.launchers_are_old(OLD_NODE)
            move(site, monitor, "node2")
            move(site, monitor, OLD_NODE)
            site.upgrade("ferry-handler", name_of("ferry-handler"))
            move(site, monitor, "node2")
            site.upgrade("ferry-relay", name_of("ferry-relay"))
            move(site, monitor, OLD_NODE)
            assert site.launchers_are_old(OLD_NODE), "the launchers are old to the end"
        finally:
            monitor.stop()


scenario.need_root()
scenario.main(globals())
