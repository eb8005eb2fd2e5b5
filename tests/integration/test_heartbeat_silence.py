"""Workers with a heartbeat that fall silent, each in its own way: when that is found, what it costs,
and that what the old worker does later does no harm."""

import signal
import time

import pytest

from agent import DURATION, ENDED, work  # noqa: F401
from fence import TokenClient, expect, lease_path, renewed
from holdfast import place
from host_worker import beating, jobs, lives, nodes, operator  # noqa: F401
from lives import budgets, flush_audit, outcomes, settle, wait_told, wait_until
from localcluster import wait_for
from losses import (
    ANSWERED, CAME, LOST_AFTER, REACTION, assert_one_disruption, created_at, delete_pod, recoveries, seconds_of,
    wait_attempt, wait_renewals, write_times,
)

CLUSTER = {"nodes": 0, "kwok": False}
# What the machine's noise may add to a bound.
NOISE = 5
WORKER = "system:serviceaccount:work:default"


def lease_name(jobs, name):
    return f"holdfast-{jobs.get(name)['metadata']['uid']}"


def lease_of(jobs, name):
    return expect(jobs.cluster.api("GET", lease_path(jobs.namespace, lease_name(jobs, name))))


def wait_renewal(jobs, name):
    """Until the worker has renewed the job's Lease once more."""
    before = lease_of(jobs, name)["spec"].get("renewTime")
    wait_for(f"a renewal of {name}", lambda: lease_of(jobs, name)["spec"].get("renewTime") not in (None, before), 60)


class Fall:
    """A job's worker that is about to fall silent, and what came of it."""

    def __init__(self, cluster, jobs, nodes, lives, name, *plans, **spec):
        self.cluster, self.jobs, self.lives, self.name = cluster, jobs, lives, name
        self.offset = cluster.audit_offset()
        jobs.apply(beating(name, lives, *plans, **spec))
        lives.wait(1, count=2 if plans and plans[0].get("away") else 1)
        self.pod = nodes.pod_of(jobs, name)
        wait_renewal(jobs, name)

    def renewals(self, pod=None):
        """(when they came, when they were answered) of the workers' renewals (this pod's) that were accepted."""
        lease, found = lease_name(self.jobs, self.name), []
        for event in self.cluster.audit_events(self.offset)[0]:
            user = event["user"]
            if (user["username"] == WORKER and event.get("objectRef", {}).get("name") == lease
                    and event["verb"] == "update" and event["responseStatus"]["code"] == 200
                    and pod in (None, *user["extra"]["authentication.kubernetes.io/pod-name"])):
                found.append((seconds_of(event[CAME]), seconds_of(event[ANSWERED])))
        return found

    def check_found(self, before, reason, least, most, orphan_class="holder_silent"):
        """Attempt 1 was lost for this reason so many seconds after its last renewal, at the cost
        of a disruption, on its class's counter."""
        status = wait_attempt(self.jobs, self.name, 2)
        assert_one_disruption(status, reason)
        created = created_at(self.cluster, self.offset, place(status)["podName"])
        # The operator sees a renewal some time between the two.
        came, answered = max(self.renewals(self.pod.pod_name))
        assert least <= created - came and created - answered <= most + REACTION + NOISE
        operator, (count, total) = before
        after = recoveries(operator, orphan_class, at_least=count + 1)
        assert after[0] == count + 1
        assert after[1] - total <= most + REACTION + NOISE
        return status

    def finish(self, spends=(2, 0, 1)):
        """The next attempt succeeds; no two children were there at one time."""
        assert budgets(settle(self.jobs, self.name)) == spends
        assert self.lives.overlaps() == []


def counted(operator, orphan_class="holder_silent"):
    return operator, recoveries(operator, orphan_class)


def check_late_work_is_refused(fall):
    """The token of the old attempt's pod opens the Lease no more. 401: the pod is gone, and the API
    server has noticed."""
    lease = lease_of(fall.jobs, fall.name)
    worker = TokenClient(fall.cluster, fall.pod.token)
    status, answer = worker.api("PUT", lease_path(fall.jobs.namespace, lease["metadata"]["name"]),
                                renewed(lease, ended="0"))
    assert status == 401 or status == 403 and "fenced: " in answer["message"], answer


