"""A real operator process on a local cluster, and jobs to give it: what integration tests, benchmarks
and the demo share.

    with Cluster(nodes=3) as cluster:
        install(cluster)
        with Operator(cluster) as operator:
            jobs = Jobs(cluster, "default")
            jobs.apply(job("hello"))
            jobs.wait("hello", lambda s: s.get("phase") == "Succeeded", 10)
"""

import copy
import ctypes
import http.client
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
from localcluster import ClusterError, wait_for  # noqa: E402

CRD_PATH = ROOT / "crds/holdfast.dev_durablejobs.yaml"
CRDS = ROOT / "crds"
GUARD_PATH = ROOT / "charts/holdfast/files/guard.yaml"
RBAC_PATH = ROOT / "hack/rbac.yaml"
OPERATOR_USER = "holdfast-operator"
FINALIZER = "holdfast.dev/outcome"
TERMINAL = {"Succeeded", "Failed", "Cancelled"}

_numbers = itertools.count(1)


def built(path, variable):
    """What this environment variable names, else the newest build of the tree."""
    named = os.environ.get(variable)
    if named:
        return named
    builds = [ROOT / "build" / preset / path for preset in ("dev", "release", "demo")]
    builds = [build for build in builds if build.exists()]
    if not builds:
        name = pathlib.Path(path).name
        raise RuntimeError(f"no {name} was built: run `make build`, or name one in {variable}")
    return str(max(builds, key=lambda build: build.stat().st_mtime))


def operator_binary():
    return built("operator/runtime/holdfast-operator", "HOLDFAST_OPERATOR")


def install(cluster):
    """The CRDs, the guard and the operator's rights."""
    cluster.kubectl("apply", "-f", str(CRDS))
    cluster.kubectl("apply", "-f", str(RBAC_PATH))
    wait_for("the API server to serve DurableJobs, JobQueues and WorkerPools",
             lambda: cluster.kubectl("get", "dj,jq,wp", check=False).returncode == 0, 60)
    wait_for_guard(cluster)


def wait_for_guard(cluster):
    """Until the API server holds everybody to both policies of the guard. It does so some time after it has them."""
    probe = job("guard-probe")
    path = "/apis/holdfast.dev/v1alpha1/namespaces/default/durablejobs"
    half = job("guard-half", parallelism=2)  # without completions
    wrong = {"phase": "Succeeded", "waiting": {"reason": "R", "message": "m", "nextAction": "n"}}

    def refuses(method, where, body):
        code, answer = cluster.api(method, f"{where}?dryRun=All", body)
        return code == 422 and "holdfast-guard-durablejob" in answer["message"]

    def refuses_status():
        # An operator that runs may have written to it meanwhile.
        found = cluster.api("GET", f"{path}/guard-probe")[1]
        return refuses("PUT", f"{path}/guard-probe/status", {**found, "status": {**found["status"], **wrong}})

    wait_for("the guard on specs", lambda: refuses("POST", path, half), 60, poll=0.1)
    wait_for("a job to try the guard on", lambda: created(cluster, path, probe), 60)
    wait_for("the guard on statuses", refuses_status, 60, poll=0.1)
    cluster.api("DELETE", f"{path}/guard-probe")


def remove_guard(cluster):
    """So that a chart may bring its own."""
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        cluster.kubectl("delete", kind, "holdfast-guard-durablejob", "holdfast-guard-durablejob-status")


def created(cluster, path, body):
    code, answer = cluster.api("POST", path, body)
    return answer if code == 201 else None


def allow_heartbeats(cluster, namespace):
    """The operator's rights on the Leases of jobs there, as the chart gives them to each workerNamespace."""
    rights = re.split(r"^---$", RBAC_PATH.read_text(), flags=re.MULTILINE)
    rights = [text.replace('namespace: "default"\n', f'namespace: "{namespace}"\n') for text in rights
              if 'namespace: "default"\n' in text]
    cluster.kubectl("apply", "-f", "-", input="---".join(rights))


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


# For tests that kill operators: their shards are taken over after 8 s, not 15 s to 17 s. A replica that has little
# time to renew its Lease may lapse on a busy machine, and then it counts each silence anew: tests that kill nobody
# keep the defaults.
QUICK_LEASES = ["--lease-duration=8s", "--renew-deadline=6500ms", "--retry-period=500ms"]
QUICKEST_LEASES = ["--lease-duration=3s", "--renew-deadline=2500ms", "--retry-period=400ms"]


