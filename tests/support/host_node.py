"""Nodes of the tests' own making that run pods as processes of this machine, and say of them what a
kubelet says. A pod's first container is what runs; its agent is the one that was built.

    with HostNodes(cluster, folder, 2) as nodes:
        jobs.apply(job("works", command=works(path), pod=HOSTED, heartbeat=...))
        pod = nodes.pod_of(jobs, "works")
        pod.link.cut_off()              # that pod's way to the API server
        pod.node.partition()            # the kubelet is cut off; what runs goes on
"""

import http.client
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

from agent import agent_binary, alive, descendants
from agent_ways import Link
from fence import token_of
from holdfast import die_with_parent, place
from localcluster import wait_for
from losses import time_text

HOST = "holdfast-test/host"
# Fields of a pod that only these nodes run; it is told to go and has a while for it.
HOSTED = {"nodeSelector": {HOST: "true"}, "terminationGracePeriodSeconds": 5}
AGENT = "/holdfast/agent"
# Every process of a pod has this in its environment.
MARK = "HOST_NODE_POD"
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
RENEW_SECONDS = 2
RETRY_SECONDS = 0.2
LOOK_SECONDS = 0.02
LIMIT = 60


class HostNodes:
    """Some such nodes, from __enter__ to __exit__."""

    def __init__(self, cluster, folder, count):
        self.nodes = [HostNode(cluster, f"host-{number}", pathlib.Path(folder) / f"host-{number}")
                      for number in range(count)]

    def __enter__(self):
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.wait_ready()
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.stop()

    def find(self, name):
        """The pod of this name as its node has it, or None."""
        return next((node.pods[name] for node in self.nodes if name in node.pods), None)

    def pod_of(self, jobs, name, attempt=None):
        """The pod of the job's current attempt (of this one), once its process runs."""
        def found():
            status = jobs.status(name)
            if not place(status).get("podName") or attempt not in (None, status["attempt"]):
                return None
            pod = self.find(place(status)["podName"])
            return pod if pod and pod.process else None

        return wait_for(f"a process of {name}", found, LIMIT)


class HostNode:
    """One node. What it does is done as the user that a kubelet is. `labels`, `taints` and `extra` (resources beside
    the usual ones) say what is different in it."""

    def __init__(self, cluster, name, folder, labels=None, taints=(), extra=None):
        self.cluster, self.name, self.folder = cluster, name, folder
        self._labels = {"kubernetes.io/hostname": name, HOST: "true"} | (labels or {})
        self._taints, self._extra = list(taints), extra or {}
        self.client = cluster.client(f"system:node:{name}", ("system:nodes",))
        self.pods = {}  # by name; those that are gone too
        self.stopping = threading.Event()
        self._online = threading.Event()
        self._online.set()
        self._talk = threading.Lock()
        self._seen = {}

    def start(self):
        size = {"cpu": "64", "memory": "256Gi", "pods": "1000"} | self._extra
        status, answer = self.cluster.api("POST", "/api/v1/nodes", {
            "metadata": {"name": self.name, "labels": self._labels}, "spec": {"taints": self._taints},
            "status": {"capacity": size, "allocatable": size}})
        assert status == 201, answer
        for work in (self._renew, self._follow):
            threading.Thread(target=work, daemon=True).start()

    def wait_ready(self):
        self.cluster.wait_node_ready(self.name)

    def stop(self):
        """Ends every process of its pods."""
        self.stopping.set()
        self._online.set()
        for pod in list(self.pods.values()):
            pod.kill()
            pod.join()

    def partition(self):
        """From its return on it says nothing, renews nothing and hears nothing; processes go on."""
        self._online.clear()
        with self._talk:
            pass

    def die(self):
        """As by a power loss: what runs there ends, and nobody tells."""
        self.partition()
        for pod in list(self.pods.values()):
            pod.kill()

    def heal(self):
        self._online.set()

    def is_online(self):
        return self._online.is_set()

    def call(self, method, path, body=None, content_type="application/json"):
        """(status, answer), however long that takes; (0, None): it is being stopped."""
        while not self.stopping.is_set():
            if self._online.wait(RETRY_SECONDS):
                with self._talk:
                    try:
                        if self._online.is_set():
                            return self.client.request(method, path, body, content_type, timeout=5)
                    except (OSError, http.client.HTTPException):
                        pass
                self.stopping.wait(RETRY_SECONDS)
        return 0, None

    def _renew(self):
        lease = {"metadata": {"name": self.name}, "spec": {"holderIdentity": self.name, "leaseDurationSeconds": 40}}
        while not self.stopping.is_set():
            now = time.time()
            part = int(now % 1 * 1e6)
            lease["spec"]["renewTime"] = time_text(now).replace("Z", f".{part:06}Z")
            status, answer = self.call("PUT", f"{NODE_LEASES}/{self.name}", lease)
            if status == 404:
                lease["metadata"].pop("resourceVersion", None)
                status, answer = self.call("POST", NODE_LEASES, lease)
            if 200 <= status < 300:
                lease = answer
                self._keep_ready()
            elif status == 409:
                lease["metadata"] = {"name": self.name}
            self.stopping.wait(RENEW_SECONDS)
        self.client.close()

    def _keep_ready(self):
        """As a kubelet does when the controller-manager has said otherwise, after an outage for one."""
        path = f"/api/v1/nodes/{self.name}"
        status, node = self.call("GET", path)
        if status != 200 or any(condition["type"] == "Ready" and condition["status"] == "True"
                                for condition in node["status"].get("conditions", [])):
            return
        now = time_text(time.time())
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it runs",
                 "lastHeartbeatTime": now, "lastTransitionTime": now}
        self.call("PATCH", path + "/status", {"status": {"conditions": [ready]}}, "strategic")

    def _follow(self):
        query = f"fieldSelector=spec.nodeName%3D{self.name}"
        while not self.stopping.is_set():
            status, answer = self.call("GET", f"/api/v1/pods?{query}")
            if status != 200:
                self.stopping.wait(RETRY_SECONDS)
                continue
            listed = {pod["metadata"]["name"]: pod for pod in answer["items"]}
            for name in set(self._seen) - set(listed):
                self._take_in(name, None)
            for name, pod in listed.items():
                self._take_in(name, pod)
            try:
                for event in self.client.watch(
                        "/api/v1/pods", answer["metadata"]["resourceVersion"], timeout=30,
                        fieldSelector=f"spec.nodeName={self.name}"):
                    while not self._online.wait(1) and not self.stopping.is_set():
                        pass
                    if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
                        break
                    pod = event["object"]
                    self._take_in(pod["metadata"]["name"], None if event["type"] == "DELETED" else pod)
            except (OSError, ValueError, http.client.HTTPException):
                self.stopping.wait(RETRY_SECONDS)

    def _take_in(self, name, pod):
        """What the API server says of a pod now; None: it is gone."""
        if pod is None:
            self._seen.pop(name, None)
        else:
            self._seen[name] = pod
        known = self.pods.get(name)
        if known and (pod is None or known.uid == pod["metadata"]["uid"]):
            known.told = pod
        elif pod and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            self.pods[name] = HostPod(self, pod)
            self.pods[name].start()


