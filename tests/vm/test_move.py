#!/usr/bin/env python3
"""Moves of a real guest between two launchers, by hand: no API, no controller, no handlers.
Numbers of cases are items of docs/conformance.md."""
import os
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lab as labs  # noqa: E402
import scenario  # noqa: E402

MIB = 1 << 20


def test_there_and_back(bin_dir):
    """163, 164, 176, 177, 313, 315, 321: a result stands, with its end; what comes later, or of another name, changes nothing."""
    with labs.lab(bin_dir) as lab:
        guest, first = labs.start(lab)
        second, m = labs.move(lab, guest, first, 1)
        # a migration is one-shot, and a guest that left is not started again
        ended = first.migration()
        assert ended["phase"] == "succeeded" and ended["endTimestamp"], ended
        assert first.call("PUT", f"/v1/migrations/{m.uid}", {"vmi": guest})[0] == 409
        assert first.call("POST", f"/v1/migrations/{m.uid}/cancel")[0] == 409
        assert first.call("POST", "/v1/migrations/unknown/cancel")[0] == 404
        assert first.migration() == ended, (first.migration(), ended)
        assert first.ok("PUT", "/v1/vm", {"vmi": guest})["domain"]["state"] == "shutoff"
        record = first.ok("GET", f"/v1/records/{m.uid}")
        assert '"type":"start"' in record and '"type":"end","phase":"succeeded"' in record, record
        first.end()
        third, _ = labs.move(lab, guest, second, 0)
        second.end()
        lab.check_guest(third)
        third.end()


def test_wrong_calls(bin_dir):
    with labs.lab(bin_dir) as lab:
        guest, pod = labs.start(lab)
        other = labs.vmi("other", str(uuid.uuid4()))
        for method, path, body, status, text in (
                ("PUT", "/v1/vm", {"vmi": other}, 400, "this launcher is for VMI"),
                ("PUT", "/v1/vm", {}, 400, "the field 'vmi' is missing"),
                ("PUT", "/v1/vm", {"vmi": []}, 400, "vmi"),
                ("PUT", "/v1/migrations/a_b", {"vmi": guest}, 404, "there is no PUT"),
                ("PUT", "/v1/migrations/u1", {"vmi": guest, "options": {"unsafe": 1}}, 400, "options.unsafe"),
                ("PUT", "/v1/target/u1", {"vmi": guest}, 409, "a guest runs here already"),
                ("GET", "/v1/records/u1", None, 404, "no record"),
                ("POST", "/v1/migrations/u1/finalize", None, 404, "no migration u1"),
                ("POST", "/v1/status", None, 405, "there is no POST"),
                ("GET", "/v1/events?since=x", None, 400, "since"),
                ("GET", "/elsewhere", None, 404, "there is no GET")):
            got, answer = pod.call(method, path, body)
            assert got == status and text in answer["message"], (method, path, got, answer)
        lab.check_guest(pod)
        pod.end()
        guest["spec"]["domain"]["firmware"]["kernelBoot"]["container"]["kernelPath"] = "/missing.elf"
        pod = labs.Pod(lab.nodes[0], "virt-launcher-1", guest)
        for path in ("/v1/vm", "/v1/target/u1"):
            status, answer = pod.call("PUT", path, {"vmi": guest})
            assert status == 400 and "kernelPath: /var/run/ferry-guest/missing.elf: No such file" in answer["message"], \
                (status, answer)
        pod.end()


def test_migration_without_a_target(bin_dir):
    """Nothing listens in the source's directory: the guest stays, and the reason is said."""
    with labs.lab(bin_dir) as lab:
        guest, pod = labs.start(lab)
        pod.ok("PUT", "/v1/migrations/u1", {"vmi": guest})
        m = labs.wait_for("the end", lambda: pod.migration() if pod.migration()["phase"] != "running" else None)
        assert m["phase"] == "failed" and m["reasonCode"] == "LibvirtError", m
        assert "Failed to connect socket" in m["failureReason"], m
        lab.check_guest(pod)
        pod.end()


def cancel_midway(lab, guest, source, options=None):
    target = labs.Pod(lab.nodes[1], "virt-launcher-2", guest)
    m = labs.Move(lab, guest, source, target, options)
    m.wait_bytes(MIB)
    for _ in range(2):
        if m.phase(source) == "running":
            source.call("POST", f"/v1/migrations/{m.uid}/cancel")
    phases = m.wait_end(30)
    assert phases == ("failed", "failed"), phases
    status = source.migration()
    assert status["abortStatus"] == "Succeeded" and status["reasonCode"] == "Aborted", status
    assert status["endTimestamp"], status
    assert status["failureReason"] == "Live migration has been aborted", status
    assert target.domain() == "none", target.status()
    lab.check_guest(source)
    m.close()
    assert source.left_in_m() == [] and target.left_in_m() == [], (source.left_in_m(), target.left_in_m())
    target.end()


def test_cancel(bin_dir):
    """166, 168, 178: On a slow link, then with a bandwidth limit; afterwards the guest can still move."""
    with labs.lab(bin_dir) as lab:
        guest, first = labs.start(lab)
        lab.nodes[0].shape(40)
        cancel_midway(lab, guest, first)
        lab.nodes[0].shape(0)
        cancel_midway(lab, guest, first, {"bandwidthBytesPerS": 4 * MIB})
        second, _ = labs.move(lab, guest, first, 1)
        first.end()
        second.end()


scenario.need_root()
scenario.main(globals())
