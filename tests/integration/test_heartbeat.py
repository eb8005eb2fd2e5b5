"""Jobs with a heartbeat on a real API server, with real agents and real workers: what goes as asked,
and what a node tells of at once."""

import signal

import pytest

from agent import DURATION, MESSAGE, work  # noqa: F401
from fence import lease_path
from holdfast import OPERATOR_USER, Operator, place
from host_node import HOSTED
from host_worker import SOON, beating, jobs, lives, nodes, operator  # noqa: F401
from lives import BY_HAND, budgets, flush_audit, operator_writes, outcomes, settle, wait_told
from localcluster import wait_for
from losses import (REACTION, assert_one_disruption, delete_pod, pod_name, recoveries, wait_attempt, write_times)

CLUSTER = {"nodes": 0, "kwok": False}
# What the machine's noise may add to a bound.
NOISE = 5

STATUS = ("update", "durablejobs/status", 200)
POD = ("create", "pods", 201)
LEASE = ("create", "leases", 201)
GRANT = ("update", "leases", 200)
RELEASE = ("patch", "pods", 200)


def lease_of(jobs, name):
    """The job's Lease, or None."""
    uid = jobs.get(name)["metadata"]["uid"]
    status, lease = jobs.cluster.api("GET", lease_path(jobs.namespace, f"holdfast-{uid}"))
    return lease if status == 200 else None


def writes_of(cluster, offset, jobs, name):
    """The operator's writes for this job, its Events left out."""
    uid = jobs.get(name)["metadata"]["uid"]
    flush_audit(cluster, offset)
    return [(write.verb, write.what, write.code)
            for write in operator_writes(cluster, offset, jobs.namespace)
            if (write.name.startswith(f"{name}-") or write.name in (name, f"holdfast-{uid}"))
            and write.what != "events"]


# -- what it costs -----------------------------------------------------------------------------


def test_a_job_with_a_heartbeat_whose_pod_ends_at_once_costs_five_writes(cluster, operator, jobs, lives):
    offset = cluster.audit_offset()
    jobs.apply(beating("short", lives, pod=BY_HAND))
    pod = jobs.wait_pod("short", lambda pod: True)
    wait_for("the Lease to be granted", lambda: lease_of(jobs, "short"), 60)
    jobs.end_pod(pod)
    assert settle(jobs, "short")["phase"] == "Succeeded"
    assert writes_of(cluster, offset, jobs, "short") == [STATUS, POD, LEASE, STATUS, RELEASE]


def test_a_job_with_a_heartbeat_costs_one_write_more_than_a_plain_one(cluster, operator, nodes, jobs, lives):
    offset = cluster.audit_offset()
    # That a pod runs is on record once it has for 3 s.
    jobs.apply(beating("proves", lives, {"run": 8}))
    plain = beating("plain", lives, {"run": 8})
    del plain["spec"]["heartbeat"]
    jobs.apply(plain)
    for name in ("proves", "plain"):
        assert budgets(settle(jobs, name)) == (1, 0, 0)
    assert writes_of(cluster, offset, jobs, "plain") == [STATUS, POD, STATUS, STATUS, RELEASE]
    assert writes_of(cluster, offset, jobs, "proves") == [STATUS, POD, LEASE, STATUS, STATUS, RELEASE]


def test_the_worker_and_nobody_else_gets_the_agent_and_its_settings(operator, nodes, jobs, lives):
    jobs.apply(beating("looks", lives, {"run": 0}))
    assert settle(jobs, "looks")["phase"] == "Succeeded"
    [pod] = jobs.pods("looks")
    lease = lease_of(jobs, "looks")
    holder = f"{pod['metadata']['name']}/{pod['metadata']['uid']}"
    assert lease["spec"]["holderIdentity"] == holder
    assert lease["spec"]["leaseTransitions"] == 1
    annotations = lease["metadata"]["annotations"]
    assert annotations["holdfast.dev/granted"] == holder
    assert annotations["holdfast.dev/ended"] == "0"
    [owner] = lease["metadata"]["ownerReferences"]
    assert owner["uid"] == jobs.get("looks")["metadata"]["uid"]


# -- ends that the node tells of ---------------------------------------------------------------


def granted_after(jobs, offset, name):
    """Seconds from the node's report that the first attempt's pod has ended to the grant of the Lease to the next, as
    the API server saw them."""
    flush_audit(jobs.cluster, offset)
    made = jobs.get(name)
    [*_, reported] = write_times(jobs.cluster, offset, "patch", pod_name(made, 1), subresource="status")
    [*_, granted] = write_times(jobs.cluster, offset, "update", f"holdfast-{made['metadata']['uid']}",
                                resource="leases", user=OPERATOR_USER)
    return granted - reported


