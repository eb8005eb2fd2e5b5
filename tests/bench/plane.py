"""The control plane of a mode of the benchmark, and what puts load on it.

    with Plane(nodes=20) as plane:
        plane.send(objects.ending_jobs("work"), 1000)
"""

import json
import os
import pathlib
import subprocess
import tempfile
import time

from holdfast import Jobs, Operator, install
from localcluster import Cluster
from measure import OPERATOR_USER, cpu_seconds, memory_mib
from replicas import Replicas, admit

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOAD = os.environ.get("HOLDFAST_LOAD", ROOT / "build/bench/tests/bench/load/holdfast-load")
# The log of who wrote what, without the bodies, which cost more than all else that a log does.
WRITES_ALONE = ROOT / "tests/bench/audit-policy.yaml"
# Finished pods stay, however many.
KEEP_PODS = "--terminated-pod-gc-threshold=0"
# As a cluster has it that nobody has tuned.
DEFAULTS = ["--kube-api-qps=20", "--kube-api-burst=30", KEEP_PODS]
# As unthrottled as the operator is, so that the comparison is fair.
UNTHROTTLED = ["--kube-api-qps=5000", "--kube-api-burst=10000", "--concurrent-job-syncs=50", KEEP_PODS]
SERVER = ("kube-apiserver", "etcd")
LIMIT = 3600
SHARDS = 32


class LoadError(RuntimeError):
    """The load could not be put on."""


class Plane:
    """A cluster with the CRD installed. Modes make namespaces of their own."""

    def __init__(self, nodes=20):
        self.cluster = Cluster(nodes=nodes, quiet=True, audit=WRITES_ALONE, nodes_die=False,
                               controller_manager_flags=UNTHROTTLED)
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        self._namespaces = 0
        self.finished = 0  # jobs that were made as finished ones, see standing.py
        self.finished_namespace = None

    def __enter__(self):
        self.cluster.start()
        install(self.cluster)
        admit(self.cluster, OPERATOR_USER)
        self.kubeconfig = self.service_account(OPERATOR_USER)
        return self

    def __exit__(self, *_):
        self.cluster.stop()
        self._folder.cleanup()

    def namespace(self, purpose):
        """A new one, ready for pods; its name."""
        self._namespaces += 1
        name = f"{purpose}-{self._namespaces}"
        self.cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        # The controller-manager makes it too, where there is one.
        self.cluster.api("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        return name

    def service_account(self, user):
        """Makes this service account and returns its kubeconfig, which has a token and no certificate."""
        namespace, name = user.split(":")[2:]
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.cluster.api("POST", path, {"metadata": {"name": name}})
        config = json.loads(self.cluster.kubeconfig.read_text(encoding="utf-8"))
        token = self.cluster.api("POST", f"{path}/{name}/token", {"spec": {"expirationSeconds": 24 * 3600}})[1]
        config["users"][0]["user"] = {"token": token["status"]["token"]}
        kubeconfig = pathlib.Path(self._folder.name) / f"kubeconfig-{name}"
        kubeconfig.write_text(json.dumps(config), encoding="utf-8")
        return kubeconfig

    def operator(self, *flags):
        return Operator(self.cluster, *flags, kubeconfig=self.kubeconfig)

    def replicas(self, count):
        return Replicas(self.cluster, count, kubeconfigs=dict.fromkeys(range(count), lambda _: self.kubeconfig))

    def jobs(self, namespace):
        return Jobs(self.cluster, namespace)

    def _load(self, *words):
        return [str(LOAD), f"--kubeconfig={self.cluster.kubeconfig}", *map(str, words)]

    def send(self, chain, count, first=0, in_flight=16, until_ended=None):
        """Sends the chain of requests so many times; {"seconds", "chains", "requests"}. `until_ended`: the namespace
        of its DurableJobs, which count as in flight until they have ended."""
        path = pathlib.Path(self._folder.name) / "chain.json"
        path.write_text(json.dumps(chain), encoding="utf-8")
        more = ["--until-ended", until_ended] if until_ended else []
        done = subprocess.run(
            self._load("send", path, "--first", first, "--count", count, "--in-flight", in_flight, *more),
            capture_output=True, text=True, timeout=LIMIT, check=False)
        if done.returncode != 0:
            raise LoadError(done.stderr.strip())
        return json.loads(done.stdout)

    def send_by_step(self, chain, count, in_flight):
        """A generator: each next() sends the next request of the chain so many times."""
        path = pathlib.Path(self._folder.name) / "chain.json"
        path.write_text(json.dumps(chain), encoding="utf-8")
        with subprocess.Popen(
                self._load("send", path, "--count", count, "--in-flight", in_flight, "--by-step"),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            line = process.stdout.readline()
            for _ in chain:
                process.stdin.write("go\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    raise LoadError(process.stderr.read().strip())
                yield

    def finisher(self, namespace, count):
        """A process that ends so many pods there as soon as they appear; it watches already."""
        process = subprocess.Popen(self._load("finish", "--namespace", namespace, "--count", count),
                                   stdout=subprocess.PIPE, text=True)
        if process.stdout.readline().strip() != "watching":
            raise LoadError("the pods cannot be watched")
        return process

    def restart_controller_manager(self, flags):
        """The same one with other flags; None: it stays away."""
        if self.cluster.processes()["kube-controller-manager"]["running"]:
            self.cluster.kill("kube-controller-manager")
        if flags is None:
            return
        self.cluster.options["controller_manager_flags"] = list(flags)
        self.cluster.start_controller_manager()

    def pid(self, part):
        return self.cluster.processes()[part]["pid"]

    def cpu(self, *parts):
        """Seconds that these parts of the cluster have used."""
        return sum(cpu_seconds(self.pid(part)) for part in parts)

    def memory(self, part):
        return memory_mib(self.pid(part))


def machine():
    """What it ran on: no names."""
    model = memory = ""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
    with open("/proc/meminfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("MemTotal"):
                memory = f"{round(int(line.split()[1]) / 1024 / 1024)} GiB"
    return {"cores": os.cpu_count(), "cpu": model, "memory": memory,
            "date": time.strftime("%Y-%m-%d", time.gmtime()), "load": round(os.getloadavg()[0], 1)}


def versions(cluster):
    """Of what was measured and what it ran against. No cluster: of what was measured."""
    kubernetes = cluster.api("GET", "/version")[1]["gitVersion"] if cluster else ""
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"],
                            capture_output=True, text=True, check=False).stdout.strip()
    return {"kubernetes": kubernetes, "holdfast": commit}
