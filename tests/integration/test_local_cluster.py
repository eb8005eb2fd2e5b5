"""The local cluster keeps its promises: nothing survives it, its nodes behave like nodes."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

from localcluster import Cluster, ClusterError, wait_for  # noqa: E402
from localcluster.remote import processes_of  # noqa: E402

PODS = "/api/v1/namespaces/default/pods"
# A node's Lease is renewed every 10 s, give or take 4 %.
RENEWAL_SECONDS = 10.4


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture():
    with Cluster(nodes=1, quiet=True) as cluster:
        yield cluster


def run_pod(cluster, name, annotations=None, **metadata):
    """Creates a pod on a simulated node."""
    pod = {"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": name, "annotations": annotations or {}, **metadata},
           "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 30,
                    "containers": [{"name": "main", "image": "any"}]}}
    status, body = cluster.api("POST", PODS, pod)
    assert status == 201, body


def get_pod(cluster, name):
    """The pod, or None when it is gone."""
    status, body = cluster.api("GET", f"{PODS}/{name}")
    return body if status == 200 else None


def wait_phase(cluster, name, phase, limit=60):
    """The pod once it is in this phase."""
    def reached():
        pod = get_pod(cluster, name)
        return pod if pod and pod["status"].get("phase") == phase else None
    return wait_for(f"pod {name} to be {phase}", reached, limit, cluster.log_path("kwok"))


def terminated(pod):
    """The terminated state of the first container."""
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


def port_is_free(port):
    """Whether nobody listens on a loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_nothing_is_left_after_stop():
    cluster = Cluster(nodes=1, quiet=True).start()
    folder, ports = cluster.folder, dict(cluster.ports)
    assert len(cluster.pids()) == 6  # five parts and their supervisor
    assert not port_is_free(ports["kube-apiserver"])
    cluster.stop()
    assert processes_of(folder) == []
    assert all(port_is_free(port) for port in ports.values()), ports
    assert not folder.exists()


def test_clusters_run_side_by_side_and_know_nothing_of_each_other(cluster):
    with Cluster(nodes=0, quiet=True) as other:
        assert not set(cluster.ports.values()) & set(other.ports.values())
        other.kubectl("create", "namespace", "only-here")
        assert cluster.api("GET", "/api/v1/namespaces/only-here")[0] == 404
        cluster.wait_apiserver_ready()
    cluster.wait_apiserver_ready()


def test_nothing_is_left_of_a_test_process_that_was_killed():
    script = ("import sys, time; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True\n"
              "from localcluster import Cluster\n"
              "cluster = Cluster(nodes=1, quiet=True).start()\n"
              "print(cluster.folder, flush=True)\n"
              "signal = __import__('signal'); signal.pause()\n")
    with subprocess.Popen([sys.executable, "-c", script, str(ROOT / "tests/support")], stdout=subprocess.PIPE,
                          text=True) as child:
        folder = Path(child.stdout.readline().strip())
        try:
            assert len(processes_of(folder)) == 6
        finally:
            child.kill()
    wait_for("the processes of a killed test to end", lambda: not processes_of(folder), 60)
    wait_for("its folder to be removed", lambda: not folder.exists(), 60)


def test_no_process_outlives_its_supervisor():
    cluster = Cluster(nodes=0, quiet=True).start()
    try:
        parts = {process["pid"] for process in cluster.processes().values()}
        (supervisor,) = set(cluster.pids()) - parts
        os.kill(supervisor, signal.SIGKILL)
        wait_for("the parts to end with the supervisor", lambda: not set(cluster.pids()) & parts, 60)
    finally:
        cluster.stop()


def test_a_named_cluster_stays_until_it_is_stopped_by_another_process(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tools_folder(tmp_path)))
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    command = [sys.executable, str(ROOT / "hack/cluster")]
    subprocess.run([*command, "up", "--name", "stays", "--nodes", "1"], check=True, timeout=180)
    try:
        lines = subprocess.run([*command, "env", "--name", "stays"], check=True, timeout=60,
                               stdout=subprocess.PIPE, text=True).stdout
        nodes = subprocess.run(["bash", "-c", f"{lines}\nkubectl get nodes -o name"], check=True,
                               timeout=60, stdout=subprocess.PIPE, text=True).stdout
        assert nodes == "node/node-0\n"
        with pytest.raises(ClusterError, match="up already"):
            Cluster(name="stays", quiet=True).start()
    finally:
        down = subprocess.run([*command, "down", "--name", "stays"], check=True, timeout=60,
                              stderr=subprocess.PIPE, text=True)
    assert "no process left" in down.stderr
    assert processes_of(tmp_path / "cache" / "clusters" / "stays") == []


