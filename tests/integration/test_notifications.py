"""What targets are told: a real operator, a real HTTPS receiver, and the libraries that its users have."""

import os
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from holdfast import ROOT, Operator, die_with_parent, job, runs
from localcluster import wait_for
from localcluster.python_packages import python_packages
from webhooks import Receiver, serving, targets_flags

SHORTEST_RETRY = 5
TARGETS = ["chat", "second", "failures", "forbidden", "hanging", "wrong-cert", "private"]


@pytest.fixture(scope="module")
def receivers(tmp_path_factory):
    names = [(name, "other.example.com" if name == "wrong-cert" else "localhost") for name in TARGETS]
    with serving(tmp_path_factory.mktemp("receivers"), names) as made:
        yield made


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """examples/notify/receiver.py as its own process: (its port, the maker of its certificate, its lines)."""
    maker = Receiver(tmp_path_factory.mktemp("example"))
    certificate, key = maker.authority.server("for-localhost", ["DNS:localhost"])
    process = subprocess.Popen(
        ["/usr/bin/python3", ROOT / "examples/notify/receiver.py", "--port=0", f"--certificate={certificate}",
         f"--key={key}"], text=True, stdout=subprocess.PIPE, preexec_fn=die_with_parent,
        env={**os.environ, "PYTHONPATH": str(python_packages()), "WEBHOOK_SECRET": maker.secret})
    maker.port = int(process.stdout.readline().split()[-1])
    lines = []
    threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")), daemon=True).start()
    yield maker, lines
    process.kill()
    process.wait()


@pytest.fixture(autouse=True)
def answers(receivers):
    """Each test begins with receivers that take all."""
    for receiver in receivers.values():
        receiver.answers = [204]
    receivers["hanging"].answers = ["hang"]


@pytest.fixture(scope="module")
def operator(cluster, receivers, example, tmp_path_factory):
    entries = [receivers[name].target(name) for name in TARGETS if name not in ("failures", "forbidden", "private")]
    entries += [receivers["failures"].target("failures", events=["Failed", "StageEnded"]),
                receivers["forbidden"].target("forbidden", namespaces=["elsewhere"]),
                receivers["private"].target("private", allowedCIDRs=[]), example[0].target("example")]
    flags = targets_flags(tmp_path_factory.mktemp("targets"), entries)
    with Operator(cluster, *flags) as operator:
        yield operator


pytestmark = pytest.mark.usefixtures("operator")


def wait_told(jobs, name, limit=60):
    """Until the job has ended and nobody is left to be told."""
    return jobs.wait(name, lambda s: "completionTime" in s and not s.get("outbox"), limit,
                     f"{name}'s outbox to be empty")


def test_the_reference_libraries_read_what_a_target_is_told(jobs, receivers):
    jobs.apply(job("hello", annotations=runs(0), notify=["chat"]))
    status = wait_told(jobs, "hello")
    (message,) = receivers["chat"].of("hello")
    assert receivers["chat"].verify(message)["data"]["name"] == "hello"
    uid = jobs.get("hello")["metadata"]["uid"]
    assert message.id == f"{uid}/1"
    assert message.path == "/hooks/chat?k=1"
    assert message.headers["content-type"].startswith("application/cloudevents+json")
    event = message.event
    assert event["id"] == message.id
    assert event["type"] == "dev.holdfast.job.succeeded"
    assert event["source"] == f"https://test.example.com{jobs.path}/hello"
    assert event["subject"] == f"{jobs.namespace}/hello"
    assert event["time"] == status["completionTime"]
    assert event.data == {"namespace": jobs.namespace, "name": "hello", "uid": uid, "number": 1, "event": "Succeeded",
                          "reason": event.data["reason"], "message": event.data["message"]}
    assert status["notifications"] == 1


