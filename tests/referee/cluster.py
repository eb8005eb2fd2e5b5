"""The referee's kind cluster: one control plane, four workers, and the ledger's folder in each."""

import contextlib
import http.client
import json
import os
import pathlib
import platform
import shutil
import subprocess
import time

from localcluster import ClusterError
from real_cluster import RealCluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "holdfast-referee"
FOLDER = ROOT / "build/referee"
SHARED = FOLDER / "shared"
AUDIT = FOLDER / "audit"
AUDIT_LOG = AUDIT / "audit.log"
WORKERS = 4
BUILD_IMAGE, WORKER_IMAGE = "holdfast-build:local", "holdfast-referee:local"
PATIENCE = 120


def kind_config(audited):
    """The config of hack/kind, with the mounts and more workers. audited: the API server's audit policy, or None."""
    mount = {"hostPath": str(SHARED), "containerPath": "/referee"}
    node = {"extraMounts": [mount]}
    patches = [{"kind": "KubeletConfiguration", "failCgroupV1": False}]
    control_plane = node
    if audited:
        AUDIT.mkdir(parents=True, exist_ok=True)
        AUDIT_LOG.unlink(missing_ok=True)
        (AUDIT / "policy.json").write_text(json.dumps(audited))
        volume = {"name": "audit", "hostPath": "/audit", "mountPath": "/audit", "pathType": "DirectoryOrCreate"}
        patches.append({"kind": "ClusterConfiguration", "apiServer": {
            "extraArgs": {"audit-policy-file": "/audit/policy.json", "audit-log-path": f"/audit/{AUDIT_LOG.name}"},
            "extraVolumes": [volume]}})
        control_plane = {"extraMounts": [mount, {"hostPath": str(AUDIT), "containerPath": "/audit"}]}
    return {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4",
            "kubeadmConfigPatches": [json.dumps(patch) for patch in patches],
            "nodes": [{"role": "control-plane", **control_plane}, *({"role": "worker", **node} for _ in range(WORKERS))]}


def clear_ledger():
    """For a new run; the folders themselves are mounted."""
    for name in ("ledger", "switch"):
        folder = SHARED / name
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)  # pods run as nobody
        for path in folder.iterdir():
            path.unlink()


# What a call ends with while the API server is paused.
AWAY = (ClusterError, OSError, ValueError, http.client.HTTPException, subprocess.TimeoutExpired)


def patiently(call, *errors, limit=PATIENCE):
    """What the call returns. An API server that is paused answers later."""
    end = time.monotonic() + limit
    while True:
        try:
            return call()
        except (*AWAY, *errors):
            if time.monotonic() > end:
                raise
            time.sleep(1)


def commit():
    """Of this tree; "-dirty" behind it: with changes."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True, check=True).stdout.strip()

    return git("rev-parse", "--short=10", "HEAD") + ("-dirty" if git("status", "--porcelain") else "")


def machine():
    """What this one is, in a few words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.machine()}"


class Cluster(RealCluster):
    """With what a run writes into its record: the commit, and Kubernetes' version."""

    def __enter__(self):
        super().__enter__()
        self.commit = commit()
        self.kubernetes = self.api("GET", "/version")[1]["gitVersion"]
        return self

    def await_node(self, node, limit=480):
        """Also while the API server is away. After some outages in a row the kubelet starts scheduler and controllers
        only after minutes (CrashLoopBackOff), and nobody takes the node's taint away before."""
        patiently(lambda: super(Cluster, self).await_node(node, limit), AssertionError, limit=limit)

    def ensure_namespaces(self, names):
        """So that they are there."""
        for name in names:
            status, answer = self.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            if status not in (201, 409):
                raise ClusterError(f"namespace {name}: {answer}")

    def pods_of(self, namespace):
        """How many there are, of whatever phase."""
        return len(self.api("GET", f"/api/v1/namespaces/{namespace}/pods")[1]["items"])


def wake_nodes():
    """A run that was killed leaves nodes stopped or paused, which take no images."""
    found = subprocess.run(["kind", "get", "nodes", "--name", NAME], text=True, capture_output=True, check=False)
    for node in found.stdout.split():
        subprocess.run(["docker", "unpause", node], capture_output=True, check=False)
        subprocess.run(["docker", "start", node], capture_output=True, check=False)


@contextlib.contextmanager
def cluster(keep, audited=None):
    """A new one, with the images of this tree; or with `keep` the one that is there, which also stays."""
    clear_ledger()
    if keep:
        wake_nodes()
    config = FOLDER / "kind.json"
    config.write_text(json.dumps(kind_config(audited)))
    subprocess.run([ROOT / "hack/kind/up", NAME], check=True, cwd=ROOT, env=dict(
        os.environ, HOLDFAST_KIND_CONFIG=str(config), **({"HOLDFAST_KEEP": "1"} if keep else {})))
    kubeconfig = FOLDER / "kubeconfig"
    shutil.copy(ROOT / "build/kind" / NAME, kubeconfig)
    try:
        with Cluster(kubeconfig, "holdfast:local", WORKER_IMAGE, NAME) as found:
            found.docker("build", "--target", "build", "--tag", BUILD_IMAGE, str(ROOT), timeout=1800)
            found.docker("build", "--tag", WORKER_IMAGE, str(ROOT / "tests/referee/worker"), timeout=600)
            found.load_image(WORKER_IMAGE)
            yield found
    finally:
        if not keep:
            subprocess.run(["kind", "delete", "cluster", "--name", NAME], check=False)