def check_goes_on_at_once(jobs, lives, offset, name, outcome, exit_code):
    """Attempt 1 ended so; the last pod granted the Lease has ended, so attempt 2 need not wait for
    it."""
    status = jobs.wait(name, lambda s: s.get("attempt") == 2, 60)
    [entry] = status["history"]
    assert (entry["outcome"], entry.get("exitCode")) == (outcome, exit_code), entry
    lives.wait(2)
    # A back-off of a second.
    assert 0 < granted_after(jobs, offset, name) <= 1 + REACTION + NOISE < DURATION
    assert lives.overlaps() == []
    return status


def test_a_failure_is_tried_again_and_the_lease_changes_hands_at_once(cluster, operator, nodes, jobs, lives):
    offset = cluster.audit_offset()
    jobs.apply(beating("fails", lives, {"run": 1, "exit": 3}, {"run": 1}))
    status = check_goes_on_at_once(jobs, lives, offset, "fails", "Failed", 3)
    assert budgets(status) == (2, 1, 0)
    assert budgets(settle(jobs, "fails")) == (2, 1, 0)
    leases = [write for write in writes_of(cluster, offset, jobs, "fails") if "leases" in write]
    assert leases == [LEASE, GRANT]


def kill_both(pod):
    pod.kill()


def kill_the_agent(pod):
    pod.signal(signal.SIGKILL)


@pytest.mark.parametrize("how", [kill_both, kill_the_agent])
def test_a_worker_whose_agent_is_killed_is_dead_with_it_and_has_failed(cluster, operator, nodes, jobs, lives, how):
    offset = cluster.audit_offset()
    name = how.__name__.replace("_", "-")
    jobs.apply(beating(name, lives, {"deaf": True, "away": True}, {"run": 1}))
    lives.wait(1, count=2)
    how(nodes.pod_of(jobs, name))
    assert budgets(check_goes_on_at_once(jobs, lives, offset, name, "Failed", 137)) == (2, 1, 0)
    assert not lives.living(1)
    assert outcomes(settle(jobs, name)) == ["Failed", "Succeeded"]


def test_a_child_that_was_forked_away_ends_with_its_worker(cluster, operator, nodes, jobs, lives):
    offset = cluster.audit_offset()
    jobs.apply(beating("forks", lives, {"run": 2, "exit": 1, "away": True}, {"run": 1}))
    lives.wait(1, count=2)
    check_goes_on_at_once(jobs, lives, offset, "forks", "Failed", 1)
    assert settle(jobs, "forks")["phase"] == "Succeeded"


def test_a_worker_whose_pod_is_deleted_ends_and_the_next_one_follows_once_that_was_seen(
    cluster, operator, nodes, jobs, lives
):
    offset = cluster.audit_offset()
    jobs.apply(beating("drained", lives, {}, {"run": 1}))
    lives.wait(1)
    delete_pod(jobs, jobs.pod("drained"))
    assert_one_disruption(wait_attempt(jobs, "drained", 2), "PodDeleted")
    second = lives.wait(2)
    print(f"the next one starts {second.first - lives.last(1):.1f} s after the last one's end")
    # It would be a whole duration if nobody knew that the old one has stopped.
    assert 0 < granted_after(jobs, offset, "drained") <= REACTION + NOISE < DURATION
    assert lives.overlaps() == []
    assert budgets(settle(jobs, "drained")) == (2, 0, 1)


# -- what a user asks for ----------------------------------------------------------------------


def test_a_suspended_job_s_worker_is_stopped_and_its_next_attempt_gets_the_lease(operator, nodes, jobs, lives):
    jobs.apply(beating("sleeps", lives, {}, {"run": 1}))
    lives.wait(1)
    jobs.patch("sleeps", suspend=True)
    jobs.wait_phase("sleeps", "Suspended")
    wait_for("its worker to end", lambda: not lives.living(), 60)
    jobs.patch("sleeps", suspend=False)
    assert budgets(settle(jobs, "sleeps")) == (2, 0, 0)
    assert outcomes(jobs.status("sleeps")) == ["Suspended", "Succeeded"]
    assert lives.overlaps() == []


