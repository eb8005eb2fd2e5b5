"""The second part of mode h: replicas among very many finished and running jobs. No real API server of one machine has
room for them, so this one only lists and watches (tests/support/many_objects.py), in a process of its own. Nothing
happens to these jobs: a replica reads, and writes nothing but its own Leases.
"""

import contextlib
import json
import multiprocessing
import pathlib
import tempfile
import time
import types

from holdfast import Operator
from localcluster import ClusterError, wait_for
from many_objects import ManyObjects
from measure import cpu_seconds, memory_mib
from resting_objects import SHARDS

REPLICAS = 4
# Kubernetes deletes ended pods beyond these (--terminated-pod-gc-threshold).
ENDED_PODS = 12_500
# The kubelet takes 110 at most.
PODS_OF_A_NODE = 100
# A replica returns what it has freed within a minute.
SETTLE_SECONDS = 60
LIMIT = 3600


def measure(large, say):
    """One row each: only running jobs, finished ones besides, and the same with more replicas."""
    finished, running = large
    nodes = max(1, running // PODS_OF_A_NODE)
    rows = []
    for count, replicas in ((0, 1), (finished, 1), (finished, REPLICAS)):
        say(f"  {count} finished and {running} running jobs, replicas: {replicas} ...")
        rows.append({"finished": count, "running": running, "replicas": replicas, "nodes": nodes,
                     **_measure(count, running, replicas, nodes)})
        say(f"  {rows[-1]}")
    return rows


def _serve(pipe, folder, finished, options):
    with ManyObjects(finished, **options) as server:
        pipe.send(server.kubeconfig(folder))
        while pipe.recv():
            pipe.send({"sent": server.sent, "writes": server.writes, "walks": list(server.walks.values())})


class Server:
    """The server's process."""

    def __init__(self, folder, finished, **options):
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=_serve, args=(theirs, folder, finished, options), daemon=True)

    def __enter__(self):
        self._process.start()
        self.pid, self.kubeconfig = self._process.pid, self._pipe.recv()
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.join()

    def seen(self):
        """{"sent": bytes of lists, "writes": [...], "walks": [...]} so far."""
        self._pipe.send(True)
        return self._pipe.recv()


def _measure(finished, running, replicas, nodes):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack, \
            Server(folder, finished, running=running, pods=ENDED_PODS, nodes=nodes, streams=True) as server:
        began, server_began = time.monotonic(), cpu_seconds(server.pid)
        operators = [_spawned(folder, server, number, stack) for number in range(replicas)]
        pids = [operator.process.pid for operator in operators]
        _wait("all jobs and pods to be listed", operators, lambda: all(_has_its_part(operator, replicas)
                                                                      for operator in operators), poll=0.1)
        listed, listed_cpu, sent = time.monotonic(), list(map(cpu_seconds, pids)), server.seen()["sent"]
        _wait("each job to be looked at", operators, lambda: not any(
            operator.metric("workqueue_depth") for operator in operators), poll=0.1)
        at_work, cpu, server_cpu = time.monotonic(), list(map(cpu_seconds, pids)), cpu_seconds(server.pid)
        # A replica that began earlier keeps what the others have got for a minute.
        _wait("each job to be in one cache", operators, lambda: sum(
            operator.metric("holdfast_cache_objects", kind="durablejobs") for operator in operators) == running)
        time.sleep(SETTLE_SECONDS)
        settled = list(map(memory_mib, pids))
        _wait("all finished jobs to be counted", operators, lambda: sum(
            operator.metric("holdfast_jobs", phase="Succeeded") for operator in operators) == finished)
        seconds = time.monotonic() - at_work
        share = lambda now, before: round(100 * (now - before) / seconds, 1)
        seen = server.seen()
        _check(seen, operators, running)
        # A replica that got or lost a shard during one walked again.
        ended = [walk for walk in seen["walks"] if walk["jobs"] and walk["ended"]]
        walks = sorted(ended, key=lambda walk: walk["ended"])[-replicas:]
        return {
            "listed": round(listed - began, 1), "listed_cpu": [round(one, 1) for one in listed_cpu],
            "start": round(at_work - began, 1), "start_cpu": [round(one, 1) for one in cpu],
            "server_start_cpu": round(server_cpu - server_began, 1), "start_sent_mib": sent >> 20,
            "settled_mib": [one["now"] for one in settled], "peak_mib": [one["peak"] for one in settled],
            "walked_mib": [memory_mib(pid)["now"] for pid in pids], "sent_mib": seen["sent"] >> 20,
            "walks": [round(walk["ended"] - walk["began"], 1) for walk in walks],
            "walks_lists": [round(walk["sending"], 1) for walk in walks], "later_seconds": round(seconds),
            "later_percent": [share(cpu_seconds(pid), before) for pid, before in zip(pids, cpu)],
            "server_later_percent": share(cpu_seconds(server.pid), server_cpu), "writes": len(seen["writes"]),
            "lapses": [operator.log().count("this replica stops acting") for operator in operators]}


def _spawned(folder, server, number, stack):
    # Of the guard the server has nothing, and nothing starts here.
    operator = Operator(types.SimpleNamespace(folder=folder), "--require-guard=false", name=f"replica-{number}",
                        kubeconfig=server.kubeconfig)
    stack.callback(operator.kill)
    return operator.spawn()


def _wait(what, operators, condition, poll=1):
    def all_run():
        return all(operator.process.poll() is None for operator in operators)

    try:
        wait_for(what, condition, LIMIT, alive=all_run, poll=poll)
    except ClusterError as error:
        logs = "\n".join(pathlib.Path(operator.log_path).read_text()[-4000:] for operator in operators)
        raise ClusterError(f"{error}\n{logs}") from error


def _has_its_part(operator, replicas):
    """It holds its part of the shards, and what belongs to them is listed."""
    if not (operator.address or operator.find_address()):
        return False
    status, text = operator.get("/debug/ownership")
    held = [shard for shard in json.loads(text)["shards"] if shard["held"]] if status == 200 else []
    return len(held) == SHARDS // replicas and not any("wait until" in shard["why"] for shard in held)


def _check(seen, operators, running):
    """Else these are no figures of replicas at rest."""
    if seen["writes"]:
        raise ClusterError(f"{len(seen['writes'])} writes, with nothing to do: {seen['writes'][:5]}")
    counted = sum(operator.metric("holdfast_jobs", phase="Running") for operator in operators)
    if counted != running:
        raise ClusterError(f"{counted} jobs run to the replicas, and not {running}")