def test_each_target_gets_the_events_that_it_wants(jobs, receivers):
    jobs.apply(job("fails", annotations=runs(0, 1), backoffLimit=0, notify=["chat", "failures"]))
    wait_told(jobs, "fails")
    jobs.apply(job("works", annotations=runs(0), notify=["chat", "failures"]))
    wait_told(jobs, "works")
    (failure,) = receivers["failures"].of("fails")
    assert failure.what == "Failed"
    assert failure.event.data["reason"] == "BackoffLimitExceeded"
    assert not receivers["failures"].of("works")
    assert [one.what for one in receivers["chat"].of("fails") + receivers["chat"].of("works")] == ["Failed", "Succeeded"]


def test_ends_of_stages_and_a_need_for_help_are_told(jobs, receivers):
    pod = job("x", annotations=runs(0))["spec"]["template"]
    jobs.apply(job("staged", annotations=runs(0), notify=["chat"], stages=[{"name": "verify", "template": pod}]))
    wait_told(jobs, "staged")
    told = sorted(receivers["chat"].of("staged"), key=lambda one: one.event.data["number"])
    assert [one.what for one in told] == ["StageEnded", "StageEnded", "Succeeded"]
    assert [one.event.data.get("stage") for one in told] == ["main", "verify", None]
    jobs.apply(job("stuck", notify=["chat"], queue={"name": "nowhere"}))
    (stalled,) = receivers["chat"].wait("stuck")
    assert (stalled.what, stalled.event.data["reason"]) == ("Stalled", "QueueMissing")
    jobs.patch("stuck", cancel=True)
    wait_told(jobs, "stuck")
    assert [one.what for one in receivers["chat"].of("stuck")] == ["Stalled", "Cancelled"]


@pytest.mark.parametrize("answer", [500, "close", (302, {"location": "https://localhost/"})],
                         ids=["500", "close", "redirect"])
def test_a_target_that_does_not_take_it_gets_the_same_message_again(jobs, receivers, answer):
    name = f"again-{answer if isinstance(answer, (int, str)) else 'redirect'}"
    receivers["second"].answers = [answer, 204]
    jobs.apply(job(name, annotations=runs(0), notify=["second"]))
    first, second = receivers["second"].wait(name, 2)
    assert second.at - first.at >= SHORTEST_RETRY - 1
    assert first.id == second.id
    assert first.body == second.body
    receivers["second"].verify(second)
    wait_told(jobs, name)
    assert "NotificationFailed" not in jobs.conditions(name)


def test_a_head_is_an_answer(jobs, receivers):
    receivers["second"].answers = ["head"]
    jobs.apply(job("head", annotations=runs(0), notify=["second"]))
    wait_told(jobs, "head")
    assert len(receivers["second"].of("head")) == 1


def test_gone_ends_the_delivery_at_once_and_says_so(jobs, receivers):
    receivers["second"].answers = [410]
    jobs.apply(job("gone", annotations=runs(0), notify=["second"]))
    wait_told(jobs, "gone")
    condition = jobs.conditions("gone")["NotificationFailed"]
    assert (condition["status"], condition["reason"]) == ("True", "NotDelivered")
    assert "410" in condition["message"]
    assert len(receivers["second"].of("gone")) == 1
    wait_for("an Event that says so", lambda: any(
        event["reason"] == "NotificationFailed" for event in jobs.events("gone")), 30)


def test_a_target_that_asks_for_a_pause_gets_it(jobs, receivers):
    receivers["second"].answers = [(429, {"retry-after": "12"}), 204]
    jobs.apply(job("busy", annotations=runs(0), notify=["second"]))
    first, second = receivers["second"].wait("busy", 2)
    assert second.at - first.at >= 11
    # It holds for all messages to that target.
    jobs.apply(job("after", annotations=runs(0), notify=["second"]))
    wait_told(jobs, "after")


