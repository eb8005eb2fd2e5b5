"""Examples at work, as processes: their workers are killed in the middle, or go on although they were replaced, and
the result is right."""

import concurrent.futures
import json
import os
import re
import subprocess
import sys

import pytest

from agent import DURATION, agent_binary, work  # noqa: F401
from host_node import HostNode
from host_worker import SOON, jobs, nodes, operator  # noqa: F401
from hosted_examples import hosted
from lives import outcomes
from localcluster import wait_for
from losses import LOST_AFTER
from postgresql import Database
from s3 import S3
from worker_examples import EXAMPLES

CLUSTER = {"nodes": 0, "kwok": False}
LIMIT = 60
HEARTBEAT = {"leaseDurationSeconds": DURATION}
# Reads its input. With some inputs the first one that gets it waits until it is let go, and the second one too.
WAITS = """
input=$(cat)
case $input in wait*)
  file=go
  mkdir "$0/$input" 2>/dev/null || { mkdir "$0/$input-again" && file=go-again; }
  until [ -e "$0/$file" ]; do sleep 0.05; done
esac
echo "$input"
"""


@pytest.fixture(scope="module")
def s3():
    with S3() as s3:
        yield s3


@pytest.fixture(scope="module")
def database():
    with Database() as database:
        assert database.run(EXAMPLES / "queue-consumer/queue.sql")[0] == 0
        yield database


def leave_behind(jobs, pod):  # noqa: F811
    """The pod is deleted, and its process goes on: as on a node that is cut off."""
    pod.lose()
    jobs.api("DELETE", pod.path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})


def end_of(pod):
    """(exit code, output) of a process that was left behind, once it has ended."""
    wait_for(f"{pod.pod_name} to end", lambda: pod.process.poll() is not None, LIMIT)
    pod.find()
    return pod.process.returncode, pod.output()


# -- s3-publish -----------------------------------------------------------------------------------


def test_the_s3_server_refuses_a_second_conditional_write(s3):
    assert s3.put("twice", "one", if_none_match="*") == 200
    assert s3.put("twice", "two", if_none_match="*") == 412
    assert s3.put("twice", "two", if_match='"0123456789abcdef0123456789abcdef"') == 412
    assert s3.get("twice") == "one"


def test_s3_publish_publishes_one_result_although_attempts_are_killed_and_replaced(
        operator, nodes, jobs, s3, tmp_path):  # noqa: F811
    script = '[ $HOLDFAST_ATTEMPT = 3 ] || word=wait; echo "$word$HOLDFAST_ATTEMPT" | sh -c "$1" "$0"'
    body = hosted("s3-publish/job.yaml", s3.environment(), {"/publish/": f"{EXAMPLES}/s3-publish/"},
                  args=["sh", "-c", script, tmp_path, WAITS], retryBackoff=SOON, lostAfterSeconds=LOST_AFTER)
    uid = jobs.apply(body)["metadata"]["uid"]

    def pod_at_work(attempt):
        wait_for(f"attempt {attempt} to work", (tmp_path / f"wait{attempt}").exists, LIMIT)
        return nodes.pod_of(jobs, "s3-publish", attempt)

    pod_at_work(1).kill()
    zombie = pod_at_work(2)
    assert s3.keys(f"published/{uid}") == []
    leave_behind(jobs, zombie)
    status = jobs.wait_phase("s3-publish", "Succeeded", "Failed")
    assert outcomes(status) == ["Failed", "Lost", "Succeeded"]
    (tmp_path / "go").touch()
    code, said = end_of(zombie)
    assert code == 1 and "fenced: attempt 3 has published, so attempt 2 is over" in said

    assert [key for key in s3.keys() if uid in key] == [f"published/{uid}", f"results/{uid}/2", f"results/{uid}/3"]
    assert s3.get(f"published/{uid}") == f"3 results/{uid}/3\n"
    assert s3.get(f"results/{uid}/3") == "3\n"


def publish(s3, uid, attempt):
    """What an attempt does: (exit code, output)."""
    return run_publish(s3, uid, attempt, "echo", f"result {attempt}")


