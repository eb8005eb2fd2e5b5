#!/usr/bin/python3
"""What heartbeats cost, on a real control plane on this machine.

    tests/bench/heartbeats.py --operator build/release/operator/runtime/holdfast-operator

So many running jobs (2,000) without a heartbeat, left alone for a while: what the API server, etcd and
the operator use. Then as many with a heartbeat of the default 30 s, each with a real agent and its
child as processes of this machine, behind the fence: the requests and CPU that the renewals cost the
server, what the operator uses for watching them, and what an agent uses. Then the same agents go on
without the fence: what of a renewal is the fence's. Prints a table and writes JSON. Numbers are of the
machine that it runs on.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/bench")]

from agent import agent_binary  # noqa: E402
from fence import install_fence, lift_fence, token_of  # noqa: E402
from holdfast import Jobs, Operator, die_with_parent, install, job, operator_binary  # noqa: E402
from localcluster import Cluster, wait_for  # noqa: E402
from measure import cpu_seconds, memory_mib, precise_cpu_seconds, proportional_kib, write_result  # noqa: E402

NAMESPACE = "work"
AGENT = "/holdfast/agent"
CHILD = ("sleep", "infinity")
LIMIT = 900
# What is on its way from before, and first renewals, are over by then.
SETTLE_SECONDS = 40


def say(line):
    print(line, file=sys.stderr, flush=True)


class Agents:
    """The processes of the jobs' pods, one agent and its child each."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, pathlib.Path(folder)
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()

    def start(self, pool, pods):
        """In a kubelet's stead. The processes are this thread's, whose end would be theirs."""
        for words, environment, credentials in pool.map(self._prepare, pods):
            with open(credentials / "output", "wb") as output:
                self.processes.append(subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    env=environment, cwd=credentials, preexec_fn=die_with_parent))

    def _prepare(self, pod):
        uid, main = pod["metadata"]["uid"], pod["spec"]["containers"][0]
        credentials = self.folder / uid
        credentials.mkdir()
        shutil.copy(self.cluster.folder / "pki/ca.crt", credentials / "ca.crt")
        (credentials / "token").write_text(token_of(
            self.cluster, NAMESPACE, "default", {"kind": "Pod", "metadata": pod["metadata"]}))
        fields = {"metadata.uid": uid, "metadata.name": pod["metadata"]["name"], "metadata.namespace": NAMESPACE}
        environment = {one["name"]: one.get("value") or fields.get(
            one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath"), "")
            for one in main.get("env", [])}
        environment |= {
            "PATH": os.environ["PATH"], "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.cluster.ports["kube-apiserver"]),
            "HOLDFAST_CREDENTIALS": str(credentials),
            "HOLDFAST_PROGRESS_FILE": str(credentials / "progress"),
            "HOLDFAST_TERMINATION_LOG": str(credentials / "termination-log")}
        words = [agent_binary() if word == AGENT else word for word in main["command"]]
        return words, environment, credentials

    def cpu(self):
        """Seconds, of all of them together, without their children."""
        return sum(precise_cpu_seconds(process.pid) for process in self.processes)

    def ended(self):
        return sum(1 for process in self.processes if process.poll() is not None)


def requests(cluster):
    """{(verb, resource): requests so far} as the API server counts them."""
    counted = {}
    for line in cluster.api("GET", "/metrics")[1].splitlines():
        if line.startswith("apiserver_request_total{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            key = labels["verb"], labels["resource"]
            counted[key] = counted.get(key, 0) + float(line.rsplit(" ", 1)[1])
    return counted


def watch(cluster, operator, seconds, agents=None):
    """What is used while nothing happens but what always does."""
    pids = {part: cluster.processes()[part]["pid"] for part in ("kube-apiserver", "etcd")}
    pids["operator"] = operator.process.pid

    def read():
        return (time.monotonic(), requests(cluster), {name: cpu_seconds(pid) for name, pid in
                                                      pids.items()}, agents.cpu() if agents else 0)

    before = read()
    time.sleep(seconds)
    after = read()
    took = after[0] - before[0]
    rates = {key: (count - before[1].get(key, 0)) / took for key, count in after[1].items()}
    result = {"seconds": round(took, 1),
              "requests_per_second": round(sum(rates.values()), 1),
              "lease_updates_per_second": round(rates.get(("PUT", "leases"), 0), 1),
              "cpu_percent": {name: round(100 * (after[2][name] - before[2][name]) / took, 2)
                              for name in pids},
              "operator_memory_mib": memory_mib(operator.process.pid)["now"]}
    if agents:
        count = len(agents.processes)
        some = agents.processes[::max(1, count // 50)]
        result["agent"] = {
            "cpu_ms_per_minute": round(60000 * (after[3] - before[3]) / took / count, 2),
            "memory_peak_mib": statistics.median(memory_mib(one.pid)["peak"] for one in some),
            "memory_share_mib": round(statistics.median(
                proportional_kib(one.pid) for one in some) / 1024, 2),
            "ended": agents.ended()}
    return result


def run(jobs, operator, count, agents=None, **spec):
    """So many jobs, all running, their pods' agents too."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: jobs.apply(job(f"job-{number}", command=CHILD, **spec)), range(count)))
        known = set()

        def all_run():
            pods = [pod for pod in jobs.pods() if pod["status"].get("phase") == "Running"]
            fresh = [pod for pod in pods if pod["metadata"]["uid"] not in known]
            known.update(pod["metadata"]["uid"] for pod in fresh)
            if agents:
                agents.start(pool, fresh)
            return len(known) >= count

        wait_for("all pods to run", all_run, LIMIT, poll=2)
    wait_for("the operator to have nothing to do", lambda: operator.metric(
        "workqueue_depth") == 0 and operator.metric("holdfast_jobs", phase="Running") >= count,
        LIMIT, poll=1)


def delete(jobs, count):
    """All of them, and waits until their pods are gone."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: jobs.delete(f"job-{number}"), range(count)))
    wait_for("the jobs and their pods to be gone", lambda: not jobs.list() and not jobs.pods(), LIMIT, poll=2)


def renewal_ms(result, key):
    """The API server's CPU for each renewal, all that watching it costs included."""
    with_it, plain = result[key], result["plain"]
    cpu = (with_it["cpu_percent"]["kube-apiserver"] - plain["cpu_percent"]["kube-apiserver"]) / 100
    renewals = with_it["lease_updates_per_second"] - plain["lease_updates_per_second"]
    return round(1000 * cpu / renewals, 2)


def table(result):
    """The result for people."""
    columns = [("without", result["plain"]), ("with", result["heartbeat"]), ("unfenced", result["unfenced"])]
    lines = [f"{result['jobs']} running jobs, heartbeat".ljust(36) + "".join(name.rjust(12) for name, _ in columns)]
    for key, label in (("requests_per_second", "API requests/s, all"),
                       ("lease_updates_per_second", "of them updates of Leases"),
                       ("operator_memory_mib", "operator's memory (MiB)")):
        lines.append(f"  {label}".ljust(36) + "".join(str(column[key]).rjust(12) for _, column in columns))
    for part in ("kube-apiserver", "etcd", "operator"):
        lines.append(f"  {part}, % of a core".ljust(36) + "".join(
            str(column["cpu_percent"][part]).rjust(12) for _, column in columns))
    agent = result["heartbeat"]["agent"]
    for key, label in (("cpu_ms_per_minute", "an agent's CPU (ms per minute)"),
                       ("memory_peak_mib", "its memory at most (MiB)"),
                       ("memory_share_mib", "of it not shared (PSS, MiB)")):
        lines.append(f"  {label}".ljust(48) + str(agent[key]).rjust(12))
    for key, label in (("heartbeat", "a renewal's CPU in the API server (ms)"),
                       ("unfenced", "the same without the fence")):
        lines.append(f"  {label}".ljust(48) + str(renewal_ms(result, key)).rjust(12))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=2000, help="default 2000")
    parser.add_argument("--seconds", type=int, default=120, help="of each watch; default 120")
    parser.add_argument("--nodes", type=int, default=20, help="simulated nodes; default 20")
    parser.add_argument("--operator", help="its binary; default: the newest build of the tree")
    parser.add_argument("--output", default=str(ROOT / "build/bench/heartbeats.json"))
    options = parser.parse_args()
    if options.operator:
        os.environ["HOLDFAST_OPERATOR"] = options.operator

    result = {"operator": pathlib.Path(operator_binary()).name, "cpus": os.cpu_count(),
              "load_before": os.getloadavg()[0], "jobs": options.jobs}
    say("starting a cluster ...")
    with Cluster(nodes=options.nodes, quiet=True, audit=False) as cluster, \
            tempfile.TemporaryDirectory() as folder, Agents(cluster, folder) as agents:
        install(cluster)
        cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        install_fence(cluster, [NAMESPACE])
        jobs = Jobs(cluster, NAMESPACE)
        with Operator(cluster, "--agent-image=holdfast/agent:bench") as operator:
            say(f"{options.jobs} jobs without a heartbeat ...")
            run(jobs, operator, options.jobs)
            time.sleep(SETTLE_SECONDS)
            result["plain"] = watch(cluster, operator, options.seconds)
            delete(jobs, options.jobs)
            say(f"{options.jobs} jobs with one, and their agents ...")
            run(jobs, operator, options.jobs, agents, heartbeat={})
            time.sleep(SETTLE_SECONDS)
            result["heartbeat"] = watch(cluster, operator, options.seconds, agents)
            say("the same without the fence ...")
            lift_fence(cluster, NAMESPACE)
            time.sleep(SETTLE_SECONDS)
            result["unfenced"] = watch(cluster, operator, options.seconds, agents)
            say("done")
    write_result(options.output, result)
    print(table(result))
    say(f"written to {options.output}")


if __name__ == "__main__":
    main()