class Operator:
    """One holdfast-operator process, ended with the test's. Its log is in `log_path`.

    `leases`: flags for its member Lease's timings, QUICK_LEASES say."""

    def __init__(self, cluster, *flags, name=None, kubeconfig=None, env=None, leases=()):
        self.cluster = cluster
        self.name = name or f"operator-{next(_numbers)}"
        self.flags = [*leases, *flags]
        self.env = env or {}
        self.kubeconfig = kubeconfig or cluster.kubeconfig_for(OPERATOR_USER)
        self.log_path = pathlib.Path(cluster.folder) / f"{self.name}.log"
        self.process = None
        self.address = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        """Cleanly, so that the next one need not wait until this one's Lease is old."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def spawn(self):
        """Starts the process and does not wait for it."""
        offset = self.log_path.stat().st_size if self.log_path.exists() else 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [operator_binary(), f"--kubeconfig={self.kubeconfig}", "--metrics-address=127.0.0.1:0",
                 f"--id={self.name}", *self.flags],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent,
                env={**os.environ, **self.env})
        self._log_offset = offset
        self.address = None  # each process has another
        return self

    def start(self, limit=120):
        """Starts it and waits until it is ready and at work."""
        self.spawn()

        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"the operator ended with {self.process.returncode}:\n{self.log()[-4000:]}")
            return self.find_address() and self.get("/readyz")[0] == 200

        wait_for("the operator to be ready", ready, limit)
        # One that was killed before keeps its shards until its Lease is old.
        metric = "member_acting" if "--rescue=observe" in self.flags else "shards_held"
        wait_for("the operator to be at work", lambda: self._shows_some(metric), limit)
        return self

    def _shows_some(self, metric):
        """On a machine that is too busy /metrics may answer 503."""
        status, text = self.get("/metrics")
        shown = re.search(rf"^holdfast_{metric} (\d+)", text, re.MULTILINE)
        return status == 200 and shown and int(shown[1]) > 0

    def find_address(self):
        text = self.log(self._log_offset)
        found = re.findall(r"address=\"?(127\.0\.0\.1:\d+)", text)
        self.address = found[-1] if found else None
        return self.address

    def log(self, offset=0):
        with open(self.log_path, "rb") as log:
            log.seek(offset)
            return log.read().decode(errors="replace")

    def get(self, path):
        """(status, body) of the probe server; (0, reason) when it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)

    def _read_metrics(self):
        """The text of /metrics. A process that was just started has no address yet, and the loop of one on a busy
        machine may not answer in time."""
        last = {}

        def answered():
            if self.process.poll() is not None:
                raise RuntimeError(f"the operator ended with {self.process.returncode}:\n{self.log()[-4000:]}")
            last["status"], last["text"] = (
                self.get("/metrics") if self.address or self.find_address() else (0, "no address yet"))
            return last["status"] == 200

        try:
            wait_for(f"/metrics of {self.name}", answered, 60)
        except ClusterError as error:
            raise ClusterError(f"{error}; the last answer: {last}") from error
        return last["text"]

    def metrics(self):
        """{'name{labels}': value} of /metrics."""
        text = self._read_metrics()
        samples = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                samples[name] = float(value)
        return samples

    def metric(self, name, **labels):
        """The sum of the samples of this name that carry these labels."""
        total = 0.0
        for sample, value in self.metrics().items():
            base, _, rest = sample.partition("{")
            if base == name and all(f'{key}="{text}"' in rest for key, text in labels.items()):
                total += value
        return total

    def signal(self, number):
        """SIGSTOP: returns when every thread stands still, so that nothing is written any more."""
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def kill(self):
        """SIGKILL; returns when it is gone."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()

    def stop(self, limit=30):
        """SIGTERM; returns (exit code, seconds)."""
        began = time.monotonic()
        self.process.terminate()
        code = self.process.wait(timeout=limit)
        return code, time.monotonic() - began


def job(name, command=("true",), annotations=None, labels=None, pod=None, **spec):
    """A DurableJob. `annotations` go into the pod template (how long simulated pods run and how they end
    is said there, see tests/support/localcluster/stages.yaml); `pod` overrides fields of the pod's spec."""
    template = {"metadata": {}, "spec": {"containers": [
        {"name": "main", "image": "busybox:1.36", "command": list(command)}]}}
    if annotations:
        template["metadata"]["annotations"] = dict(annotations)
    if labels:
        template["metadata"]["labels"] = dict(labels)
    template["spec"].update(copy.deepcopy(pod or {}))
    return {"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob", "metadata": {"name": name},
            "spec": {"template": template, **copy.deepcopy(spec)}}


def indexed(name, completions, parallelism, annotations=None, **spec):
    """The same as an Indexed job of many runs."""
    return job(name, annotations=annotations, completions=completions, parallelism=parallelism,
               completionMode="Indexed", **spec)


def runs(seconds, exit_code=None):
    """Annotations for a pod that runs this long and ends so; exit_code "1,1,0" is by attempt."""
    annotations = {"holdfast-test/run-for": f"{seconds}s"}
    if exit_code is not None:
        annotations["holdfast-test/exit-code"] = str(exit_code)
    return annotations


def is_running(pod):
    """Whether it runs. Not for a pod that ends by itself soon: it may have, when a test on a busy machine looks."""
    run_for = pod["metadata"].get("annotations", {}).get("holdfast-test/run-for", "600s")
    assert float(run_for.rstrip("s")) >= 10, f"a test must not wait for a pod to run that ends after {run_for}"
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def place(status):
    """Where a job with one run is, or was when it ended: podName, podUID, nodeName, startTime, and what else its
    run has."""
    runs, history = status.get("runs") or [], status.get("history") or []
    return runs[0] if runs else history[-1] if history else {}