def run_publish(s3, uid, attempt, *command):
    environment = s3.environment() | {"HOLDFAST_JOB_UID": uid, "HOLDFAST_ATTEMPT": str(attempt)}
    done = subprocess.run(["sh", EXAMPLES / "s3-publish/publish.sh", *command], env=os.environ | environment, text=True,
                          timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def test_s3_publish_refuses_an_attempt_that_comes_late_and_lets_one_publish_again(s3):
    assert publish(s3, "late", 2) == (0, "published results/late/2\n")
    assert publish(s3, "late", 1) == (1, "publish.sh: fenced: attempt 2 has published, so attempt 1 is over\n")
    assert publish(s3, "late", 2) == (0, "published results/late/2\n")
    assert s3.get("published/late") == "2 results/late/2\n"


# Stands still before it writes a pointer, until it is let go.
SLOW_CURL = """#!/bin/sh
case "$*" in *--upload-file*/published/*)
  touch {folder}/stands
  until [ -e {folder}/go ]; do sleep 0.05; done
esac
exec /usr/bin/curl "$@"
"""


def test_s3_publish_refuses_an_attempt_that_has_seen_no_pointer_and_writes_it_late(s3, tmp_path, monkeypatch):
    path = os.environ["PATH"]
    (tmp_path / "curl").write_text(SLOW_CURL.format(folder=tmp_path))
    (tmp_path / "curl").chmod(0o755)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        monkeypatch.setenv("PATH", f"{tmp_path}:{path}")
        slow = pool.submit(publish, s3, "slow", 1)
        wait_for("attempt 1 to stand before its write", (tmp_path / "stands").exists, LIMIT)
        monkeypatch.setenv("PATH", path)
        assert publish(s3, "slow", 2)[0] == 0
        (tmp_path / "go").touch()
        assert slow.result(LIMIT) == (1, "publish.sh: fenced: attempt 2 has published, so attempt 1 is over\n")
    assert s3.get("published/slow") == "2 results/slow/2\n"


def test_s3_publish_leaves_the_newest_attempt_published_when_many_publish_at_once(s3):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(lambda attempt: publish(s3, "race", attempt), range(1, 9)))
    assert ends[-1][0] == 0, ends[-1]
    assert all(code == 0 or "fenced" in said for code, said in ends), ends
    assert s3.get("published/race") == "8 results/race/8\n"


def test_s3_publish_publishes_nothing_if_the_command_fails(s3):
    assert run_publish(s3, "half", 1, "sh", "-c", "echo half; exit 7")[0] == 7
    assert [key for key in s3.keys() if "half" in key] == []


# -- queue-consumer -------------------------------------------------------------------------------


def rows(database, statement):
    code, said = database.run(statement)
    assert code == 0, said
    return said.splitlines()


def test_queue_consumer_loses_no_message_and_has_one_result_of_each(
        operator, nodes, jobs, database, tmp_path):  # noqa: F811
    bodies = ["wait-killed", "wait-left", *(f"message {number}" for number in range(30))]
    rows(database, "INSERT INTO messages (body) VALUES " + ", ".join(f"('{body}')" for body in bodies))
    body = hosted("queue-consumer/job.yaml", database.environment() | {"PGHOST": database.folder},
                  {"python3": sys.executable, "/consume/": f"{EXAMPLES}/queue-consumer/"},
                  args=["sh", "-c", WAITS, tmp_path], retryBackoff=SOON, lostAfterSeconds=LOST_AFTER)
    jobs.apply(body)

    def pod_with(message):
        """The pod of the run that has the message."""
        wait_for(f"{message} to be taken", (tmp_path / message).exists, LIMIT)
        [attempt] = rows(database, f"SELECT attempt FROM messages WHERE body = '{message}'")
        [pod] = [pod for pod in jobs.pods("queue-consumer")
                 if pod["metadata"]["labels"]["holdfast.dev/attempt"] == attempt]
        return nodes.find(pod["metadata"]["name"])

    pod_with("wait-killed").kill()
    left = pod_with("wait-left")
    leave_behind(jobs, left)
    wait_for("its successor to have its message", (tmp_path / "wait-left-again").exists, LIMIT)
    (tmp_path / "go").touch()
    code, said = end_of(left)
    assert code == 1
    assert re.search(r"fenced: message \d+ was delivered again, so delivery 1 does not count", said)

    (tmp_path / "go-again").touch()
    status = jobs.wait_phase("queue-consumer", "Succeeded", "Failed")
    assert (status["phase"], status["failures"], status["disruptions"]) == ("Succeeded", 1, 1), json.dumps(status)
    assert sorted(rows(database, "SELECT rtrim(result, E'\\n') FROM processed")) == sorted(bodies)
    assert rows(database, "SELECT id FROM messages") == []
    assert rows(database, "SELECT delivery FROM processed WHERE result LIKE 'wait%'") == ["2", "2"]


# -- checkpoints ----------------------------------------------------------------------------------


def kept(folder):
    """The steps whose state is there."""
    return sorted(int(path.stem.removeprefix("step-")) for path in folder.glob("step-*.json"))


def output(nodes, status, attempt):  # noqa: F811
    """What the pod of this attempt, which has ended, has printed."""
    [entry] = [entry for entry in status["history"] if entry["attempt"] == attempt]
    return nodes.find(entry["podName"]).output()