class HostPod:
    """One pod. The thread is its processes' parent, and dies after them."""

    def __init__(self, node, pod):
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.node, self.told = node, pod
        self.pod_name, self.uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        self.namespace = pod["metadata"]["namespace"]
        self.spec = pod["spec"]
        self.main = pod["spec"]["containers"][0]
        self.folder = node.folder / self.uid
        self.path = f"/api/v1/namespaces/{self.namespace}/pods/{self.pod_name}"
        self.link = Link(node.cluster)
        self.process = None
        self.token = None
        self.kept = threading.Event()
        self.kept.set()
        self._began = self._told_to_end = None
        self._why_killed = "Error"

    # -- for tests ----------------------------------------------------------------------------

    @property
    def pid(self):
        """The agent's, or the command's of a pod without one."""
        return self.process.pid

    def signal(self, number):
        """To the agent alone."""
        self.process.send_signal(number)

    def children(self):
        """The processes below the agent that run."""
        return [pid for pid in descendants(self.pid) if alive(pid)]

    def lose(self):
        """Its node is stuck with it: it neither tells of the pod nor obeys; what runs goes on."""
        self.kept.clear()

    def find(self):
        self.kept.set()

    def run_out_of_memory(self):
        """As a kernel and a kubelet do it: all of the container dies."""
        self._why_killed = "OOMKilled"
        self.kill()

    def kill(self):
        """SIGKILL to all its processes, the agent and what has left its process group."""
        found = True
        while found:  # one may have forked meanwhile
            found = False
            for folder in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    if f"{MARK}={self.uid}".encode() in (folder / "environ").read_bytes():
                        os.kill(int(folder.name), signal.SIGKILL)
                        found = True
                except OSError:
                    continue

    def output(self):
        return (self.folder / "output").read_text(errors="replace")

    # -- its life -----------------------------------------------------------------------------

    def start(self):
        self._thread.start()

    def join(self):
        self._thread.join(LIMIT)

    def _run(self):
        with self.link:
            if self._prepare():
                self._spawn()
                self._report("Running", {"running": {"startedAt": self._began}})
                while self.process.poll() is None:
                    self._obey()
                    time.sleep(LOOK_SECONDS)
                self.kill()  # a container ends with its first process
                self._report_end()
            elif self.told:
                self._patch({"phase": "Failed"})
            self._remove()
        self.node.client.close()

    def _prepare(self):
        """Its folder, with what a kubelet puts there. False: it has been told to go before."""
        self.folder.mkdir(parents=True)
        for name in ("progress", "termination-log"):
            (self.folder / name).touch()
        (self.folder / "progress").unlink()
        credentials = self.folder / "credentials"
        credentials.mkdir()
        shutil.copy(self.node.cluster.folder / "pki/ca.crt", credentials / "ca.crt")
        while not self.node.stopping.is_set():
            if self.told is None or "deletionTimestamp" in self.told["metadata"]:
                return False
            try:
                self.token = token_of(self, self.namespace, self.spec["serviceAccountName"],
                                      {"kind": "Pod", "metadata": self.told["metadata"]})
                (credentials / "token").write_text(self.token)
                return True
            except (AssertionError, TypeError):  # not yet, or not any more
                self.node.stopping.wait(RETRY_SECONDS)
        return False

    def api(self, method, path, body):
        """For token_of: as the node."""
        return self.node.call(method, path, body)

    def _environment(self):
        fields = {"metadata.uid": self.uid, "metadata.name": self.pod_name,
                  "metadata.namespace": self.namespace, "spec.nodeName": self.node.name}
        given = {variable["name"]: variable.get("value") or
                 fields.get(variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath"), "")
                 for variable in self.main.get("env", [])}
        if "HOLDFAST_SLOTS_FOLDER" in given:
            given["HOLDFAST_SLOTS_FOLDER"] = str(self.folder / "slots")
        return given | {
            "PATH": os.environ["PATH"],
            "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.link.port),
            "HOLDFAST_CREDENTIALS": str(self.folder / "credentials"),
            "HOLDFAST_PROGRESS_FILE": str(self.folder / "progress"),
            "HOLDFAST_TERMINATION_LOG": str(self.folder / "termination-log"),
            MARK: self.uid}

    def _spawn(self):
        words = self.main["command"] + self.main.get("args", [])
        words = [agent_binary() if word == AGENT else word for word in words]
        self._began = time_text(time.time())
        with open(self.folder / "output", "wb") as output:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.folder,
                env=self._environment(), preexec_fn=die_with_parent)

    def _obey(self):
        """SIGTERM, the grace, SIGKILL; at once, if it is gone."""
        if not self._hears():
            return
        deletion = self.told is None or "deletionTimestamp" in self.told["metadata"]
        if not deletion:
            return
        grace = 0 if self.told is None else self.told["metadata"]["deletionGracePeriodSeconds"]
        if self._told_to_end is None:
            self._told_to_end = time.monotonic()
            self.signal(signal.SIGTERM)
        if time.monotonic() >= self._told_to_end + max(grace, 1):
            self.kill()

    def _hears(self):
        return self.kept.is_set() and self.node.is_online()

    def _report_end(self):
        code = self.process.returncode
        code = 128 - code if code < 0 else code
        ended = {"exitCode": code, "reason": self._why_killed if code else "Completed",
                 "startedAt": self._began, "finishedAt": time_text(time.time())}
        message = (self.folder / "termination-log").read_text(errors="replace")[:4096]
        if message:
            ended["message"] = message
        self._report("Failed" if code else "Succeeded", {"running": None, "terminated": ended})

    def _report(self, phase, state):
        now = time_text(time.time())
        runs = phase == "Running"
        past = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": self._began,
                               "finishedAt": self._began}}
        init = [{"name": one["name"], "image": one["image"], "imageID": "x", "ready": True,
                 "restartCount": 0, "state": past} for one in self.spec.get("initContainers", [])]
        main = {"name": self.main["name"], "image": self.main["image"], "imageID": "x",
                "ready": runs, "restartCount": 0, "started": runs, "state": state}
        ready = {"type": "Ready", "status": str(runs), "lastTransitionTime": now}
        self._patch({"phase": phase, "startTime": self._began, "conditions": [ready],
                     "initContainerStatuses": init, "containerStatuses": [main]})

    def _patch(self, status):
        while not self.node.stopping.is_set():
            if not self.kept.wait(RETRY_SECONDS):
                continue
            code, _ = self.node.call("PATCH", f"{self.path}/status",
                                     {"metadata": {"uid": self.uid}, "status": status}, "strategic")
            if 200 <= code < 300 or code in (404, 409, 422):  # gone, or another's
                return
            self.node.stopping.wait(RETRY_SECONDS)

    def _remove(self):
        """The last word on a deletion that came before its end; one that comes later is the API
        server's alone."""
        while not self.node.stopping.is_set() and self.told is not None:
            if self._hears() and "deletionTimestamp" in self.told["metadata"]:
                code, _ = self.node.call("DELETE", self.path, {
                    "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
                    "preconditions": {"uid": self.uid}})
                if code in (200, 202, 404, 409):
                    return
            elif self.told["status"].get("phase") in ("Succeeded", "Failed"):
                return
            self.node.stopping.wait(LOOK_SECONDS)