def tools_folder(tmp_path):
    """The tools in one folder, as KUBEBUILDER_ASSETS wants them."""
    from localcluster.tools import ensure_tools  # pylint: disable=import-outside-toplevel
    folder = tmp_path / "assets"
    folder.mkdir()
    for name, path in ensure_tools().items():
        (folder / name).symlink_to(path)
    return folder


def test_a_part_that_cannot_start_is_reported_with_the_end_of_its_log():
    with pytest.raises(ClusterError, match="kube-apiserver.*(?s:.*)unknown flag: --no-such-flag"):
        Cluster(nodes=0, quiet=True, apiserver_flags=["--no-such-flag"]).start()


def test_parts_can_be_killed_and_started_again_on_their_data(cluster):
    cluster.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    cluster.kill_apiserver()
    with pytest.raises(OSError):
        cluster.api("GET", "/readyz")
    cluster.kill_etcd()
    cluster.start_etcd()
    cluster.start_apiserver()
    assert cluster.api("GET", "/api/v1/namespaces/default/configmaps/kept")[1]["data"] == {"a": "b"}
    cluster.pause("kube-apiserver")
    with pytest.raises(OSError):
        cluster.api("GET", "/readyz", timeout=1)
    cluster.resume("kube-apiserver")
    cluster.wait_apiserver_ready()


def test_pods_that_came_while_the_kubelets_were_away_start_when_they_are_back(cluster):
    for attempt in range(3):
        cluster.kill_kwok()
        names = [f"came-{attempt}-{number}" for number in range(10)]
        for name in names:
            run_pod(cluster, name)
        cluster.start_kwok()
        for name in names:
            wait_phase(cluster, name, "Running")


def test_a_program_started_beside_the_cluster_is_watched_over_like_its_parts(cluster):
    cluster.start_process("guest", ["sh", "-c", "echo $GREETING; exec sleep 1000"], {"GREETING": "hello"})
    wait_for("its output", lambda: "hello" in cluster.log_path("guest").read_text(), 60)
    assert cluster.processes()["guest"]["running"]
    cluster.signal("guest", signal.SIGTERM)
    assert cluster.wait_ended("guest", 60) == -signal.SIGTERM
    pid = cluster.start_process("guest", ["sleep", "1000"])
    assert pid in cluster.pids()
    cluster.kill("guest")
    assert pid not in cluster.pids()


def test_an_old_resource_version_is_gone_after_compaction(cluster):
    pods = cluster.api("GET", PODS)[1]
    old = pods["metadata"]["resourceVersion"]
    cluster.kubectl("create", "configmap", "newer")
    cluster.compact_etcd()
    cluster.kill_apiserver()
    cluster.start_apiserver()
    # A server that has just been started may say that its cache of pods is not ready.
    event = wait_for("a watch to begin", lambda: next(cluster.watch(PODS, resource_version=old, timeout=10), None), 60)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_the_audit_log_tells_who_wrote_what(cluster):
    cluster.kubectl("create", "clusterrolebinding", "writer", "--clusterrole=edit", "--user=writer")
    start = cluster.audit_offset()
    config = {"metadata": {"name": "audited"}}
    path = "/api/v1/namespaces/default/configmaps"

    def created():
        status, _ = cluster.api("POST", path, config, user="writer")
        return status in (201, 409)
    wait_for("the role binding to be seen", created, 60)
    assert cluster.api("POST", path, config, user="writer")[0] == 409
    expected = [("create", "configmaps", "", "default", "audited", 201)]
    wait_for("the audit event", lambda: cluster.audit_writes("writer", start) == expected, 60)

    def codes():
        return [write[5] for write in cluster.audit_writes("writer", start, accepted_only=False)]
    wait_for("the refused write's event", lambda: 409 in codes(), 60)


def test_an_event_that_a_kill_cut_in_half_spoils_no_other(cluster):
    start = cluster.audit_offset()
    cluster.kubectl("create", "configmap", "before-the-kill")
    wait_for("the audit event", lambda: cluster.audit_writes("admin", start), 60)
    cluster.kill_apiserver()
    with open(cluster.audit_log, "ab") as log:
        log.write(b'{"kind":"Event","stage":"ResponseCom')
    within = cluster.audit_offset() - 5
    cluster.start_apiserver()
    cluster.kubectl("create", "configmap", "after-the-kill")

    def names(since):
        return [write[4] for write in cluster.audit_writes("admin", since)]
    wait_for("both whole events", lambda: names(start) == ["before-the-kill", "after-the-kill"], 60)
    assert names(within) == ["after-the-kill"]