def test_a_cancelled_job_s_worker_is_stopped(operator, nodes, jobs, lives):
    jobs.apply(beating("cancels", lives))
    lives.wait(1)
    jobs.patch("cancels", cancel=True)
    assert outcomes(settle(jobs, "cancels")) == ["Cancelled"]
    wait_for("its worker to end", lambda: not lives.living(), 60)


# -- progress ----------------------------------------------------------------------------------


def test_kubectl_shows_what_the_worker_says_of_its_progress(cluster, operator, nodes, jobs, lives):
    jobs.apply(beating("tells", lives, {"says": "17 of 42 rows"}))
    status = jobs.wait("tells", lambda s: place(s).get("progress"), 60)
    assert place(status)["progress"] == "17 of 42 rows"
    assert lease_of(jobs, "tells")["metadata"]["annotations"][MESSAGE] == "17 of 42 rows"
    assert "managedFields" not in lease_of(jobs, "tells")["metadata"]
    shown = cluster.kubectl("get", "dj", "tells", "-n", jobs.namespace).stdout
    assert "17 of 42 rows" in shown
    jobs.patch("tells", cancel=True)
    settle(jobs, "tells")


DEADLINE = 10
WATCHED = {"leaseDurationSeconds": 10, "progressDeadlineSeconds": DEADLINE}


def test_a_worker_that_lives_and_makes_no_progress_has_hung_in_time(operator, nodes, jobs, lives):
    before = recoveries(operator, "holder_hung")
    jobs.apply(beating("hangs", lives, {"progress": 2, "until": 5}, {"run": 1}, heartbeat=WATCHED))
    waiting = wait_told(jobs, "hangs", "NoProgress")["waiting"]
    assert "Hung" in waiting["nextAction"] and waiting["deadline"]
    status = jobs.wait("hangs", lambda s: s["failures"] == 1, 60)
    [entry] = status["history"]
    assert (entry["outcome"], entry["reason"]) == ("Hung", "NoProgress")
    assert budgets(settle(jobs, "hangs")) == (2, 1, 0)
    # The child of a hung attempt is told to end when it is judged.
    [*_, (_, _, progressed)] = lives.times("progress", 1)
    assert DEADLINE <= lives.last(1) - progressed <= DEADLINE + REACTION + NOISE
    assert lives.overlaps() == []
    count, total = recoveries(operator, "holder_hung", at_least=before[0] + 1)
    assert count == before[0] + 1
    assert DEADLINE <= total - before[1] <= DEADLINE + REACTION + NOISE


@pytest.mark.long  # RenewalsAndProgressThatComeInTimeWriteNothing has the rule
def test_a_slow_worker_that_makes_progress_just_within_its_deadline_is_never_ended(operator, nodes, jobs, lives):
    jobs.apply(beating("slow", lives, {"progress": DEADLINE - 1, "run": 3 * DEADLINE}, heartbeat=WATCHED))
    assert budgets(settle(jobs, "slow", limit=60)) == (1, 0, 0)


# -- what can never work, and what works later -------------------------------------------------


TAKEN = {
    "volume": {"volumes": [{"name": "holdfast-agent", "emptyDir": {}}]},
    "credentials": {"volumes": [{"name": "holdfast-credentials", "emptyDir": {}}]},
    "container": {"initContainers": [{"name": "holdfast-agent", "image": "x"}]},
}


@pytest.mark.parametrize("what", TAKEN)
def test_a_template_that_uses_the_agent_s_names_is_refused_with_a_word(operator, nodes, jobs, lives, what):
    name = f"takes-{what}"
    jobs.apply(beating(name, lives, pod=HOSTED | TAKEN[what]))
    jobs.wait_phase(name, "Failed")
    assert budgets(jobs.status(name)) == (1, 0, 0)
    failed = jobs.conditions(name)["Failed"]
    assert failed["reason"] == "PodTemplateInvalid"
    assert "which spec.heartbeat needs for its agent" in failed["message"]
    assert not jobs.pods(name)


def test_without_the_agent_s_image_such_a_job_waits_and_says_so(cluster, operator, nodes, jobs, lives):
    operator.stop()
    try:
        with Operator(cluster, name="without-image"):
            jobs.apply(beating("waits", lives, {"run": 0}, retryBackoff=SOON))
            waiting = wait_told(jobs, "waits", "PodCreationRefused")["waiting"]
            assert "--agent-image" in waiting["message"]
            assert not jobs.pods("waits")
    finally:
        operator.start()
    assert budgets(settle(jobs, "waits", limit=60)) == (1, 0, 0)
