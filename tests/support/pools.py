"""WorkerPools whose workers run as processes of this machine, with real agents, and jobs for them that
write down when they lived.

    pool = Pools(cluster, "work")
    pool.apply("small", minWorkers=2)
    jobs.apply(pooled("one", "small", lives, {"run": 3}))
"""

import json

import pytest

from agent import DURATION, python, work  # noqa: F401
from fake_pool import allow_workers
from holdfast import QUICK_LEASES, Operator
from host_node import HOSTED
from host_worker import IMAGE, SOON, jobs, lives, nodes  # noqa: F401
from localcluster import wait_for

LIMIT = 60
STOP_GRACE = 2

# What a worker does for each job: the payload names the file of its lives, and its plans by attempt (the
# last one stands for the rest): run, exit, deaf, away and progress as in host_worker; result: what it
# leaves; checkpoint: what it keeps; message: it ends once its message is this.
_WORKER = """
import json, os, signal, sys, time
payload = json.load(sys.stdin)
attempt = int(os.environ["HOLDFAST_ATTEMPT"])
plan = payload["plans"][min(attempt, len(payload["plans"])) - 1]
lives = os.open(payload["lives"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
def tell(what):
    os.write(lives, b"%s %d %d %d\\n" % (what, attempt, os.getpid(), now()))
def replace(name, text):
    with open(name + ".new", "w") as file:
        file.write(text)
    os.rename(name + ".new", name)
if plan.get("deaf"):
    signal.signal(signal.SIGTERM, lambda *_: tell(b"term"))
began = now()
if plan.get("away") and os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    plan = {}
if "expects" in plan and os.environ.get("HOLDFAST_CHECKPOINT", "") != plan["expects"]:
    sys.exit(97)
if "says" in plan:
    replace(os.environ["HOLDFAST_PROGRESS_FILE"], plan["says"])
if "checkpoint" in plan:
    os.spawnlp(os.P_WAIT, payload["agent"], payload["agent"], "checkpoint", "--wait", plan["checkpoint"])
    tell(b"kept")
if "prints" in plan:
    print(plan["prints"], flush=True)
if "result" in plan:
    with open(os.environ["HOLDFAST_RESULT_FILE"], "w") as file:
        file.write(plan["result"])
while True:
    tell(b"beat")
    if "message" in plan:
        try:
            with open(os.environ["HOLDFAST_MESSAGE_FILE"]) as file:
                if file.read() == plan["message"]:
                    sys.exit(0)
        except OSError:
            pass
    elif (now() - began) / 1e9 >= plan.get("run", 1e9):
        sys.exit(plan.get("exit", 0))
    time.sleep(0.02)
"""


def pool(name, command=None, pod=None, **spec):
    """A WorkerPool on the hosts."""
    template = {"spec": {"containers": [{"name": "worker", "image": "busybox:1.36",
                                         "command": command or python(_WORKER)}],
                         "restartPolicy": "Never", **HOSTED, "terminationGracePeriodSeconds": 10, **(pod or {})}}
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": name},
            "spec": {"template": template, "leaseDurationSeconds": DURATION, "stopGraceSeconds": STOP_GRACE, **spec}}


def pooled(name, of, lives, *plans, key=None, **spec):
    """A job that a worker of the pool runs."""
    from agent import agent_binary

    payload = {"lives": str(lives.path), "plans": list(plans) or [{}], "agent": str(agent_binary())}
    ref = {"name": of} | ({"key": key} if key else {})
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {"name": name},
            "spec": {"workerPool": ref, "payload": json.dumps(payload), "retryBackoff": SOON, **spec}}


class Pools:
    """WorkerPools of one namespace, their pods and Leases."""

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace
        self.path = f"/apis/holdfast.dev/v1alpha1/namespaces/{namespace}/workerpools"

    def apply(self, name, **spec):
        status, answer = self.cluster.api("POST", self.path, pool(name, **spec))
        assert status == 201, answer
        return answer

    def get(self, name):
        status, answer = self.cluster.api("GET", f"{self.path}/{name}")
        return answer if status == 200 else None

    def status(self, name):
        return (self.get(name) or {}).get("status", {})

    def patch(self, name, **spec):
        status, answer = self.cluster.api("PATCH", f"{self.path}/{name}", {"spec": spec}, content_type="merge")
        assert status == 200, answer
        return answer

    def delete(self, name):
        return self.cluster.api("DELETE", f"{self.path}/{name}")

    def wait(self, name, what, holds, limit=LIMIT):
        """Until its status is so."""
        last = {}

        def seen():
            last.clear()
            last.update(self.status(name))
            return holds(last)

        try:
            wait_for(f"pool {name}: {what}", seen, limit)
        except Exception as error:
            raise AssertionError(f"{error}; its status: {json.dumps(last, indent=1)}") from error
        return dict(last)

    def wait_live(self, name, count, limit=LIMIT):
        return self.wait(name, f"{count} workers to be live", lambda s: (
            s.get("idle", 0) + s.get("busy", 0) >= count), limit)

    def pods(self, name):
        """Its pods that have not ended, by name."""
        status, answer = self.cluster.api(
            "GET", f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=holdfast.dev/worker-pool={name}")
        assert status == 200, answer
        return {pod["metadata"]["name"]: pod for pod in answer["items"]
                if pod["status"].get("phase") not in ("Succeeded", "Failed")}

    def leases(self, name):
        """Both Leases of its workers, by name."""
        status, answer = self.cluster.api(
            "GET", f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
                   f"?labelSelector=holdfast.dev/worker-pool={name}")
        assert status == 200, answer
        return {lease["metadata"]["name"]: lease for lease in answer["items"]}


@pytest.fixture(scope="module")
def operator(cluster, work, nodes):  # noqa: F811
    allow_workers(cluster, work)
    with Operator(cluster, f"--agent-image={IMAGE}", leases=QUICK_LEASES) as operator:
        yield operator


@pytest.fixture()
def pools(cluster, work):  # noqa: F811
    """Each test's pools go with it."""
    pools = Pools(cluster, work)
    yield pools
    status, answer = cluster.api("GET", pools.path)
    for one in answer.get("items", []) if status == 200 else []:
        pools.delete(one["metadata"]["name"])
