"""Mode g: what one write costs the API server, by kind of write, in CPU and in allocated memory.

Many jobs at a time send their first request, then all their second, and so on; before and after each step the
server's own figures are read. Scheduler, controller-manager and simulated nodes are away, and one watch is open on
each kind of object. `--beside REVISION` installs the CRD of another git revision too, under another group, and
measures it by turns with this tree's: ratios within one run hold on a busy machine, milliseconds do not.
"""

import collections
import json
import subprocess
import threading

import objects
from holdfast import CRD_PATH
from localcluster import wait_for
from plane import ROOT
from price import allocated
from templates import NAMES

GROUP = "holdfast.dev"
IN_FLIGHT = 16
WARM_UP = 16  # writes of each kind that are not counted
SERVER = "kube-apiserver"


def _install_beside(cluster, revision):
    """That revision's CRD under a group of its own; the group."""
    group = f"beside.{GROUP}"
    path = CRD_PATH.resolve().relative_to(ROOT)
    text = subprocess.run(["git", "-C", str(ROOT), "show", f"{revision}:{path}"],
                          capture_output=True, text=True, check=True).stdout
    text = text.replace(f"durablejobs.{GROUP}", f"durablejobs.{group}").replace(f"group: {GROUP}", f"group: {group}")
    cluster.kubectl("apply", "--server-side", "-f", "-", input=text)
    wait_for("the API server to serve the other revision's kind", lambda: cluster.api(
        "GET", f"/apis/{group}/v1alpha1/durablejobs")[0] == 200, 60)
    return group


class _Watches:
    """One watch on each path, read and thrown away."""

    def __init__(self, cluster, paths):
        self._cluster, self._ended = cluster, False
        for path in paths:
            threading.Thread(target=self._read, args=(path,), daemon=True).start()

    def _read(self, path):
        while not self._ended:
            for _ in self._cluster.watch(path, timeout=600):
                if self._ended:
                    return

    def close(self):
        self._ended = True


class _Meter:
    """Sums of what the steps of chains have cost the API server."""

    def __init__(self, plane, count):
        self._plane, self._count = plane, count
        before = allocated(plane.cluster)
        self._look = allocated(plane.cluster) - before  # what reading the figure allocates
        self.costs = collections.defaultdict(lambda: {"writes": 0, "cpu_seconds": 0.0, "bytes": 0.0})

    def warm_up(self, chain):
        """The first writes of a kind pay for what the server makes once."""
        self._plane.send([request for _, request in chain], WARM_UP)

    def run(self, chain):
        """`chain`: [(kind of write, request)]."""
        steps = self._plane.send_by_step([request for _, request in chain], self._count, IN_FLIGHT)
        for kind, _ in chain:
            before, cpu = allocated(self._plane.cluster), self._plane.cpu(SERVER)
            next(steps)
            cpu = self._plane.cpu(SERVER) - cpu
            taken = allocated(self._plane.cluster) - before - self._look
            cost = self.costs[kind]
            cost["writes"] += self._count
            cost["cpu_seconds"] += cpu
            cost["bytes"] += taken
        steps.close()

    def figures(self):
        return {kind: {"writes": cost["writes"],
                       "cpu_ms": round(1000 * cost["cpu_seconds"] / cost["writes"], 2),
                       "allocated_kb": round(cost["bytes"] / cost["writes"] / 1024)}
                for kind, cost in self.costs.items()}


def mode_g(plane, options, say):
    """{"this": {template: {kind of write: figures}}}, and "beside" with those of the other revision's CRD."""
    cluster = plane.cluster
    groups = {"this": GROUP}
    if options.beside:
        groups["beside"] = _install_beside(cluster, options.beside)
    for part in ("kube-scheduler", "kwok"):
        cluster.kill(part)
    plane.restart_controller_manager(None)
    watches = _Watches(cluster, [f"/apis/{group}/v1alpha1/durablejobs" for group in groups.values()] + [
        "/api/v1/pods", "/apis/batch/v1/jobs", "/apis/coordination.k8s.io/v1/leases"])
    meters = {(whose, shape): _Meter(plane, options.writes) for whose in groups for shape in NAMES}
    for number in range(-1, options.rounds):
        say("  warming up ..." if number < 0 else f"  round {number + 1}: {options.writes} of each kind of write ...")
        for shape in NAMES:
            chains = [(meters[whose, shape], _durable_chain(plane.namespace("g"), group, shape))
                      for whose, group in list(groups.items())[::1 if number % 2 else -1]]
            if not options.durable_only:
                chains += [(meters["this", shape], chain) for chain in _others(plane, shape)]
            staged = objects.stage_writes(plane.namespace("g"), shape)
            chains.append((meters["this", shape], list(zip(_STAGED, staged))))
            for meter, chain in chains:
                (meter.warm_up if number < 0 else meter.run)(chain)
    watches.close()
    figures = {whose: {shape: meters[whose, shape].figures() for shape in NAMES} for whose in groups}
    return {**figures, "revision": options.beside}


_STAGED = ("DurableJob of three stages created", "its status: start (stages)", "its status: running (stages)",
           "its status: end (stages)")


def _durable_chain(namespace, group, shape):
    requests = json.loads(json.dumps(objects.job_writes(namespace, shape)).replace(
        f"{GROUP}/v1alpha1", f"{group}/v1alpha1"))
    return list(zip(("DurableJob created", "its status: start", "its status: running", "its status: end"), requests))


def _others(plane, shape):
    yield list(zip(("Pod created", "its status: running (kubelet)", "its status: ended (kubelet)",
                    "its finalizer taken off", "Pod deleted"), objects.pod_writes(plane.namespace("g"), shape)))
    if shape == NAMES[0]:
        lease = objects.lease_writes(plane.namespace("g"))
        yield list(zip(("Lease created", "Lease granted", *["Lease renewed"] * (len(lease) - 2)), lease))
    yield list(zip(("batch/v1 Job created", "its status: start (batch/v1)", "its status: end (batch/v1)"),
                   objects.batch_writes(plane.namespace("g"), shape)))