# -- the kubelet lives -------------------------------------------------------------------------


def test_a_worker_that_is_cut_off_fences_itself_and_is_lost_as_a_disruption(cluster, operator, nodes, jobs, lives):
    fall = Fall(cluster, jobs, nodes, lives, "cut", {"deaf": True, "away": True}, {"run": 1})
    before = counted(operator)
    fall.pod.link.cut_off()
    status = fall.check_found(before, "Fenced", DURATION / 2, DURATION)
    assert status["history"][0]["exitCode"] == 85
    fall.finish()


def test_a_worker_that_hears_its_end_is_back_from_a_cut_before_the_lease_could_be_given_on(
    cluster, operator, nodes, jobs, lives
):
    fall = Fall(cluster, jobs, nodes, lives, "heals", {"run": 12})
    fall.pod.link.cut_off()
    wait_told(jobs, "heals", "PodRunning")
    fall.pod.link.mend()
    wait_renewal(jobs, "heals")
    fall.finish(spends=(1, 0, 0))


def test_a_stopped_agent_is_lost_and_what_its_child_does_late_is_refused(cluster, operator, nodes, jobs, lives):
    fall = Fall(cluster, jobs, nodes, lives, "stopped", {"deaf": True}, {"run": 1})
    fall.pod.lose()  # its container does not end when it is told to
    before = counted(operator)
    fall.pod.signal(signal.SIGSTOP)
    waiting = wait_told(jobs, "stopped", "HolderSilent")["waiting"]
    assert "Lost" in waiting["nextAction"] and waiting["deadline"]
    fall.check_found(before, "HolderSilent", DURATION, DURATION)
    # The next one waits a duration longer: the Lease is taken, and a child is still there.
    waiting = wait_told(jobs, "stopped", "LeaseHeld")["waiting"]
    assert fall.pod.pod_name in waiting["message"]
    lives.wait(2)
    assert lives.living(1), "its agent is stopped, so nobody has ended it"
    check_late_work_is_refused(fall)
    flush_audit(cluster, fall.offset)
    renewals = fall.renewals(fall.pod.pod_name)
    fenced = operator.metric("holdfast_fenced_outcomes_total", pod_phase="Failed")
    fall.pod.signal(signal.SIGCONT)
    assert fall.pod.process.wait(60) == 85
    assert not lives.living(1)
    assert "fenced: " in fall.pod.output().splitlines()[-1]
    fall.pod.find()
    wait_for("its end to be counted as one that does not count", lambda: operator.metric(
        "holdfast_fenced_outcomes_total", pod_phase="Failed") == fenced + 1, 60)
    assert budgets(settle(jobs, "stopped")) == (2, 0, 1)
    assert outcomes(jobs.status("stopped")) == ["Lost", "Succeeded"]
    flush_audit(cluster, fall.offset)
    assert fall.renewals(fall.pod.pod_name) == renewals


@pytest.mark.parametrize("whom", ["both", "agent"])
def test_a_killed_worker_whose_node_does_not_tell_is_lost_by_its_silence(cluster, operator, nodes, jobs, lives, whom):
    fall = Fall(cluster, jobs, nodes, lives, f"killed-{whom}", {"deaf": True}, {"run": 1})
    fall.pod.lose()
    before = counted(operator)
    if whom == "both":
        fall.pod.kill()
    else:
        fall.pod.signal(signal.SIGKILL)
    wait_for("its child to be dead", lambda: not lives.living(1), 60)
    fall.check_found(before, "HolderSilent", DURATION, DURATION)
    fall.pod.find()
    fall.finish()


def test_a_deaf_worker_that_is_cut_off_from_everybody_is_dead_before_the_lease_is_given_on(
    cluster, operator, nodes, jobs, lives
):
    fall = Fall(cluster, jobs, nodes, lives, "alone", {"deaf": True, "away": True}, {"run": 1})
    fall.pod.lose()
    fall.pod.link.cut_off()
    before = counted(operator)
    fall.check_found(before, "HolderSilent", DURATION, DURATION)
    lives.wait(2)
    # Not by its kubelet, which is as cut off as it is.
    assert not lives.living(1)
    fall.pod.find()
    fall.finish()


