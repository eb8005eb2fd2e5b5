"""Strikes real nodes and processes, each with its undo, and notes when it did what. On kind: a node is a container."""

import contextlib
import json
import re
import threading
import time

from referee.checker import DEADLY, Struck
from referee.cluster import AWAY
from referee.ledger import read
from localcluster import ClusterError, wait_for
from referee.strikes import GONE, NODE, PROCESS, STILL_RUNS, node_for

UNDO = 300  # seconds for what another strike holds up
RUNTIME = ("ctr", "-n", "k8s.io", "task")
CONTAINERS = {"api-server-paused": "kube-apiserver", "etcd-paused": "etcd"}


def clock():
    """Seconds of CLOCK_BOOTTIME: the workers' clock, for all nodes are containers of this machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Nemesis:
    """folder: of the ledger and the switches. systems: whose controllers are killed, and whose attempts are struck."""

    def __init__(self, cluster, systems, folder, say):
        self.cluster, self.systems, self.folder, self.say = cluster, systems, folder, say
        self._vendors = {system.name: system.vendor for system in systems}
        self.struck = []
        self.failures = []
        self._out = {}  # node: the strike that has it
        self._lock = threading.Lock()
        self._control_plane = f"{cluster.kind}-control-plane"
        self._workers = cluster.workers()
        # Held while a node is killed or a process on it frozen: what is frozen takes no SIGKILL.
        self._acts = {node: threading.Lock() for node in self._workers}

    def restore(self):
        """Undoes what an earlier run that was killed has left in a cluster that is kept."""
        for process in CONTAINERS.values():
            self._signal("CONT", process)
        for node in self._workers:
            self.cluster.docker("unpause", node, check=False)
            self.cluster.docker("start", node)
            self._cut(node, "-D", check=False)
            self.cluster.on_node(node, "systemctl", "start", "kubelet")
            for container, state in self._tasks(node).items():
                if state == "PAUSED":
                    self.cluster.on_node(node, *RUNTIME, "resume", container, check=False)
        for node in self._workers:
            self.cluster.await_node(node)

    def run(self, schedule, begin):
        """All strikes at their times after `begin`; returns when all are undone."""
        threads = []
        for strike in schedule:
            time.sleep(max(0.0, begin + strike.at - clock()))
            thread = threading.Thread(target=self._strike, args=(strike, begin))
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()

    def _strike(self, strike, begin):
        try:
            at = clock()
            with self._effect(strike) as (nodes, keys):
                if strike.kind in DEADLY:
                    at = clock()  # what was frozen was thawed first
                self.say(f"{strike.kind} {' '.join(nodes)} {len(keys) or ''}".rstrip())
                time.sleep(max(0.0, begin + strike.end - clock()))
            with self._lock:
                self.struck.append(Struck(strike.kind, at, clock(), tuple(nodes), tuple(keys)))
        except Exception as error:  # pylint: disable=broad-except
            # A strike that failed would make the run look better than it was.
            self.failures.append(f"{strike.kind} at {strike.at}: {error}")
            self.say(self.failures[-1][:2000])

    def _effect(self, strike):
        """A context whose begin strikes and whose end takes it back; it gives nodes and keys."""
        if strike.kind in NODE or strike.kind == GONE:
            return self._node(strike)
        if strike.kind in PROCESS:
            return self._process(strike)
        if strike.kind == "controllers-killed":
            return self._controllers()
        return self._paused(CONTAINERS[strike.kind])

    # -- nodes ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _node(self, strike):
        node = self._take(strike)
        try:
            do, undo = {
                GONE: (self._kill, self._start), "node-killed": (self._kill, self._start),
                "node-paused": (lambda n: self.cluster.docker("pause", n), lambda n: self.cluster.docker("unpause", n)),
                "node-cut-off": (lambda n: self._cut(n, "-I"), lambda n: self._cut(n, "-D")),
                "kubelet-stopped": (lambda n: self.cluster.on_node(n, "systemctl", "stop", "kubelet"),
                                    lambda n: self.cluster.on_node(n, "systemctl", "start", "kubelet")),
            }[strike.kind]
            do(node)
            try:
                yield [node], []
            finally:
                undo(node)
        finally:
            with self._lock:
                self._out.pop(node)

    def _take(self, strike):
        """A worker that no strike has."""
        running = self._running()
        with self._lock:
            free = [node for node in self._workers if node not in self._out]
            at_work = [(attempt.unit.system, attempt.node) for attempt in running]
            node = node_for(strike, free, at_work, self._vendors)
            self._out[node] = strike
        return node

    def _kill(self, node):
        """A process that is frozen takes no SIGKILL, and holds the whole node up."""
        with self._acts[node]:
            for container, state in self._tasks(node).items():
                if state == "PAUSED":
                    self.cluster.on_node(node, *RUNTIME, "resume", container, check=False)
            self.cluster.docker("kill", node)

    def _start(self, node):
        self.cluster.docker("start", node)
        self.cluster.await_node(node)

    def _cut(self, node, how, check=True):
        """No packet between the node, or its pods, and the control plane, in either direction. kind's network also has
        IPv6, by which a kubelet would go on."""
        network = ".NetworkSettings.Networks.kind"
        addresses = self.cluster.docker("inspect", "-f", f"{{{{{network}.IPAddress}}}} {{{{{network}.GlobalIPv6Address}}}}",
                                        self._control_plane).stdout.split()
        for address in addresses:
            program = "ip6tables" if ":" in address else "iptables"
            for chain, side in (("INPUT", "-s"), ("OUTPUT", "-d"), ("FORWARD", "-s"), ("FORWARD", "-d")):
                self.cluster.on_node(node, program, how, chain, side, address, "-j", "DROP", check=check)

    # -- processes of workers -----------------------------------------------------------------------

    def _running(self):
        """Attempts that beat a moment ago."""
        now = clock()
        return [attempt for attempt in read(self.folder / "ledger") if attempt.end is None and now - attempt.last < STILL_RUNS]

    def _victims(self, strike):
        """Of each system one attempt on a node that is well, chosen by the strike's number."""
        chosen = []
        running = self._running()
        for system in self.systems:
            own = sorted((attempt for attempt in running if attempt.unit.system == system.name
                          and attempt.node not in self._out), key=lambda attempt: attempt.unit)
            if own:
                chosen.append(own[int(strike.choice * len(own))])
        return chosen

    @contextlib.contextmanager
    def _process(self, strike):
        victims, struck = self._victims(strike), []
        with contextlib.ExitStack() as undo:
            for victim in victims:
                if strike.kind == "process-frozen":
                    try:
                        undo.enter_context(self._frozen(victim))
                    except ClusterError:
                        continue  # it has just ended
                else:
                    switch = self.folder / "switch" / victim.key
                    switch.write_text("crash" if strike.kind == "process-crashed" else "hang")
                    undo.callback(switch.unlink)
                struck.append(victim)
            yield [], [key for victim in struck for key in self._keys_with(strike, victim)]
            if strike.kind == "process-crashed":
                time.sleep(STILL_RUNS)  # until it has read its switch

    def _keys_with(self, strike, victim):
        """A frozen container of a warm worker has other attempts in it."""
        if strike.kind != "process-frozen":
            return [victim.key]
        return [attempt.key for attempt in read(self.folder / "ledger") if attempt.pod == victim.pod]

    @contextlib.contextmanager
    def _frozen(self, victim):
        with self._acts[victim.node]:
            container, _ = self.cluster.container_of(victim.node, {"metadata": {"uid": victim.pod, "name": victim.pod}})
            self.cluster.on_node(victim.node, *RUNTIME, "pause", container)
        try:
            yield
        finally:
            wait_for(f"container {container[:12]} on {victim.node} to be thawed",
                     lambda: self._thaws(victim.node, container), UNDO, poll=1)

    def _thaws(self, node, container):
        """True once it is, or is gone with its pod or its node. A node that is paused meanwhile answers later."""
        state = self.cluster.docker("inspect", "-f", "{{.State.Status}}", node).stdout.strip()
        if state in ("exited", "dead"):
            return True
        tasks = self._tasks(node)
        if tasks and tasks.get(container) == "PAUSED":
            self.cluster.on_node(node, *RUNTIME, "resume", container, check=False)
            return False  # it is looked at once more
        return bool(tasks)

    def _tasks(self, node):
        """{container: state} of a node; empty: it does not answer."""
        listed = self.cluster.docker("exec", node, *RUNTIME, "ls", check=False)
        return dict(re.findall(r"^(\S+)\s+\d+\s+(\w+)", listed.stdout, re.MULTILINE))

    # -- the control plane ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _paused(self, process):
        self._signal("STOP", process)
        try:
            yield [], []
        finally:
            self._signal("CONT", process)
        # It is over when the API server answers from etcd again.
        wait_for("the API server to answer", self._answers, UNDO, poll=0.2)

    def _answers(self):
        try:
            return self.cluster.api("GET", "/api/v1/namespaces/default", timeout=2)[0] == 200
        except AWAY:
            return False

    def _signal(self, signal, process):
        self.cluster.on_node(self._control_plane, "pkill", f"-{signal}", "-x", process[:15])

    @contextlib.contextmanager
    def _controllers(self):
        """kill -9 for each controller's process, where it runs; the kubelet starts it again."""
        for namespace, selector in sorted({one for system in self.systems for one in system.controllers}):
            found = json.loads(self.cluster.kubectl("-n", namespace, "get", "pods", "-l", selector, "-o", "json").stdout)
            for pod in found["items"]:
                name = pod["spec"]["containers"][0]["name"]
                # The API server has another UID for a static pod than its kubelet.
                own = pod["metadata"].get("annotations", {}).get("kubernetes.io/config.hash", pod["metadata"]["uid"])
                try:
                    _, process = self.cluster.container_of(
                        pod["spec"]["nodeName"], {"metadata": pod["metadata"] | {"uid": own}}, name)
                except ClusterError:
                    continue  # it is being started
                self.cluster.on_node(pod["spec"]["nodeName"], "kill", "-9", str(process), check=False)
        yield [], []