def test_a_killed_node_stops_renewing_and_a_revived_one_goes_on(cluster):
    cluster.add_node("mortal")
    lease = wait_for("its first Lease", lambda: cluster.node_lease("mortal"), 60)

    def version():
        return cluster.node_lease("mortal")["metadata"]["resourceVersion"]

    first = lease["metadata"]["resourceVersion"]
    wait_for("a living node to renew", lambda: version() != first, RENEWAL_SECONDS + 60)
    cluster.kill_node("mortal")
    dead = version()
    end = time.monotonic() + RENEWAL_SECONDS + 2
    while time.monotonic() < end:
        assert version() == dead
        time.sleep(0.2)
    cluster.revive_node("mortal")
    wait_for("a revived node to renew", lambda: version() != dead, RENEWAL_SECONDS + 60)
    cluster.delete_node("mortal")


def test_pods_end_as_their_annotations_say(cluster):
    run_pod(cluster, "ends-well", {"holdfast-test/run-for": "0s"})
    run_pod(cluster, "ends-badly", {"holdfast-test/run-for": "2s", "holdfast-test/exit-code": "3",
                                    "holdfast-test/message": "no luck"})
    run_pod(cluster, "second-attempt", {"holdfast-test/run-for": "0s",
                                        "holdfast-test/exit-code": "1,7,0"},
            labels={"holdfast.dev/attempt": "2"})
    run_pod(cluster, "fourth-attempt", {"holdfast-test/run-for": "0s",
                                        "holdfast-test/exit-code": "1,7,0"},
            labels={"holdfast.dev/attempt": "4"})
    run_pod(cluster, "goes-on")
    run_pod(cluster, "no-image", {"holdfast-test/waiting": "ImagePullBackOff"})
    well = terminated(wait_phase(cluster, "ends-well", "Succeeded"))
    assert (well["exitCode"], well["reason"]) == (0, "Completed")
    badly = terminated(wait_phase(cluster, "ends-badly", "Failed"))
    assert (badly["exitCode"], badly["reason"], badly["message"]) == (3, "Error", "no luck")
    assert badly["startedAt"] < badly["finishedAt"]
    assert terminated(wait_phase(cluster, "second-attempt", "Failed"))["exitCode"] == 7
    assert terminated(wait_phase(cluster, "fourth-attempt", "Succeeded"))["exitCode"] == 0
    assert get_pod(cluster, "goes-on")["status"]["phase"] == "Running"
    waiting = get_pod(cluster, "no-image")["status"]
    assert waiting["phase"] == "Pending"
    assert waiting["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff"


def test_a_deleted_pod_ends_in_its_status_and_keeps_its_finalizers(cluster):
    run_pod(cluster, "held", finalizers=["holdfast.dev/outcome"])
    wait_phase(cluster, "held", "Running")
    run_pod(cluster, "free")
    wait_phase(cluster, "free", "Running")
    cluster.kubectl("delete", "pod", "held", "free", "--wait=false")
    pod = wait_phase(cluster, "held", "Failed")
    assert terminated(pod)["exitCode"] == 143
    wait_for("the pod without finalizer to go", lambda: get_pod(cluster, "free") is None, 60)
    pod = wait_for("the kubelet's own deletion, with grace 0", lambda: (
        lambda p: p if p["metadata"]["deletionGracePeriodSeconds"] == 0 else None)(
            get_pod(cluster, "held")), 60)
    assert pod["metadata"]["finalizers"] == ["holdfast.dev/outcome"]
    status, _ = cluster.api("PATCH", f"{PODS}/held", {"metadata": {"finalizers": None}}, "merge")
    assert status == 200
    wait_for("it to go without its finalizer", lambda: get_pod(cluster, "held") is None, 60)


def test_nothing_comes_from_the_pods_of_a_dead_node(cluster):
    cluster.add_node("doomed", labels={"doomed": "yes"})
    pod = {"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": "on-doomed", "annotations": {"holdfast-test/run-for": "10s"}},
           "spec": {"restartPolicy": "Never", "nodeSelector": {"doomed": "yes"},
                    "containers": [{"name": "main", "image": "any"}]}}
    assert cluster.api("POST", PODS, pod)[0] == 201
    wait_phase(cluster, "on-doomed", "Running")
    cluster.kill_node("doomed")
    before = get_pod(cluster, "on-doomed")["metadata"]["resourceVersion"]
    end = time.monotonic() + 12
    while time.monotonic() < end:
        assert get_pod(cluster, "on-doomed")["metadata"]["resourceVersion"] == before
        time.sleep(0.2)
    cluster.kubectl("delete", "pod", "on-doomed", "--wait=false")
    cluster.revive_node("doomed")
    wait_for("the kubelet that came back to end it", lambda: get_pod(cluster, "on-doomed") is None, 60)
    cluster.delete_node("doomed")
