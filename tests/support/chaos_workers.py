"""Warm workers and operators that are disturbed at random, for test_chaos_workers.

    disturber = Disturber(rng, hosts, operators, live=lambda: {"0a1b..."}, begun_last=lambda: "small-7")
    disturber.strike(least=4)         # a worker is killed, and perhaps something else happens
    disturber.thaw()                  # those that have stood still for long enough
"""

import collections
import signal
import time


STANDS = (40, 15)  # seconds; workers are cut off after 10


class Disturber:
    """Each strike kills a worker. Half of them also disturb another worker, some kill an operator.

    `live()`: the UIDs of the pods whose agents are at work: a pool may take its time to replace one that never was.
    `begun_last()`: the name of the worker whose long command has begun last, or None."""

    def __init__(self, rng, hosts, operators, live, begun_last):
        self._rng, self._hosts, self._operators, self._live, self._begun_last = rng, hosts, operators, live, begun_last
        self._disturbed = set()  # UIDs of pods
        self._standing = []  # (pod, until when)
        self._extras = []
        self.killed = collections.defaultdict(list)  # {worker: [time.monotonic()]}: names come again
        self.frozen = set()  # names of workers
        self.done = collections.Counter()

    def strike(self, least):
        """False: there are not so many workers to choose from now, so it does nothing."""
        pod = self._pick() if len(self._workers()) >= least else None
        if not pod:
            return False
        pod.signal(signal.SIGKILL)
        self.killed[pod.pod_name].append(time.monotonic())
        self.done["killed"] += 1
        if not self._extras:  # each of them comes up as often as the others
            self._extras = [self._freeze, self._cut_off, self._delete, self._kill_operator] + 4 * [None]
            self._rng.shuffle(self._extras)
        if (extra := self._extras.pop()) and not extra():
            self._extras.append(extra)  # it cannot now
        return True

    def thaw(self, all_of_them=False):
        """Agents that have stood still for their time go on."""
        now = time.monotonic()
        for pod, until in self._standing:
            if all_of_them or until <= now:
                pod.signal(signal.SIGCONT)
        self._standing = [one for one in self._standing if one[1] > now and not all_of_them]

    def _workers(self):
        """Those at work that were not disturbed yet."""
        live = self._live()
        return [pod for host in self._hosts.nodes for pod in list(host.pods.values())
                if pod.uid in live and pod.process.poll() is None and pod.uid not in self._disturbed]

    def _pick(self, name=None):
        """One of them, this one if it is named."""
        pods = [pod for pod in self._workers() if name in (None, pod.pod_name)]
        if not pods:
            return None
        pod = self._rng.choice(sorted(pods, key=lambda one: one.pod_name))
        self._disturbed.add(pod.uid)
        return pod

    def _freeze(self):
        """The agent alone stands still, and a long command of its goes on."""
        name = self._begun_last()
        pod = self._pick(name) if name else None
        if pod:
            pod.signal(signal.SIGSTOP)
            # Every other one is back while its commands run: it finds itself cut off, and ends them.
            self._standing.append((pod, time.monotonic() + STANDS[self.done["frozen"] % 2]))
            self.frozen.add(pod.pod_name)
            self.done["frozen"] += 1
        return pod

    def _cut_off(self):
        if pod := self._pick():
            pod.link.cut_off()
            self.done["cut off"] += 1
        return pod

    def _delete(self):
        if pod := self._pick():
            pod.node.cluster.api("DELETE", pod.path)
            self.done["deleted"] += 1
        return pod

    def _kill_operator(self):
        operator = self._rng.choice(self._operators)
        operator.kill()
        operator.spawn()
        self.done["operators killed"] += 1
        return operator