def test_a_target_that_hangs_delays_neither_a_job_nor_another_target(jobs, receivers):
    names = [f"many-{number}" for number in range(10)]
    for name in names:
        jobs.apply(job(name, annotations=runs(0), notify=["hanging", "chat"]))
    for name in names:
        jobs.wait_phase(name, "Succeeded")
        receivers["chat"].wait(name)
    # Each outbox keeps what the hanging target has not taken.
    jobs.wait(names[-1], lambda s: [e["targets"] for e in s.get("outbox", [])] == [["hanging"]], 30)
    receivers["hanging"].answers = [204]
    receivers["hanging"]._released.set()
    for name in names:
        wait_told(jobs, name, 120)
    receivers["hanging"]._released.clear()


def test_a_wrong_certificate_gets_nothing(jobs, receivers, operator):
    jobs.apply(job("secret", annotations=runs(0), notify=["wrong-cert"]))
    wait_for("a connection", lambda: receivers["wrong-cert"].connections > 0, 60)
    wait_for("the reason in the log", lambda: "its certificate was refused" in operator.log(), 30)
    assert not receivers["wrong-cert"].received
    assert jobs.wait_phase("secret", "Succeeded")["outbox"][0]["targets"] == ["wrong-cert"]


def test_a_private_address_needs_permission(jobs, receivers, operator):
    jobs.apply(job("inside", annotations=runs(0), notify=["private"]))
    wait_for("the reason in the log", lambda: "allowedCIDRs" in operator.log(), 60)
    assert receivers["private"].connections == 0


def test_what_cannot_be_told_is_on_record_before_it_matters(jobs):
    jobs.apply(job("unknown", annotations=runs(3600), notify=["nobody"]))
    jobs.wait("unknown", lambda s: any(
        c["type"] == "NotificationFailed" and c["reason"] == "TargetUnknown" for c in s.get("conditions", [])), 60)
    jobs.apply(job("not-mine", annotations=runs(3600), notify=["forbidden"]))
    jobs.wait("not-mine", lambda s: any(
        c["type"] == "NotificationFailed" and c["reason"] == "TargetForbidden" for c in s.get("conditions", [])), 60)


def test_ttl_waits_for_the_outbox_and_a_user_does_not(jobs, receivers):
    receivers["second"].answers = ["close"]
    for name in ("patient", "hasty"):
        jobs.apply(job(name, annotations=runs(0), notify=["second"], ttlSecondsAfterFinished=0))
        jobs.wait_phase(name, "Succeeded")
        receivers["second"].wait(name)
    assert jobs.get("patient")["status"]["outbox"]
    jobs.delete("hasty")
    wait_for("the job to be gone", lambda: jobs.get("hasty") is None, 60)
    receivers["second"].answers = [204]
    wait_for("the job to be gone", lambda: jobs.get("patient") is None, 60)
    assert receivers["second"].of("patient")[-1].what == "Succeeded"


def test_the_receiver_in_examples_prints_what_it_is_told(jobs, example):
    jobs.apply(job("shown", annotations=runs(0), notify=["example"]))
    wait_told(jobs, "shown")
    wait_for("its line", lambda: any(f"{jobs.namespace}/shown Succeeded: " in line for line in example[1]), 30)


def test_the_receiver_in_examples_refuses_what_is_not_signed(example):
    maker, lines = example
    request = urllib.request.Request(f"https://localhost:{maker.port}/", data=b"{}", headers={
        "webhook-id": "x", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"})
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(request, timeout=10, context=ssl.create_default_context(cafile=maker.authority.cert))


def test_metrics_count_by_target(jobs, operator, receivers):
    before = operator.metric("holdfast_notifications_total", target="chat", result="delivered")
    jobs.apply(job("counted", annotations=runs(0), notify=["chat"]))
    wait_told(jobs, "counted")
    assert operator.metric("holdfast_notifications_total", target="chat", result="delivered") == before + 1
    assert operator.metric("holdfast_notifications_waiting", target="chat") == 0
    assert operator.metric("holdfast_notifications_waiting", target="wrong-cert") >= 0