def test_checkpoints_go_on_after_the_last_step_that_was_kept(operator, nodes, jobs, tmp_path):  # noqa: F811
    steps, program = 12, EXAMPLES / "checkpoints"
    environment = {"DATA": tmp_path, "STEPS": steps, "SECONDS_PER_STEP": "0.1", "AGENT_PROGRAM": agent_binary()}
    uid = jobs.apply(hosted("checkpoints/job.yaml", environment, {"python3": sys.executable, "/train/": f"{program}/"},
                            heartbeat=HEARTBEAT, retryBackoff=SOON))["metadata"]["uid"]
    first, second, undisturbed = tmp_path / uid / "1", tmp_path / uid / "2", tmp_path / "undisturbed/1"
    wait_for("some steps", lambda: len(kept(first)) >= 4, LIMIT)
    nodes.pod_of(jobs, "checkpoints", 1).kill()
    status = jobs.wait_phase("checkpoints", "Succeeded", "Failed")
    assert (status["phase"], status["attempt"]) == ("Succeeded", 2)

    began = int(re.search(r"attempt 2 begins after step (\d+)", output(nodes, status, 2))[1])
    # The last step's file may have come without its checkpoint: then that step is done again.
    assert kept(first)[-1] - 1 <= began <= kept(first)[-1] < steps
    assert kept(second) == list(range(began + 1, steps + 1))
    subprocess.run([sys.executable, program / "train.py"], check=True, timeout=60, env=os.environ | {
        "HOLDFAST_JOB_UID": "undisturbed", "HOLDFAST_ATTEMPT": "1", "DATA": str(tmp_path), "STEPS": str(steps),
        "SECONDS_PER_STEP": "0", "AGENT_PROGRAM": "true"})
    last = f"step-{steps}.json"
    assert (second / last).read_text() == (undisturbed / last).read_text()


# -- gpu-spot -------------------------------------------------------------------------------------

GPU = {"nvidia.com/gpu": "1"}
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
SPOT = "cloud.google.com/gke-spot"
SPOT_TAINT = {"key": SPOT, "value": "true", "effect": "NoSchedule"}


@pytest.fixture()
def gpu_nodes(cluster, tmp_path):
    """A spot node and another one, each with a GPU; the nodes of the other tests have none."""
    found = [HostNode(cluster, "gpu-spot", tmp_path / "spot", {SPOT: "true"}, [GPU_TAINT, SPOT_TAINT], GPU),
             HostNode(cluster, "gpu", tmp_path / "gpu", {}, [GPU_TAINT], GPU)]
    for node in found:
        node.start()
    for node, taints in zip(found, ({GPU_TAINT["key"], SPOT}, {GPU_TAINT["key"]})):
        wait_for(f"{node.name} to be ready", lambda name=node.name, own=taints: taints_of(cluster, name) == own, LIMIT)
    yield found
    for node in found:
        node.stop()
        cluster.api("DELETE", f"/api/v1/nodes/{node.name}")


def taints_of(cluster, name):
    """Its own alone, once it is ready."""
    return {taint["key"] for taint in cluster.api("GET", f"/api/v1/nodes/{name}")[1]["spec"].get("taints", [])}


def test_gpu_spot_prefers_a_spot_node_and_goes_on_elsewhere_when_that_is_gone(
        cluster, operator, gpu_nodes, jobs):  # noqa: F811
    spot, other = gpu_nodes
    jobs.apply(hosted("gpu-spot.yaml", {"STEPS": 10}, {"sleep 1 ": "sleep 0.2 ", "/holdfast/agent": agent_binary()},
                      heartbeat=HEARTBEAT, retryBackoff=SOON))
    pod = jobs.wait_running("gpu-spot")
    assert pod["spec"]["nodeName"] == spot.name
    wait_for("some steps", lambda: checkpoint(jobs, "gpu-spot") >= 3, LIMIT)

    spot.die()
    cluster.api("DELETE", f"/api/v1/nodes/{spot.name}")
    status = jobs.wait_phase("gpu-spot", "Succeeded", "Failed")
    assert outcomes(status) == ["Lost", "Succeeded"]
    assert (status["phase"], status.get("failures", 0), status["disruptions"]) == ("Succeeded", 0, 1)
    last = status["history"][-1]
    assert last["nodeName"] == other.name
    assert int(re.search(r"attempt 2 begins after step (\d+)", other.pods[last["podName"]].output())[1]) >= 3


def checkpoint(jobs, name):  # noqa: F811
    """The step in the Lease of the job's run."""
    leases = jobs.api("GET", f"/apis/coordination.k8s.io/v1/namespaces/{jobs.namespace}/leases")["items"]
    uid = jobs.get(name)["metadata"]["uid"]
    return max(int(lease["metadata"].get("annotations", {}).get("holdfast.dev/checkpoint", "0")) for lease in leases
               if lease["metadata"].get("labels", {}).get("holdfast.dev/job-uid") == uid)
