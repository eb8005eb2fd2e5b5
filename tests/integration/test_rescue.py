"""Pods of other controllers on a node that dies: batch/v1 Jobs that Kubernetes' own controller runs."""

import types

import pytest
from holdfast import OPERATOR_USER, QUICK_LEASES, Operator, is_running
from lane import BatchJobs
from localcluster import wait_for
from losses import new_namespace, seconds_of, wait_renewals, write_time, write_times
from others import CONTAINER, IGNORE, LABEL, WINDOW, other_job, wait_running

# What the operator may take beyond it, and what a slow machine takes.
REACTION, SLACK = 1, 3


@pytest.fixture(scope="module")
def story(cluster):
    """One Job of each kind on one node, which dies while the operator watches."""
    jobs = BatchJobs(cluster, new_namespace(cluster, "rescue"))
    with Operator(cluster, "--rescue=on", leases=QUICK_LEASES) as first:
        jobs.apply(other_job("freed", LABEL, podFailurePolicy=IGNORE))
        pod = wait_running(jobs, "freed")
        node = pod["spec"]["nodeName"]
        there = {"nodeName": node}
        claim = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "none"}}], **there}
        jobs.apply(other_job("unlabelled", pod=there))
        jobs.apply(other_job("claims", LABEL, pod=claim))
        meta = {"name": "bare", "labels": LABEL, "annotations": {"holdfast.dev/lostAfterSeconds": str(WINDOW)}}
        jobs.api("POST", jobs.durable.pods_path, {"metadata": meta, "spec": {"containers": [CONTAINER], **there}})
        wait_running(jobs, "unlabelled")
        wait_for("the pod of Job claims", lambda: jobs.pods("claims"), 60)
        wait_renewals(cluster, (node,))
        offset = cluster.audit_offset()
        cluster.kubectl("cordon", node)
        cluster.kill_node(node)
        renewed = seconds_of(cluster.node_lease(node)["spec"]["renewTime"])
        next_pod = {}

        def replaced():
            next_pod["it"] = next((one for one in jobs.pods("freed") if is_running(one)
                                   and one["metadata"]["uid"] != pod["metadata"]["uid"]), None)
            return next_pod["it"] is not None

        wait_for("the Job's next pod", replaced, 90)
        yield types.SimpleNamespace(jobs=jobs, pod=pod, node=node, next=next_pod["it"], offset=offset, renewed=renewed,
                                    operator=first, cluster=cluster)
        cluster.kubectl("uncordon", node)
        cluster.revive_node(node)


def events(story, name, reason):
    return [event for event in story.jobs.events(name) if event["reason"] == reason]


def test_the_pod_is_freed_within_its_window_and_a_second(story):
    name = story.pod["metadata"]["name"]
    decided = write_time(story.cluster, story.offset, "patch", name, subresource="status", user=OPERATOR_USER)
    assert WINDOW <= decided - story.renewed + 1  # renewTime is the kubelet's, in whole seconds or not
    assert decided - story.renewed <= WINDOW + REACTION + SLACK
    deleted = write_times(story.cluster, story.offset, "delete", name, user=OPERATOR_USER)
    assert len(deleted) == 1 and deleted[0] >= decided


def test_its_controller_replaces_it_and_counts_nothing(story):
    assert story.next["spec"]["nodeName"] != story.node
    wait_for("the freed pod to be gone", lambda: len(story.jobs.pods("freed")) == 1, 30)
    status = story.jobs.status("freed")
    assert status.get("failed", 0) == 0 and status.get("active") == 1


def test_events_tell_the_pod_and_its_controller(story):
    for name in (story.pod["metadata"]["name"], "freed"):
        wait_for(f"the Event of {name}", lambda name=name: events(story, name, "HoldfastNodeSilent"), 30)


def test_a_pod_without_the_label_is_not_touched(story):
    [pod] = story.jobs.pods("unlabelled")
    assert "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] == "Running"
    assert write_times(story.cluster, story.offset, "patch", pod["metadata"]["name"], subresource="status",
                       user=OPERATOR_USER) == []


def test_pods_that_must_stay_get_an_event_and_nothing_else(story):
    [claims] = story.jobs.pods("claims")
    for name, word in ((claims["metadata"]["name"], "PersistentVolumeClaim"), ("bare", "no controller")):
        wait_for(f"the Event of {name}", lambda name=name: events(story, name, "RescueRefused"), 30)
        assert word in events(story, name, "RescueRefused")[0]["note"]
        for verb, subresource in (("patch", "status"), ("delete", "")):
            assert write_times(story.cluster, story.offset, verb, name, subresource=subresource, user=OPERATOR_USER) == []


def test_it_is_counted(story):
    assert story.operator.metric("holdfast_rescue_seconds_count") == 1
    assert story.operator.metric("holdfast_rescue_refusals_total", reason="Volumes") == 1
    assert story.operator.metric("holdfast_rescue_failing") == 0