# -- the node is silent ------------------------------------------------------------------------


def test_a_silent_node_is_no_matter_while_its_worker_proves_that_it_lives(cluster, operator, nodes, jobs, lives):
    fall = Fall(cluster, jobs, nodes, lives, "apart", {"run": LOST_AFTER + 15})
    wait_renewals(cluster, [fall.pod.node.name])
    fall.pod.node.partition()
    try:
        wait_until(time.time() + LOST_AFTER + REACTION + NOISE, lambda: budgets(jobs.status("apart")) == (1, 0, 0))
    finally:
        fall.pod.node.heal()
    fall.finish(spends=(1, 0, 0))


def test_a_success_on_a_node_that_was_silent_for_long_counts_when_the_node_tells_of_it(
    cluster, operator, nodes, jobs, lives
):
    fall = Fall(cluster, jobs, nodes, lives, "late", {"run": LOST_AFTER + 5})
    wait_renewals(cluster, [fall.pod.node.name])
    fall.pod.node.partition()
    try:
        ended = lambda: ENDED in lease_of(jobs, "late")["metadata"]["annotations"]
        wait_for("the worker to tell its end by its Lease", ended, LOST_AFTER + 30)
    finally:
        fall.pod.node.heal()
    fall.finish(spends=(1, 0, 0))


def test_a_node_that_dies_with_its_worker_is_lost_after_the_lease_s_duration_not_its_own(
    cluster, operator, nodes, jobs, lives
):
    fall = Fall(cluster, jobs, nodes, lives, "dies", {"deaf": True}, {"run": 1})
    before = counted(operator)
    # The scheduler does not know yet, and would send the next one there too.
    cluster.kubectl("cordon", fall.pod.node.name)
    fall.pod.node.die()
    try:
        fall.check_found(before, "HolderSilent", DURATION, DURATION)
        fall.finish()
    finally:
        fall.pod.node.heal()
        cluster.kubectl("uncordon", fall.pod.node.name)


# -- who was granted it and may run ------------------------------------------------------------


def test_no_child_starts_beside_one_whose_pod_was_deleted_by_force(cluster, operator, nodes, jobs, lives):
    fall = Fall(cluster, jobs, nodes, lives, "forced", {"deaf": True, "away": True}, {"run": 1})
    fall.pod.lose()
    [pod] = jobs.pods("forced")
    delete_pod(jobs, pod, grace=0)
    status = wait_attempt(jobs, "forced", 2)
    assert_one_disruption(status, "PodStuckTerminating")
    # It runs, and renews until its pod is gone or the Lease is taken from it.
    assert fall.pod.process.wait(60) == 85
    check_late_work_is_refused(fall)
    assert lives.last(1) < lives.wait(2).first
    fall.pod.find()
    fall.finish()


def test_an_operator_that_is_killed_between_grants_the_lease_no_sooner(cluster, operator, nodes, jobs, lives):
    fall = Fall(cluster, jobs, nodes, lives, "between", {"deaf": True}, {"run": 1})
    fall.pod.lose()
    fall.pod.signal(signal.SIGSTOP)
    wait_attempt(jobs, "between", 2)
    taken = wait_for("the Lease to be taken", lambda: "holderIdentity" not in lease_of(jobs, "between")["spec"], 60)
    assert taken
    operator.kill()
    operator.spawn()
    second = lives.wait(2)
    flush_audit(cluster, fall.offset)
    began = write_times(cluster, fall.offset, "update", lease_name(jobs, "between"),
                        resource="leases", user="holdfast-operator")
    # Taken; granted after no less than the whole duration. A wait this short is not on record, so it is longer.
    assert len(began) == 2 and began[1] - began[0] > DURATION
    assert second
    fall.pod.signal(signal.SIGCONT)
    assert fall.pod.process.wait(60) == 85
    fall.pod.find()
    assert budgets(settle(jobs, "between")) == (2, 0, 1)