class Jobs:
    """DurableJobs, and their pods, of one namespace, through the admin's eyes."""

    def __init__(self, cluster, namespace="default"):
        self.cluster = cluster
        self.namespace = namespace
        self.path = f"/apis/holdfast.dev/v1alpha1/namespaces/{namespace}/durablejobs"
        self.pods_path = f"/api/v1/namespaces/{namespace}/pods"

    def api(self, method, path, body=None, expect=(200, 201, 202), **kwargs):
        status, answer = self.cluster.api(method, path, body, **kwargs)
        if expect is not None and status not in expect:
            if status == 429 or status >= 500:  # whoever waits for something asks again
                raise OSError(f"{method} {path} answered {status}: {json.dumps(answer)[:2000]}")
            raise AssertionError(f"{method} {path} answered {status}: {json.dumps(answer)[:2000]}")
        return answer

    def apply(self, body):
        return self.api("POST", self.path, body)

    def get(self, name):
        """The job, or None."""
        return self._found(f"{self.path}/{name}")

    def _found(self, path):
        """The object, or None: there is none. An error is no answer."""
        status, answer = self.cluster.api("GET", path)
        if status not in (200, 404):
            raise OSError(f"GET {path} answered {status}: {json.dumps(answer)[:2000]}")
        return answer if status == 200 else None

    def status(self, name):
        return (self.get(name) or {}).get("status", {})

    def list(self):
        return self.api("GET", self.path)["items"]

    def patch(self, name, **spec):
        return self.api("PATCH", f"{self.path}/{name}", {"spec": spec}, content_type="merge")

    def delete(self, name, propagation="Background"):
        return self.api("DELETE", f"{self.path}/{name}",
                        {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation})

    def wait(self, name, condition, limit, what=None):
        """Waits until condition(status) holds and returns the status."""
        last = {}

        def holds():
            last.clear()
            last.update(self.status(name))
            return condition(last)

        try:
            wait_for(what or f"job {name} to get there", holds, limit)
        except Exception as error:
            raise AssertionError(f"{error}; its status: {json.dumps(last, indent=1)}") from error
        return dict(last)

    def wait_phase(self, name, *phases, limit=60):
        return self.wait(name, lambda s: s.get("phase") in phases, limit, f"{name} to be {' or '.join(phases)}")

    def pods(self, name=None):
        """All pods of the job (of every job), oldest attempt first."""
        items = self.api("GET", self.pods_path)["items"]
        items = [pod for pod in items if name is None or any(
            owner["kind"] == "DurableJob" and owner["name"] == name
            for owner in pod["metadata"].get("ownerReferences", [])) or
            pod["metadata"].get("labels", {}).get("holdfast.dev/job-name") == name]
        return sorted(items, key=lambda pod: int(pod["metadata"].get("labels", {}).get("holdfast.dev/attempt", 0)))

    def pod(self, name):
        """The pod of the current attempt, or None."""
        pod_name = place(self.status(name)).get("podName")
        if not pod_name:
            return None
        return self._found(f"{self.pods_path}/{pod_name}")

    def wait_pod(self, name, condition, limit=60):
        """Waits until the current attempt's pod is there and condition(pod) holds; returns it."""
        found = {}

        def holds():
            pod = self.pod(name)
            found["pod"] = pod
            return pod is not None and condition(pod)

        wait_for(f"the pod of job {name} to get there", holds, limit)
        return found["pod"]

    def wait_running(self, name, limit=60):
        """Until the current attempt's pod runs (as `is_running` has it); returns it."""
        return self.wait_pod(name, is_running, limit)

    def wait_started(self, name, limit=60):
        """Until the current attempt's pod runs or has ended; returns it."""
        return self.wait_pod(name, lambda pod: pod["status"].get("phase") in ("Running", "Succeeded", "Failed"), limit)

    def end_pod(self, pod, phase="Succeeded", exit_code=0, **status):
        """Plays the kubelet: the pod has ended so."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        body = {"status": {"phase": phase, "containerStatuses": [{
            "name": "main", "image": "x", "imageID": "x", "ready": False, "restartCount": 0,
            "state": {"terminated": {"exitCode": exit_code, "reason": "Completed" if exit_code == 0 else "Error",
                                     "startedAt": pod["metadata"]["creationTimestamp"], "finishedAt": now}}}],
            **status}}
        return self.api("PATCH", f"{self.pods_path}/{pod['metadata']['name']}/status", body, content_type="strategic")

    def conditions(self, name):
        return {c["type"]: c for c in self.status(name).get("conditions", [])}

    def events(self, name):
        items = self.api("GET", f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")["items"]
        return [event for event in items if event.get("regarding", {}).get("name") == name]
